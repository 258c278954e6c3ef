/** Streams: order, back-pressure, every way in which a stream ends, and what is left of it. */
import { describe, expect, test } from '@jest/globals'
import { Future, PostgradError } from '@postgrad/base'
import { type Tensor, tensor } from '@postgrad/tensor'
import { call, currentSignal, currentWorker, remote, rref, stream } from '../api/api.js'
import { intercept } from '../api/intercept.js'
import { asyncExecution } from '../common/async-execution.js'
import { type AnyFunction, expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, overSeeds, withSeed } from '../worker/sim-cluster.suite.js'

const log: string[] = []
const sleep = (ms: number): Promise<number> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const note = (text: string) => {
  log.push(text)
}
/** Counts what it gave, and says when it has ended. */
async function* countTo(n: number) {
  try {
    for (let i = 0; i < n; i++) {
      log.push(`gives ${i}`)
      yield i
    }
    return 'all'
  } finally {
    log.push('finally')
  }
}
function* now(n: number) {
  for (let i = 0; i < n; i++) yield { i, at: currentWorker().info.name }
}
const list = (n: number) => Array.from({ length: n }, (_, i) => i)
const later = async (n: number) => countTo(n)
const soon = async (ms: number, n: number) => {
  await sleep(ms)
  return countTo(n)
}
async function* slowly(ms: number, n: number) {
  for (let i = 0; i < n; i++) {
    await sleep(ms)
    yield i
  }
}
async function* fails(n: number) {
  yield* countTo(n)
  throw new RangeError('in the middle')
}
/** One item, then an error after `ms`; its clean-up may fail as well. */
async function* failsAfter(ms: number, alsoCleanUp: boolean) {
  try {
    yield 1
    await sleep(ms)
    throw new RangeError('in the middle')
  } finally {
    // biome-ignore lint/correctness/noUnsafeFinally: what a user's clean-up may do
    if (alsoCleanUp) throw new TypeError('clean-up')
  }
}
/** Ends with what its signal aborts with, as a function does that passes the signal on. */
async function* failsByItsSignal() {
  yield 1
  const signal = currentSignal()
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}
async function* failsAtEnd() {
  try {
    yield 1
    yield 2
  } finally {
    // biome-ignore lint/correctness/noUnsafeFinally: what a user's clean-up may do
    throw new TypeError('clean-up')
  }
}
/** Waits between two items until its signal aborts. */
async function* stuck() {
  yield 1
  const signal = currentSignal()
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  log.push(`aborted: ${(signal.reason as { code: string }).code}`)
  yield 2
}
async function* cleansUp() {
  try {
    yield 1
    yield 2
  } finally {
    await call('worker0', note, ['cleaned up'])
  }
}
async function* tensors(n: number) {
  for (let i = 0; i < n; i++) yield { step: i, state: tensor([i, i + 1]) }
}
async function* references(n: number) {
  for (let i = 0; i < n; i++) yield rref(i)
}
async function* unsendable() {
  try {
    yield 1
    yield () => 1
  } finally {
    log.push('finally')
  }
}
const number = () => 5
const nullAsList = () => null
const promises = (n: number) => list(n).map((i) => Promise.resolve(i))
/** The first item at once, each later one after `ms` more. */
const promisesAfter = (ms: number, n: number) => list(n).map((i) => sleep(i * ms).then(() => i))
/** Takes from a stream of another worker and gives on. */
async function* relay(to: readonly string[], n: number): AsyncGenerator<number> {
  const [next, ...rest] = to
  if (next === undefined) yield* countTo(n)
  else for await (const item of stream(next, relay, [rest, n], { window: 2 })) yield item + 1
}
class Replay {
  private readonly items: number[]
  constructor(items: number[]) {
    this.items = items
  }
  async *all() {
    for (const item of this.items) yield item
  }
}
expose({
  note,
  countTo,
  now,
  list,
  later,
  soon,
  slowly,
  fails,
  failsAfter,
  failsByItsSignal,
  failsAtEnd,
  stuck,
  cleansUp,
  tensors,
  references,
  unsendable,
  number,
  nullAsList,
  promises,
  promisesAfter,
  relay,
  Replay,
})

async function inCluster(size: number, main: (cluster: Cluster) => Promise<void>, seed = 1): Promise<Cluster> {
  const cluster = new Cluster(seed, size)
  log.length = 0
  await cluster.run(0, () => main(cluster))
  return cluster
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

describe('a stream', () => {
  test('STR-1: gives the items in order, of generators, arrays and promises of them; from others and from itself', async () => {
    await overSeeds(5, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        for (const window of [1, 2, 3, 32]) {
          expect(await collect(stream(to, countTo, [100], { window }))).toEqual(list(100))
          expect(await collect(stream(to, list, [10], { window }))).toEqual(list(10))
          expect(await collect(stream(to, later, [10], { window }))).toEqual(list(10))
          expect(await collect(stream(to, promises, [10], { window }))).toEqual(list(10))
          expect(await collect(stream(to, now, [5], { window }))).toEqual(list(5).map((i) => ({ i, at: to })))
        }
        expect(await collect(stream(to, countTo, [0]))).toEqual([])
      }
    })
  })

  test('STR-1: by hand: next() in any number at once, the result of the generator last, then the end for ever', async () => {
    await overSeeds(3, 2, async () => {
      const items = stream('worker1', countTo, [3], { window: 2 })
      const steps = await Promise.all(Array.from({ length: 5 }, () => items.next()))
      expect(steps).toEqual(
        [0, 1, 2]
          .map((value) => ({ done: false, value }))
          .concat([
            { done: true, value: 'all' as never },
            { done: true, value: undefined as never },
          ]),
      )
      expect(await items.next()).toEqual({ done: true, value: undefined })
      expect(await items.return()).toEqual({ done: true, value: undefined })
    })
  })

  test('STR-2: is never more than its window ahead', async () => {
    for (const window of [1, 4, 32]) {
      for (const to of ['worker1', 'worker0']) {
        const cluster = await inCluster(2, async () => {
          const items = stream(to, countTo, [1000], { window })
          await sleep(10)
          expect(log.length).toBe(window)
          for (let taken = 1; taken <= 200; taken++) {
            await items.next()
            if (taken % 7 === 0) await sleep(1)
            expect(log.length).toBeLessThanOrEqual(taken + window)
          }
          await items.return()
          expect(log.at(-1)).toBe('finally')
        })
        expect(await cluster.leftovers()).toEqual([])
      }
    }
  })

  test('STR-3: that is left early ends its generator, whose finally has run when the loop is left; it may call others', async () => {
    await overSeeds(10, 2, async (_, seed) => {
      for (const to of ['worker1', 'worker0']) {
        log.length = 0
        for await (const item of stream(to, countTo, [1000], { window: 4 })) if (item === seed) break
        expect(log.at(-1)).toBe('finally')
        expect(log.length).toBeLessThanOrEqual(seed + 1 + 4 + 1)
        log.length = 0
        for await (const _ of stream(to, cleansUp)) break
        expect(log).toEqual(['cleaned up'])
        const left = failure(
          (async () => {
            for await (const _ of stream(to, countTo, [1000])) throw new Error('body')
          })(),
        )
        expect((await left).message).toBe('body')
        expect(await failure(breakAtOnce(stream(to, failsAtEnd, [], { window: 1 })))).toMatchObject({
          name: 'TypeError',
          message: 'clean-up',
        })
        {
          await using items = stream(to, countTo, [1000])
          await items.next()
          log.length = 0
        }
        expect(log.at(-1)).toBe('finally')
      }
    })
  })

  test('STR-3: that is left while its generator waits aborts its signal', async () => {
    const cluster = await inCluster(2, async () => {
      for await (const _ of stream('worker1', stuck)) {
        await sleep(5)
        break
      }
      expect(log).toEqual(['aborted: CALL_CANCELLED'])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-3: that is left while an item is awaited sends it no more', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      for await (const item of stream('worker1', promisesAfter, [10, 3])) {
        expect(item).toBe(0)
        break
      }
      await sleep(50)
      expect(cluster.gate(1, 0).sent.filter((kind) => kind === 'STREAM_ITEM')).toHaveLength(1)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-3: that is left before its generator has begun, or is there, ends as well', async () => {
    for (const to of ['worker1', 'worker0']) {
      await overSeeds(5, 2, async (_, seed) => {
        const begun = stream(to, countTo, [1000], { window: 2, timeoutMs: 1000 })
        expect(await begun.return('left')).toEqual({ done: true, value: 'left' })
        const promised = stream(to, soon, [10, 1000], { window: 2, timeoutMs: 1000 })
        await sleep(seed)
        await promised.return()
      })
    }
  })

  test('STR-4: an error comes behind the items before it, whole, once', async () => {
    await overSeeds(3, 2, async () => {
      const got: number[] = []
      const error = await failure(
        (async () => {
          for await (const item of stream('worker1', fails, [5], { window: 2 })) got.push(item)
        })(),
      )
      expect(error).toBeInstanceOf(RangeError)
      expect(error).toMatchObject({ message: 'in the middle', workers: [{ name: 'worker1', id: 1 }] })
      expect(error.remoteStack).toContain('fails')
      expect(got).toEqual(list(5))
      const items = stream('worker1', fails, [0])
      await failure(items.next())
      expect(await items.next()).toEqual({ done: true, value: undefined })
    })
  })

  test('STR-3, STR-4: who leaves a stream does not hear of the error that had ended it', async () => {
    await overSeeds(3, 2, async () => {
      const items = stream('worker1', fails, [1], { window: 8 })
      expect(await items.next()).toEqual({ done: false, value: 0 })
      await sleep(20)
      expect(await items.return(7)).toEqual({ done: true, value: 7 })
      expect(await items.next()).toEqual({ done: true, value: undefined })
    })
  })

  test('STR-3: an error of the generator that no next() has asked for is not thrown by break, whenever it crosses the end of the loop', async () => {
    for (const to of ['worker1', 'worker0']) {
      await overSeeds(3, 2, async () => {
        for (let tenths = 0; tenths <= 40; tenths++) {
          for (const alsoCleanUp of [false, true]) {
            for await (const _ of stream(to, failsAfter, [2, alsoCleanUp])) {
              await sleep(tenths / 10)
              break
            }
          }
        }
        for await (const _ of stream(to, failsByItsSignal)) {
          await sleep(5)
          break
        }
        const notBegun = stream(to, number)
        expect(await notBegun.return('left')).toEqual({ done: true, value: 'left' })
      })
    }
  })

  test('STR-3, INT-5: what finally throws is thrown by break also where interceptors hear of the end of the stream', async () => {
    const cluster = await inCluster(2, async () => {
      const ends: unknown[] = []
      const remove = intercept({ outgoing: () => (outcome) => ends.push(outcome.error) })
      for (const to of ['worker1', 'worker0']) {
        const error = await failure(breakAtOnce(stream(to, failsAtEnd, [], { window: 1 })))
        expect(error).toMatchObject({ name: 'TypeError', message: 'clean-up', workers: [{ name: to }] })
      }
      expect(ends).toMatchObject([{ message: 'clean-up' }, { message: 'clean-up' }])
      remove()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-3, STR-8: break throws the death of a callee that had not confirmed its end', async () => {
    const cluster = await inCluster(2, async ({ world }) => {
      const items = stream('worker1', countTo, [1000])
      await items.next()
      const left = failure(items.return() as Promise<unknown>)
      world.crash('worker1')
      expect(await left).toMatchObject({ code: 'WORKER_DIED' })
    })
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('STR-4: an item that cannot be sent ends it with its path, and so does what cannot be gone through', async () => {
    const cluster = await inCluster(2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const items = stream(to, unsendable)
        expect(await items.next()).toEqual({ done: false, value: 1 })
        expect(await failure(items.next())).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', values: { path: 'value' } })
        expect(log.splice(0)).toEqual(['finally'])
        expect(await failure(stream(to, number).next())).toMatchObject({ code: 'STREAM_NOT_ITERABLE', op: 'number' })
        expect((await failure(stream(to, nullAsList as AnyFunction).next())).message).toContain('got null')
      }
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-17, RPC-18, STR-4: an error passes streams, shared results and calls whole, over any number of hops', async () => {
    await overSeeds(3, 3, async () => {
      const hops = [1, 2, 0, 2, 1, 0, 1, 2]
      for (const first of ['stream', 'call', 'shared'] as const) {
        const error = await failure(throughAll(hops, first))
        expect(error).toBeInstanceOf(PostgradError)
        expect(error).toMatchObject({ code: 'SHAPE_MISMATCH', op: 'matmul', values: { shape: [2, 3] }, remedy: 'Transpose it.' })
        expect(error.cause).toBeInstanceOf(TypeError)
        expect(error.workers.map(({ id }) => id)).toEqual([...hops].reverse())
        expect(error.remoteStack).toContain('throwsOurs')
      }
    })
  })

  test('STR-5: what cannot begin is the error of the first next', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const unexposed = function* () {}
      const first = (items: AsyncIterableIterator<unknown>) => failure(items.next())
      expect(await first(stream('nobody', countTo, [1]))).toMatchObject({ code: 'UNKNOWN_WORKER' })
      expect(await first(stream('worker1', unexposed as AnyFunction))).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
      expect(await first(stream('worker1', countTo, [(() => 1) as never]))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
      expect(await first(stream('worker1', countTo, [1], { timeoutMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID' })
      expect(await first(stream('worker1', countTo, [1], { signal: AbortSignal.abort() }))).toMatchObject({ code: 'CALL_CANCELLED' })
      for (const window of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(await first(stream('worker1', countTo, [1], { window }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      }
      expect(cluster.messages).toBe(0)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-6: each item has its deadline, from when it is asked for; the stream as a whole has none', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      expect(await collect(stream('worker1', slowly, [50_000, 4]))).toEqual(list(4))
      expect(cluster.world.nowMs).toBeGreaterThanOrEqual(200_000)
      const items = stream('worker1', slowly, [100, 3], { timeoutMs: 20 })
      expect(await failure(items.next())).toMatchObject({ code: 'RPC_TIMEOUT', op: 'slowly' })
      expect(await items.next()).toEqual({ done: true, value: undefined })
      await sleep(300)
      const unhurried = stream('worker1', countTo, [3], { timeoutMs: 20 })
      await sleep(1000)
      expect(await collect(unhurried)).toEqual(list(3))
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-7: its signal cancels it at both ends; so does the end of the call that it is part of', async () => {
    const cluster = await inCluster(3, async () => {
      const controller = new AbortController()
      const items = stream('worker1', stuck, [], { signal: controller.signal })
      expect((await items.next()).value).toBe(1)
      const next = failure(items.next())
      await sleep(5)
      controller.abort('enough')
      expect(await next).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
      await sleep(5)
      expect(log.splice(0)).toEqual(['aborted: CALL_CANCELLED'])

      const outer = call('worker1', takeAll, ['worker2'])
      await sleep(5)
      outer.cancel()
      await failure(outer)
      await sleep(5)
      expect(log.sort()).toEqual(['aborted: CALL_CANCELLED', 'taker: CALL_CANCELLED'])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-7, CAN-1: an abort ends the loop at once; what had arrived before it is discarded, also when the generator had ended', async () => {
    const cluster = await inCluster(3, async () => {
      for (const n of [1000, 20]) {
        const controller = new AbortController()
        const taken: number[] = []
        const loop = (async () => {
          for await (const item of stream('worker1', references, [n], { signal: controller.signal })) {
            using ref = item as RRef<number>
            taken.push(await ref.toHere())
            await sleep(2)
            if (taken.length === 10) controller.abort('enough')
          }
        })()
        expect(await failure(loop)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
        expect(taken).toEqual(list(10))
      }
      // The call that it is part of.
      const outer = call('worker1', takeSlowly, ['worker2'])
      await sleep(20)
      outer.cancel()
      await failure(outer)
      await sleep(50)
      expect(log.filter((word) => word === 'taken after the end')).toEqual([])
      expect(log.at(-1)).toBe('slow taker: CALL_CANCELLED')
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-1, INT-5: so it is where an interceptor hears of the end of the stream', async () => {
    const cluster = await inCluster(2, async () => {
      const ends: unknown[] = []
      const remove = intercept({ outgoing: () => (outcome) => ends.push(outcome.error) })
      const controller = new AbortController()
      const items = stream('worker1', countTo, [1000], { signal: controller.signal })
      await items.next()
      await sleep(20)
      controller.abort('enough')
      expect(await failure(items.next())).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
      expect(ends).toMatchObject([{ code: 'CALL_CANCELLED' }])
      remove()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-12, STR-7: a stream that was gone through, or left, is no more heard of when its signal aborts', async () => {
    const cluster = await inCluster(2, async () => {
      const controller = new AbortController()
      const { signal } = controller
      expect(await collect(stream('worker1', countTo, [5], { signal }))).toEqual(list(5))
      const left = stream('worker1', countTo, [5], { signal })
      await left.next()
      await sleep(20)
      await left.return()
      const unread = stream('worker1', countTo, [5], { signal })
      await unread.next()
      await sleep(20)
      controller.abort()
      expect(await failure(unread.next())).toMatchObject({ code: 'CALL_CANCELLED' })
      for (const items of [left, unread]) expect((await items.next()).done).toBe(true)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-6: a stream that times out for want of an item says that it was cancelled', async () => {
    const cluster = await inCluster(2, async () => {
      const items = stream('worker1', stuck, [], { timeoutMs: 20 })
      await items.next()
      const error = await failure(items.next())
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT', remedy: expect.stringMatching(/that function was cancelled\.$/) })
      await sleep(5)
      expect(log).toEqual(['aborted: CALL_CANCELLED'])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-8: the death of the callee ends it behind the items that had arrived; that of the caller ends the generator', async () => {
    const cluster = await inCluster(3, async ({ world, workers }) => {
      const items = stream('worker1', countTo, [1000], { window: 3 })
      await sleep(5)
      world.crash('worker1')
      await sleep(5)
      for (const value of [0, 1, 2]) expect(await items.next()).toEqual({ done: false, value })
      expect(await failure(items.next())).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' } })
      expect(await items.next()).toEqual({ done: true, value: undefined })
      log.length = 0
      const other = workers[2]!.run(() => stream('worker0', countTo, [1000], { window: 3 }).next())
      await other
      world.crash('worker2')
      await sleep(5)
      expect(log.at(-1)).toBe('finally')
    })
    expect(await cluster.leftovers({ except: [1, 2] })).toEqual([])
  })

  test('STR-9: items carry tensors and references; those that nobody takes are discarded', async () => {
    await overSeeds(5, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const got = await collect(stream(to, tensors, [5], { window: 2 }))
        expect(got.map(({ step, state }) => [step, (state as Tensor).toArray()])).toEqual(list(5).map((i) => [i, [i, i + 1]]))
        let sum = 0
        for await (const item of stream(to, references, [10], { window: 3 })) {
          using ref = item as RRef<number>
          sum += await ref.toHere()
        }
        expect(sum).toBe(45)
        for await (const item of stream(to, references, [100], { window: 8 })) {
          item.dispose()
          break
        }
      }
    })
  })

  test('STR-10: methods of a value give streams too; streams nest over workers, and break reaches the innermost', async () => {
    await overSeeds(3, 3, async () => {
      const replay = remote('worker1', Replay, [[3, 1, 4]])
      const items: number[] = await collect(replay.stream('all', []))
      expect(items).toEqual([3, 1, 4])
      replay.dispose()
      using own = rref(new Replay([2, 7]))
      expect(await collect(own.stream('all', []))).toEqual([2, 7])
      expect(await failure(replay.stream('all', []).next())).toMatchObject({ code: 'RREF_DELETED' })
      log.length = 0
      expect(await collect(stream('worker1', relay, [['worker2', 'worker1', 'worker2'], 20]))).toEqual(list(20).map((i) => i + 3))
      log.length = 0
      for await (const item of stream('worker1', relay, [['worker2', 'worker1'], 1000], { window: 2 })) if (item === 10) break
      expect(log.at(-1)).toBe('finally')
      expect(log.length).toBeLessThan(30)
    })
  })

  test('STR-10: interceptors see a stream as one call, under the name of its function', async () => {
    const cluster = await inCluster(2, async ({ workers }) => {
      const seen: string[] = []
      workers[0]!.interceptCalls({
        outgoing: ({ kind, functionName, isMethod }) => {
          seen.push(`${kind} ${functionName} ${isMethod}`)
          return ({ error }) => seen.push(error === null ? 'ended' : 'failed')
        },
      })
      workers[1]!.interceptCalls({
        incoming: ({ kind, functionName }, next) => {
          seen.push(`serves ${kind} ${functionName}`)
          return next()
        },
      })
      expect(await collect(stream('worker1', countTo, [3]))).toEqual([0, 1, 2])
      expect(seen.splice(0)).toEqual(['stream countTo false', 'serves stream countTo', 'ended'])
      const replay = remote('worker1', Replay, [[1]])
      await sleep(5)
      seen.length = 0
      expect(await collect(replay.stream('all', []))).toEqual([1])
      expect(seen).toEqual(['stream all true', 'serves stream all', 'ended'])
      replay.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('STR-3: whenever it is left, nothing is left of it', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      await withSeed(seed, async () => {
        const cluster = await inCluster(
          2,
          async () => {
            const items = stream('worker1', references, [20], { window: 1 + (seed % 5) })
            for (let taken = 0; taken < seed % 23; taken++) {
              const { done, value } = await items.next()
              if (done !== true) (value as RRef).dispose()
            }
            await sleep((seed % 7) / 20)
            await items.return()
          },
          seed,
        )
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})

const throwsOurs = (): never => {
  const parts = { op: 'matmul', expected: '[3, 2]', got: '[2, 3]', remedy: 'Transpose it.', values: { shape: [2, 3] } }
  throw new PostgradError('SHAPE_MISMATCH', { ...parts, cause: new TypeError('why') })
}
const ROADS = ['stream', 'call', 'shared'] as const
/** Goes to the first of these workers by one road, to the next by another, and throws at the last. */
const throughAll = async ([next, ...rest]: readonly number[], road: (typeof ROADS)[number]): Promise<void> => {
  if (next === undefined) throwsOurs()
  const then = ROADS[(ROADS.indexOf(road) + 1) % ROADS.length]!
  if (road === 'call') await call(next!, throughAll, [rest, then])
  else if (road === 'shared') await call(next!, throughShared, [rest, then])
  else for await (const _ of stream(next!, throughStream, [rest, then]));
}
const throughShared = asyncExecution((rest: readonly number[], road: (typeof ROADS)[number]) => {
  const future = new Future<void>()
  throughAll(rest, road).catch((error) => future.setException(error))
  return future
})
async function* throughStream(rest: readonly number[], road: (typeof ROADS)[number]) {
  yield 'before'
  await throughAll(rest, road)
}
expose({ throughAll, throughShared, throughStream })

async function breakAtOnce(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items) break
}
const takeAll = async (from: string) => {
  try {
    await collect(stream(from, stuck))
  } catch (error) {
    log.push(`taker: ${(error as { code: string }).code}`)
  }
}
const takeSlowly = async (from: string) => {
  const signal = currentSignal()
  try {
    for await (const _ of stream(from, countTo, [1000])) {
      if (signal.aborted) log.push('taken after the end')
      await new Promise<void>((resolve) => currentWorker().clock.setTimer(2, resolve))
    }
  } catch (error) {
    log.push(`slow taker: ${(error as { code: string }).code}`)
  }
}
expose({ takeAll, takeSlowly })

test('RPC-15: a generator that is called instead of streamed says what to do', async () => {
  await overSeeds(1, 2, async () => {
    const error = await failure(call('worker1', countTo as AnyFunction, [3]))
    expect(error).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', remedy: expect.stringContaining('stream(to, fn, args)') })
  })
})
