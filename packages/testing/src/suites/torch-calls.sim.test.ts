/** PyTorch's tests of calls, under load, and of errors (rpc_test.py), each named after the rule that it holds and its name there. */
import { describe, expect, test } from '@jest/globals'
import { add, matmul, mul, narrow, nonzero } from '@postgrad/autograd'
import { call, currentWorker, expose, type RRef, remote, rpcAsync, rpcSync } from '@postgrad/rpc'
import { threadRegistry } from '@postgrad/rpc/internal'
import { eye, full, ones, type Tensor, zeros } from '@postgrad/tensor'
import * as operations from '@postgrad/tensor/operations'
import { everyRank, failure, nameOf, WORLD_SIZE } from './torch-ranks.suite.js'

const myFunction = (a: number, b: number, c: number) => a + b + c
const noResult = (): void => {}
const tensorFunction = (a: Tensor, b: Tensor) => a.add(b)
const heldBy = new Map<string, number>()
const setValue = (rank: number) => {
  heldBy.set(currentWorker().info.name, rank)
}
const sumOfAll = (given: { readonly tensors: readonly Tensor[]; readonly named: Readonly<Record<string, Tensor>> }) =>
  [...given.tensors, ...Object.values(given.named)].reduce((sum, one) => sum.add(one))
const nested = (given: { readonly inner: { readonly t: Tensor } }, t: Tensor) => ({ inner: { t: given.inner.t.add(t) } })
/** Adds on the next worker, and calls on: three hops of two calls each. */
const nestedRpc = async (to: string): Promise<Tensor> => call(to, add, [ones([2, 2]), 1])
const nonCont = (view: Tensor, whole: Tensor) => {
  if (!equal(view, whole)) throw new Error('they differ')
  return view
}
class MyClass {
  readonly a: number
  constructor(a: number) {
    this.a = a
  }
  myInstanceMethod(b: number): number {
    return this.a + b
  }
  static factor = 2
  static myClassMethod(this: typeof MyClass, d: number, e: number): number {
    // biome-ignore lint/complexity/noThisInStatic: that `this` is the class is what is tested
    return this.factor * (d + e)
  }
  static myStaticMethod(f: number): number {
    return f > 10 ? f - 1 : f + 1
  }
}
let light = 0
const lightRpc = () => {
  light++
  return 0
}
const heavyRpc = (t: Tensor): number => {
  let x = t
  for (let i = 0; i < 10; i++) {
    x = x.mul(i)
    x = x.div(i + 1)
  }
  return x.sum().itemSync()
}
const EXPECTED = 'Expected error'
const raiseFunc = () => {
  throw new RangeError(EXPECTED)
}
const raiseEscape = () => {
  throw new RangeError('first\nsecond\t"third"')
}
class CustomException extends Error {
  override name = 'CustomException'
  readonly code: number
  readonly detail: string
  constructor(code: number, detail: string) {
    // What one argument alone could not make again.
    super(`${code}: ${detail.toUpperCase()}`)
    this.code = code
    this.detail = detail
  }
}
const customRaise = () => {
  throw new CustomException(7, 'odd')
}
const wrongArguments = (t: Tensor) => t.add('text' as unknown as number)
/** Goes through these workers and throws at the end. */
const through = async (to: readonly string[]): Promise<void> => {
  const [next, ...rest] = to
  if (next === undefined) throw new TypeError('at the end', { cause: new RangeError('why') })
  await call(next, through, [rest])
}
expose({ myFunction, noResult, tensorFunction, setValue, sumOfAll, nested, nestedRpc, nonCont, MyClass, lightRpc, heavyRpc })
expose({ raiseFunc, raiseEscape, customRaise, wrongArguments, through })

function equal(a: Tensor, b: Tensor): boolean {
  return JSON.stringify(a.toArray()) === JSON.stringify(b.toArray())
}

describe('calls', () => {
  test('RPC-4: self_add: to oneself', () =>
    everyRank(async ({ self, rank }) => {
      expect((await rpcAsync(self, add, [ones([2, 2]), 1])).toArray()).toEqual(full([2, 2], 2).toArray())
      expect(await rpcSync(rank, myFunction, [1, 2, 3])).toBe(6)
    }))

  test('RPC-9: add, scalar_add, async_add, py_built_in, py_user_defined, multi_rpc', () =>
    everyRank(async ({ rank, next }) => {
      const n = rank + 1
      expect((await rpcSync(next, add, [ones([n, n]), ones([n, n])])).toArray()).toEqual(full([n, n], 2).toArray())
      expect((await rpcSync(next, add, [ones([n, n]), n])).toArray()).toEqual(full([n, n], 1 + n).toArray())
      const future = rpcAsync(next, add, [ones([n, n]), ones([n, n])])
      expect((await future.wait()).toArray()).toEqual(full([n, n], 2).toArray())
      expect((await rpcSync(next, matmul, [eye(n), full([n, n], 3)])).toArray()).toEqual(full([n, n], 3).toArray())
      expect(await rpcSync(next, myFunction, [n, n + 1, n + 2])).toBe(3 * n + 3)
      for (let i = 0; i < 20; i++) {
        expect((await rpcSync(next, tensorFunction, [ones([n, n]), full([n, n], i)])).toArray()).toEqual(full([n, n], 1 + i).toArray())
      }
    }))

  test('RPC-9: nonzero', () =>
    everyRank(async ({ rank, next }) => {
      const x = eye(WORLD_SIZE).mul(rank + 1)
      expect((await rpcSync(next, nonzero, [x])).toArray()).toEqual(nonzero(x).toArray())
    }))

  test('RPC-9: expected_src: who is called is the worker that was named', async () => {
    heldBy.clear()
    await everyRank(async ({ rank, next }) => {
      await rpcSync(next, setValue, [rank])
      expect(heldBy.get(next)).toBe(rank)
    })
  })

  test('RPC-9, RREF-6: py_class_constructor, instance_method', () =>
    everyRank(async ({ rank, next }) => {
      const mine = remote(next, MyClass, [rank])
      expect((await mine.call('myInstanceMethod', [10])) - rank).toBe(10)
      expect(await mine.rpcSync().myInstanceMethod(5)).toBe(rank + 5)
      mine.dispose()
    }))

  test('RPC-39: class_method, static_method', () =>
    everyRank(async ({ rank, next }) => {
      expect(await rpcSync(next, MyClass.myClassMethod, [rank, 1])).toBe(2 * (rank + 1))
      expect(await rpcSync(next, MyClass.myStaticMethod, [rank + 10])).toBe(rank + 10 > 10 ? rank + 9 : rank + 11)
    }))

  test('RPC-9: py_multi_async_call, py_no_return_result', () =>
    everyRank(async ({ next, afterNext }) => {
      const sums = [rpcAsync(next, MyClass.myStaticMethod, [1]), rpcAsync(afterNext, MyClass.myStaticMethod, [11])]
      expect(await Promise.all(sums)).toEqual([2, 10])
      expect(await rpcSync(next, noResult)).toBeUndefined()
    }))

  test('RPC-14: py_tensors, py_tensors_multi_async_call, py_tensors_in_container, py_nested_pickle', () =>
    everyRank(async ({ rank, next }) => {
      const n = rank + 1
      const sums = Array.from({ length: 50 }, (_, i) => rpcAsync(next, tensorFunction, [full([i + 1, 2], n), full([i + 1, 2], i)]))
      for (const [i, sum] of (await Promise.all(sums)).entries()) expect(sum.toArray()).toEqual(full([i + 1, 2], n + i).toArray())
      const container = { tensors: [ones([n, n]), ones([n, n])], named: { a: full([n, n], 2), b: full([n, n], 3) } }
      expect((await rpcSync(next, sumOfAll, [container])).toArray()).toEqual(full([n, n], 7).toArray())
      expect((await rpcSync(next, nested, [{ inner: { t: ones([2, 2]) } }, ones([2, 2])])).inner.t.toArray()).toEqual(
        full([2, 2], 2).toArray(),
      )
    }))

  test('RPC-12: nested_rpc', () =>
    everyRank(async ({ self, next }) => {
      expect((await rpcSync(next, nestedRpc, [self])).toArray()).toEqual(full([2, 2], 2).toArray())
    }))

  test('RPC-14: non_cont_tensors: a view and its copy arrive as equals', () =>
    everyRank(async ({ next }) => {
      const t = eye(5).add(full([5, 5], 2))
      const view = narrow(t, 1, 2, 2)
      expect(view.isContiguous).toBe(false)
      expect((await rpcSync(next, nonCont, [view, view.contiguous()])).toArray()).toEqual(view.toArray())
    }))

  test('RPC-5: function_not_on_callee', async () => {
    const onlyHere = () => 1
    await everyRank(async ({ next }) => {
      expect(await failure(rpcSync(next, onlyHere))).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
    })
  })

  test('RPC-17: op_with_invalid_args', () =>
    everyRank(async ({ next }) => {
      expect(await failure(rpcSync(next, wrongArguments, [ones([2])]))).toHaveProperty('workers', [currentWorker().resolve(next)])
      expect(await failure(rpcSync(next, add, ['text', 5] as never))).toHaveProperty('workers', [currentWorker().resolve(next)])
    }))

  test('RPC-5: py_built_in: the operations are callable from the start, each and every one but those that write', () => {
    const missing = Object.entries(operations).filter(([name, fn]) => {
      try {
        threadRegistry.nameOf(fn as () => unknown)
        return name.endsWith('_')
      } catch {
        return !name.endsWith('_')
      }
    })
    expect(missing.map(([name]) => name)).toEqual([])
    expect(Object.keys(operations).length).toBeGreaterThan(100)
  })
})

describe('under load', () => {
  test('RPC-12: stress_light_rpc: 1000 calls of each rank at once', async () => {
    light = 0
    await everyRank(async ({ next }) => {
      const results = await Promise.all(Array.from({ length: 1000 }, () => rpcAsync(next, lightRpc)))
      expect(results.every((result) => result === 0)).toBe(true)
    }, 1)
    expect(light).toBe(1000 * WORLD_SIZE)
  })

  test('RPC-12: stress_heavy_rpc: 20 calls on 100×100', () =>
    everyRank(async ({ next }) => {
      const results = await Promise.all(Array.from({ length: 20 }, () => rpcAsync(next, heavyRpc, [ones([100, 100])])))
      expect(results).toEqual(Array.from({ length: 20 }, () => 0))
    }, 2))

  test('RREF-1: multi_remote: 50 values on each of two workers', () =>
    everyRank(async ({ rank, next, afterNext }) => {
      const n = rank + 1
      const made = Array.from({ length: 50 }, (_, i) =>
        remote(i % 2 === 0 ? next : afterNext, tensorFunction, [full([n, 2], i), ones([n, 2])]),
      )
      for (const [i, ref] of made.entries()) {
        expect((await ref.toHere()).toArray()).toEqual(full([n, 2], i + 1).toArray())
        ref.dispose()
      }
    }))
})

describe('errors', () => {
  test('RPC-17: py_function_exception, py_raise_in_user_func: the class and the words; the callee stays silent', () =>
    everyRank(async ({ next }) => {
      const error = await failure(rpcAsync(next, raiseFunc))
      expect(error).toBeInstanceOf(RangeError)
      expect(error).toMatchObject({ message: EXPECTED, workers: [currentWorker().resolve(next)] })
      expect(error.remoteStack).toContain('raiseFunc')
    }))

  test('RPC-17: py_raise_in_user_func_escaped_str: line breaks and quotes are what they were', () =>
    everyRank(async ({ next }) => {
      expect((await failure(rpcAsync(next, raiseEscape))).message).toBe('first\nsecond\t"third"')
    }))

  test('RREF-5: remote_with_exception, remote_throw: by toHere, each time, on a user and on the owner', () =>
    everyRank(async ({ self, next }) => {
      for (const to of [next, self]) {
        const made = remote(to, raiseFunc) as RRef<never>
        for (let i = 0; i < 2; i++) expect(await failure(made.toHere())).toMatchObject({ name: 'RangeError', message: EXPECTED })
        made.dispose()
      }
    }))

  test('RPC-19: custom_exception_throw_during_reconstruction: a class of a program comes as REMOTE_EXCEPTION, which makes nothing again', () =>
    everyRank(async ({ next }) => {
      expect(await failure(rpcSync(next, customRaise))).toMatchObject({
        code: 'REMOTE_EXCEPTION',
        message: 'CustomException: 7: ODD',
        values: { name: 'CustomException', code: 7, detail: 'odd' },
        workers: [currentWorker().resolve(next)],
      })
    }))

  test('RPC-29: handle_send_exceptions: a callee that is gone is WORKER_DIED, at once', async () => {
    await everyRank(
      async ({ rank, sim }) => {
        if (rank !== 1) return
        // Calls there have ended by then.
        await new Promise<void>((resolve) => void currentWorker().clock.setTimer(0, resolve))
        sim.crash('worker2')
        const begunMs = currentWorker().clock.now()
        for (let i = 0; i < 3; i++) {
          expect(await failure(rpcAsync('worker2', add, [ones([1]), 3]))).toMatchObject({
            code: 'WORKER_DIED',
            values: { worker: 'worker2' },
          })
        }
        expect(currentWorker().clock.now() - begunMs).toBeLessThan(10)
      },
      3,
      {},
    )
  })

  test('RPC-18: over any number of hops: class, cause, stack of where it arose, and every worker of the way', () =>
    everyRank(async ({ rank }) => {
      const hops = Array.from({ length: 9 }, (_, i) => nameOf(rank + i + 1))
      const error = await failure(call(hops[0]!, through, [hops.slice(1)]))
      expect(error).toBeInstanceOf(TypeError)
      expect(error).toMatchObject({ message: 'at the end', cause: { name: 'RangeError', message: 'why' } })
      expect((error.workers as { name: string }[]).map(({ name }) => name)).toEqual([...hops].reverse())
      expect(error.remoteStack).toContain('through')
    }))
})

test('the check of values can fail', () => {
  expect(equal(zeros([2]), ones([2]))).toBe(false)
  expect(equal(mul(ones([2]), 2), full([2], 2))).toBe(true)
})
