/** Rule SUM of KERNELS.md on the wasm backend: sums, products and variances take the documented order, and sums of float32 keep their error bound. */
import { expect, test } from '@jest/globals'
import { allocate } from '../../../values/dtype.js'
import { operandOf } from '../../suite/layouts.suite.js'
import { kernels, randoms, SEED } from '../numerics.fixture.js'

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
