/** Options, listeners and targets of a cluster: it refuses a wrong one at once, instead of ignoring it or failing in a later turn. */
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import { jobs } from '../jobs/job-pool.js'
import { launch as realLaunch } from './launch.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/members.js', import.meta.url)
const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' })

test.each<[string, unknown]>([
  ['no options', undefined],
  ['options not in braces', 2],
  ['an option that there is not', { workers: 1, suprvision: {} }],
  ['supervision not in braces', { workers: 1, supervision: true }],
  ['an option of supervision that there is not', { workers: 1, supervision: { restarts: 3 } }],
  ['a strategy that there is not', { workers: 1, supervision: { strategy: 'one-for-none' } }],
  ['onRestart that is no function', { workers: 1, supervision: { onRestart: 5 } }],
  ['a sink that is no function', { workers: 1, stdout: process.stdout }],
  ['a policy that there is not', { workers: 1, referenceLeaks: 'throw' }],
  ['workerOptions that there are not', { workers: 1, workerOptions: { execArgv: [] } }],
])('CLU-65: launch with %s', async (_what, options) => {
  await expect(realLaunch(PROGRAM, options as never)).rejects.toThrow(invalid)
})

test('CLU-65: a program or module that is none, or is a folder', async () => {
  await expect(realLaunch(5 as never, { workers: 1 })).rejects.toThrow(invalid)
  await expect(realLaunch('', { workers: 1 })).rejects.toMatchObject({ cause: { code: 'PROGRAM_NOT_FOUND' } })
  expect(() => jobs(undefined as never)).toThrow(invalid)
  expect(() => jobs(PROGRAM, { thread: 2 } as never)).toThrow(invalid)
})

test('CLU-65: listeners, options and targets of a cluster, which goes on', async () => {
  const cluster = await launch(PROGRAM, { workers: 1 })
  const no = undefined as never
  for (const listen of ['onWorkerDeath', 'onWorkerLeft', 'onWorkerStalled', 'onWorkerRecovered'] as const)
    expect(() => cluster[listen](no)).toThrow(invalid)
  expect(() => cluster.close(500 as never)).toThrow(invalid)
  expect(() => cluster.on('worker0', 500 as never)).toThrow(invalid)
  expect(() => cluster.jobs(PROGRAM, null as never)).toThrow(invalid)
  expect(() => cluster.on(null as never)).toThrow(expect.objectContaining({ code: 'UNKNOWN_WORKER' }))
  const refused = [
    cluster.inspect(no),
    cluster.runHere(no),
    cluster.join(2 as never),
    cluster.join('worker1', null as never),
    cluster.leave('worker0', 500 as never),
    cluster.restart('worker0', { timeout: 5 } as never),
    cluster.ready('worker0', null as never),
    cluster.on('worker0').runMain(5 as never),
  ]
  for (const each of refused) await expect(each).rejects.toThrow(invalid)
  expect(cluster.workers.map(({ name }) => name)).toEqual(['worker0'])
  // CLU-118: as long as it takes.
  await cluster.close({ timeoutMs: Number.POSITIVE_INFINITY, graceMs: Number.POSITIVE_INFINITY })
})
