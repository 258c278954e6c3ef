/** Death of workers, shutdown, membership, and what a bug does. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { MessageType } from '@postgrad/wire/internal'
import { call, currentRuntime, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Standing } from '../core/peer.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, overSeeds, runWithCrash, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import { WorkerRuntime } from '../worker/worker-runtime.js'

const never = () => new Promise<never>(() => {})
const echo = <T>(value: T) => value
const sleep = (ms: number): Promise<number> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const callNever = (to: string) => call(to, never)
const log: string[] = []
const sleepAndNote = async (ms: number) => {
  await sleep(ms)
  log.push(`${currentRuntime().info.name} was served`)
}
const sleepAndCall = async (ms: number, to: string) => {
  await sleep(ms)
  log.push((await failure(call(to, echo, [1]))).code)
}
expose({ never, echo, sleep, callNever, sleepAndNote, sleepAndCall })

describe('a worker dies', () => {
  test('RPC-27: every call that waits for it ends at once with WORKER_DIED, which names it; others go on', async () => {
    await withSeed('1..10', async () => {
      for (let seed = 1; seed <= 10; seed++) {
        const cluster = new Cluster(seed, 3)
        await cluster.run(0, async () => {
          const waits = [
            ...Array.from({ length: 20 }, () => call('worker1', never)),
            call('worker1', callNever, ['worker2']),
            remote('worker1', never).toHere(),
          ]
          const other = call('worker2', sleep, [50])
          const self = call('worker0', sleep, [50])
          await sleep(10)
          const atMs = cluster.world.nowMs
          cluster.world.crash('worker1')
          for (const error of await Promise.all(waits.map((wait) => failure(wait)))) {
            expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', workerId: 1 } })
            expect(error.message).toContain("'worker1'")
          }
          expect(cluster.world.nowMs - atMs).toBeLessThan(1)
          expect(await Promise.all([other, self])).toEqual([50, 50])
        })
        const left = await cluster.leftovers({ except: [1] })
        // worker2 still serves the request of worker1; the answer has no way back.
        expect(left).toEqual(['worker2: servingCalls 1'])
      }
    })
  })

  test('RPC-28: replies that had arrived before are delivered first', async () => {
    for (let seed = 1; seed <= 50; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2)
        await cluster.run(0, async () => {
          const order: string[] = []
          const waits = [1, 2, 3].map((n) =>
            call('worker1', echo, [n]).then(
              (value) => order.push(`${value}`),
              (error) => order.push(error.code),
            ),
          )
          const last = call('worker1', never).then(
            () => {},
            (error) => order.push(error.code),
          )
          while (cluster.gate(1, 0).sent.length < 3) await sleep(0)
          // The answers are on their way; a seeded number of them arrives, in order, and then the notice.
          cluster.world.crash('worker1')
          await Promise.all([...waits, last])
          const answers = order.filter((entry) => entry !== 'WORKER_DIED')
          expect(order).toEqual([...answers, ...Array.from({ length: 4 - answers.length }, () => 'WORKER_DIED')])
          expect(answers).toEqual(['1', '2', '3'].slice(0, answers.length))
        })
        expect(await cluster.leftovers({ except: [1] })).toEqual([])
      })
    }
  })

  test('RPC-29: later calls and references meet WORKER_DIED before anything is noted of them; workers() leaves it out', async () => {
    const cluster = new Cluster(2, 3)
    await cluster.run(0, async () => {
      const wait = failure(call('worker1', never))
      const owned = rref('mine')
      const local = remote('worker0', echo, ['local'])
      await local.toHere()
      await sleep(5)
      cluster.world.crash('worker1')
      await wait
      const self = currentRuntime()
      expect(self.workers().map(({ name }) => name)).toEqual(['worker0', 'worker2'])
      expect(self.deathOf(1)).toMatchObject({ code: 'WORKER_DIED' })
      expect(self.deathOf(2)).toBeNull()
      expect(self.resolve('worker1')).toEqual({ name: 'worker1', id: 1 })
      for (const to of ['worker1', 1]) {
        expect(await failure(call(to, echo, [owned]))).toMatchObject({ code: 'WORKER_DIED', op: 'echo' })
        expect(thrown(() => remote(to, echo, [local]))).toMatchObject({ code: 'WORKER_DIED' })
        expect(thrown(() => self.post(1, MessageType.CLEANUP_CONTEXT, []))).toMatchObject({ code: 'WORKER_DIED' })
      }
      expect(await call('worker2', echo, [1])).toBe(1)
    })
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('RPC-30: the death of a caller does not end what is served for it; nobody is answered', async () => {
    const cluster = new Cluster(3, 2)
    log.length = 0
    await cluster.run(0, async () => {
      const died = cluster.workers[1]!.run(() => call('worker0', sleepAndNote, [50]))
      died.catch(() => {})
      await sleep(10)
      cluster.world.crash('worker1')
      await sleep(100)
    })
    expect(log).toEqual(['worker0 was served'])
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('RPC-27: at whatever step a worker dies, a program ends with its value or with WORKER_DIED of that worker', async () => {
    const program = async () => {
      const [one, two] = await Promise.all([call('worker1', just1), call('worker2', callEcho, ['worker1'])])
      return one + two + (await call('worker1', callEcho, ['worker2']))
    }
    for (const victim of [1, 2]) {
      for (let seed = 1; seed <= 4; seed++) {
        for (let step = 0; ; step++) {
          const outcome = await withSeed(`${seed}, worker${victim} dies at step ${step}`, async () => {
            const cluster = new Cluster(seed, 3)
            const ended = await runWithCrash(cluster, cluster.workers[0]!.run(program), `worker${victim}`, step)
            if (ended.outcome === 'value') expect(ended.value).toBe(3)
            else expect(ended.error).toMatchObject({ code: 'WORKER_DIED', values: { worker: `worker${victim}` } })
            expect(cluster.world.nowMs).toBeLessThan(1)
            expect(
              await cluster.leftovers({
                except: [victim],
                letters: cluster.workers.reduce((n, w) => n + (w.info.id === victim ? 0 : w.debugInfo().deadLetters!), 0),
              }),
            ).toEqual([])
            return ended
          })
          if (!outcome.crashed) break
        }
      }
    }
  })
})

const just1 = () => 1
const callEcho = async (to: string): Promise<number> => call(to, just1)
expose({ just1, callEcho })

describe('shutdown', () => {
  test('RPC-31: what waits is rejected with RPC_SHUT_DOWN, and later calls are too', async () => {
    const cluster = new Cluster(4, 2)
    await cluster.run(0, async () => {
      const worker = currentRuntime()
      const held = remote('worker1', echo, [1])
      await held.toHere()
      const mine = rref('mine')
      const local = remote('worker0', never)
      await sleep(1)
      const waits = [
        call('worker1', never),
        call('worker0', never),
        remote('worker1', never).toHere(),
        local.toHere(),
        local.toHere({ timeoutMs: 0 }),
      ]
      const closed = worker.close()
      for (const error of await Promise.all(waits.map((wait) => failure(wait)))) {
        expect(error).toMatchObject({ code: 'RPC_SHUT_DOWN', values: { worker: 'worker0' } })
        expect(error.message).toContain('Await its last call before shutdown(), leave(), drain() or close().')
      }
      await closed
      for (const to of ['worker1', 'worker0']) {
        expect(await failure(call(to, echo, [1]))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
        expect(thrown(() => remote(to, echo, [1]))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      }
      expect(await failure(held.toHere())).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(await failure(local.toHere())).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(await failure(call('worker1', echo, [held]))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(thrown(() => worker.post(1, MessageType.CLEANUP_CONTEXT, []))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(thrown(() => worker.connect({ name: 'new', id: 9 }, cluster.world.link('worker0', 'new')[0]))).toMatchObject({
        code: 'RPC_SHUT_DOWN',
      })
      // Local values stay, and giving a reference up sends nothing.
      expect(mine.localValue()).toBe('mine')
      held.dispose()
      local.dispose()
    })
    expect(cluster.info(0)).toMatchObject({ pendingCalls: 0, openLinks: 0, userRRefs: 0 })
    expect(await cluster.leftovers({ except: [0], letters: cluster.info(1).deadLetters! })).toEqual(['worker1: servingCalls 2'])
  })

  test('RPC-32: what was sent before arrives, then the others hear of the death', async () => {
    await withSeed('1..20', async () => {
      for (let seed = 1; seed <= 20; seed++) {
        const cluster = new Cluster(seed, 2)
        await cluster.run(0, async () => {
          const before = cluster.workers[1]!.run(() => Promise.all([1, 2, 3].map((n) => call('worker0', echo, [n]))))
          const waits = cluster.workers[1]!.run(() => failure(call('worker0', never)))
          // After the answers.
          await call('worker0', sleep, [1])
          while (cluster.gate(0, 1).sent.length < 3) await sleep(1)
          await currentRuntime().close()
          expect(await before).toEqual([1, 2, 3])
          expect(await waits).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker0' } })
        })
        expect(cluster.info(1)).toMatchObject({ pendingCalls: 0, openLinks: 0 })
      }
    })
  })

  test('RPC-33: with drainMs, calls made and calls served have that much time', async () => {
    const cluster = new Cluster(5, 2)
    log.length = 0
    await cluster.run(0, async () => {
      const made = call('worker1', sleep, [50])
      const endless = failure(call('worker1', never))
      const served = cluster.workers[1]!.run(() => call('worker0', sleepAndNote, [80]))
      await sleep(1)
      const beganMs = cluster.world.nowMs
      await currentRuntime().close({ drainMs: 200 })
      expect(cluster.world.nowMs - beganMs).toBeGreaterThanOrEqual(200)
      expect(await made).toBe(50)
      await served
      expect(await endless).toMatchObject({ code: 'RPC_SHUT_DOWN' })
    })
    expect(log).toEqual(['worker0 was served'])
  })

  test('RPC-33: it ends as soon as nothing is left', async () => {
    const cluster = new Cluster(5, 2)
    await cluster.run(0, async () => {
      const made = call('worker1', sleep, [50])
      await currentRuntime().close({ drainMs: 10_000 })
      expect(await made).toBe(50)
      expect(cluster.world.nowMs).toBeLessThan(60)
    })
  })

  test('RPC-33: what is served is waited for as well', async () => {
    const cluster = new Cluster(5, 2)
    log.length = 0
    await cluster.run(1, async () => {
      const served = call('worker0', sleepAndNote, [50])
      await sleep(1)
      await cluster.workers[0]!.close({ drainMs: 10_000 })
      expect(log).toEqual(['worker0 was served'])
      await served
      expect(cluster.world.nowMs).toBeLessThan(60)
    })
  })

  test('RPC-34: what is being served goes on, calls nobody any more, and answers nobody', async () => {
    const cluster = new Cluster(6, 2)
    log.length = 0
    await cluster.run(1, async () => {
      const served = [failure(call('worker0', sleepAndCall, [50, 'worker1'])), failure(call('worker0', sleepAndNote, [50]))]
      await sleep(10)
      await cluster.workers[0]!.close()
      for (const error of await Promise.all(served)) expect(error).toMatchObject({ code: 'WORKER_DIED' })
      await sleep(100)
    })
    expect(log.sort()).toEqual(['RPC_SHUT_DOWN', 'worker0 was served'])
    expect(cluster.info(0)).toMatchObject({ servingCalls: 0, pendingCalls: 0 })
    expect(cluster.bugs).toEqual([])
  })

  test('RPC-34: what waits in the mailbox is not served; close may be called from a served function, twice, by several', async () => {
    const cluster = new Cluster(7, 2)
    log.length = 0
    await cluster.run(1, async () => {
      const futures = [failure(call('worker0', closes)), failure(call('worker0', sleepAndNote, [0]))]
      for (const error of await Promise.all(futures)) expect(error).toMatchObject({ code: 'WORKER_DIED' })
      await cluster.workers[0]!.close()
      await Promise.all([cluster.workers[0]!.close(), cluster.workers[0]!.close({ drainMs: 50 })])
      await sleep(10)
    })
    expect(cluster.bugs).toEqual([])
    expect(cluster.info(0)).toMatchObject({ servingCalls: 0, pendingCalls: 0, openLinks: 0 })
  })

  test('RPC-34: a listener that throws does not keep the links open', async () => {
    const cluster = new Cluster(8, 2)
    await cluster.run(0, async () => {
      const worker = currentRuntime()
      worker.onClose(() => {
        throw new Error('a listener')
      })
      const wait = call('worker1', never)
      expect(await failure(worker.close())).toMatchObject({ message: 'a listener' })
      expect(await failure(wait)).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(worker.debugInfo().openLinks).toBe(0)
    })
  })
})

const closes = () => {
  void currentRuntime().close()
}
expose({ closes })

describe('membership', () => {
  test('RPC-3: a name or an id that is taken is refused, also the own', async () => {
    const cluster = new Cluster(1, 2)
    const worker = cluster.workers[0]!
    for (const peer of [
      { name: 'worker1', id: 7 },
      { name: 'other', id: 1 },
      { name: 'worker0', id: 7 },
      { name: 'other', id: 0 },
    ]) {
      const error = thrown(() => worker.connect(peer, cluster.world.link('worker0', 'x')[0]))
      expect(error).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: peer.name, workerId: peer.id } })
    }
    expect(thrown(() => worker.connect({ name: 'no good', id: 7 }, cluster.world.link('worker0', 'x')[0])).code).toBe('WORKER_NAME_INVALID')
    expect(thrown(() => worker.connect({ name: 'good', id: 1e6 }, cluster.world.link('worker0', 'x')[0])).code).toBe(
      'WORKER_ID_OUT_OF_RANGE',
    )
    expect(worker.workers().length).toBe(2)
  })

  test('RPC-3, RPC-42: a worker that comes back has its name and a fresh id; what was said to the old one is not taken for the new', async () => {
    const cluster = new Cluster(2, 2)
    await cluster.run(0, async () => {
      const worker = currentRuntime()
      const old = worker.resolve('worker1')
      const held = remote('worker1', echo, [1])
      const wait = failure(call('worker1', never))
      await held.toHere()
      cluster.world.crash('worker1')
      await wait

      const again = new WorkerRuntime({ name: 'worker1', id: 7, clock: cluster.world.clockOf('worker1-again'), finalizers: 'report' })
      const [here, there] = cluster.world.link('worker0', 'worker1-again')
      worker.connect(again.info, here)
      again.connect(worker.info, there)
      expect(worker.resolve('worker1')).toEqual({ name: 'worker1', id: 7 })
      expect(await call('worker1', echo, ['new'])).toBe('new')
      expect(await call(7, echo, ['new'])).toBe('new')
      for (const target of [1, old]) {
        const error = await failure(call(target, echo, [1]))
        expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', workerId: 1, restartedAs: 7 } })
        expect(error.message).toContain('lives on as a new worker (id 7)')
      }
      expect(worker.deathOf(1)).toMatchObject({ values: { restartedAs: 7 } })
      expect(await failure(held.toHere())).toMatchObject({ code: 'WORKER_DIED', values: { restartedAs: 7 } })
      expect(worker.workers()).toEqual([worker.info, again.info])
      expect(thrown(() => worker.connect(old, cluster.world.link('worker0', 'x')[0])).code).toBe('WORKER_NAME_TAKEN')
    })
  })

  test('RPC-40: a peer that is leaving still answers, is no member any more, and its end says that it left', async () => {
    await new Cluster(3, 3).run(0, async () => {
      const worker = currentRuntime()
      const left = worker.resolve('worker1')
      const waits = failure(call('worker1', never))
      worker.peers.stands(left.id, Standing.leaving)
      worker.peers.stands(99, Standing.leaving)
      expect(worker.workers().map(({ name }) => name)).toEqual(['worker0', 'worker2'])
      expect(await call('worker1', echo, ['still there'])).toBe('still there')
      expect(worker.deathOf(left.id)).toBeNull()
      await call('worker1', leave)
      expect(await waits).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', cause: 'left' } })
      expect((await failure(call('worker1', echo, [1]))).message).toContain("worker 'worker1' (id 1) left the cluster")
    })
  })

  test('RREF-25: a reference to a value of a worker that the receiver has no link to: the call fails with UNKNOWN_WORKER, and nothing is left', async () => {
    const apart = [[1, 2]] as const
    await overSeeds(
      5,
      3,
      async () => {
        const made = remote('worker1', echo, [1])
        expect(await failure(call('worker2', uses, [made]))).toMatchObject({
          code: 'UNKNOWN_WORKER',
          workers: [{ name: 'worker2', id: 2 }],
        })
        const failed = remote('worker2', uses, [made])
        expect(await failure(failed.toHere())).toMatchObject({ code: 'UNKNOWN_WORKER' })
        expect(await made.toHere()).toBe(1)
        made.dispose()
        failed.dispose()
      },
      { apart },
    )
  })
})

const uses = (ref: RRef) => ref.toHere()
/** Closes its worker after its own answer. */
const leave = (): void => {
  const worker = currentRuntime()
  worker.clock.setTimer(1, () => void worker.close())
}
expose({ uses, leave })

describe('bugs and long work', () => {
  test('RPC-35: what a handler throws is a dead letter and goes to onBug, and the worker goes on', async () => {
    const cluster = new Cluster(1, 2)
    const bug = new Error('bug')
    cluster.workers[1]!.handle(MessageType.CLEANUP_CONTEXT, () => {
      throw bug
    })
    await cluster.run(0, async () => {
      currentRuntime().post(1, MessageType.CLEANUP_CONTEXT, [], { context: 1n })
      expect(await call('worker1', echo, [1])).toBe(1)
    })
    expect(cluster.bugs).toEqual([bug])
    expect(cluster.workers[1]!.letters.last()).toMatchObject([{ reason: 'failed', from: 'worker0', what: 'CLEANUP_CONTEXT: Error: bug' }])
  })

  test('RPC-35: so is what an interceptor throws of a message that has arrived, and what goes wrong behind a handler that has thrown', async () => {
    const cluster = new Cluster(1, 2)
    const bugs = [new PostgradError('INVALID_ARGUMENT', { op: 'bug', message: 'arrived' }), new Error('handler'), new Error('behind it')]
    const worker = cluster.workers[1]!
    worker.intercept({
      arrived: () => {
        throw bugs[0]
      },
    })
    worker.handle(MessageType.PASS_ABORT, () => {
      throw bugs[1]
    })
    const told: unknown[] = []
    worker.handleUnreadable(MessageType.PASS_ABORT, (pass) => {
      told.push(pass)
      throw bugs[2]
    })
    const about = { context: 1n, pass: 2n }
    await cluster.run(0, async () => {
      currentRuntime().post(1, MessageType.PASS_ABORT, [new Error('no')], { ...about, lineage: [1] })
      expect(await call('worker1', echo, [1])).toBe(1)
    })
    expect(told).toEqual([about])
    expect(cluster.bugs).toEqual(bugs)
    expect(worker.letters.last().map(({ reason, what }) => [reason, what])).toEqual([
      ['failed', expect.stringMatching(/^PASS_ABORT: INVALID_ARGUMENT: .*arrived/)],
      ['failed', 'PASS_ABORT: Error: handler'],
      ['failed', 'PASS_ABORT: Error: behind it'],
    ])
  })

  test('RPC-51: what a handler throws goes to onHandlerError where there is one, and is the error of who waits for an answer', async () => {
    const errors: unknown[] = []
    const cluster = new Cluster(1, 2, { onHandlerError: (error) => errors.push(error) })
    const bug = new TypeError('bug')
    const { rrefs, peers, letters } = cluster.workers[1]!
    const accept = rrefs.accept.bind(rrefs)
    await cluster.run(0, async () => {
      using cell = remote('worker1', echo, [1])
      await cell.created()
      rrefs.accept = () => {
        throw bug
      }
      expect(await failure(call('worker1', echo, [cell]))).toMatchObject({ name: 'TypeError', message: 'bug' })
      rrefs.accept = accept
      expect(await call('worker1', echo, [1])).toBe(1)
    })
    expect([cluster.bugs, errors]).toEqual([[], [bug]])
    expect(peers.resolve('worker0').served.size).toBe(0)
    expect(letters.last()).toMatchObject([{ reason: 'failed', from: 'worker0', what: 'CALL: TypeError: bug' }])
  })

  test('RPC-35: without onBug it is an uncaught exception in a turn of its own: in a simulation the run fails with it', async () => {
    const cluster = new Cluster(1, 2, { onBug: undefined as unknown as () => void })
    const bug = new Error('bug')
    cluster.workers[1]!.handle(MessageType.CLEANUP_CONTEXT, () => {
      throw bug
    })
    const error = await failure(
      cluster.run(0, async () => {
        currentRuntime().post(1, MessageType.CLEANUP_CONTEXT, [], { context: 1n })
        await sleep(1000)
      }),
    )
    expect(error).toBe(bug)
  })

  test('RPC-35: a message type that nobody handles is a dead letter', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      currentRuntime().post(1, MessageType.CLEANUP_CONTEXT, [], { context: 1n })
      await call('worker1', echo, [1])
    })
    expect(cluster.workers[1]!.letters.last()).toMatchObject([
      { reason: 'unreadable', from: 'worker0', what: 'CLEANUP_CONTEXT: nothing handles it here' },
    ])
  })

  test('RPC-36: what a package runs when the mailbox is empty runs as its worker', async () => {
    const cluster = new Cluster(1, 2)
    const ran: string[] = []
    const there = cluster.workers[1]!
    there.onDrained(() => ran.push(currentRuntime().info.name))
    expect([there.isLinkedTo('worker0'), there.isLinkedTo('worker7')]).toEqual([true, false])
    await cluster.run(0, async () => {
      expect(await call('worker1', echo, [1])).toBe(1)
    })
    expect(new Set(ran)).toEqual(new Set(['worker1']))
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-36: during a long stretch of node tasks links are flushed and polled', async () => {
    const cluster = new Cluster(1, 2)
    const gate = cluster.gate(0, 1)
    let flushes = 0
    gate.flush = () => {
      flushes++
    }
    await cluster.run(0, async () => {
      for (let i = 0; i < 1000; i++) currentRuntime().pushTask({ run: () => {} }, i)
      await sleep(0)
    })
    expect(flushes).toBeGreaterThanOrEqual(10)
  })
})
