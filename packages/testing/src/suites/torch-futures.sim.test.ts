/** PyTorch's tests of futures and of timeouts (rpc_test.py), each named after the rule that it holds and its name there. */
import { describe, expect, test } from '@jest/globals'
import { add } from '@postgrad/autograd'
import { call, collectAll, currentWorker, expose, Future, type RRef, remote, rpcAsync, rpcSync, waitAll } from '@postgrad/rpc'
import { full, ones, type Tensor, zeros } from '@postgrad/tensor'
import { everyRank, failure } from './torch-ranks.suite.js'

const EXPECTED = 'Expected error'
const raiseFunc = (): never => {
  throw new RangeError(EXPECTED)
}
const never = () => new Promise<never>(() => {})
const pause = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const mySleep = async (ms = 1000): Promise<number> => {
  await pause(ms)
  return ms
}
const addUseFutureCallback = async (to: string, x: Tensor, y: number, z: number): Promise<Tensor> => {
  const sum = new Future<Tensor>()
  rpcAsync(to, add, [x, y]).addDoneCallback((future) => sum.setResult(future.value().add(z)))
  return sum
}
const addUseFutureSetResult = (to: string, x: Tensor, y: number, z: number): Future<Tensor> => {
  const sum = new Future<Tensor>()
  rpcAsync(to, add, [x, y]).then((value) => sum.setResult(value.add(z)))
  return sum
}
const addUseFutureNestedCallback = async (to: string, x: Tensor, y: number, z: number): Promise<Tensor> => {
  const sum = new Future<Tensor>()
  rpcAsync(to, add, [x, y]).addDoneCallback((first) => {
    rpcAsync(to, add, [first.value(), z]).addDoneCallback((second) => sum.setResult(second.value()))
  })
  return sum
}
const takesAny = (_value: unknown): void => {}
const returnsFuture = () => {
  const future = new Future<number>()
  void pause(1).then(() => future.setResult(5))
  return future
}
const returnsHidden = () => {
  const future = new Future<number>()
  future.setResult(5)
  return { future }
}
class Slow {
  async sleep(ms: number): Promise<number> {
    return mySleep(ms)
  }
}
expose({
  raiseFunc,
  never,
  mySleep,
  addUseFutureCallback,
  addUseFutureSetResult,
  addUseFutureNestedCallback,
  takesAny,
  returnsFuture,
  returnsHidden,
  Slow,
})

const of = (value: number) => full([2, 2], value).toArray()

describe('futures', () => {
  test('RPC-37: future_wait_twice, future_done, future_done_exception', () =>
    everyRank(async ({ next }) => {
      const future = rpcAsync(next, add, [zeros([2, 2]), 1])
      expect(future.done).toBe(false)
      expect((await future.wait()).toArray()).toEqual(of(1))
      expect((await future.wait()).toArray()).toEqual(of(1))
      expect([future.done, future.value().toArray()]).toEqual([true, of(1)])
      const failed = rpcAsync(next, raiseFunc)
      for (let i = 0; i < 2; i++) expect(await failure(failed.wait())).toMatchObject({ name: 'RangeError', message: EXPECTED })
      expect(failed.done).toBe(true)
    }))

  test('FUT-3: callback_simple, add_done_callback, callback_multi', () =>
    everyRank(async ({ next }) => {
      const future = rpcAsync(next, add, [ones([2, 2]), ones([2, 2])])
      const set = new Future<Tensor>()
      future.addDoneCallback((done) => set.setResult(done.value().add(1)))
      expect((await future).toArray()).toEqual(of(2))
      expect((await set).toArray()).toEqual(of(3))
      const many = Array.from({ length: 10 }, (_, i) => future.then((sum) => sum.add(i)))
      for (const [i, sum] of (await Promise.all(many)).entries()) expect(sum.toArray()).toEqual(of(2 + i))
    }))

  test('RPC-37: callback_chain: 20 of them', () =>
    everyRank(async ({ next }) => {
      let sum: Promise<Tensor> = rpcAsync(next, add, [ones([2, 2]), 1])
      for (let i = 0; i < 20; i++) sum = sum.then((value) => value.add(1))
      expect((await sum).toArray()).toEqual(of(22))
    }))

  test('FUT-3: callback_in_rpc, future_in_rpc, future_nested_callback: callbacks that a callee adds may call', () =>
    everyRank(async ({ next, afterNext }) => {
      for (const fn of [addUseFutureCallback, addUseFutureSetResult, addUseFutureNestedCallback]) {
        expect((await rpcSync(next, fn, [afterNext, ones([2, 2]), 1, 2])).toArray()).toEqual(of(4))
      }
    }))

  test('RPC-37: callback_with_ret: a callback that calls', () =>
    everyRank(async ({ next }) => {
      const sum = rpcAsync(next, add, [ones([2, 2]), 1]).then((first) => rpcAsync(next, add, [first, 1]).then((second) => second.add(1)))
      expect((await sum).toArray()).toEqual(of(4))
    }))

  test('RPC-37: callback_with_error, callback_wrong_arg_type: what a callback throws is its own promise', () =>
    everyRank(async ({ next }) => {
      const future = rpcAsync(next, raiseFunc)
      const callback = future.catch((error: unknown) => {
        expect(error).toMatchObject({ message: EXPECTED })
        throw new TypeError('Another expected error')
      })
      expect(await failure(callback)).toMatchObject({ message: 'Another expected error' })
      expect(await failure(future)).toMatchObject({ message: EXPECTED })
      expect(await failure(rpcAsync(next, add, [ones([2, 2]), 1]).then((sum) => sum.add('x' as never)))).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
    }))

  test('FUT-3: callback_none: what is no function is refused', () =>
    everyRank(async ({ next }) => {
      const future = rpcAsync(next, add, [ones([2, 2]), 1])
      for (const wrong of [null, 5]) {
        const adding = (async () => future.addDoneCallback(wrong as never))()
        expect(await failure(adding)).toMatchObject({ code: 'INVALID_ARGUMENT' })
      }
      await future
    }))

  test('FUT-1: mark_future_twice', () =>
    everyRank(async ({ next }) => {
      const future = rpcAsync(next, add, [zeros([2, 2]), 1])
      await future
      const again = (async () => future.setResult(ones([1])))()
      expect(await failure(again)).toMatchObject({
        code: 'FUTURE_COMPLETED',
        message: expect.stringContaining('only be marked completed once'),
      })
    }))

  test('FUT-4: pickle_future, return_future: it cannot be sent; one that is returned is awaited', () =>
    everyRank(async ({ next }) => {
      const future = new Future<number>()
      const expected = { code: 'WIRE_UNSUPPORTED_VALUE', values: { path: 'args[0]' }, message: expect.stringContaining('promise') }
      expect(await failure(rpcSync(next, takesAny, [future]))).toMatchObject(expected)
      expect(await failure(rpcAsync(next, takesAny, [future]))).toMatchObject(expected)
      expect(await failure((async () => remote(next, takesAny, [future]))())).toMatchObject(expected)
      expect(await rpcSync(next, returnsFuture)).toBe(5)
      const made = remote(next, returnsFuture)
      expect(await made.toHere()).toBe(5)
      made.dispose()
      expect(await failure(rpcSync(next, returnsHidden as () => unknown))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
    }))

  test('FUT-6: wait_all_with_exception, wait_all_with_partial_exception', () =>
    everyRank(async ({ next }) => {
      const failing = Array.from({ length: 10 }, () => rpcAsync(next, raiseFunc))
      expect(await failure(waitAll(failing))).toMatchObject({ message: EXPECTED })
      const good = Array.from({ length: 10 }, () => rpcAsync(next, add, [ones([2]), 1]))
      expect(await failure(waitAll([...good, rpcAsync(next, raiseFunc)]))).toMatchObject({ message: EXPECTED })
      expect((await waitAll(good)).map((sum) => sum.toArray())).toEqual(good.map(() => [2, 2]))
      const all = await collectAll([...good, ...failing])
      expect(all.filter((future) => future.done).length).toBe(20)
    }))

  test('FUT-6: wait_all_exit_early_python, wait_all_exit_early_builtin: while another call hangs', () =>
    everyRank(async ({ next }) => {
      const hangs = rpcAsync(next, mySleep, [10_000])
      const begunMs = currentWorker().clock.now()
      expect(await failure(waitAll([hangs, rpcAsync(next, raiseFunc), rpcAsync(next, raiseFunc)]))).toMatchObject({ message: EXPECTED })
      const wrong = rpcAsync(next, add, [ones([10]), ones([5])])
      expect(await failure(waitAll([hangs, wrong]))).toMatchObject({ code: 'SHAPE_MISMATCH' })
      expect(currentWorker().clock.now() - begunMs).toBeLessThan(100)
      expect(hangs.done).toBe(false)
      await hangs
    }))

  test('FUT-7: wait_all: of a function, waits for every call that it makes', () =>
    everyRank(async ({ next }) => {
      let future: Future<Tensor> | undefined
      const given = await waitAll(async () => {
        future = rpcAsync(next, add, [ones([2, 2]), 1])
        return 'given'
      })
      expect([given, future!.done, future!.value().toArray()]).toEqual(['given', true, of(2)])
    }))

  test('FUT-7: wait_all_multiple_call, with calls of callbacks, of references, and of no others', () =>
    everyRank(async ({ self, next }) => {
      const outside = rpcAsync(next, mySleep, [500])
      const made: Future<unknown>[] = []
      const slow = remote(next, Slow)
      await waitAll(async () => {
        for (let i = 0; i < 20; i++) {
          const future = rpcAsync(next, add, [ones([i, i]), 1])
          expect((await rpcSync(next, add, [ones([i, i]), 1])).toArray()).toEqual(full([i, i], 2).toArray())
          made.push(future)
        }
        made.push(slow.call('sleep', [20]))
        rpcAsync(next, mySleep, [5]).addDoneCallback(() => made.push(rpcAsync(self, mySleep, [50])))
      })
      expect(made.length).toBe(22)
      expect(made.every((future) => future.done)).toBe(true)
      expect(outside.done).toBe(false)
      await outside
      slow.dispose()
    }))

  test('FUT-7: wait_all_timeout, wait_all_raise_in_user_func, wait_all_raise_in_body', () =>
    everyRank(async ({ next }) => {
      const late = waitAll(async () => void rpcAsync(next, mySleep, [1000], { timeoutMs: 100 }))
      expect(await failure(late)).toMatchObject({ code: 'RPC_TIMEOUT' })
      const failing = waitAll(async () => void rpcAsync(next, raiseFunc))
      expect(await failure(failing)).toMatchObject({ message: EXPECTED })
      const body = waitAll(async () => {
        void rpcAsync(next, raiseFunc)
        throw new TypeError('body')
      })
      expect(await failure(body)).toMatchObject({ message: 'body' })
      await pause(1500)
    }))
})

describe('timeouts', () => {
  test('RPC-21: default_timeout_used: every call has it, unless it has one of its own', () =>
    everyRank(
      async ({ next }) => {
        const late = Array.from({ length: 10 }, () => rpcAsync(next, mySleep))
        for (const future of late) expect(await failure(future)).toMatchObject({ code: 'RPC_TIMEOUT', values: { timeoutMs: 5 } })
        expect(await rpcAsync(next, mySleep, [1000], { timeoutMs: 200_000 })).toBe(1000)
        expect(await rpcAsync(next, mySleep, [200_000], { timeoutMs: 0 })).toBe(200_000)
      },
      3,
      { rpcTimeoutMs: 5 },
    ))

  test('RPC-21: rpc_timeouts: 0 is none, one of its own goes before the default', () =>
    everyRank(async ({ next }) => {
      expect(await failure(rpcAsync(next, mySleep, [1000], { timeoutMs: 100 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await failure(rpcSync(next, mySleep, [1000], { timeoutMs: 100 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await rpcSync(next, mySleep, [1000])).toBe(1000)
      expect(await rpcSync(next, mySleep, [1000], { timeoutMs: 5000 })).toBe(1000)
      expect(await rpcSync(next, mySleep, [100_000], { timeoutMs: 0 })).toBe(100_000)
      expect(await failure(rpcSync(next, mySleep, [61_000]))).toMatchObject({ code: 'RPC_TIMEOUT' })
      await pause(2000)
    }))

  test('RREF-3: rref_timeout: toHere has its own, and the value comes later all the same', () =>
    everyRank(async ({ next }) => {
      const made = remote(next, mySleep, [2000], { timeoutMs: 100 })
      expect(await failure(made.toHere({ timeoutMs: 10 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await made.toHere()).toBe(2000)
      made.dispose()
    }))

  test('RREF-6: rref_proxy_timeout: of the three proxies', () =>
    everyRank(async ({ next }) => {
      const slow = remote(next, Slow)
      expect(await failure(slow.rpcSync({ timeoutMs: 50 }).sleep(1000))).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await failure(slow.rpcAsync({ timeoutMs: 50 }).sleep(1000))).toMatchObject({ code: 'RPC_TIMEOUT' })
      const made: RRef<number> = slow.remote({ timeoutMs: 50 }).sleep(1000)
      expect(await failure(made.toHere({ timeoutMs: 50 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await slow.rpcSync({ timeoutMs: 5000 }).sleep(1000)).toBe(1000)
      made.dispose()
      slow.dispose()
    }))

  test('RPC-22, CAN-9: a call that is out of time is cancelled, whatever it waits for', () =>
    everyRank(async ({ next, afterNext }) => {
      expect(await failure(call(next, waitsFor, [afterNext], { timeoutMs: 50 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      await pause(300)
    }))
})

const waitsFor = (to: string) => call(to, mySleep, [200], { timeoutMs: 0 })
expose({ waitsFor })
