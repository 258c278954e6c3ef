/** Random programs, and the functions that `compile` makes, on data alone; `autograd/src/engine/chains.test.ts` has their gradients. */
import { expect, test } from '@jest/globals'
import { compile, type DType, fromTypedArray, Generator, randn, type Tensor, type TypedArray, tensor, zeros } from '../index.js'
import { isPending, withChainsFrom } from '../internal.js'
import type { Shape } from '../values/shape.js'
import { PLACES, seen, small, stepsOf } from './chains.fixture.js'

const SPECIAL = [0, -0, 1, -1, 0.5, 2, 1e-40, -1e-40, 1e38, -3e38, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 7.5]

const SHAPES = [[6], [5, 7], [2, 3, 4], [1], [4097], [3, 2048], [70, 101], [0, 3]] as const
/** Their rows are operands of kernels where steps have 500 elements or more. */
const WIDE = [
  [2, 400],
  [6, 400],
  [10, 400],
  [3, 80],
  [9, 100],
] as const

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
  (_, pick, g) => {
    const x = pick().reshape([-1])
    return x.numel > 500 ? x.narrow(0, g.integer(0, 100), 400) : null
  },
  (_, pick, g) => {
    const x = pick()
    return x.ndim > 1 && x.numel > 500 ? x.select(0, g.integer(0, x.shape[0]!)) : null
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
function program(seed: number, shapes: readonly Shape[]): readonly unknown[] {
  const g = new Generator(seed)
  const shape = shapes[g.integer(0, shapes.length)]!
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

const GROUP = 100
const firsts = Array.from({ length: 3 }, (_, i) => 1 + i * GROUP)
/** From so many elements on operations become steps. With 500, kernels read parts of pending results. */
const FROM = [
  [1, SHAPES],
  [500, WIDE],
] as const

const cases = Object.keys(PLACES).flatMap((place) =>
  FROM.flatMap(([from, shapes]) => firsts.map((first) => [place, from, first, shapes] as const)),
)

test.each(cases)(
  'CHAIN-1 in %s, steps from %d elements on, random programs, seeds from %d on: the same bits and errors',
  (place, from, first, shapes) => {
    let steps = 0
    for (let seed = first; seed < first + GROUP; seed++) {
      const expected = PLACES[place]!(() => seen(program(seed, shapes)))
      const compiled = compile(() => program(seed, shapes))
      steps += stepsOf(() => {
        const found = PLACES[place]!(() => seen(withChainsFrom(from, compiled)))
        for (const [i, one] of expected.entries()) if (found[i] !== one) throw new Error(`seed ${seed}: tensor ${i} differs`)
        expect(found.length).toBe(expected.length)
      })
    }
    expect(steps).toBeGreaterThan(GROUP / 2)
  },
)

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
