/**
 * A worker is killed in the middle of a forward or a backward pass: every pending promise on every other worker rejects at
 * once and names it, earlier replies are delivered, nothing hangs, the others continue, and the process ends by itself.
 */
import { describe, expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import * as deaths from '../fixtures/deaths.js'
import { script } from '../script.fixture.js'
import type { Cluster } from './cluster.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/deaths.js', import.meta.url)
/** Far below the deadline of a call (60 s): what takes so long has waited for something else than the news of the death. */
const AT_ONCE_MS = 2000
const DEAD = 'WORKER_DIED about victim'

/** A cluster, and a promise of `count` reports of progress. */
async function launchWatched(workers: string[], count: number): Promise<{ cluster: Cluster; ready: Promise<void> }> {
  let left = count
  let isReady!: () => void
  const ready = new Promise<void>((resolve) => {
    isReady = resolve
  })
  const cluster = await launch(PROGRAM, { workers, onProgress: () => --left === 0 && isReady() })
  return { cluster, ready }
}

async function expectNothingLeft(cluster: Cluster): Promise<void> {
  for (let tries = 0; ; tries++) {
    const infos = await cluster.debugInfo()
    try {
      for (const info of Object.values(infos)) {
        expect(info).toMatchObject({
          pendingCalls: 0,
          servingCalls: 0,
          autogradContexts: 0,
          currentBackwardPasses: 0,
          userRRefs: 0,
          ownerRRefs: 0,
        })
      }
      return
    } catch (error) {
      // Clean-up messages are one-way; they get a moment.
      if (tries === 50) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

describe('a worker killed during forward', () => {
  test('everything that waits for it rejects at once by name, on every other worker; the others go on', async () => {
    const { cluster, ready } = await launchWatched(['a', 'b', 'victim', 'c'], 2)
    const waiting = Promise.all([cluster.on('a').run(deaths.waitInForward, 'b'), cluster.on('c').run(deaths.waitInForward, 'b')])
    await ready
    const killed = performance.now()
    await cluster.kill('victim')
    const ends = await waiting
    expect(performance.now() - killed).toBeLessThan(AT_ONCE_MS)
    for (const end of ends) {
      expect(end).toEqual({ call: DEAD, rpcAsync: DEAD, withoutDeadline: DEAD, toHere: DEAD, nested: DEAD, fromMyself: DEAD })
    }
    expect(await cluster.on('a').run(deaths.passOver, ['b', 'c', 'a'], 'double')).toEqual({ gradient: '27' })
    await expectNothingLeft(cluster)
    await cluster.close()
  })

  test('a reply that had arrived before is delivered', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'victim'] })
    cluster.onWorkerDeath(() => {})
    expect(await cluster.on('a').run(deaths.repliesBeforeDeath)).toEqual({ replied: 'value 7', rest: DEAD })
    await cluster.close()
  })
})

describe('a worker killed during backward', () => {
  test('the counter-check: with a victim that lives the passes end well', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'victim', 'c'] })
    expect(await cluster.on('a').run(deaths.passOver, ['b', 'victim', 'c'], 'double')).toEqual({ gradient: '18' })
    await expectNothingLeft(cluster)
    await cluster.close()
  })

  test('every pass that needs it fails at once by name, whoever is root; contexts end; the others go on', async () => {
    const { cluster, ready } = await launchWatched(['a', 'b', 'victim', 'c'], 1)
    const passes = Promise.all([
      cluster.on('a').run(deaths.passOver, ['b', 'victim', 'c'], 'stuckInBackward', 3),
      cluster.on('b').run(deaths.passOver, ['a', 'victim'], 'stuckInBackward', 3),
      cluster.on('c').run(deaths.passOver, ['victim', 'b'], 'stuckInBackward', 3),
    ])
    await ready
    const killed = performance.now()
    await cluster.kill('victim')
    const ends = await passes
    expect(performance.now() - killed).toBeLessThan(AT_ONCE_MS)
    expect(ends).toEqual([{ backward: DEAD }, { backward: DEAD }, { backward: DEAD }])
    expect(await cluster.on('a').run(deaths.passOver, ['b', 'c', 'a'], 'double')).toEqual({ gradient: '27' })
    await expectNothingLeft(cluster)
    await cluster.close()
  })

  test('it ends itself inside of its own backward', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'victim', 'c'] })
    cluster.onWorkerDeath(() => {})
    expect(await cluster.on('a').run(deaths.passOver, ['b', 'victim', 'c'], 'exitInBackward')).toEqual({ backward: DEAD })
    await expectNothingLeft(cluster)
    await cluster.close()
  })

  test('the root dies: its contexts end everywhere', async () => {
    const { cluster, ready } = await launchWatched(['victim', 'b', 'c'], 1)
    const pass = cluster
      .on('victim')
      .run(deaths.passOver, ['b', 'victim', 'c'], 'stuckInBackward')
      .catch((error) => error.code)
    await ready
    await cluster.kill('victim')
    expect(await pass).toBe('WORKER_DIED')
    await expectNothingLeft(cluster)
    expect(await cluster.on('b').run(deaths.passOver, ['c'], 'double')).toEqual({ gradient: '3' })
    await cluster.close()
  })
})

describe('the process ends by itself', () => {
  test.each(['dies-in-forward', 'dies-in-backward'])('%s', async (way) => {
    const { code, out, err } = await script(new URL('../fixtures/dies.js', import.meta.url), way)
    expect(err).toBe('')
    expect(out).toBe(`{"a":"${DEAD}"}\nend of script\n`)
    expect(code).toBe(0)
  })
})
