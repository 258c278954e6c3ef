/** Calls and references between real threads: one of each group, and what only real threads have. */

import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { collectAll, Future, waitAll } from '@postgrad/base'
import { type Tensor, zeros } from '@postgrad/tensor'
import { messagePortLink, RealClock } from '@postgrad/transport/internal'
import { call, remote, rref, stream } from '../api/api.js'
import { monitor, stopActor } from '../api/monitor.js'
import { supervise } from '../api/supervise.js'
import { STAND_MS } from '../core/pending-calls.js'
import { failure } from './sim-cluster.suite.js'
import type { ThreadData } from './threads.fixture.js'
import * as programs from './threads-programs.fixture.js'
import { WorkerRuntime } from './worker-runtime.js'

const {
  bringOften,
  callUntilGivenUp,
  howMany,
  Meeting,
  numbers,
  add,
  bounce,
  callNever,
  Counter,
  collect,
  echo,
  exits,
  fails,
  forget,
  info,
  never,
  note,
  notes,
  product,
  scale,
  spin,
  use,
} = programs

class Threads {
  readonly runtime = new WorkerRuntime({ name: 'worker0', id: 0, clock: new RealClock() })
  readonly threads: Worker[] = []

  /** Two threads and this one, all three connected with each other. */
  static async start(finalizers: ThreadData['finalizers'] = 'release'): Promise<Threads> {
    const cluster = new Threads()
    const infos = [0, 1, 2].map((id) => ({ name: `worker${id}`, id }))
    const peers: ThreadData['peers'][number][][] = [[], [], []]
    for (const [a, b] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ] as const) {
      const { port1, port2 } = new MessageChannel()
      peers[a]!.push({ info: infos[b]!, port: port1 })
      peers[b]!.push({ info: infos[a]!, port: port2 })
    }
    for (const { info: peer, port } of peers[0]!) cluster.runtime.connect(peer, messagePortLink(port))
    for (const id of [1, 2]) {
      const data: ThreadData = { ...infos[id]!, peers: peers[id]!, finalizers }
      const thread = new Worker(new URL('./threads.fixture.js', import.meta.url), {
        workerData: data,
        transferList: peers[id]!.map(({ port }) => port),
      })
      cluster.threads.push(thread)
      await once(thread, 'message')
    }
    return cluster
  }

  run<T>(main: () => Promise<T>): Promise<T> {
    return this.runtime.run(main)
  }

  async end(): Promise<void> {
    await this.runtime.close()
    await Promise.all(this.threads.map((thread) => thread.terminate()))
  }
}

let cluster: Threads
beforeEach(async () => {
  cluster = await Threads.start()
})
afterEach(() => cluster.end())

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits until it holds; what hangs is ended by jest. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5)
}

describe('between threads', () => {
  test('ACT-17: the stream of an actor that crashes, or is killed, ends with it', () =>
    cluster.run(async () => {
      for (const end of ['crash', 'kill']) {
        using part = remote('worker1', programs.Part, [end])
        let taken = 0
        const loop = async () => {
          for await (const _ of part.stream('items', [])) {
            if (++taken !== 20) continue
            if (end === 'crash') await part.call('crash', [])
            else await stopActor(part, { shutdownMs: 0 })
          }
        }
        expect(await failure(loop())).toMatchObject({ code: 'ACTOR_STOPPED', op: "call of 'items'", values: { crashed: true } })
        await until(async () => (await call('worker1', notes)).includes(`${end} gives no more`))
      }
    }))

  test('ACS-2, ACS-3, MON-1, MON-5: a supervised actor that crashes, then loses its thread, is there again', () =>
    cluster.run(async () => {
      const worker1 = monitor('worker1')
      await using supervision = await supervise({
        intensity: 2,
        children: [{ name: 'part', actor: programs.Part, args: ['part'], worker: ['worker1', 'worker2', 'worker1'] }],
      })
      const part = supervision.actor('part')
      expect(await part.call('where', [])).toBe('part on worker1')
      const old = part.current
      const first = monitor(old)
      await part.call('crash', [])
      expect((await first.down).reason).toMatchObject({ name: 'RangeError', message: 'part broke' })
      await until(() => part.isRunning && part.current !== old)
      expect(await part.call('where', [])).toBe('part on worker2')
      await part.call('crash', [])
      await until(() => part.isRunning && part.current.ownerName() === 'worker1')
      await cluster.threads[0]!.terminate()
      expect((await worker1.down).reason).toMatchObject({ code: 'WORKER_DIED' })
      expect(await supervision.exited).toMatchObject({
        normal: false,
        reason: { code: 'SUPERVISOR_GAVE_UP', cause: { code: 'WORKER_DIED' } },
      })
    }))

  test('ACT-1, ACT-3, ACT-7, LOC-1: a serial agent awaits observers that ask it, episode by episode; state per worker', () =>
    cluster.run(async () => {
      const sums = Array.from({ length: 20 }, () => [45, 45, 45])
      expect(await programs.manyEpisodes(20)).toEqual({ sums, counted: 20 })
      expect([await call('worker1', programs.visit), await call('worker1', programs.visit), await call('worker2', programs.visit)]).toEqual(
        [1, 2, 1],
      )
    }))

  test('RPC-9, RPC-12, RPC-14: calls, nested calls, values', () =>
    cluster.run(async () => {
      expect(await programs.manyCalls()).toEqual({
        sum: 3,
        bounced: 200,
        value: { list: [1, -0, 5n, undefined, new Date(5), new Map([[1, new Set(['x'])]]), /x/g], bytes: new Uint8Array([1, 2]) },
        scaled: [
          [2, 4],
          [6, 8],
        ],
        t: [
          [1, 2],
          [3, 4],
        ],
      })
    }))

  test('RPC-10: a big tensor goes there and back by value', () =>
    cluster.run(async () => {
      const t = zeros([1024, 1024])
      t.storage.host!.fill(3)
      const going = call('worker1', scale, [t, 2])
      t.storage.host!.fill(9)
      const back = (await going) as Tensor
      expect(back.shape).toEqual([1024, 1024])
      expect(back.storage.host!.every((x) => x === 6)).toBe(true)
      expect(t.storage.host!.every((x) => x === 9)).toBe(true)
    }))

  test('RPC-11: 6,000 calls in flight keep their order', () =>
    cluster.run(async () => {
      const sums = await Promise.all(Array.from({ length: 6000 }, (_, i) => call(1 + (i % 2), add, [i, 1])))
      expect(sums).toEqual(Array.from({ length: 6000 }, (_, i) => i + 1))
      await Promise.all(Array.from({ length: 1000 }, (_, i) => call('worker1', note, [`${i}`])))
      expect(await call('worker1', notes)).toEqual(Array.from({ length: 1000 }, (_, i) => `${i}`))
      expect(cluster.runtime.debugInfo()).toMatchObject({ pendingCalls: 0, deadLetters: 0 })
    }))

  test('RPC-17, RPC-18: errors of user code', () =>
    cluster.run(async () => {
      const error = await failure(call('worker1', fails))
      expect(error).toMatchObject({ name: 'RangeError', message: 'over there', cause: 'why', workers: [{ name: 'worker1', id: 1 }] })
      expect(error.remoteStack).toContain('threads-programs')
    }))

  test("RPC-25: deadlines on the machine's clock are never early", () =>
    cluster.run(async () => {
      const waits = [1, 3, 10, 11, 25, 60, 100].map(async (timeoutMs) => {
        const beganMs = performance.now()
        const error = await failure(call('worker1', never, [], { timeoutMs }))
        expect(error).toMatchObject({ code: 'RPC_TIMEOUT' })
        expect(performance.now() - beganMs).toBeGreaterThanOrEqual(timeoutMs)
      })
      await Promise.all(waits)
    }))

  test('RPC-22: a worker that is busy does not keep its caller waiting', () =>
    cluster.run(async () => {
      const busy = call('worker1', spin, [300])
      const error = await failure(call('worker1', echo, [1], { timeoutMs: 50 }))
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT' })
      await busy
      // It was not run: its deadline had passed before its turn.
      expect(await call('worker1', info)).toMatchObject({ deadLetters: 1 })
    }))

  test('PU-11: in the middle of a 1536³ product a worker sends what it had to, and sees what arrives', () =>
    cluster.run(async () => {
      const answer = call('worker1', product, [1536, 0])
      await Promise.race([answer, until(() => notes().includes('begun'))])
      // The reply to its note has arrived there meanwhile, or arrives with this.
      await call('worker1', echo, [1])
      const { pauses, seenAt } = await answer
      expect(pauses).toBe(1536 ** 3 / 2 ** 24)
      expect(seenAt).toBeGreaterThan(0)
    }))

  test('CAN-3, CAN-4, CAN-5, CAN-9: a cancelled call, one that is out of time, what they had called, and what had not begun', () =>
    cluster.run(async () => {
      const future = call('worker1', callUntilGivenUp, ['worker2'])
      const late = failure(call('worker1', callUntilGivenUp, ['worker2'], { timeoutMs: 1000 }))
      // Including this call itself.
      await until(async () => (await call('worker2', info)).servingCalls! >= 3)
      future.cancel('enough')
      expect(await failure(future)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
      expect(await late).toMatchObject({ code: 'RPC_TIMEOUT' })
      await until(async () => (await call('worker2', notes)).length === 2)
      expect(await call('worker2', notes)).toEqual(['CALL_CANCELLED', 'CALL_CANCELLED'])
      const busy = call('worker1', spin, [100])
      const controller = new AbortController()
      const waits = failure(call('worker1', note, ['not run'], { signal: controller.signal }))
      controller.abort()
      expect(await waits).toMatchObject({ code: 'CALL_CANCELLED' })
      await busy
      expect(await call('worker1', notes)).toEqual([])
    }))

  test('ASY-1: async_function on threads: many callers share one result', () =>
    cluster.run(async () => {
      const meeting = remote('worker1', Meeting, [3])
      const sums = await Promise.all([0, 1, 2].map((to) => call(to, bringOften, [meeting, 20])))
      for (const sum of sums) expect(sum).toEqual(Array.from({ length: 20 }, (_, i) => 3 * i))
      meeting.dispose()
    }))

  test('FUT-3, FUT-5, FUT-6, FUT-7: add_done_callback, collect_all, wait_all on threads', () =>
    cluster.run(async () => {
      const seen = new Future<number>()
      call('worker1', add, [1, 2]).addDoneCallback((future) => seen.setResult(future.value()))
      expect(await seen).toBe(3)
      expect(await waitAll([call('worker1', add, [1, 2]), call('worker2', echo, ['x'])])).toEqual([3, 'x'])
      const [good, bad] = await collectAll([call('worker1', add, [1, 2]), call('worker1', fails)])
      expect(good.value()).toBe(3)
      expect(() => bad.value()).toThrow('over there')
      expect(await failure(waitAll([call('worker1', never), call('worker2', fails)]))).toMatchObject({ message: 'over there' })
      const made: Future<number>[] = []
      await waitAll(() => {
        for (let i = 0; i < 100; i++) made.push(call(1 + (i % 2), add, [i, i]))
      })
      expect(made.map((future) => future.value())).toEqual(Array.from({ length: 100 }, (_, i) => 2 * i))
    }))

  test('STR-1, STR-2, STR-3: a stream between threads keeps its order and its window, and ends where its loop is left', () =>
    cluster.run(async () => {
      const all: number[] = []
      for await (const item of stream('worker1', numbers, [5000])) all.push(item)
      expect(all).toEqual(Array.from({ length: 5000 }, (_, i) => i))
      for await (const item of stream('worker1', numbers, [5000], { window: 8 })) {
        if (item < 100) continue
        expect((await call('worker1', howMany)).numbers).toBeLessThanOrEqual(101 + 8)
        break
      }
      expect(await call('worker1', howMany)).toMatchObject({ ended: true })
      const cut = stream('worker2', numbers, [5000], { window: 8 })
      expect((await cut.next()).value).toBe(0)
      await cluster.threads[1]!.terminate()
      const rest = async () => {
        for await (const _ of cut);
      }
      expect(await failure(rest())).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker2' } })
    }))

  test('CAN-7: what a terminated thread had called is told', () =>
    cluster.run(async () => {
      const there = failure(call('worker1', callUntilGivenUp, ['worker2']))
      await until(async () => (await call('worker2', info)).servingCalls! >= 2)
      await cluster.threads[0]!.terminate()
      expect(await there).toMatchObject({ code: 'WORKER_DIED' })
      await until(async () => (await call('worker2', notes)).length === 1)
      expect(await call('worker2', notes)).toEqual(['WORKER_DIED'])
    }))

  test('RREF-1, RREF-6, RREF-14, RREF-10: making, methods, sharing, the end', () =>
    cluster.run(async () => {
      const counter = remote('worker1', Counter, [10])
      expect(await counter.call('add', [1])).toBe(11)
      expect(
        await Promise.all([call('worker2', use, [counter]), call('worker1', use, [counter]), call('worker0', use, [counter])]),
      ).toHaveLength(3)
      const mine = rref(new Counter(5))
      expect(await call('worker2', use, [mine])).toBe(6)
      expect(await counter.call('add', [0])).toBe(14)
      counter.dispose()
      await until(async () => (await call('worker1', info)).ownerRRefs === 0)
      await until(() => cluster.runtime.debugInfo().ownerRRefs === 0)
      for (const to of ['worker1', 'worker2', 'worker0']) {
        expect(await call(to, info)).toMatchObject({ forks: 0, userRRefs: 0, pendingUsers: 0, pendingChildren: 0, deadLetters: 0 })
      }
    }))

  test('RREF-24: what a program forgets is released when it is collected', () =>
    cluster.run(async () => {
      await call('worker1', forget, [0, 50])
      await call('worker1', forget, [2, 50])
      await until(async () => {
        await call('worker1', collect)
        return (await call('worker1', info)).userRRefs === 0
      })
      await until(async () => cluster.runtime.debugInfo().ownerRRefs === 0 && (await call('worker2', info)).ownerRRefs === 0)
      expect(await call('worker1', collect)).toBe(100)
    }))

  test('RPC-27: a thread that is terminated: all that waits for it ends at once, by name', () =>
    cluster.run(async () => {
      const waits = Array.from({ length: 100 }, () => failure(call('worker1', never)))
      const there = failure(call('worker2', callNever, ['worker1']))
      const ref = remote('worker1', Counter, [1])
      await ref.call('add', [1])
      await cluster.threads[0]!.terminate()
      for (const error of await Promise.all(waits)) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' } })
      expect(await failure(ref.toHere())).toMatchObject({ code: 'WORKER_DIED' })
      expect(await there).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' }, workers: [{ name: 'worker2', id: 2 }] })
      expect(await call('worker2', echo, ['alive'])).toBe('alive')
    }))

  test('RPC-28: what a thread had answered before it exits is delivered first', () =>
    cluster.run(async () => {
      const order: string[] = []
      const answers = [1, 2, 3].map((n) => call('worker1', echo, [n]).then((value) => order.push(`${value}`)))
      await Promise.all(answers)
      const late = failure(call('worker1', never))
      const exit = failure(call('worker1', exits))
      expect((await late).code).toBe('WORKER_DIED')
      expect((await exit).code).toBe('WORKER_DIED')
      expect(order).toEqual(['1', '2', '3'])
    }))

  test('RPC-26, RPC-32: when its peers have shut down a thread ends by itself, soon', () =>
    cluster.run(async () => {
      await Promise.all([call('worker1', bounce, [10, [2, 1]]), call('worker2', bounce, [10, [1, 2]])])
      const beganMs = performance.now()
      const ended = once(cluster.threads[0]!, 'exit')
      await cluster.threads[1]!.terminate()
      await cluster.runtime.close()
      expect(await ended).toEqual([0])
      expect(performance.now() - beganMs).toBeLessThan(STAND_MS + 10_000)
    }))
})

describe('finalizers that only report', () => {
  test('RREF-24: nothing is released by the collector, and what it took is counted', async () => {
    const reporting = await Threads.start('report')
    try {
      await reporting.run(async () => {
        await call('worker1', forget, [0, 20])
        await until(async () => (await call('worker1', collect)) === 20)
        expect(reporting.runtime.debugInfo()).toMatchObject({ ownerRRefs: 20, forks: 20 })
      })
    } finally {
      await reporting.end()
    }
  })
})
