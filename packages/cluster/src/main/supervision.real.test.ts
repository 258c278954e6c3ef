/** Supervised workers: dead ones restart by the strategy, in order; too many restarts end the cluster. Rules CLU-30 to CLU-35 in SPEC.md. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { launcher } from '../clusters.fixture.js'
import * as logged from '../fixtures/logged.js'
import * as members from '../fixtures/members.js'
import { script } from '../script.fixture.js'
import type { Cluster } from './cluster.js'
import type { SupervisionOptions } from './supervision.js'

const launch = launcher()
const LOGGED = new URL('../fixtures/logged.js', import.meta.url)
const PROGRAM = new URL('../fixtures/members.js', import.meta.url)
const LOG = join(tmpdir(), `postgrad-supervision-${process.pid}.log`)

beforeEach(() => writeFileSync(LOG, ''))
afterEach(() => rmSync(LOG, { force: true }))
const logOf = (): string[] => readFileSync(LOG, 'utf8').trimEnd().split('\n')

function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    () => {
      throw new Error('it did not reject')
    },
    (error) => error,
  )
}

/** A supervised cluster, and a wait until so many workers have been started again. */
async function supervised(program: URL, workers: readonly string[], supervision: SupervisionOptions) {
  const restarted: string[] = []
  let wake = (): void => {}
  const cluster = await launch(program, {
    workers,
    workerOptions: { env: { LOG } },
    supervision: {
      ...supervision,
      onRestart: async (worker) => {
        await supervision.onRestart?.(worker)
        restarted.push(`${worker.name}:${worker.id}`)
        // After the restart, of which this is a part.
        setImmediate(() => wake())
      },
    },
  })
  const until = async (count: number): Promise<readonly string[]> => {
    while (restarted.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return restarted
  }
  return { cluster, until }
}

const ids = (cluster: Cluster): string[] => cluster.workers.map(({ name, id }) => `${name}:${id}`)

describe('strategies', () => {
  test.each<[SupervisionOptions['strategy'], string[], string[]]>([
    ['one-for-one', ['b:3'], ['a:0', 'b:3', 'c:2']],
    ['rest-for-one', ['b:3', 'c:4'], ['a:0', 'b:3', 'c:4']],
    ['one-for-all', ['a:3', 'b:4', 'c:5'], ['a:3', 'b:4', 'c:5']],
  ])('CLU-30 %s starts again whom it binds together, in order', async (strategy, expected, there) => {
    const { cluster, until } = await supervised(PROGRAM, ['a', 'b', 'c'], { strategy })
    expect(await rejection(cluster.on('b').run(members.exit, 5))).toMatchObject({ code: 'WORKER_DIED', values: { exitCode: 5 } })
    expect(await until(expected.length)).toEqual(expected)
    expect(ids(cluster)).toEqual(there)
    for (const name of ['a', 'b', 'c']) {
      expect([...(await cluster.on(name).run(members.whoIsThere))].sort()).toEqual(there)
      expect((await cluster.on(name).run(members.askAll)).length).toBe(2)
    }
    await cluster.close()
    const { deaths, error } = await cluster.closed
    expect(deaths.map(({ values }) => values.worker)).toEqual(['b'])
    expect(error).toBeUndefined()
  })
})

test('CLU-31 workers start one by one in the order of their names and stop in reverse order', async () => {
  const { cluster } = await supervised(LOGGED, ['c', 'a', 'b'], {})
  expect(logOf()).toEqual(['start c', 'start a', 'start b'])
  await cluster.close()
  expect(logOf().slice(3)).toEqual(['stop b', 'stop a', 'stop c'])
})

test('CLU-31 one that does not stop within shutdownMs is killed, and the others still stop in order', async () => {
  const { cluster } = await supervised(LOGGED, ['a', 'b', 'c'], { shutdownMs: 200 })
  const spinning = rejection(cluster.on('b').run(logged.spinForEver))
  await cluster.close({ timeoutMs: 50 })
  expect(await spinning).toMatchObject({ code: 'CLUSTER_CLOSED' })
  expect(logOf().slice(3)).toEqual(['stop c', 'stop a'])
  expect((await cluster.closed).deaths).toEqual([])
})

test('CLU-32 onRestart runs before the next worker starts, and what it throws is a start that failed', async () => {
  let times = 0
  const { cluster, until } = await supervised(LOGGED, ['a', 'b', 'c'], {
    strategy: 'rest-for-one',
    intensity: 3,
    onRestart: async (worker) => {
      if (worker.name === 'b' && times++ === 0) throw new Error('not prepared')
      await cluster.on(worker).run(logged.log, 'prepared')
    },
  })
  await cluster.on('b').run(logged.exitSoon, 1)
  expect((await until(2)).map((text) => text[0])).toEqual(['b', 'c'])
  // The first new b was not prepared and is ended; of its log nothing is asked.
  expect(
    logOf()
      .slice(3)
      .filter((line) => !line.startsWith('stop')),
  ).toEqual(['start b', 'start b', 'prepared b', 'start c', 'prepared c'])
  await cluster.close()
})

test('CLU-32 onRestart may restart, add and remove other workers; of the one that it prepares this is refused', async () => {
  const within: unknown[] = []
  const { cluster, until } = await supervised(PROGRAM, ['a', 'b', 'c'], {
    onRestart: async ({ name }) => {
      if (name !== 'b') return
      within.push((await cluster.restart('c')).name, (await cluster.join('d')).name)
      await cluster.leave('a')
      within.push((await rejection(cluster.restart('b'))).code)
    },
  })
  await cluster.kill('b')
  expect(await until(2)).toEqual(['c:4', 'b:3'])
  expect(within).toEqual(['c', 'd', 'CHILD_STARTING'])
  expect(ids(cluster).sort()).toEqual(['b:3', 'c:4', 'd:5'])
  await cluster.close()
})

test('CLU-33 too many deaths in too short a time end the cluster with the reason', async () => {
  const { cluster, until } = await supervised(LOGGED, ['a', 'b'], { intensity: 1, periodMs: 60_000, shutdownMs: 300 })
  const waits = rejection(cluster.on('a').run(logged.waitForEver))
  await cluster.on('b').run(logged.exitSoon, 1)
  await until(1)
  await cluster.on('b').run(logged.exitSoon, 1)
  const { deaths, error } = await cluster.closed
  expect(deaths.length).toBe(2)
  expect(error).toMatchObject({
    code: 'SUPERVISOR_GAVE_UP',
    values: { child: 'b', intensity: 1, periodMs: 60_000 },
    cause: { code: 'WORKER_DIED' },
  })
  expect(['WORKER_DIED', 'CLUSTER_CLOSED']).toContain((await waits).code)
  expect(await rejection((async () => cluster.on('a').run(logged.waitForEver))())).toMatchObject({
    code: 'CLUSTER_CLOSED',
    cause: { code: 'SUPERVISOR_GAVE_UP' },
  })
  await cluster.close()
})

test('CLU-33, SUP-16 a restart of a worker waits as minBackoffMs says, and close does not wait for it', async () => {
  const { cluster, until } = await supervised(LOGGED, ['a', 'b'], { intensity: 5, minBackoffMs: 1000, randomFactor: 0.1 })
  let deaths = 0
  cluster.onWorkerDeath(() => deaths++)
  const died = async (count: number) => {
    while (deaths < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await cluster.on('b').run(logged.exitSoon, 1)
  await died(1)
  const sinceMs = performance.now()
  await until(1)
  // Listeners learn of a death a little late.
  expect(performance.now() - sinceMs).toBeGreaterThan(800)
  await cluster.on('b').run(logged.exitSoon, 1)
  await died(2)
  await cluster.close()
  expect(logOf().filter((line) => line === 'start b').length).toBe(2)
})

test('CLU-34 a supervised cluster grows and shrinks; newcomers are supervised too, and restarts by hand do not count', async () => {
  const { cluster, until } = await supervised(PROGRAM, ['a'], { intensity: 1, periodMs: 60_000, shutdownMs: 0 })
  const joining = cluster.join(['b', 'c'])
  const again = rejection(cluster.join('b'))
  expect(await joining).toMatchObject([{ name: 'b' }, { name: 'c' }])
  expect(await again).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'b' } })
  expect(await rejection(cluster.join('b'))).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'b' } })
  // More than the intensity, and none of them is a death.
  for (let round = 0; round < 3; round++) await cluster.restart('c')
  expect(ids(cluster)).toEqual(['a:0', 'b:1', 'c:5'])
  const leaving = cluster.leave('c')
  expect(await rejection(cluster.leave('c'))).toMatchObject({ code: 'UNKNOWN_WORKER' })
  await leaving
  expect(ids(cluster)).toEqual(['a:0', 'b:1'])
  await rejection(cluster.on('b').run(members.exit, 1))
  expect(await until(4)).toEqual(['c:3', 'c:4', 'c:5', 'b:6'])
  expect(await cluster.on('a').run(members.askAll)).toEqual(['b 8192'])
  await cluster.close()
  expect((await cluster.closed).deaths.map(({ values }) => values.workerId)).toEqual([1])
})

test('CLU-12 a supervised cluster has ended when its last worker has left, and not while one is about to be started again', async () => {
  const { cluster, until } = await supervised(PROGRAM, ['a', 'b'], { intensity: 2, periodMs: 60_000, shutdownMs: 1000 })
  let hasEnded = false
  void cluster.closed.then(() => {
    hasEnded = true
  })
  await cluster.leave('b')
  await rejection(cluster.on('a').run(members.exit, 1))
  await until(1)
  expect(hasEnded).toBe(false)
  await cluster.leave('a')
  expect(await cluster.closed).toMatchObject({ deaths: [{ values: { worker: 'a', cause: 'exited' } }] })
  expect(await cluster.join('c')).toMatchObject({ name: 'c' })
  await cluster.close()
})

test('CLU-6 close does not wait for an onRestart that never ends, and says so to all that waited behind it', async () => {
  let wake = (): void => {}
  const prepared = new Promise<void>((resolve) => {
    wake = resolve
  })
  const onRestart = (): Promise<never> => {
    wake()
    return new Promise(() => {})
  }
  const cluster = await launch(PROGRAM, { workers: ['a'], supervision: { onRestart } })
  const asked = [rejection(cluster.restart('a'))]
  await prepared
  asked.push(rejection(cluster.leave('a')), rejection(cluster.restart('a')), rejection(cluster.join('b')))
  await cluster.close({ timeoutMs: 0 })
  for (const error of await Promise.all(asked)) expect(error).toMatchObject({ code: 'CLUSTER_CLOSED' })
})

test('CLU-35 a launch whose workers cannot all start leaves nothing, and wrong options are refused', async () => {
  const broken = new URL('../fixtures/throws-at-import.js', import.meta.url)
  const error = await rejection(launch(broken, { workers: ['a', 'b'], supervision: {} }))
  expect(error).toMatchObject({ code: 'LAUNCH_FAILED', op: 'launch', values: { worker: 'a' }, cause: { code: 'BROKEN_PROGRAM' } })
  const wrong = rejection(launch(PROGRAM, { workers: 1, supervision: { strategy: 'one-for-none' as 'one-for-one' } }))
  expect(await wrong).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('CLU-33 the process of a cluster that gave up ends by itself', async () => {
  const { code, out, err } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'gives-up')
  expect([code, out, err]).toEqual([0, 'SUPERVISOR_GAVE_UP 2\nend of script\n', ''])
})
