/** The parameter server and its trainers on threads, of one process and of two. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { inlined } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { run } from './program.js'

const PROGRAM = new URL('./program.js', import.meta.url)

test.each([
  ['threads', {}],
  ['processes', { processes: 2 }],
])('on %s, together: the bits of the inlined program; when a trainer is killed, the run ends and names it', async (_place, spread) => {
  const trainers = ['trainer1', 'trainer2', 'trainer3']
  const workers = ['ps', ...trainers]
  const options = { mode: 'together', trainers, users: 60, items: 40, width: 4, batch: 8, steps: 4, lr: 0.3, seed: 2 } as const
  const oracle = await inlined({ workers }, (cluster) => cluster.on('ps').run(run, options))
  const cluster = await launch(PROGRAM, { workers, ...spread })
  try {
    cluster.onWorkerDeath(() => {})
    expect((await cluster.on('ps').run(run, options)).map(bits)).toEqual(oracle.map(bits))
    const endless = cluster.on('ps').run(run, { ...options, steps: 1_000_000 })
    const error = endless.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    await cluster.kill('trainer2')
    expect(await error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'trainer2' } })
  } finally {
    await cluster.close({ timeoutMs: 0 })
  }
})
