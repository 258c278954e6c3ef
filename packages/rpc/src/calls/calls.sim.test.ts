/** Calls between simulated workers: to others and to oneself, values, order, nesting, exposing. */
import { describe, expect, test } from '@jest/globals'
import { currentScope, withScope } from '@postgrad/base/internal'
import { type Tensor, tensor } from '@postgrad/tensor'
import { call, currentWorker, ready, remote, rpcAsync, rpcSync, rref, stream } from '../api/api.js'
import { type AnyFunction, expose, FunctionRegistry } from '../common/function-registry.js'
import { Cluster, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'

const add = (a: number, b: number) => a + b
const nothing = () => {}
const echo = (value: unknown) => value
const whoAmI = () => currentWorker().info
const later = async (value: unknown) => {
  await turn()
  return value
}
/** A few turns of the simulated worker. */
function turn(ms = 0): Promise<void> {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
class Counter {
  n: number
  constructor(n: number) {
    this.n = n
  }
  count(): number {
    return this.n
  }
}
const log: string[] = []
const note = (text: string) => {
  log.push(text)
}
const noteSlowly = async (text: string) => {
  log.push(`${text}(`)
  await turn()
  log.push(`${text})`)
}
/** Passes a ball between the workers, so many hops. */
const bounce = async (hops: number, workers: readonly string[]): Promise<number> => {
  if (hops === 0) return 0
  const [next, ...rest] = workers
  return 1 + (await call(next!, bounce, [hops - 1, [...rest, next!]]))
}
const scopeHere = () => {
  const { context, deadlineMs, gradEnabled, worker } = currentScope()
  return { hasContext: context !== null, deadlineMs, gradEnabled, worker: (worker as { info: { name: string } }).info.name }
}
const unexposed = () => 1
expose({ add, nothing, echo, whoAmI, later, Counter, note, noteSlowly, bounce, scopeHere })

describe('a call', () => {
  test('RPC-9: runs on the worker that it names, by name, by id or by info', async () => {
    await overSeeds(5, 3, async ({ workers }) => {
      for (const target of ['worker2', 2, workers[2]!.info]) {
        expect(await call(target, whoAmI)).toEqual({ name: 'worker2', id: 2 })
      }
      expect(await call('worker1', add, [1, 2])).toBe(3)
      expect(await rpcSync('worker1', add, [1, 2])).toBe(3)
      expect(await rpcAsync('worker1', later, [5])).toBe(5)
      expect(await call('worker1', nothing)).toBeUndefined()
    })
  })

  test('RPC-4: to oneself goes the same way: through the codec and the mailbox', async () => {
    await overSeeds(3, 1, async (cluster) => {
      const given = { list: [1, 2] }
      const order: string[] = []
      const future = call('worker0', echo, [given])
      order.push('behind call()')
      future.then(() => order.push('answer'))
      const got = await future
      expect(got).toEqual(given)
      expect(got).not.toBe(given)
      expect(order).toEqual(['behind call()', 'answer'])
      expect(await call(0, whoAmI)).toEqual({ name: 'worker0', id: 0 })
      expect(cluster.messages).toBe(0)
    })
  })

  test('RPC-9: is served in a scope of the callee: its own worker, no context, grad mode on', async () => {
    await overSeeds(2, 2, async () => {
      const call_ = (to: string) => withScope({ gradEnabled: false }, () => call(to, scopeHere, [], { timeoutMs: 0 }))
      for (const to of ['worker1', 'worker0']) {
        expect(await call_(to)).toEqual({ hasContext: false, deadlineMs: Number.POSITIVE_INFINITY, gradEnabled: true, worker: to })
      }
      expect(currentWorker().info.name).toBe('worker0')
    })
  })

  test('RPC-9: of an exposed class by `remote` makes an instance of it', async () => {
    await overSeeds(2, 2, async () => {
      const counter = remote('worker0', Counter, [5])
      expect((await counter.toHere()).n).toBe(5)
    })
  })

  test('RPC-12: nests to any depth over any workers', async () => {
    await overSeeds(3, 3, async () => {
      expect(await call('worker1', bounce, [300, ['worker2', 'worker0', 'worker1']])).toBe(300)
      expect(await call('worker0', bounce, [50, ['worker0']])).toBe(50)
    })
  })

  test('RPC-12: 2,000 at once, from two workers to two', async () => {
    const cluster = new Cluster(3, 3)
    await cluster.run(0, async () => {
      const other = cluster.workers[2]!.run(() => Promise.all(Array.from({ length: 1000 }, (_, i) => call('worker1', add, [i, 2]))))
      const own = await Promise.all(Array.from({ length: 1000 }, (_, i) => call(i % 2 === 0 ? 'worker1' : 'worker0', add, [i, 1])))
      expect(own).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1))
      expect(await other).toEqual(Array.from({ length: 1000 }, (_, i) => i + 2))
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-11: calls of one worker to another begin in the order of call(), also to oneself, and interleave at their awaits', async () => {
    for (const to of ['worker1', 'worker0']) {
      let interleaved = false
      await overSeeds(10, 2, async () => {
        log.length = 0
        const names = Array.from({ length: 20 }, (_, i) => `${i}`)
        await Promise.all(names.map((name) => call(to, noteSlowly, [name])))
        expect(log.filter((line) => line.endsWith('('))).toEqual(names.map((name) => `${name}(`))
        expect(log.filter((line) => line.endsWith(')'))).toEqual(names.map((name) => `${name})`))
        interleaved ||= log.indexOf('1(') < log.indexOf('0)')
      })
      expect(interleaved).toBe(true)
    }
  })

  test('RPC-11: calls of different workers may begin in any order', async () => {
    const orders = new Set<string>()
    for (let seed = 1; seed <= 30; seed++) {
      const cluster = new Cluster(seed, 3)
      log.length = 0
      await cluster.run(0, async () => {
        const other = cluster.workers[1]!.run(() => call('worker2', note, ['b']))
        await Promise.all([call('worker2', note, ['a']), other])
      })
      orders.add(log.join())
    }
    expect(orders).toEqual(new Set(['a,b', 'b,a']))
  })

  test('RPC-13: never throws by itself; remote() and rref() do', async () => {
    expect(await failure(call('worker0', nothing))).toMatchObject({ code: 'RPC_NOT_INITIALIZED' })
    expect(thrown(() => currentWorker()).code).toBe('RPC_NOT_INITIALIZED')
    expect(thrown(() => remote('worker0', nothing)).code).toBe('RPC_NOT_INITIALIZED')
    expect(thrown(() => rref(1)).code).toBe('RPC_NOT_INITIALIZED')
    await overSeeds(1, 2, async () => {
      expect(await failure(call('nobody', nothing))).toMatchObject({ code: 'UNKNOWN_WORKER' })
      expect(await failure(call('worker1', unexposed))).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
      expect(await failure(call('worker1', echo, [() => 1]))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
      expect(await failure(call('worker1', nothing, [], { timeoutMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID' })
      expect(thrown(() => remote('nobody', nothing)).code).toBe('UNKNOWN_WORKER')
      expect(thrown(() => remote('worker1', unexposed)).code).toBe('FUNCTION_NOT_EXPOSED')
      expect(thrown(() => remote('worker1', echo, [() => 1])).code).toBe('WIRE_UNSUPPORTED_VALUE')
    })
  })
})

describe('values', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  const values: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['booleans', [true, false]],
    ['numbers', [0, 1, -1, 1.5, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, Number.POSITIVE_INFINITY, Number.NaN]],
    ['-0', -0],
    ['bigints', [0n, -1n, 2n ** 63n, 2n ** 200n, -(2n ** 70n)]],
    ['strings', ['', 'plain', 'ünïcödé 🦉', '\ud800', '\ufeffmark', 'a\0b']],
    ['a date', new Date(1e12)],
    ['a regular expression', /a+(b)?/giu],
    [
      'a map',
      new Map<unknown, unknown>([
        [1, 'one'],
        [{ key: 1 }, new Map([['inner', -0]])],
      ]),
    ],
    ['a set', new Set([1, 'two', 3n])],
    ['nested arrays and objects', { list: [[], [null], [undefined, [1]]], deep: { a: { b: { c: [{}] } } } }],
    ['an object with odd keys', JSON.parse('{"__proto__": 1, "": 2, "constructor": 3}')],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['errors', [new TypeError('t'), new RangeError('r', { cause: 'c' })]],
  ]

  test.each(values)('RPC-14: %s, as argument and as result', async (_, value) => {
    await overSeeds(2, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const [got] = (await call(to, echo, [[value]])) as unknown[]
        expect(got).toEqual(value)
        expect(Object.is(got, value) || typeof value === 'object').toBe(true)
      }
    })
  })

  test.each([Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array])(
    'RPC-14: %p, small and large',
    async (Kind) => {
      await overSeeds(1, 2, async () => {
        for (const length of [0, 3, 5000]) {
          const given = new Kind(Array.from({ length }, (_, i) => i % 100))
          const got = (await call('worker1', echo, [given])) as typeof given
          expect(Object.prototype.toString.call(got)).toBe(Object.prototype.toString.call(given))
          expect([...got]).toEqual([...given])
        }
      })
    },
  )

  test('RPC-14: an invalid date', async () => {
    await overSeeds(1, 2, async () => {
      const got = (await call('worker1', echo, [new Date(Number.NaN)])) as Date
      expect([Object.prototype.toString.call(got), got.getTime()]).toEqual(['[object Date]', Number.NaN])
    })
  })

  test('RPC-14: big integer arrays, buffers and views', async () => {
    await overSeeds(1, 2, async () => {
      expect(await call('worker1', echo, [new BigInt64Array([1n, -(2n ** 63n)])])).toEqual(new BigInt64Array([1n, -(2n ** 63n)]))
      expect(await call('worker1', echo, [new BigUint64Array([2n ** 64n - 1n])])).toEqual(new BigUint64Array([2n ** 64n - 1n]))
      const buffer = new Uint8Array([1, 2, 3, 4]).buffer
      expect([...new Uint8Array((await call('worker1', echo, [buffer])) as ArrayBuffer)]).toEqual([1, 2, 3, 4])
      const view = (await call('worker1', echo, [new DataView(buffer, 1, 2)])) as DataView
      expect([view.byteLength, view.getUint8(0), view.getUint8(1)]).toEqual([2, 2, 3])
      expect(await call('worker1', echo, [new Uint8Array(buffer, 1, 2)])).toEqual(new Uint8Array([2, 3]))
    })
  })

  test('RPC-14: tensors of every dtype, views too, anywhere; each place gets a tensor of its own', async () => {
    await overSeeds(2, 2, async () => {
      for (const dtype of ['float32', 'float64', 'int32', 'bool'] as const) {
        const given = tensor(
          [
            [1, 0],
            [1, 1],
            [0, 1],
          ],
          { dtype },
        )
        const got = (await call('worker1', echo, [{ a: [given.T, given], b: new Map([['x', given.select(0, 1)]]) }])) as {
          a: [Tensor, Tensor]
          b: Map<string, Tensor>
        }
        expect(got.a.map((one) => [one.dtype, one.toArray()])).toEqual([
          [dtype, given.T.toArray()],
          [dtype, given.toArray()],
        ])
        expect(got.b.get('x')!.toArray()).toEqual(given.select(0, 1).toArray())
        expect(got.a[0].storage).not.toBe(got.a[1].storage)
      }
    })
  })

  test('RPC-10: what the caller does after call(), or the callee after it returned, reaches nobody', async () => {
    await overSeeds(5, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const list: unknown[] = [1, { two: 2 }]
        const small = new Float32Array([1, 2, 3])
        const large = new Float64Array(4096).fill(7)
        const t = tensor([1, 2, 3])
        const future = call(to, later, [[list, small, large, t]])
        list.push('more')
        ;(list[1] as { two: number }).two = 3
        small.fill(9)
        large.fill(9)
        t.storage.host!.fill(9)
        const [gotList, gotSmall, gotLarge, gotTensor] = (await future) as [unknown[], Float32Array, Float64Array, Tensor]
        expect(gotList).toEqual([1, { two: 2 }])
        expect([...gotSmall]).toEqual([1, 2, 3])
        expect(gotLarge.every((x) => x === 7)).toBe(true)
        expect(gotTensor.toArray()).toEqual([1, 2, 3])
        // The sender's bytes are still its own.
        expect(large.length).toBe(4096)
      }
    })
  })

  test('RPC-10: a result that its function keeps and changes later arrives as it was', async () => {
    const state: number[] = []
    const registryOf = () => {
      const registry = new FunctionRegistry()
      registry.expose({ grow })
      return registry
    }
    const grow = () => {
      state.push(state.length)
      return state
    }
    await overSeeds(
      5,
      2,
      async () => {
        state.length = 0
        const all = await Promise.all([call('worker1', grow), call('worker1', grow), call('worker1', grow)])
        expect(all).toEqual([[0], [0, 1], [0, 1, 2]])
      },
      { registryOf },
    )
  })

  const refused: [string, unknown, string][] = [
    ['a function', () => 1, 'args[0].here[1]'],
    ['a class', Counter, 'args[0].here[1]'],
    ['a symbol', Symbol('s'), 'args[0].here[1]'],
    ['an instance', new Counter(1), 'args[0].here[1]'],
    ['a promise', Promise.resolve(1), 'args[0].here[1]'],
    ['a weak map', new WeakMap(), 'args[0].here[1]'],
    ['a cycle', cyclic, 'args[0].here[1][0]'],
  ]

  test.each(refused)('RPC-15: %s in arguments is refused with its path before anything is sent', async (_, value, path) => {
    await overSeeds(1, 2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        const error = await failure(call(to, echo, [{ here: [1, value] }]))
        expect(error).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', values: { path } })
        expect(error.remedy).toBeTruthy()
        expect(thrown(() => remote(to, echo, [{ here: [1, value] }])).code).toBe('WIRE_UNSUPPORTED_VALUE')
      }
      expect(cluster.messages).toBe(0)
    })
  })

  test('RPC-15: in a result it is the error of the call, with the path and the worker', async () => {
    const returnsIt = [() => () => 1, () => ({ in: [Symbol('s')] }), async () => new Counter(1)]
    const registryOf = () => {
      const registry = new FunctionRegistry()
      registry.expose(Object.fromEntries(returnsIt.map((fn, i) => [`f${i}`, fn])))
      return registry
    }
    await overSeeds(
      2,
      2,
      async () => {
        for (const fn of returnsIt) {
          for (const to of ['worker1', 'worker0']) {
            const error = await failure(call(to, fn as AnyFunction))
            expect(error.code).toBe('WIRE_UNSUPPORTED_VALUE')
            expect(error.values.path).toMatch(/^value/)
            expect(error.workers.map(({ name }) => name)).toEqual([to])
          }
        }
      },
      { registryOf },
    )
  })
})

describe('what is too large', () => {
  test('RPC-15: a result beyond the limits of a message is the error of the call, arguments are refused', async () => {
    await overSeeds(1, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        expect(await failure(call(to, long))).toMatchObject({ code: 'WIRE_TOO_LARGE', workers: [currentWorker().resolve(to)] })
        const error = await failure(call(to, echo, ['x'.repeat(9e6)]))
        expect(error).toMatchObject({ code: 'WIRE_TOO_LARGE', workers: [] })
      }
    })
  })
})

const long = () => 'x'.repeat(9e6)
expose({ long })

describe('who may be called', () => {
  const strange: [string, unknown][] = [
    ['a name', 'worker9'],
    ['an id', 9],
    ['an id that is no integer', 1.5],
    ['an info', { name: 'worker9', id: 9 }],
    ["an info whose id is another worker's", { name: 'worker1', id: 0 }],
    ['null', null],
    ['undefined', undefined],
    ['a function', nothing],
  ]
  test.each(strange)("RPC-1: %s that is nobody's: UNKNOWN_WORKER, which lists the known", async (_, target) => {
    await overSeeds(1, 2, async (cluster) => {
      const error = await failure(call(target as string, nothing))
      expect(error.code).toBe('UNKNOWN_WORKER')
      expect(error.message).toContain("'worker0' (0), 'worker1' (1)")
      expect(error.remedy).toBeTruthy()
      expect(thrown(() => remote(target as string, nothing)).code).toBe('UNKNOWN_WORKER')
      expect((await failure(cluster.workers[0]!.call(target as string, nothing, []))).code).toBe('UNKNOWN_WORKER')
      expect(thrown(() => currentWorker().resolve(target as string)).code).toBe('UNKNOWN_WORKER')
      expect(cluster.messages).toBe(0)
    })
  })

  test('RPC-13: arguments that are no array are refused on the caller, before anything is sent', async () => {
    await overSeeds(1, 2, async (cluster) => {
      const three = 3 as unknown as []
      const refused = { code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('[a, b]') }
      for (const to of ['worker0', 'worker1']) {
        expect(await failure(call(to, nothing, three))).toMatchObject(refused)
        expect(thrown(() => remote(to, nothing, three))).toMatchObject(refused)
        expect(await failure(stream(to, nothing as never, three as never).next())).toMatchObject(refused)
      }
      expect(cluster.messages).toBe(0)
      expect(currentWorker().debugInfo()).toMatchObject({ userRRefs: 0, ownerRRefs: 0, pendingCalls: 0 })
    })
  })

  test('RPC-13: options of another name, and what is no object, are refused on the caller, before anything is sent', async () => {
    await overSeeds(1, 2, async (cluster) => {
      const here = rref(new Counter(1))
      for (const options of [{ timeout: 1 }, { timeoutMs: 1, Signal: null }, 5, null, AbortSignal.abort()] as never[]) {
        const refused = { code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('{ timeoutMs: 1000 }') }
        for (const to of ['worker0', 'worker1']) {
          expect(await failure(call(to, nothing, [], options))).toMatchObject(refused)
          expect(await failure(ready(to, options))).toMatchObject(refused)
          expect(thrown(() => remote(to, nothing, [], options))).toMatchObject(refused)
          expect(await failure(stream(to, nothing as never, [] as never, options).next())).toMatchObject(refused)
        }
        expect(await failure(here.toHere(options))).toMatchObject(refused)
        expect(await failure(here.created(options))).toMatchObject(refused)
        expect(await failure(here.call('count', [], options))).toMatchObject(refused)
        expect(await failure(here.rpcAsync(options).count())).toMatchObject(refused)
        expect(thrown(() => here.remote(options).count())).toMatchObject(refused)
        expect(await failure(here.stream('count', [], options).next())).toMatchObject(refused)
      }
      expect(cluster.messages).toBe(0)
      const far = remote('worker1', Counter, [1])
      expect(await failure(far.toHere({ timeout: 1 } as never))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('got timeout'),
      })
      expect(await call('worker1', add, [1, 2], { timeoutMs: 1000, signal: new AbortController().signal, ordered: false })).toBe(3)
      far.dispose()
    })
  })

  test('RPC-5: a function that is not exposed on the caller is refused there, before anything is sent', async () => {
    await overSeeds(1, 2, async (cluster) => {
      expect(await failure(call('worker1', unexposed))).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED', values: { function: 'unexposed' } })
      expect(await failure(call('worker1', 'add' as unknown as AnyFunction))).toMatchObject({ code: 'NOT_CALLABLE' })
      expect(cluster.messages).toBe(0)
    })
  })

  test('RPC-5: one that is not exposed on the callee is the error of the call, or of what uses the reference', async () => {
    const registryOf = (id: number) => {
      const registry = new FunctionRegistry()
      if (id === 0) registry.expose({ add })
      return registry
    }
    await overSeeds(
      2,
      2,
      async () => {
        const error = await failure(call('worker1', add, [1, 2]))
        expect(error.code).toBe('FUNCTION_NOT_EXPOSED')
        expect(error.message).toContain("'add' is not exposed on worker 'worker1'")
        expect(error.workers).toEqual([{ name: 'worker1', id: 1 }])
        const made = remote('worker1', add, [1, 2])
        expect(await failure(made.toHere())).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
        made.dispose()
      },
      { registryOf },
    )
  })
})
