/** Promises of KERNELS.md for the wasm backend beyond the suite's tolerance: error bounds of the polynomials, and special values. */
import { describe, expect, test } from '@jest/globals'
import { allocate } from '../../values/dtype.js'
import { BINARY } from '../elementwise/binary.js'
import { erf, erfc } from '../elementwise/erf.js'
import { operandOf } from '../suite/layouts.suite.js'
import { kernels, randoms, run, SEED, values } from './numerics.fixture.js'

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
