/** The promise of a call. */
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '../errors.js'
import { Future } from './future.js'
import { collect, collectAll, waitAll } from './wait-all.js'

describe('a Future', () => {
  test("RPC-37: await gives the value, any number of times; wait is PyTorch's name for it", async () => {
    const future = new Future<number>()
    expect(future.done).toBe(false)
    future.resolve(7)
    expect(future.done).toBe(true)
    expect([await future, await future, await future.wait(), await future.wait()]).toEqual([7, 7, 7, 7])
  })

  test('RPC-37: a rejected one throws each time that it is awaited', async () => {
    const future = Future.rejected<number>(new TypeError('no'))
    expect(future.done).toBe(true)
    expect(await failure(future)).toBe(await failure(future.wait()))
  })

  test('RPC-37: the first of resolve and reject counts', async () => {
    const future = new Future<number>()
    future.resolve(1)
    future.reject(new Error('late'))
    future.resolve(2)
    expect(await future).toBe(1)
  })

  test('CAN-1, CAN-2: ends by a signal, also by one of several, and by one that has aborted already', async () => {
    const signals = [new AbortController(), new AbortController()]
    const future = new Future<number>()
    for (const { signal } of signals) future.cancelOn(signal)
    signals[1]!.abort(new Error('enough'))
    expect(await failure(future)).toMatchObject({ code: 'CALL_CANCELLED', cause: { message: 'enough' } })
    const late = new Future<number>()
    late.cancelOn(signals[1]!.signal)
    expect(late.done).toBe(true)
    expect((await failure(late)).code).toBe('CALL_CANCELLED')
    const controller = new AbortController()
    const done = new Future<number>()
    done.resolve(3)
    done.cancelOn(controller.signal)
    controller.abort()
    expect(await done).toBe(3)
  })

  test('RPC-37: then, catch and finally give plain promises', async () => {
    const future = new Future<number>()
    const chained = [future.then((x) => x + 1), future.catch(() => 0), future.finally(() => {})]
    for (const promise of chained) {
      expect(promise).not.toBeInstanceOf(Future)
      expect(promise).toBeInstanceOf(Promise)
    }
    future.resolve(1)
    expect(await Promise.all(chained)).toEqual([2, 1, 1])
  })

  test('RPC-37: it goes where promises go', async () => {
    const futures = [new Future<number>(), new Future<number>()]
    expect(futures[0]).toBeInstanceOf(Promise)
    expect(Promise.resolve(futures[0])).toBe(futures[0])
    const all = Promise.all(futures)
    const first = Promise.race(futures)
    futures[1]!.resolve(2)
    futures[0]!.resolve(1)
    expect(await all).toEqual([1, 2])
    expect(await first).toBe(2)
  })

  test('RPC-37: await takes one turn of the microtask queue, as for a plain promise', async () => {
    const order: string[] = []
    const future = new Future<void>()
    future.resolve()
    const awaits = async (name: string, promise: Promise<void>) => {
      await promise
      order.push(name)
    }
    await Promise.all([awaits('future', future), awaits('promise', Promise.resolve()), Promise.resolve().then(() => order.push('turn'))])
    expect(order).toEqual(['future', 'promise', 'turn'])
  })
})

describe('a Future of a program', () => {
  test('FUT-1: ends by setResult or setException, once', async () => {
    const future = new Future<number>()
    future.setResult(1)
    expect(await future).toBe(1)
    for (const again of [() => future.setResult(2), () => future.setException(new Error('late'))]) {
      expect(thrown(again)).toMatchObject({ code: 'FUTURE_COMPLETED', message: expect.stringContaining('only be marked completed once') })
    }
    const failed = new Future<number>()
    const error = new RangeError('no')
    failed.setException(error)
    expect(await failure(failed)).toBe(error)
    expect(thrown(() => failed.setResult(1)).code).toBe('FUTURE_COMPLETED')
    expect(thrown(() => new Future<unknown>().setResult(Promise.resolve(1))).code).toBe('INVALID_ARGUMENT')
  })

  test('FUT-2: value() gives what it brought, each time; before that it says that it is not done', async () => {
    const future = new Future<string>()
    expect(thrown(() => future.value()).code).toBe('FUTURE_NOT_DONE')
    future.setResult('here')
    expect([future.value(), future.value()]).toEqual(['here', 'here'])
    const error = new TypeError('no')
    const failed = Future.rejected(error)
    expect([thrown(() => failed.value()), thrown(() => failed.value())]).toEqual([error, error])
    await failure(failed)
  })

  test('FUT-3: callbacks get the future, in order, behind the running code, also when it was done before', async () => {
    const order: string[] = []
    const future = new Future<number>()
    for (const n of [1, 2, 3]) future.addDoneCallback((done) => order.push(`${n}: ${done.value()}`))
    future.setResult(7)
    order.push('behind setResult')
    await future
    expect(order).toEqual(['behind setResult', '1: 7', '2: 7', '3: 7'])
    const last = new Future<void>()
    future.addDoneCallback((done) => {
      expect(done).toBe(future)
      last.setResult()
    })
    await last
    const failed = Future.rejected(new Error('no'))
    const seen = new Future<string>()
    failed.addDoneCallback((done) => seen.setResult(thrown(() => done.value()).message))
    expect(await seen).toBe('no')
    for (const wrong of [null, 5, undefined]) {
      expect(thrown(() => future.addDoneCallback(wrong as unknown as () => void)).code).toBe('INVALID_ARGUMENT')
    }
  })

  test('FUT-8: cancel ends it; the first end counts', async () => {
    const future = new Future<number>()
    expect(future.cancel('why')).toBe(true)
    expect(await failure(future)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'why' })
    expect(future.cancel()).toBe(false)
    expect(thrown(() => future.setResult(1)).code).toBe('FUTURE_COMPLETED')
  })
})

describe('several futures', () => {
  test('FUT-5: collectAll gives the futures when all are done, whatever they brought', async () => {
    const [a, b] = [new Future<number>(), new Future<string>()]
    const all = collectAll([a, b, Promise.resolve(true)])
    b.setException(new Error('b'))
    await turns()
    expect(all.done).toBe(false)
    a.setResult(1)
    const [first, second, third] = await all
    expect([first, second]).toEqual([a, b])
    expect(first.value()).toBe(1)
    expect(thrown(() => second.value()).message).toBe('b')
    expect(third.value()).toBe(true)
    expect(await collectAll([])).toEqual([])
  })

  test('FUT-6: waitAll gives the values, or the first error at once', async () => {
    const [a, b, c] = [new Future<number>(), new Future<string>(), new Future<number>()]
    const all = waitAll([a, b])
    b.setResult('b')
    a.setResult(1)
    const values: [number, string] = await all
    expect(values).toEqual([1, 'b'])
    const d = new Future<number>()
    const failing = waitAll([c, d])
    d.setException(new Error('d'))
    expect(await failure(failing)).toMatchObject({ message: 'd' })
    expect(c.done).toBe(false)
  })

  test('FUT-8: cancel of what waits for several cancels those that are not done', async () => {
    for (const wait of [waitAll, collectAll]) {
      const [a, b] = [new Future<number>(), new Future<number>()]
      a.setResult(1)
      const all = wait([a, b])
      all.cancel('enough')
      expect(await failure(b)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
      expect(a.value()).toBe(1)
      await all.catch(() => {})
    }
  })

  test('FUT-8: cancel of a waitAll ends it whatever it waits for, and cancels what its function has called by then', async () => {
    const plain = waitAll([new Promise(() => {})])
    expect(plain.cancel('enough')).toBe(true)
    expect(await failure(plain)).toMatchObject({ code: 'CALL_CANCELLED', op: 'waitAll', cause: 'enough' })
    const called = new Future<number>()
    const running = waitAll(async () => {
      await null
      collect(called)
      await new Promise(() => {})
    })
    await turns()
    expect(running.cancel('enough')).toBe(true)
    expect(running.done).toBe(true)
    expect(await failure(running)).toMatchObject({ code: 'CALL_CANCELLED' })
    expect(await failure(called)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
  })
})

async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await null
}

async function failure(promise: PromiseLike<unknown>): Promise<PostgradError> {
  return promise.then(
    () => {
      throw new Error('expected a rejection, got a value')
    },
    (error: unknown) => error as PostgradError,
  )
}

function thrown(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected an exception, got a value')
}
