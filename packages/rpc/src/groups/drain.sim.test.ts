/** A worker that ends by its own decision, and what callers learn whose calls it did not begin, over seeds. */
import { expect, test } from '@jest/globals'
import { call, currentWorker, remote } from '../api/api.js'
import { drain } from '../api/group.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, withSeed } from '../worker/sim-cluster.suite.js'
import { MEMBERSHIP } from './membership.js'

const SEEDS = 20
const log: string[] = []
const sleep = (ms: number) => {
  const { clock } = currentWorker()
  return new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const work = async (name: string, ms: number): Promise<string> => {
  log.push(`${name} begins`)
  await sleep(ms)
  // A served function may still call, also its worker.
  await call(currentWorker().info.id, sleep, [1])
  await call('worker0', sleep, [1])
  log.push(`${name} ends`)
  return name
}
const make = () => ({ n: 1 })
const take = (ref: RRef) => ref.dispose()
const never = () => new Promise<never>(() => {})
expose({ sleep, work, make, take, never })

async function overClusters(size: number, body: (cluster: Cluster) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      log.length = 0
      const cluster = new Cluster(seed, size)
      await cluster.run(0, () => body(cluster))
      expect(cluster.bugs).toEqual([])
    })
  }
}

test('DRN-1: what had come is served to its end, what comes later is refused and was not run, then the worker is gone', async () => {
  await overClusters(3, async (cluster) => {
    const draining = cluster.workers[1]!
    using elsewhere = remote('worker2', make)
    await elsewhere.toHere()
    const before = [call('worker1', work, ['a', 30]), call('worker1', work, ['b', 5])]
    await sleep(2)
    const drained = draining.drain()
    const error = await failure(call('worker1', work, ['late', 1]))
    expect(error).toMatchObject({ code: 'WORKER_DRAINING', values: { worker: 'worker1', workerId: 1 } })
    expect(error.workers.map(({ name }: { name: string }) => name)).toEqual(['worker1'])
    // Its references are disposed; a creation fails as a call does.
    expect((await failure(call('worker1', take, [elsewhere]))).code).toBe('WORKER_DRAINING')
    expect((await failure(remote('worker1', make).toHere())).code).toBe('WORKER_DRAINING')
    expect(await Promise.all(before)).toEqual(['a', 'b'])
    await drained
    expect(log).toEqual(['a begins', 'b begins', 'b ends', 'a ends'])
    await sleep(5)
    expect((await failure(call('worker1', work, ['late', 1]))).code).toBe('WORKER_DIED')
    expect(draining.deadLetters().counts.draining).toBe(3)
    await draining.run(() => drain())
    elsewhere.dispose()
    await sleep(5)
    expect(cluster.info(2)).toMatchObject({ ownerRRefs: 0, forks: 0 })
  })
})

test('DRN-1, CRE-18: calls that are held, since their caller reads no answers, are served before the worker is gone; meanwhile it is not at a standstill', async () => {
  const cluster = new Cluster(1, 2)
  await cluster.run(0, async () => {
    const draining = cluster.workers[1]!
    const { standstill } = MEMBERSHIP.of(draining)
    const { link, source } = draining.peers.resolve(0)
    let unreadBytes = 2 ** 27
    Object.defineProperty(link!, 'unreadBytes', { get: () => unreadBytes })
    const calls = Array.from({ length: 100 }, () => call('worker1', sleep, [5]))
    await sleep(10)
    const drained = draining.drain()
    await sleep(300)
    expect(source.isHeld).toBe(true)
    expect(draining.isClosed).toBe(false)
    expect((standstill as unknown as { said(): unknown }).said()).toBeNull()
    unreadBytes = 0
    await Promise.all(calls)
    await drained
  })
  expect(cluster.bugs).toEqual([])
})

test('DRN-2: fetches and the protocol of references go on while it drains', async () => {
  await overClusters(2, async (cluster) => {
    const value = remote('worker1', make)
    await value.toHere()
    const serving = call('worker1', work, ['a', 20])
    await sleep(2)
    const drained = cluster.workers[1]!.drain()
    expect(await value.toHere()).toEqual({ n: 1 })
    value.dispose()
    await sleep(2)
    expect(cluster.info(1).ownerRRefs).toBe(0)
    await Promise.all([serving, drained])
  })
})

test('DRN-3: after its time it closes all the same, and says so', async () => {
  await overClusters(2, async (cluster) => {
    const endless = failure(call('worker1', never))
    await sleep(2)
    const error = await failure(cluster.workers[1]!.drain({ timeoutMs: 50 }))
    expect(error).toMatchObject({ code: 'RPC_TIMEOUT', op: 'drain' })
    expect((await endless).code).toBe('WORKER_DIED')
  })
})

test('DRN-4: close tells the callers of what it has received and not begun that it was not run; of what had begun it cannot know', async () => {
  await overClusters(2, async (cluster) => {
    const closing = cluster.workers[1]!
    const begun = failure(call('worker1', never))
    await sleep(2)
    const { pump } = closing
    const run = pump.runNow
    pump.runNow = () => {}
    const waiting = [failure(call('worker1', work, ['x', 1])), failure(remote('worker1', make).toHere())]
    await sleep(5)
    pump.runNow = run
    await closing.close()
    const underWay = failure(call('worker1', work, ['y', 1]))
    expect((await begun).code).toBe('WORKER_DIED')
    for (const error of await Promise.all(waiting)) expect(error.code).toBe('WORKER_DRAINING')
    expect((await underWay).code).toBe('WORKER_DIED')
    expect(log).toEqual([])
    expect(cluster.info(0).pendingCalls).toBe(0)
  })
})
