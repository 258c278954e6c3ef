/** Functions that `compile` made, on data alone; `autograd/src/engine/chains.test.ts` has their gradients. */
import { expect, test } from '@jest/globals'
import {
  compile,
  type DType,
  fromTypedArray,
  full,
  Generator,
  memoryScope,
  randn,
  type Tensor,
  type TypedArray,
  tensor,
  withDevice,
  zeros,
} from '../index.js'
import { isPending, recording, Storage, settle, withChainsFrom, withHeapFrom, withHeapLimit } from '../internal.js'

const small = <T>(fn: () => T): T => withChainsFrom(1, fn)

const SPECIAL = [0, -0, 1, -1, 0.5, 2, 1e-40, -1e-40, 1e38, -3e38, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 7.5]

const SHAPES = [[6], [5, 7], [2, 3, 4], [1], [4097], [3, 2048], [70, 101], [0, 3]] as const

type Op = (xs: Tensor[], pick: () => Tensor, g: Generator) => Tensor | null
const unary =
  (name: string): Op =>
  (_, pick) =>
    (pick() as unknown as Record<string, () => Tensor>)[name]!()
const binary =
  (name: string): Op =>
  (_, pick) =>
    (pick() as unknown as Record<string, (y: Tensor) => Tensor>)[name]!(pick())
const withNumber =
  (name: string): Op =>
  (_, pick, g) =>
    (pick() as unknown as Record<string, (y: number) => Tensor>)[name]!(SPECIAL[g.integer(0, SPECIAL.length)]!)
const real = (x: Tensor) => (x.dtype === 'float32' || x.dtype === 'float64' ? x : x.to('float32'))

const OPS: readonly Op[] = [
  ...['neg', 'abs', 'sqrt', 'exp', 'tanh', 'relu', 'sigmoid', 'sign', 'floor', 'ceil', 'round', 'trunc', 'reciprocal', 'rsqrt'].map(unary),
  ...['silu', 'erf', 'log', 'sin', 'square', 'logicalNot', 'isNaN', 'clone'].map(unary),
  ...['add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'pow', 'remainder', 'atan2'].map(binary),
  ...['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'logicalAnd'].map(binary),
  ...['add', 'sub', 'mul', 'div', 'lt', 'ge', 'eq'].map(withNumber),
  (_, pick) => real(pick()).clamp(-0.5, 1.5),
  (_, pick) => real(pick()).leakyRelu(0.1),
  (_, pick, g) => real(pick()).pow([2, 3, 0.5, -0.5, 1.5][g.integer(0, 5)]!),
  (_, pick) => pick().gt(0).where(pick(), pick()),
  (_, pick) => pick().to('bool').where(2.5, pick()),
  (_, pick, g) => pick().to((['float32', 'float64', 'int32', 'bool'] as const)[g.integer(0, 4)]!),
  // Views, of which some are operands as they lie.
  (_, pick) => pick().reshape([-1]),
  (_, pick) => {
    const x = pick()
    return x.ndim === 2 ? x.transpose(0, 1).contiguous() : null
  },
  (_, pick) => {
    const x = pick()
    return x.ndim > 1 && x.numel > 0 ? x.narrow(0, 0, 1) : null
  },
  (_, pick) => {
    const x = pick()
    return x.ndim > 1 && x.numel > 0 ? x.narrow(x.ndim - 1, 0, 1) : null
  },
  (_, pick) => pick().sum(),
  // Writes, to what steps read, too.
  (_, pick) => {
    const x = pick()
    return x.dtype === 'bool' ? null : x.add_(1)
  },
  (_, pick) => pick().zero_(),
  (xs, pick) => {
    // A write to a user's array.
    const { array } = xs as Tensor[] & { array?: TypedArray }
    array?.fill(3)
    return pick().neg()
  },
  (xs) => {
    // Closed, and no operand of a later step.
    const x = xs.length > 4 ? xs.splice(1, 1)[0]! : null
    if (x !== null && !xs.some(({ storage }) => storage === x.storage)) x.close()
    return null
  },
]

function elements(g: Generator, dtype: DType, n: number): TypedArray {
  const any = (): number => (g.integer(0, 4) === 0 ? SPECIAL[g.integer(0, SPECIAL.length)]! : g.integer(-4000, 4000) / 1000)
  if (dtype === 'float32') return Float32Array.from({ length: n }, any)
  if (dtype === 'float64') return Float64Array.from({ length: n }, any)
  return Int32Array.from({ length: n }, () => g.integer(-5, 5))
}

/** The tensors that a random program has at its end; of a step that fails, the length of the message. */
function program(seed: number): readonly unknown[] {
  const g = new Generator(seed)
  const shape = SHAPES[g.integer(0, SHAPES.length)]!
  const dtypes: readonly DType[] = [(['float32', 'float32', 'float64', 'int32'] as const)[g.integer(0, 4)]!, 'float32']
  const xs = [0, 1, 2].map((i) => {
    const own = i === 2 && shape.length > 1 ? (g.integer(0, 2) === 0 ? shape.slice(1) : [...shape.slice(0, -1), 1]) : shape
    const dtype = dtypes[g.integer(0, 2)]!
    return tensor(
      elements(
        g,
        dtype,
        own.reduce((a: number, b: number) => a * b, 1),
      ),
    )
      .reshape([...own])
      .to(dtype)
  })
  // Two tensors on one array of the user's.
  const array = elements(
    g,
    'float32',
    shape.reduce((a: number, b: number) => a * b, 1),
  )
  for (let i = 0; i < 2 * g.integer(0, 2); i++) xs.push(fromTypedArray(array, [...shape]))
  Object.assign(xs, { array })
  const pick = () => xs[g.integer(0, xs.length)]!
  const count = g.integer(1, 26)
  for (let i = 0; i < count; i++) {
    const op = OPS[g.integer(0, OPS.length)]!
    try {
      const made = op(xs, pick, g)
      if (made !== null) xs.push(made)
    } catch (error) {
      xs.push(tensor((error as { code: string; message: string }).message.length))
    }
  }
  return xs
}

/** The bytes, with one kind of NaN. To compare numbers would take longer than to compute them. */
const seen = (xs: readonly unknown[]) =>
  (xs as Tensor[]).map((x) => {
    if (x.isClosed) return 'closed'
    const values = x.dataSync()
    for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i])) values[i] = Number.NaN
    return `${x.dtype} [${x.shape}] ${Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('latin1')}`
  })

/** How many steps a call records. */
function stepsOf(fn: () => unknown): number {
  const { awaiting } = Storage
  let steps = 0
  Storage.awaiting = (...args) => {
    steps++
    return awaiting.apply(Storage, args)
  }
  try {
    fn()
  } finally {
    Storage.awaiting = awaiting
  }
  return steps
}

const GROUP = 100
const firsts = Array.from({ length: 3 }, (_, i) => 1 + i * GROUP)
const PLACES: Readonly<Record<string, <T>(fn: () => T) => T>> = {
  'managed memory': (fn) => withHeapLimit(0, fn),
  'the heap': (fn) => withHeapFrom(1, fn),
  'the device js': (fn) => withDevice('js', fn),
}
const cases = Object.keys(PLACES).flatMap((place) => firsts.map((first) => [place, first] as const))

test.each(cases)('CHAIN-1 in %s, random programs, seeds from %d on: compiled, they have the same bits and errors', (place, first) => {
  let steps = 0
  for (let seed = first; seed < first + GROUP; seed++) {
    const expected = PLACES[place]!(() => seen(program(seed)))
    const compiled = compile(() => program(seed))
    steps += stepsOf(() => {
      const found = PLACES[place]!(() => seen(small(compiled)))
      for (const [i, one] of expected.entries()) if (found[i] !== one) throw new Error(`seed ${seed}: tensor ${i} differs`)
      expect(found.length).toBe(expected.length)
    })
  }
  expect(steps).toBeGreaterThan(GROUP)
})

test('CHAIN-2 a chain is computed when fn returns, together: what it returns is not pending, and what it does not return is', () => {
  const x = randn([100])
  let inner: Tensor | null = null
  const f = compile((a: Tensor) => {
    inner = a.mul(2)
    return { list: [inner.add(1), inner.sub(1)], number: 3 }
  })
  const { list, number } = small(() => f(x))
  expect([list.map(isPending), number, isPending(inner!)]).toEqual([[false, false], 3, true])
  expect(inner!.dataSync()).toEqual(x.mul(2).dataSync())
  expect(isPending(inner!)).toBe(false)
})

test('CHAIN-2 within a compiled function that calls another one, nothing is computed between them', () => {
  const inner = compile((x: Tensor) => x.mul(2))
  let wasPending = false
  const outer = compile((x: Tensor) => {
    const y = inner(x)
    wasPending = isPending(y)
    return y.add(1)
  })
  expect(small(() => outer(tensor([1, 2, 3]))).toArray()).toEqual([3, 5, 7])
  expect(wasPending).toBe(true)
})

test.each(['managed memory', 'the heap'])(
  'CHAIN-3 of %s, a step reads what its operands held when it was recorded: later writes and closes change nothing',
  (place) => {
    PLACES[place]!(() => {
      const x = full([3000], 2)
      const row = tensor(Float32Array.from({ length: 3000 }, (_, i) => i))
      const [y, z] = small(() =>
        recording(() => {
          const y = x.mul(10).add(row)
          const z = y.add(1)
          x.fill_(5)
          return [y, z]
        }),
      )
      x.mul_(2)
      row.close()
      expect(isPending(y!)).toBe(true)
      y!.add_(100)
      expect([y!.dataSync()[7], z!.dataSync()[7], x.dataSync()[7]]).toEqual([127, 28, 10])
      x.close()
      const later = small(() => recording(() => y!.mul(2).neg()))
      y!.close()
      expect(later.dataSync()[7]).toBe(-254)
    })
  },
)

test('CHAIN-3 a write to a user’s array, or to another tensor on it, changes no step that was recorded before', () => {
  for (const n of [3000, 40_000]) {
    const array = new Float32Array(n).fill(1)
    const [x, same] = [fromTypedArray(array), fromTypedArray(array)]
    const [a, b] = small(() =>
      recording(() => {
        const a = x.mul(2).add(1)
        array.fill(100)
        const b = x.mul(2)
        same.fill_(7)
        return [a, b]
      }),
    )
    expect([a!.dataSync()[5], b!.dataSync()[5]]).toEqual([3, 200])
  }
})

test('CHAIN-3 HEAP-8 a small part of a block is copied, or not recorded: a step never keeps the whole block', () => {
  withHeapFrom(1, () => {
    const rows = zeros([100, 3000])
    const { heap, block } = rows.storage.lease!
    const [y, z] = small(() => recording(() => [rows.select(0, 1).mul(2), rows.narrow(0, 0, 20).mul(2)]))
    expect([isPending(y!), isPending(z!), heap.isShared(block)]).toEqual([true, false, false])
    const w = small(() => recording(() => rows.narrow(0, 0, 30).mul(2)))
    expect([isPending(w), heap.isShared(block)]).toEqual([true, true])
    rows.fill_(1)
    expect([y, w].map((each) => each!.dataSync()[0])).toEqual([0, 0])
  })
})

test('CHAIN-3 a memoryScope around steps closes those that it does not return, and the returned one has its elements', () => {
  const x = randn([5000])
  const expected = x.mul(3).add(1).dataSync()
  let inner: Tensor | null = null
  const y = small(() =>
    recording(() =>
      memoryScope(() => {
        inner = x.mul(3)
        return inner.add(tensor([1]))
      }),
    ),
  )
  expect([inner!.isClosed, isPending(y)]).toEqual([true, true])
  expect(y.dataSync()).toEqual(expected)
})

test('CHAIN-3 what steps alone hold is given back when they are computed or closed', () => {
  withHeapFrom(1, () => {
    const x = randn([4000])
    const { heap, block } = x.storage.lease!
    expect(heap.isShared(block)).toBe(false)
    const [a, b] = small(() => recording(() => [x.mul(2), x.mul(3)]))
    expect(heap.isShared(block)).toBe(true)
    a!.dataSync()
    expect(heap.isShared(block)).toBe(true)
    b!.close()
    expect(heap.isShared(block)).toBe(false)
  })
})

test('CHAIN-4 a mistake is an error of the operation that makes it, at the operation', () => {
  const closed = zeros([10])
  closed.close()
  let reached = 0
  const f = compile((x: Tensor, y: Tensor) => {
    const z = x.mul(2)
    reached++
    const sum = z.add(y)
    reached++
    return sum
  })
  small(() => {
    expect(() => f(zeros([10]), closed)).toThrow(
      expect.objectContaining({ code: 'TENSOR_CLOSED', message: expect.stringContaining('add') }),
    )
    expect(() => f(zeros([10]), zeros([3]))).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  })
  expect(reached).toBe(2)
  expect(() => compile(3 as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('CHAIN-4 a result and a view of it, which computes it, are operands of one step', () => {
  const f = compile((x: Tensor) => {
    const y = x.mul(2)
    return y.add(y.narrow(0, 0, 1))
  })
  const x = tensor([1, 2, 3, 4]).reshape([2, 2])
  expect(Array.from(small(() => f(x)).dataSync())).toEqual([4, 8, 8, 12])
})

test('CHAIN-5 small tensors, and other devices of the process within one function, are computed as always', () => {
  const f = compile((x: Tensor) => x.mul(2).add(1))
  expect(stepsOf(() => f(zeros([1000])))).toBe(0)
  expect(stepsOf(() => f(zeros([140_000])))).toBe(2)
  const mixed = compile((x: Tensor) => withDevice('js', () => x.mul(2)).add(1))
  expect(small(() => mixed(tensor([1, 2]))).toArray()).toEqual([3, 5])
})

test('CHAIN-5 a promise: what fn does before its first await becomes chains', async () => {
  const f = compile(async (x: Tensor) => {
    const y = x.mul(2)
    const wasPending = isPending(y)
    await Promise.resolve()
    const z = x.mul(3)
    return [wasPending, isPending(z), y.add(z).toArray()]
  })
  const first = small(() => f(tensor([1, 2])))
  expect(await first).toEqual([true, false, [5, 10]])
})

test('CHAIN-5 a long chain is cut, and has the same bits', () => {
  const long = (x: Tensor) => {
    let y = x
    for (let i = 0; i < 300; i++) y = i % 3 === 0 ? y.mul(1.01) : i % 3 === 1 ? y.add(x) : y.minimum(y.mul(y))
    return y
  }
  const x = randn([5000])
  expect(small(() => compile(long)(x)).dataSync()).toEqual(long(x).dataSync())
})

/** How many results each pass over memory writes. */
function passesOf(fn: () => unknown): number[] {
  const { uninitialized } = Storage
  const { receive } = Storage.prototype
  const passes: number[] = []
  let last: 'made' | 'received' = 'received'
  Storage.uninitialized = (...args) => {
    if (last === 'received') passes.push(0)
    last = 'made'
    return uninitialized.apply(Storage, args)
  }
  Storage.prototype.receive = function (other) {
    last = 'received'
    passes[passes.length - 1]!++
    receive.call(this, other)
  }
  try {
    fn()
  } finally {
    Storage.uninitialized = uninitialized
    Storage.prototype.receive = receive
  }
  return passes
}

test('CHAIN-5 results share a pass when they have steps or large sources in common, up to 96 tensors; others have one each', () => {
  const n = 3000
  withHeapFrom(1, () => {
    const [x, y] = [randn([n]), randn([n])]
    const several = (fn: () => Tensor[]) => passesOf(() => small(() => compile(fn)()))
    expect(several(() => [x.mul(2), x.mul(3), x.add(y)])).toEqual([3])
    expect(several(() => [x.mul(2), y.mul(3), x.add(1)])).toEqual([2, 1])
    expect(several(() => Array.from({ length: 200 }, (_, i) => x.mul(i)))).toEqual([95, 95, 10])
  })
})

test('CHAIN-5 hundreds of results of one function have their values', () => {
  const xs = Array.from({ length: 700 }, (_, i) => full([100], i))
  const ys = small(() => compile(() => xs.map((x) => x.mul(2)))())
  expect(ys.map((y) => y.dataSync()[99])).toEqual(xs.map((_, i) => 2 * i))
})

test.each([
  ['factors of their own', (x: Tensor, ws: Tensor[]) => ws.map((w, i) => x.mul(w).add(ws[(i + 1) % ws.length]!))],
  [
    'a product of all, and its parts',
    (x: Tensor, ws: Tensor[]) => {
      let h = x
      return ws.map((w) => {
        h = h.mul(w).relu().add(w.gt(h).to('float32'))
        return h
      })
    },
  ],
  [
    'sums around polynomials',
    (x: Tensor, ws: Tensor[]) => {
      let h = x
      return ws.map((w) => {
        h = h.mul(w).tanh().add(w)
        return h
      })
    },
  ],
] as const)('CHAIN-1 a pass over many tensors, %s, is cut into units, and has the same bits', (_, fn) => {
  withHeapFrom(1, () => {
    for (const n of [1003, 20_011]) {
      const [x, ws] = [randn([n]), Array.from({ length: 40 }, () => randn([n]))]
      const expected = fn(x, ws).map((y) => y.dataSync())
      let found: Tensor[] = []
      const passes = passesOf(() => {
        found = small(() => compile(fn)(x, ws))
      })
      expect(found.map((y) => y.dataSync())).toEqual(expected)
      expect(passes.reduce((sum, results) => sum + results, 0)).toBe(40)
      expect(passes.length).toBeLessThan(3)
    }
  })
})

test('CHAIN-1 equal numbers are one source: 0 and -0 are two, and so are numbers of different dtypes', () => {
  const x = tensor([1, -1, 0, 3])
  const numbers = [2, 0, -0, 2, Number.NaN, 0.1, -0, Number.POSITIVE_INFINITY, 0.1, 2]
  const fn = () => numbers.flatMap((value) => [x.div(value), x.to('float64').mul(value), x.to('int32').maximum(value)])
  expect(seen(small(compile(fn)))).toEqual(seen(fn()))
})

test('CHAIN-3 a small tensor that many steps read is one source of them, until it is written', () => {
  withHeapFrom(1, () => {
    const x = randn([50, 60])
    const row = tensor(Float32Array.from({ length: 60 }, (_, i) => i))
    let copies = 0
    const { uninitialized } = Storage
    Storage.uninitialized = (dtype, length, memory) => {
      if (length === 60) copies++
      return uninitialized.call(Storage, dtype, length, memory)
    }
    try {
      const [a, b] = small(() =>
        recording(() => {
          const a = x.mul(row).add(row).mul(row)
          row.mul_(2)
          return [a, a.mul(row)]
        }),
      )
      expect(copies).toBe(2)
      const before = row.div(2)
      const expected = x.mul(before).add(before).mul(before)
      expect([a!, b!].map((y) => y.dataSync())).toEqual([expected, expected.mul(row)].map((y) => y.dataSync()))
    } finally {
      Storage.uninitialized = uninitialized
    }
  })
})

test('CHAIN-6 what was computed twice, and is read once more, is written: the steps before it are computed no more', () => {
  const x = randn([3000])
  let inner: Tensor | null = null
  const sums: number[] = []
  const passes = passesOf(() =>
    small(() =>
      recording(() => {
        const h = x.sin().exp()
        inner = h
        for (let i = 0; i < 5; i++) sums.push(h.mul(i).sum().dataSync()[0]!)
      }),
    ),
  )
  expect(isPending(inner!)).toBe(false)
  // h with the third product.
  expect(passes.filter((results) => results > 0)).toEqual([1, 1, 2, 1, 1])
  const h = x.sin().exp()
  expect(sums).toEqual([0, 1, 2, 3, 4].map((i) => h.mul(i).sum().dataSync()[0]))
})

test('CHAIN-6 a closed step that others read is written, too, and its elements go back with its last reader', () => {
  withHeapFrom(1, () => {
    const x = randn([3000])
    const ys = small(() =>
      recording(() => {
        const h = x.sin()
        const ys = [1, 2, 3, 4, 5].map((i) => h.mul(i))
        h.close()
        return ys
      }),
    )
    const { heap, block } = x.storage.lease!
    const found = ys.map((y) => {
      const values = y.dataSync()
      return [values, heap.isShared(block)]
    })
    const h = x.sin()
    // From the third on, they read h.
    expect(found).toEqual([1, 2, 3, 4, 5].map((i) => [h.mul(i).dataSync(), i < 3]))
  })
})

test('a compiled function has the name, the length and the properties of its function', () => {
  const fn = Object.assign(
    function named(this: unknown, a: Tensor, b: Tensor): Tensor {
      return a.add(b)
    },
    { note: 3 },
  )
  const compiled = compile(fn)
  expect([compiled.name, compiled.length, compiled.note]).toEqual(['named', 2, 3])
})

test('CHAIN-5 several results of one size are computed in one pass', () => {
  const xs = small(() => recording(() => [0, 1, 2].map((i) => randn([3000]).mul(i))))
  expect(xs.map(isPending)).toEqual([true, true, true])
  settle(xs)
  expect(xs.map(isPending)).toEqual([false, false, false])
})
