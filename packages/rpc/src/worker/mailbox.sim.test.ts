/** Full mailboxes between simulated workers: refused calls, what is noted of them, who waits for room, and floods. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, ready, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, cutShort, failure, overSeeds, thrown } from './sim-cluster.suite.js'

const echo = (value: unknown) => value
const nothing = () => {}
const wait = (ms: number) => {
  const { clock } = currentWorker()
  return new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const bounce = async (hops: number, to: number): Promise<number> => (hops === 0 ? 0 : 1 + (await call(to, bounce, [hops - 1, 1 - to])))
const take = (ref: RRef): number => {
  ref.dispose()
  return 7
}
const make = () => ({ n: 7 })
class Box {
  n = 7
  get(): number {
    return this.n
  }
}
expose({ echo, nothing, wait, bounce, take, make, Box })

/** Calls from `from` that wait at `to`, as each end counts them. */
function accounts({ workers }: Cluster, from: number, to: number) {
  const { outgoing } = workers[from]!.peers.resolve(to).ledger
  const { incoming } = workers[to]!.peers.resolve(from).ledger
  return { sent: outgoing.calls, sentBytes: outgoing.bytes, waiting: incoming.calls, waitingBytes: incoming.bytes }
}

const settled = async (futures: readonly Promise<unknown>[]) => {
  const results = await Promise.allSettled(futures)
  const errors = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason as { code: string })
  return { served: results.length - errors.length, errors }
}

describe('a full mailbox', () => {
  test('CRE-1, CRE-3: the call beyond the window is rejected at once, and nothing is noted of it', async () => {
    await overSeeds(
      5,
      2,
      async (cluster) => {
        const me = cluster.workers[0]!
        let intercepted = 0
        me.intercept({ outgoing: () => void intercepted++ })
        using box = await remote('worker1', Box)
        await box.call('get', [])
        const forks = me.debugInfo()
        intercepted = 0
        const first = Array.from({ length: 8 }, (_, i) => call('worker1', echo, [i]))
        const before = { messages: cluster.messages, info: me.debugInfo() }
        const refused = call('worker1', echo, [box])
        expect(refused.done).toBe(true)
        expect(cluster.messages).toBe(before.messages)
        expect(me.debugInfo()).toEqual(before.info)
        expect(me.debugInfo().pendingChildren).toBe(forks.pendingChildren)
        expect(intercepted).toBe(8)
        const error = await failure(refused)
        expect(error.code).toBe('MAILBOX_FULL')
        expect(error.message).toContain("await ready('worker1')".replace('await', 'Await'))
        expect(error.values).toMatchObject({ worker: 'worker1', workerId: 1, calls: 10 })
        expect(await Promise.all(first)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
        // remote throws it, and leaves nothing.
        const more = Array.from({ length: 10 }, () => call('worker1', nothing))
        expect(thrown(() => remote('worker1', Box)).code).toBe('MAILBOX_FULL')
        await Promise.all(more)
      },
      { mailbox: { callsMax: 10 } },
    )
  })

  test('CRE-1: bytes count: the call that reaches bytesMax is the last, however large it is', async () => {
    await overSeeds(
      3,
      2,
      async (cluster) => {
        const large = call('worker1', echo, [new Uint8Array(50_000)])
        expect(accounts(cluster, 0, 1).sentBytes).toBeGreaterThan(50_000)
        expect((await failure(call('worker1', nothing))).code).toBe('MAILBOX_FULL')
        expect(await large).toHaveLength(50_000)
        await call('worker1', nothing)
      },
      { mailbox: { bytesMax: 1000 } },
    )
  })

  test('CRE-2: calls to oneself have a window as well', async () => {
    await overSeeds(
      2,
      1,
      async () => {
        const { served, errors } = await settled(Array.from({ length: 10 }, (_, i) => call('worker0', echo, [i])))
        expect(served).toBe(4)
        expect(errors.map(({ code }) => code)).toEqual(Array(6).fill('MAILBOX_FULL'))
        for (let i = 0; i < 20; i++) expect(await call('worker0', echo, [i])).toBe(i)
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-2: pairs have windows of their own', async () => {
    await overSeeds(
      3,
      3,
      async () => {
        const full = Array.from({ length: 4 }, () => call('worker1', nothing))
        expect((await failure(call('worker1', nothing))).code).toBe('MAILBOX_FULL')
        await call('worker2', nothing)
        await Promise.all(full)
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-4: ordinary traffic has no message about it; a flood one for each half window', async () => {
    for (const [count, told] of [
      [7, 0],
      [8, 1],
      [100, 12],
    ] as const) {
      await overSeeds(
        2,
        2,
        async (cluster) => {
          for (let i = 0; i < count; i++) await call('worker1', echo, [i])
          const sent = cluster.gate(1, 0).sent.filter((name) => name === 'PROGRESS')
          expect(sent).toHaveLength(told)
        },
        { mailbox: { callsMax: 16 } },
      )
    }
  })

  test('CRE-5, MB-19: a call that has begun occupies nothing: 10,000 calls within each other under a window of 16', async () => {
    await overSeeds(1, 2, async () => expect(await call(1, bounce, [10_000, 0])).toBe(10_000), { mailbox: { callsMax: 16 } })
  })

  test('CRE-5: a call gives its place back however it ends before it begins: expired, unreadable, with references that are not confirmed', async () => {
    await overSeeds(
      5,
      3,
      async (cluster) => {
        const gate = cluster.gate(0, 1)
        const { pump, letters: deadLetters } = cluster.workers[1]!
        // The calls have arrived, and worker1 is busy.
        const run = pump.runNow
        pump.runNow = () => {}
        const late = Array.from({ length: 4 }, () => failure(call('worker1', nothing, [], { timeoutMs: 20 })))
        for (const error of await Promise.all(late)) expect(error.code).toBe('RPC_TIMEOUT')
        await wait(30)
        pump.runNow = run
        cluster.workers[1]!.pushTask({ run: () => {} }, 0)
        // Its type and number can still be read, what follows cannot.
        gate.tamper = cutShort
        const spoilt = await Promise.all(
          Array.from({ length: 4 }, async () => {
            await ready('worker1')
            return failure(call('worker1', echo, ['xxxx']))
          }),
        )
        expect(spoilt.map(({ code }) => code)).toEqual(Array(4).fill('WIRE_CORRUPT'))
        gate.tamper = null
        // A reference of worker2's, which worker1 has to confirm there first.
        using box = remote('worker2', Box)
        for (let i = 0; i < 12; i++) {
          await ready('worker1')
          expect(await call('worker1', take, [box])).toBe(7)
        }
        await wait(100)
        expect(accounts(cluster, 0, 1)).toMatchObject({ waiting: 0, waitingBytes: 0 })
        expect(deadLetters.counts).toMatchObject({ expired: 4, unreadable: 4 })
        deadLetters.counts.expired = 0
        deadLetters.counts.unreadable = 0
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-6: a peer that sends more than the window is answered with MAILBOX_FULL, its references are disposed, the rest is served', async () => {
    await overSeeds(
      10,
      3,
      async (cluster) => {
        using box = remote('worker2', Box)
        using mine = rref(new Box())
        // Nothing is confirmed while worker2 does not answer, so calls with its reference wait.
        cluster.gate(2, 1).shut()
        const calls = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? call('worker1', take, [box]) : call('worker1', take, [mine])))
        const all = settled(calls)
        await wait(50)
        cluster.gate(2, 1).unshut()
        const { served, errors } = await all
        expect(served).toBeGreaterThanOrEqual(8)
        expect(errors.length).toBeGreaterThanOrEqual(50)
        expect(new Set(errors.map(({ code }) => code))).toEqual(new Set(['MAILBOX_FULL']))
        const { letters: deadLetters } = cluster.workers[1]!
        expect(deadLetters.counts['mailbox-full']).toBe(errors.length)
        deadLetters.counts['mailbox-full'] = 0
        expect(await call('worker1', echo, [1])).toBe(1)
      },
      { mailboxOf: (id) => (id === 1 ? { callsMax: 8 } : {}) },
    )
  })

  test('CRE-9: gradients, replies, fetches and the protocol of references need no place', async () => {
    await overSeeds(
      5,
      2,
      async (cluster) => {
        const ref = remote('worker1', make)
        const gate = cluster.gate(0, 1)
        gate.shut()
        const full = Array.from({ length: 3 }, () => call('worker1', nothing))
        expect((await failure(call('worker1', nothing))).code).toBe('MAILBOX_FULL')
        const value = ref.toHere()
        gate.unshut()
        expect(await value).toMatchObject({ n: 7 })
        ref.dispose()
        await Promise.all(full)
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-13: fetches have a window of their own: calls do not use it up, nor they that of calls', async () => {
    await overSeeds(
      5,
      2,
      async (cluster) => {
        using value = remote('worker1', make)
        await value.toHere()
        const { pump } = cluster.workers[1]!
        const run = pump.runNow
        pump.runNow = () => {}
        const fetches = Array.from({ length: 20 }, () => value.toHere())
        const all = settled(fetches)
        const calls = Array.from({ length: 2 }, () => call('worker1', nothing))
        await wait(10)
        pump.runNow = run
        cluster.workers[1]!.pushTask({ run: () => {} }, 0)
        await Promise.all(calls)
        const { served, errors } = await all
        // The sender does not know that the first fetch has begun.
        expect(served).toBe(3)
        expect(errors.map(({ code }) => code)).toEqual(Array(17).fill('MAILBOX_FULL'))
        for (let i = 0; i < 20; i++) expect(await value.toHere()).toEqual({ n: 7 })
      },
      { mailbox: { callsMax: 4 } },
    )
  })
})

describe('ready', () => {
  test('CRE-7: resolves when there is room; with it nothing is refused, from any number of loops', async () => {
    await overSeeds(
      10,
      2,
      async () => {
        let served = 0
        const loop = async () => {
          for (let i = 0; i < 20; i++) {
            await ready('worker1')
            void call('worker1', echo, [i]).then(() => served++)
          }
        }
        await Promise.all(Array.from({ length: 7 }, loop))
        await wait(100)
        expect(served).toBe(140)
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-8: a place that is not used is offered to the next', async () => {
    await overSeeds(
      3,
      2,
      async () => {
        const calls = Array.from({ length: 4 }, () => call('worker1', nothing))
        await Promise.all(Array.from({ length: 20 }, () => ready('worker1')))
        await Promise.all(calls)
      },
      { mailbox: { callsMax: 4 } },
    )
  })

  test('CRE-10: ends with its deadline, the worker’s death, the shutdown, or its signal', async () => {
    for (const [code, end] of [
      ['RPC_TIMEOUT', () => {}],
      ['WORKER_DIED', ({ world }: Cluster) => world.crash('worker1')],
      ['RPC_SHUT_DOWN', ({ workers }: Cluster) => void workers[0]!.close()],
      ['CALL_CANCELLED', (_: Cluster, controller: AbortController) => controller.abort('enough')],
    ] as const) {
      const cluster = new Cluster(3, 2, { mailbox: { callsMax: 2 } })
      await cluster.run(0, async () => {
        cluster.gate(0, 1).shut()
        for (let i = 0; i < 2; i++) call('worker1', nothing).catch(() => {})
        const controller = new AbortController()
        const waiting = failure(ready('worker1', { timeoutMs: 50, signal: controller.signal }))
        await wait(5)
        end(cluster, controller)
        const error = await waiting
        expect(error.code).toBe(code)
        if (code === 'CALL_CANCELLED') {
          expect(error.cause).toBe('enough')
          expect((await failure(ready('worker1', { signal: controller.signal }))).code).toBe(code)
        }
        expect(cluster.workers[0]!.peers.resolve(1).ledger.outgoing.waiters.size).toBe(0)
      })
    }
  })

  test('CRE-10: one that is cancelled waits no more, and takes no place', async () => {
    const cluster = new Cluster(3, 2, { mailbox: { callsMax: 2 } })
    await cluster.run(0, async () => {
      cluster.gate(0, 1).shut()
      const calls = [call('worker1', nothing), call('worker1', nothing)]
      const waiting = ready('worker1')
      expect(waiting.cancel('enough')).toBe(true)
      expect(await failure(waiting)).toMatchObject({ code: 'CALL_CANCELLED', op: 'ready', cause: 'enough' })
      expect(cluster.info(0).pendingCalls).toBe(2)
      expect(cluster.workers[0]!.peers.resolve(1).ledger.outgoing.waiters.size).toBe(0)
      cluster.gate(0, 1).unshut()
      await Promise.all(calls)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CRE-10: of an unknown worker, or outside of any, it rejects', async () => {
    await overSeeds(1, 1, async () => expect((await failure(ready('nobody'))).code).toBe('UNKNOWN_WORKER'))
    expect((await failure(ready('worker0'))).code).toBe('RPC_NOT_INITIALIZED')
  })
})

describe('a flood', () => {
  const SENDERS = 8
  const EACH = 400
  const WINDOW = 16
  /** `npm run soak -- --seeds 100 worker/mailbox` takes more. */
  const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1)

  test('CRE-11: of calls to one slow worker: nothing is lost without an error, what waits stays within the window, control goes on', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const cluster = new Cluster(seed, SENDERS + 2, { mailbox: { callsMax: WINDOW } })
      const target = SENDERS
      const pinger = SENDERS + 1
      let deepest = 0
      const made = { served: 0, refused: 0 }
      const flood = (id: number) =>
        cluster.workers[id]!.run(async () => {
          for (let i = 0; i < EACH; i++) {
            // Half of them look before they call.
            if (id % 2 === 0) await ready(target)
            call(target, wait, [1]).then(
              () => made.served++,
              ({ code }: { code: string }) => {
                expect(code).toBe('MAILBOX_FULL')
                expect(id % 2).toBe(1)
                made.refused++
              },
            )
            deepest = Math.max(deepest, accounts(cluster, id, target).waiting, accounts(cluster, id, target).sent)
          }
        })
      await cluster.run(pinger, async () => {
        const ref = remote(target, make)
        const floods = Array.from({ length: SENDERS }, (_, id) => flood(id))
        for (let pings = 0; pings < 5000 && made.served + made.refused < SENDERS * EACH; pings++) {
          expect(await ref.toHere()).toEqual({ n: 7 })
          await wait(0.1)
        }
        await Promise.all(floods)
        ref.dispose()
      })
      expect(made.served + made.refused).toBe(SENDERS * EACH)
      expect(made.served).toBeGreaterThanOrEqual((SENDERS * EACH) / 2)
      expect(made.refused).toBeGreaterThan(0)
      expect(deepest).toBe(WINDOW)
      expect(await cluster.leftovers()).toEqual([])
    }
  })
})
