/** A store that a worker keeps, reached by calls: transport's contract, over seeds, and what happens when a worker ends. */
import { describe, expect, test } from '@jest/globals'
import type { Store } from '@postgrad/transport'
import { describeStore } from '@postgrad/transport/store-suite'
import { HOSTED_STORE } from '../groups/store-host.js'
import { Cluster, failure, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { currentWorker } from './api.js'
import { storeOn } from './store-over-rpc.js'

const sleep = (cluster: Cluster, ms: number): Promise<void> => new Promise((resolve) => cluster.world.clock.setTimer(ms, resolve))

/** A store whose methods run as one worker, though several use it in one program. */
function as(worker: WorkerRuntime, store: Store): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const method = target[name as keyof Store] as (...args: never[]) => unknown
      return (...args: never[]) => worker.run(() => method.apply(target, args))
    },
  })
}

for (const seed of [1, 2, 3]) {
  describeStore(`a store over RPC, seed ${seed}`, {
    async run(body) {
      const cluster = new Cluster(seed, 3)
      const [host, a, b] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
      const user = (worker: WorkerRuntime) =>
        as(
          worker,
          worker.run(() => storeOn(host.info)),
        )
      let isClosed = false
      await cluster.world.run(
        body({
          a: user(a),
          // The worker that keeps it is a user like others.
          b: user(seed === 3 ? host : b),
          sleep: (ms) => sleep(cluster, ms),
          close: () => {
            isClosed = true
            // A closed worker fails with WORKER_DIED or RPC_SHUT_DOWN; the contract's STORE_CLOSED is the store's own.
            host.run(() => HOSTED_STORE.here.close())
          },
        }),
      )
      if (!isClosed) expect((await cluster.leftovers()).filter((line) => !line.includes('dead letters'))).toEqual([])
      expect(host.debugInfo().storeWaits ?? 0).toBe(0)
    },
  })
}

describe('a store over RPC', () => {
  test('STO-10: every wait ends when its worker dies or is closed, and later uses say so', async () => {
    for (const end of ['crash', 'close'] as const) {
      for (let seed = 1; seed <= 10; seed++) {
        await withSeed(`${seed}, ${end}`, async () => {
          const cluster = new Cluster(seed, 3)
          const host = cluster.workers[0]!
          const mains = [1, 2].map((id) =>
            cluster.workers[id]!.run(async () => {
              const store = storeOn('worker0')
              await store.set('k', 'v')
              for (const error of await Promise.all([failure(store.get('x', { timeoutMs: 0 })), failure(store.wait(['k', 'y']))])) {
                expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker0' } })
              }
              expect(await failure(store.set('k', 'w'))).toMatchObject({ code: 'WORKER_DIED' })
            }),
          )
          const own = host.run(() => failure(storeOn(0).get('x')))
          cluster.world.clock.setTimer(20, () => {
            if (end === 'crash') cluster.world.crash('worker0')
            else void host.close()
          })
          await cluster.world.run(Promise.all(end === 'crash' ? mains : [...mains, own]))
          if (end === 'close') expect(await own).toMatchObject({ code: 'RPC_SHUT_DOWN' })
          expect(cluster.bugs).toEqual([])
        })
      }
    }
  })

  test('STO-10: a user that dies waits no more, and a host that does not answer ends a wait by its deadline', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      cluster.workers[1]!.run(() => storeOn('worker0').get('x')).catch(() => {})
      await sleep(cluster, 20)
      expect(currentWorker().debugInfo().storeWaits).toBe(1)
      cluster.world.crash('worker1')
      await sleep(cluster, 20)
      expect(currentWorker().debugInfo().storeWaits).toBe(0)
    })
    const silent = new Cluster(2, 2)
    await silent.run(1, async () => {
      silent.gate(1, 0).shut()
      expect(await failure(storeOn('worker0').get('x', { timeoutMs: 50 }))).toMatchObject({
        code: 'RPC_TIMEOUT',
        values: { worker: 'worker0' },
      })
    })
  })

  test('STO-11: a worker that is none is refused by the name of what was called', async () => {
    const cluster = new Cluster(1, 1)
    for (const nobody of [3, 'nobody', null]) {
      expect(thrown(() => cluster.workers[0]!.run(() => storeOn(nobody as never)))).toMatchObject({ code: 'UNKNOWN_WORKER', op: 'storeOn' })
    }
  })

  test('STO-8: workers that race for a token agree on who has it', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 4)
        const holders = await cluster.world.run(
          Promise.all(
            cluster.workers.map((worker) =>
              worker.run(async () => {
                const store = storeOn('worker0')
                await store.compareSet('token', '', worker.info.name)
                await store.add('tried', 1)
                await store.wait(['token'])
                return store.getText('token')
              }),
            ),
          ),
        )
        expect(new Set(holders).size).toBe(1)
        expect(await cluster.run(3, () => storeOn('worker0').getText('tried'))).toBe('4')
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})
