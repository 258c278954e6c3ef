/**
 * Promises of KERNELS.md for the wasm backend beyond the suite's tolerance: error bounds of the polynomials, orders of summation, and bits
 * that depend neither on the size of an operation nor on the place of an element.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { threadHeap } from '../../heap/thread-heap.js'
import { allocate } from '../../values/dtype.js'
import { BINARY } from '../elementwise/binary.js'
import { erf, erfc } from '../elementwise/erf.js'
import { operandOf } from '../suite/layouts.suite.js'
import { OPS } from '../table/ops.js'
import { createWasmBackend } from './backend.js'
import { SIMD_FROM } from './calls/instance.js'

const { kernels } = createWasmBackend(threadHeap)
const SEED = 7

function randoms(seed: number): () => number {
  const generator = xoroshiro128plus(seed)
  return () => (generator.next() >>> 0) / 2 ** 32
}

/** Distance in units of the last place of the correctly rounded float32. */
function ulps(got: number, exact: number): number {
  const want = Math.fround(exact)
  if (Object.is(got, want) || (Number.isNaN(got) && Number.isNaN(want))) return 0
  if (!Number.isFinite(got) || !Number.isFinite(want)) return Number.POSITIVE_INFINITY
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(exact))), -126)
  return Math.abs(got - exact) / 2 ** (exponent - 23)
}

describe('NUM: the polynomials keep their error bounds', () => {
  /** Bounds in ulp, as in KERNELS.md and assembly/parts/math.ts; `inputs` is where they hold. */
  const cases = [
    { op: 'exp', bound: 1, exact: Math.exp, from: -87.3, to: 88.7 },
    { op: 'log', bound: 1, exact: Math.log, from: 0, to: 3.4e38 },
    { op: 'tanh', bound: 1.5, exact: Math.tanh, from: -20, to: 20 },
    { op: 'sigmoid', bound: 2.5, exact: (x: number) => 1 / (1 + Math.exp(-x)), from: -110, to: 100 },
    { op: 'expm1', bound: 3.5, exact: Math.expm1, from: -104, to: 88.7 },
    { op: 'log1p', bound: 2.5, exact: Math.log1p, from: -1, to: 3.4e38 },
    { op: 'erf', bound: 3, exact: erf, from: -10, to: 10 },
    { op: 'rsqrt', bound: 1.5, exact: (x: number) => 1 / Math.sqrt(x), from: 1e-38, to: 3.4e38 },
    { op: 'silu', bound: 2.5, exact: (x: number) => x / (1 + Math.exp(-x)), from: -87, to: 1000 },
    { op: 'gelu', bound: 8, exact: (x: number) => 0.5 * x * erfc(-x * Math.SQRT1_2), from: -12, to: 1000 },
    { op: 'softplus', bound: 3, exact: (x: number) => (x > 20 ? x : Math.log1p(Math.exp(x))), from: -87, to: 1000 },
    { op: 'elu', bound: 1.5, exact: (x: number) => (x > 0 ? x : Math.expm1(x)), from: -1000, to: 1000 },
    { op: 'sin', bound: 0.51, exact: Math.sin, from: -3.4e38, to: 3.4e38 },
    { op: 'tan', bound: 0.51, exact: Math.tan, from: -3.4e38, to: 3.4e38 },
    { op: 'log2', bound: 0.51, exact: Math.log2, from: 0, to: 3.4e38 },
    { op: 'log10', bound: 0.51, exact: Math.log10, from: 0, to: 3.4e38 },
    { op: 'exp2', bound: 0.51, exact: (x: number) => 2 ** x, from: -160, to: 127.9 },
    { op: 'sinh', bound: 0.51, exact: Math.sinh, from: -89, to: 89 },
    { op: 'cosh', bound: 0.51, exact: Math.cosh, from: -89, to: 89 },
    { op: 'asin', bound: 0.51, exact: Math.asin, from: -1, to: 1 },
    { op: 'acos', bound: 0.51, exact: Math.acos, from: -1, to: 1 },
    { op: 'atan', bound: 0.51, exact: Math.atan, from: -3.4e38, to: 3.4e38 },
    { op: 'pow', bound: 0.51, exact: (x: number) => x ** 1.7, from: 1e-28, to: 1e22 },
    { op: 'cos', bound: 0.51, exact: Math.cos, from: -3.4e38, to: 3.4e38 },
  ] as const

  for (const { op, bound, exact, from, to } of cases) {
    test(`NUM-1 ${op} is within ${bound} ulp (seed ${SEED})`, () => {
      const random = randoms(SEED)
      const inputs: number[] = []
      // Every exponent that lies in the range, both signs, and the range evenly.
      for (let e = -149; e < 128; e++) {
        for (let i = 0; i < 60; i++) for (const sign of [1, -1]) inputs.push(Math.fround(sign * (1 + random()) * 2 ** e))
      }
      const width = Math.min(to, 1000) - Math.max(from, -1000)
      for (let i = 0; i < 30_000; i++) inputs.push(Math.fround(Math.max(from, -1000) + random() * width))
      const x = Float32Array.from(inputs.filter((v) => v >= from && v <= to))
      const out = new Float32Array(x.length)
      run(op, x, out)
      let worst = 0
      let at = 0
      for (let i = 0; i < x.length; i++) {
        const error = ulps(out[i]!, exact(x[i]!))
        if (error > worst) {
          worst = error
          at = x[i]!
        }
      }
      if (worst > bound) throw new Error(`${op}(${at}) is ${worst} ulp off`)
      // Functions computed in double round correctly here; of others a perfect score would mean that nothing was measured.
      if (bound > 0.51) expect(worst).toBeGreaterThan(0)
      expect(x.length).toBeGreaterThan(30_000)
    })
  }

  test('NUM-2 special values', () => {
    const x = Float32Array.of(Number.NaN, Infinity, -Infinity, 0, -0, 200, -200, 89)
    expect(values('exp', x)).toEqual([Number.NaN, Infinity, 0, 1, 1, Infinity, 0, Infinity])
    expect(values('log', x)).toEqual([
      Number.NaN,
      Infinity,
      Number.NaN,
      -Infinity,
      -Infinity,
      Math.fround(Math.log(200)),
      Number.NaN,
      Math.fround(Math.log(89)),
    ])
    expect(values('tanh', x)).toEqual([Number.NaN, 1, -1, 0, -0, 1, -1, 1])
    expect(values('sigmoid', x)).toEqual([Number.NaN, 1, 0, 0.5, 0.5, 1, 0, 1])
    expect(values('sin', x).slice(0, 5)).toEqual([Number.NaN, Number.NaN, Number.NaN, 0, -0])
    expect(values('cos', x).slice(0, 5)).toEqual([Number.NaN, Number.NaN, Number.NaN, 1, 1])
  })
})

test(`NUM-3 power and atan2 are within 0.51 ulp, and C's special cases hold (seed ${SEED})`, () => {
  const random = randoms(SEED + 6)
  const definitions = { power: (x: number, y: number) => x ** y, atan2: Math.atan2 }
  for (const op of ['power', 'atan2'] as const) {
    const kernel = kernels[op].float32
    if ('unsupported' in kernel) throw new Error(kernel.unsupported)
    const n = 20_000
    const a = Float32Array.from({ length: n }, () => (op === 'power' ? 1 : random() - 0.5) * 2 ** ((random() - 0.5) * 60))
    const b = Float32Array.from({ length: n }, () => (random() - 0.5) * 8)
    const out = new Float32Array(n)
    kernel(operandOf(a, 0, [n]), operandOf(b, 0, [n]), operandOf(out, 0, [n]))
    for (let i = 0; i < n; i++) {
      const error = ulps(out[i]!, definitions[op](a[i]!, b[i]!))
      if (error > 0.51) throw new Error(`${op}(${a[i]}, ${b[i]}) is ${error} ulp off`)
    }
    const specials = [0, -0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, 1e-40, -1e-40, 3e38, -3e38, 16777217, Infinity, -Infinity, Number.NaN]
    for (const x of specials.map(Math.fround)) {
      for (const y of specials.map(Math.fround)) {
        // JavaScript's differs from C's pow in these.
        const isOne = op === 'power' && (x === 1 || (x === -1 && Math.abs(y) === Infinity))
        const got = new Float32Array(1)
        kernel(operandOf(Float32Array.of(x), 0, [1]), operandOf(Float32Array.of(y), 0, [1]), operandOf(got, 0, [1]))
        const want = isOne ? 1 : definitions[op](x, y)
        if (ulps(got[0]!, want) > 0.51) throw new Error(`${op}(${x}, ${y}) is ${got[0]}, not ${want}`)
      }
    }
  }
})

/** Every exponent of float64, both signs, then numbers up to 800 evenly. */
function doubles(random: () => number): Float64Array {
  const inputs: number[] = []
  for (let e = -1074; e < 1024; e++) for (const sign of [1, -1]) for (let i = 0; i < 20; i++) inputs.push(sign * (1 + random()) * 2 ** e)
  for (let i = 0; i < 30_000; i++) inputs.push((random() - 0.5) * 1600)
  return Float64Array.from(inputs.filter(Number.isFinite))
}

/** Distance in units of the last place of `want`. */
function ulps64(got: number, want: number): number {
  if (Object.is(got, want) || (Number.isNaN(got) && Number.isNaN(want))) return 0
  if (!Number.isFinite(got) || !Number.isFinite(want)) return Number.POSITIVE_INFINITY
  return Math.abs(got - want) / 2 ** (Math.max(Math.floor(Math.log2(Math.abs(want))), -1022) - 52)
}

test.each([
  // Math is within 1 ulp itself.
  ['exp', 2, Math.exp],
  ['log', 2, Math.log],
  ['tanh', 3, Math.tanh],
  ['sigmoid', 3, (x: number) => 1 / (1 + Math.exp(-x))],
  ['sin', 2, Math.sin],
  ['cos', 2, Math.cos],
] as const)(`NUM-4 %s of float64 is within %d ulp of Math (seed ${SEED})`, (op, bound, definition) => {
  const kernel = kernels[op].float64
  if ('unsupported' in kernel) throw new Error(kernel.unsupported)
  const apply = (x: Float64Array): Float64Array => {
    const out = new Float64Array(x.length)
    kernel(operandOf(x, 0, [x.length]), operandOf(out, 0, [x.length]), 0, 0)
    return out
  }
  const x = doubles(randoms(SEED + 7))
  const out = apply(x)
  for (let i = 0; i < x.length; i++) {
    const error = ulps64(out[i]!, definition(x[i]!))
    if (error > bound) throw new Error(`${op}(${x[i]}) is ${error} ulp off: ${out[i]}`)
  }
  const specials = Float64Array.of(Number.NaN, Infinity, -Infinity, 0, -0, 5e-324, -5e-324, 1e308, -1e308)
  const got = apply(specials)
  for (let i = 0; i < specials.length; i++) expect(got[i]).toBe(definition(specials[i]!))
  // One by one as all at once.
  for (let i = 0; i < 200; i++) expect(apply(x.slice(i, i + 1))[0]).toBe(out[i])
})

test(`NUM-5 remainder, fmod and floorDivide are exact for quotients of any size (seed ${SEED})`, () => {
  const random = randoms(SEED + 8)
  const n = 40_000
  const number = (span: number): number => (random() < 0.5 ? -1 : 1) * (1 + random()) * 2 ** ((random() - 0.5) * span)
  for (const span of [10, 60, 250]) {
    const a = Float32Array.from({ length: n }, () => number(span))
    const b = Float32Array.from({ length: n }, (_, i) => (i % 5 === 0 ? Math.round(number(6)) || 1 : number(span)))
    // Whole quotients, too.
    for (let i = 0; i < n; i += 3) a[i] = b[i]! * Math.round(number(20))
    for (const op of ['remainder', 'fmod', 'floorDivide'] as const) {
      const kernel = kernels[op].float32
      if ('unsupported' in kernel) throw new Error(kernel.unsupported)
      const out = new Float32Array(n)
      kernel(operandOf(a, 0, [n]), operandOf(b, 0, [n]), operandOf(out, 0, [n]))
      const definition = BINARY[op].js
      for (let i = 0; i < n; i++) {
        const want = Math.fround(definition(a[i]!, b[i]!))
        if (!Object.is(out[i], want)) throw new Error(`${op}(${a[i]}, ${b[i]}) is ${out[i]}, not ${want}`)
      }
    }
  }
})

/** Functions whose parameters are not 0. */
const PARAMETERS: Readonly<Partial<Record<Poly, readonly [number, number]>>> = { softplus: [1, 20], elu: [1, 0], pow: [1.7, 0] }

type Poly =
  | 'log2'
  | 'log10'
  | 'exp2'
  | 'sinh'
  | 'cosh'
  | 'tan'
  | 'asin'
  | 'acos'
  | 'atan'
  | 'pow'
  | 'expm1'
  | 'log1p'
  | 'erf'
  | 'rsqrt'
  | 'silu'
  | 'gelu'
  | 'softplus'
  | 'elu'
  | 'exp'
  | 'log'
  | 'tanh'
  | 'sigmoid'
  | 'sin'
  | 'cos'
  | 'neg'
  | 'abs'
  | 'sqrt'
  | 'relu'

function run(op: Poly, x: Float32Array, out: Float32Array, n = x.length, from = 0): void {
  const kernel = kernels[op].float32
  if ('unsupported' in kernel) throw new Error(kernel.unsupported)
  const [p0, p1] = PARAMETERS[op] ?? [0, 0]
  kernel(operandOf(x, from, [n]), operandOf(out, from, [n]), p0, p1)
}

function values(op: Poly, x: Float32Array): number[] {
  const out = new Float32Array(x.length)
  run(op, x, out)
  return [...out]
}

describe('BITS: a value does not depend on how many there are', () => {
  test(`BITS-1 element-wise functions, one by one and all at once (seed ${SEED})`, () => {
    const random = randoms(SEED + 1)
    const x = Float32Array.from({ length: 3 * SIMD_FROM + 3 }, () => (random() - 0.3) * 20)
    // Exponentials of 16 numbers have other code where all of them lie from -87 to 87.
    x.set([87, -87, 87.00001, -87.00001, 88.8, -90, -104, 0, -0, 1e-40, Number.NaN, Infinity, -Infinity], 2 * SIMD_FROM)
    x.set([87, -87, 86.99999, -86.99999, 0, -0, 1e-40], SIMD_FROM)
    for (const op of [
      ...(['expm1', 'log1p', 'erf', 'rsqrt', 'silu', 'gelu', 'softplus', 'elu'] as const),
      ...(['log2', 'log10', 'exp2', 'sinh', 'cosh', 'tan', 'asin', 'acos', 'atan', 'pow'] as const),
      'exp',
      'log',
      'tanh',
      'sigmoid',
      'sin',
      'cos',
      'neg',
      'abs',
      'sqrt',
      'relu',
    ] as const) {
      const all = new Float32Array(x.length)
      const single = new Float32Array(x.length)
      const some = new Float32Array(x.length)
      run(op, x, all)
      for (let i = 0; i < x.length; i++) run(op, x, single, 1, i)
      for (let i = 0; i < x.length; i += 41) run(op, x, some, Math.min(41, x.length - i), i)
      // Bits of NaN say nothing.
      for (const other of [single, some]) {
        const at = all.findIndex((v, i) => !Object.is(v, other[i]))
        expect(at < 0 ? null : [op, x[at], all[at], other[at]]).toBeNull()
      }
    }
  })

  test.each(['float32', 'float64'] as const)(
    `BITS-2 DOT: every form of matmul adds products in ascending order, rounding each (%s, seed ${SEED})`,
    (dtype) => {
      const random = randoms(SEED + 2)
      const kernel = kernels.matmul[dtype]
      if ('unsupported' in kernel) throw new Error(kernel.unsupported)
      const round = dtype === 'float32' ? Math.fround : (x: number) => x
      const make = (n: number) => allocate(dtype, n).map(() => random() - 0.5) as Float32Array & Float64Array
      // Loop, unpacked tiles with ragged edges, packed by size, packed by stride, depth over one block, few columns; rows and columns times matrices.
      for (const [m, n, k, transposed] of [
        [3, 3, 20, false],
        [5, 13, 40, false],
        [21, 530, 130, false],
        [9, 19, 30, true],
        [12, 300, 520, true],
        [70, 9, 270, true],
        [1, 53, 43, false],
        [1, 53, 43, true],
        [1, 7, 300, true],
        [37, 1, 50, false],
        [37, 1, 50, true],
        [1, 1, 300, false],
      ] as const) {
        const a = make(m * k)
        const b = make(k * n)
        const [row, col] = transposed ? [1, k] : [n, 1]
        const out = make(m * n)
        kernel(operandOf(a, 0, [m, k]), operandOf(b, 0, [k, n], [row, col]), operandOf(out, 0, [m, n]))
        for (let i = 0; i < m; i++) {
          for (let j = 0; j < n; j++) {
            let sum = 0
            for (let p = 0; p < k; p++) sum = round(sum + round(a[i * k + p]! * b[p * row + j * col]!))
            if (out[i * n + j] !== sum) throw new Error(`[${m}, ${n}, ${k}] at ${i}, ${j}: ${out[i * n + j]} is not ${sum}`)
          }
        }
      }
    },
  )

  test.each([
    ['sum', 'float32'],
    ['sum', 'float64'],
    ['prod', 'float32'],
    ['prod', 'float64'],
  ] as const)(`BITS-3 SUM: rows and columns in the documented order, for short and long ones (%s of %s, seed ${SEED})`, (op, dtype) => {
    const random = randoms(SEED + 3)
    const kernel = kernels[op][dtype]
    if ('unsupported' in kernel) throw new Error(kernel.unsupported)
    const join = op === 'sum' ? plus : times
    const start = op === 'sum' ? 0 : 1
    // Factors near 1, so that a product of thousands is in range.
    const element = () => (op === 'sum' ? (random() - 0.5) * 10 ** (random() * 6) : 1 + (random() - 0.5) * 0.01)
    for (const [outer, k, inner] of [
      [1, 7, 1],
      [3, 30, 1],
      [5, 171, 1],
      [2, 2048, 1],
      [1, 10_001, 1],
      [3, 1000, 1],
      [2, 5, 3],
      [1, 40, 65],
      [2, 3, 2500],
      [2, 29, 2500],
      [1, 1003, 19],
    ] as const) {
      const x = allocate(dtype, outer * k * inner).map(element)
      const out = allocate(dtype, outer * inner)
      kernel(operandOf(x, 0, [outer, k, inner]), operandOf(out, 0, [outer, inner]), outer, k, inner)
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          const column = Array.from({ length: k }, (_, j) => x[(o * k + j) * inner + i]!)
          const terms = op === 'sum' && dtype === 'float32' ? inFloat32(column, inner === 1 ? 8 : 1) : column
          const total = inner === 1 ? rowOf(join, start, terms) : terms.reduce(join, start)
          expect(out[o * inner + i]).toBe(dtype === 'float32' ? Math.fround(total) : total)
        }
      }
    }
  })
})

test(`BITS-5 derivatives of activations, one by one and all at once (seed ${SEED})`, () => {
  const random = randoms(SEED + 5)
  const n = 3 * SIMD_FROM + 3
  const x = Float32Array.from({ length: n }, () => (random() - 0.5) * 10)
  const g = Float32Array.from({ length: n }, () => (random() - 0.5) * 10)
  for (const op of OPS.grad) {
    const kernel = kernels[op].float32
    if ('unsupported' in kernel) throw new Error(kernel.unsupported)
    const [all, single, some] = [new Float32Array(n), new Float32Array(n), new Float32Array(n)]
    const run = (count: number, from: number, out: Float32Array) =>
      kernel(operandOf(g, from, [count]), operandOf(x, from, [count]), operandOf(out, from, [count]), 0.75, 3)
    run(n, 0, all)
    for (let i = 0; i < n; i++) run(1, i, single)
    for (let i = 0; i < n; i += 71) run(Math.min(71, n - i), i, some)
    expect(Buffer.from(single.buffer).equals(Buffer.from(all.buffer))).toBe(true)
    expect(Buffer.from(some.buffer).equals(Buffer.from(all.buffer))).toBe(true)
  }
})

test.each(['float32', 'float64'] as const)(
  `BITS-4 SUM: a variance takes both of its sums in the documented order (%s, seed ${SEED})`,
  (dtype) => {
    const random = randoms(SEED + 4)
    const kernel = kernels.variance[dtype]
    const rounded = (v: number) => (dtype === 'float32' ? Math.fround(v) : v)
    if ('unsupported' in kernel) throw new Error(kernel.unsupported)
    for (const [outer, k, inner] of [
      [1, 7, 1],
      [5, 171, 1],
      [1, 10_001, 1],
      [2, 5, 3],
      [1, 40, 65],
    ] as const) {
      const x = allocate(dtype, outer * k * inner).map(() => (random() - 0.5) * 10 ** (random() * 6))
      const out = allocate(dtype, outer * inner)
      const roots = allocate(dtype, outer * inner)
      kernel(operandOf(x, 0, [outer, k, inner]), operandOf(out, 0, [outer, inner]), outer, k, inner, 1, false)
      kernel(operandOf(x, 0, [outer, k, inner]), operandOf(roots, 0, [outer, inner]), outer, k, inner, 1, true)
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          const column = Array.from({ length: k }, (_, j) => x[(o * k + j) * inner + i]!)
          const total = (v: readonly number[]) => (inner === 1 ? rowOf(plus, 0, v) : v.reduce(plus, 0))
          const mean = total(column) / k
          const variance = total(column.map((v) => (v - mean) * (v - mean))) / (k - 1)
          expect(out[o * inner + i]).toBe(rounded(variance))
          expect(roots[o * inner + i]).toBe(rounded(Math.sqrt(variance)))
        }
      }
    }
  },
)

const plus = (a: number, b: number): number => a + b
const times = (a: number, b: number): number => a * b

/** Rule SUM's sums of eight in float32: of elements `lanes` apart, which are neighbours down a column. */
function inFloat32(x: readonly number[], lanes: number): number[] {
  const { fround } = Math
  const whole = x.length - (x.length % (8 * lanes))
  const sums: number[] = []
  for (let i = 0; i < whole; i += i % lanes === lanes - 1 ? 7 * lanes + 1 : 1) {
    const at = (j: number): number => x[i + j * lanes]!
    const low = fround(fround(at(0) + at(1)) + fround(at(2) + at(3)))
    const high = fround(fround(at(4) + at(5)) + fround(at(6) + at(7)))
    sums.push(fround(low + high))
  }
  return [...sums, ...x.slice(whole)]
}

test.each([
  ['of all elements', 1, 1_000_003, 1],
  ['along rows', 7, 2040, 1],
  ['down columns', 1, 4001, 37],
] as const)(`NUM: a sum of float32 %s is within 3 · 2⁻²⁴ Σ |x| of the exact sum, and one rounding (seed ${SEED})`, (_, outer, k, inner) => {
  const random = randoms(SEED + 6)
  const kernel = kernels.sum.float32
  if ('unsupported' in kernel) throw new Error(kernel.unsupported)
  let plainBeyond = 0
  for (const signs of [false, true]) {
    const x = Float32Array.from({ length: outer * k * inner }, () => (signs && random() < 0.5 ? -1 : 1) * random() * 10 ** (random() * 2))
    const out = new Float32Array(outer * inner)
    kernel(operandOf(x, 0, [outer, k, inner]), operandOf(out, 0, [outer, inner]), outer, k, inner)
    for (let r = 0; r < outer * inner; r++) {
      const at = Math.floor(r / inner) * k * inner + (r % inner)
      let [exact, magnitudes, plain] = [0, 0, 0]
      for (let j = 0; j < k; j++) {
        const v = x[at + j * inner]!
        exact += v
        magnitudes += Math.abs(v)
        plain = Math.fround(plain + v)
      }
      const bound = 3 * 2 ** -24 * magnitudes + 2 ** -24 * Math.abs(exact)
      expect(Math.abs(out[r]! - exact)).toBeLessThanOrEqual(bound)
      if (Math.abs(plain - exact) > bound) plainBeyond++
    }
  }
  // One float32 total would not do.
  expect(plainBeyond).toBeGreaterThan(0)
})

/** Rule SUM, as KERNELS.md words it. */
function rowOf(join: (a: number, b: number) => number, start: number, x: readonly number[]): number {
  const whole = x.length - (x.length % 8)
  const a = new Array<number>(8).fill(start)
  for (let i = 0; i < whole; i++) a[i % 8] = join(a[i % 8]!, x[i]!)
  const total = join(join(join(a[0]!, a[2]!), join(a[4]!, a[6]!)), join(join(a[1]!, a[3]!), join(a[5]!, a[7]!)))
  return x.slice(whole).reduce(join, total)
}

test('MEM-1 kernels.wasm has no statics: no data section, no globals, memory imported', () => {
  const bytes = readFileSync(new URL('../../kernels.wasm', import.meta.url))
  const sections = sectionIds(bytes)
  expect(sections).toContain(2) // imports
  expect(sections).toContain(10) // code
  expect(sections).not.toContain(5) // memories of its own
  expect(sections).not.toContain(6) // globals
  expect(sections).not.toContain(11) // data
})

/** The ids of a WebAssembly module's sections, in order. */
function sectionIds(bytes: Uint8Array): number[] {
  const ids: number[] = []
  let at = 8
  while (at < bytes.length) {
    ids.push(bytes[at++]!)
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      size |= (byte & 127) << shift
      if (byte < 128) break
    }
    at += size
  }
  return ids
}

describe('NUM: clamp and relu have the bits of Math.min and Math.max', () => {
  const odd = [Number.NaN, 0, -0, 1, -1, 2, -2, Infinity, -Infinity, 1e-40, -1e-40, 0.5]
  const bounds = [-2, -0.5, -0, 0, 0.5, 2, Infinity, -Infinity, Number.NaN]
  const n = 131
  test.each(['float32', 'float64'] as const)('%s, for every pair of bounds', (dtype) => {
    const x = allocate(dtype, n)
    for (let i = 0; i < n; i++) x[i] = odd[(i * 5) % odd.length]!
    const out = allocate(dtype, n)
    const wrong: string[] = []
    const check = (what: string, of: (v: number) => number): void => {
      for (let i = 0; i < n; i++)
        if (!Object.is(out[i], of(x[i]!))) wrong.push(`${what} of ${Object.is(x[i], -0) ? '-0' : x[i]}: ${out[i]}`)
    }
    const clamp = kernels.clamp[dtype]
    const relu = kernels.relu[dtype]
    if ('unsupported' in clamp || 'unsupported' in relu) throw new Error('no kernel')
    for (const low of bounds) {
      for (const high of bounds) {
        clamp(operandOf(x, 0, [n]), operandOf(out, 0, [n]), low, high)
        check(`clamp ${low}, ${high}`, (v) => Math.min(Math.max(v, low), high))
      }
    }
    relu(operandOf(x, 0, [n]), operandOf(out, 0, [n]), 0, 0)
    check('relu', (v) => Math.max(v, 0))
    expect(wrong.slice(0, 10)).toEqual([])
  })
})
