/** The promise of a call. */
import { describe, expect, test } from '@jest/globals'
import { Future } from './future.js'
import { failure } from './sim-cluster.suite.js'

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
