/** Worker infos, by PyTorch's cases, and the default deadline. */
import { describe, expect, test } from '@jest/globals'
import { expose } from '../common/function-registry.js'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import { Cluster, failure, thrown } from '../worker/sim-cluster.suite.js'
import { call, currentWorker, remote, rref } from './api.js'
import { getRpcTimeout, getWorkerInfo, getWorkerInfos, setRpcTimeout } from './names.js'

const echo = <T>(value: T) => value
const add = (a: number, b: number) => a + b
const never = () => new Promise<never>(() => {})
/** An info that came from elsewhere is a target here. */
const callTo = (to: WorkerInfo, a: number, b: number) => call(to, add, [a, b])
const ownerOf = (ref: { owner(): WorkerInfo }) => ref.owner()
expose({ echo, add, never, callTo, ownerOf })

describe('names and ids', () => {
  test('GRP-11: getWorkerInfo gives oneself, or a worker by name, id or info', async () => {
    await new Cluster(1, 3).run(1, async () => {
      expect(getWorkerInfo()).toEqual({ name: 'worker1', id: 1 })
      for (const target of ['worker2', 2, { name: 'worker2', id: 2 }]) expect(getWorkerInfo(target)).toEqual({ name: 'worker2', id: 2 })
      expect(thrown(() => getWorkerInfo('worker9')).code).toBe('UNKNOWN_WORKER')
      expect(thrown(() => getWorkerInfo({ name: 'worker2', id: 1 })).code).toBe('UNKNOWN_WORKER')
    })
    expect(thrown(() => getWorkerInfo()).code).toBe('RPC_NOT_INITIALIZED')
  })

  test('GRP-11: getWorkerInfos gives all that live', async () => {
    const cluster = new Cluster(2, 3)
    await cluster.run(0, async () => {
      const names = () =>
        getWorkerInfos()
          .map(({ name }) => name)
          .sort()
      expect(names()).toEqual(['worker0', 'worker1', 'worker2'])
      const wait = failure(call('worker1', never))
      cluster.world.clock.setTimer(5, () => cluster.world.crash('worker1'))
      await wait
      expect(names()).toEqual(['worker0', 'worker2'])
    })
  })

  test('GRP-11: an info travels, is equal where it arrives, and is a target there', async () => {
    await new Cluster(3, 3).run(0, async () => {
      const info = getWorkerInfo('worker2')
      expect(await call('worker1', echo, [info])).toEqual(info)
      expect(await call('worker1', callTo, [info, 3, 4])).toBe(7)
      expect(await call(info.id, callTo, [getWorkerInfo(), 1, 1])).toBe(2)
      // As PyTorch's `owner_equality`: each holder of a reference finds the same owner.
      const [mine, theirs] = [rref(1), remote('worker2', echo, [1])]
      expect([mine.owner(), theirs.owner()]).toEqual([getWorkerInfo(), info])
      expect(await call('worker1', ownerOf, [theirs])).toEqual(info)
      expect(await call('worker2', ownerOf, [theirs])).toEqual(info)
      expect(await call('worker1', ownerOf, [mine])).toEqual(getWorkerInfo())
      theirs.dispose()
    })
  })

  test('GRP-11: what names nobody is UNKNOWN_WORKER, and nothing is sent', async () => {
    const cluster = new Cluster(4, 2)
    await cluster.run(0, async () => {
      for (const odd of [2, -1, 1.5, Number.NaN, '', '1', 'Worker1', null, undefined, true, {}, { id: 1 }, 1n]) {
        expect(await failure(call(odd as Target, echo, [1]))).toMatchObject({ code: 'UNKNOWN_WORKER' })
        expect(thrown(() => remote(odd as Target, echo, [1])).code).toBe('UNKNOWN_WORKER')
      }
      expect(cluster.messages).toBe(0)
    })
  })
})

describe('the default deadline', () => {
  test('GRP-12: setRpcTimeout holds for later calls, which may say another', async () => {
    const cluster = new Cluster(5, 2)
    await cluster.run(0, async () => {
      expect(getRpcTimeout()).toBe(60_000)
      const before = failure(call('worker1', never))
      setRpcTimeout(100)
      expect(getRpcTimeout()).toBe(100)
      const startMs = currentWorker().clock.now()
      expect(await failure(call('worker1', never))).toMatchObject({ code: 'RPC_TIMEOUT', values: { timeoutMs: 100 } })
      expect(await failure(remote('worker1', never).toHere())).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(currentWorker().clock.now() - startMs).toBeLessThan(250)
      expect(await failure(call('worker1', never, [], { timeoutMs: 500 }))).toMatchObject({ values: { timeoutMs: 500 } })
      setRpcTimeout(0)
      const unlimited = call('worker1', never)
      expect(await before).toMatchObject({ code: 'RPC_TIMEOUT', values: { timeoutMs: 60_000 } })
      expect(currentWorker().clock.now()).toBeGreaterThanOrEqual(60_000)
      expect(unlimited.done).toBe(false)
      unlimited.catch(() => {})
      for (const odd of [-1, Number.NaN, '5' as unknown as number]) expect(thrown(() => setRpcTimeout(odd)).code).toBe('TIMEOUT_INVALID')
      expect(getRpcTimeout()).toBe(0)
      // Of this worker alone.
      expect(cluster.workers[1]!.rpcTimeoutMs).toBe(60_000)
    })
    expect(thrown(() => setRpcTimeout(1)).code).toBe('RPC_NOT_INITIALIZED')
  })
})
