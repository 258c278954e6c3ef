/** Reductions and running sums of the js backend for every dtype, in double precision. Neighbours: `sum.ts` and `running.ts`, for float32. */
import type { TypedArray } from '../../values/dtype.js'
import type { Scalar2 } from '../elementwise/definition.js'
import type { GradRowsKernel, ReduceKernel, ScanKernel, VarianceKernel } from '../table/table.js'
import { allKernel, anyKernel } from './bool.js'
import { everywhere, REAL_MEAN, REAL_OR_INT, real } from './cells.js'
import { argmaxF32, argminF32, cumprodF32, cumsumF32, reverseCumsumF32 } from './running.js'
import { sumLoop } from './sum.js'

type T = TypedArray

export const plus: Scalar2 = (a, b) => a + b
export const plusInt: Scalar2 = (a, b) => (a + b) | 0
export const times: Scalar2 = (a, b) => a * b

/** Calls `f` with the offset of each fibre's first element (its step is `inner`) and its place in the output. */
export function fibres(outer: number, inner: number, k: number, f: (at: number, to: number) => void): void {
  for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) f(o * k * inner + i, o * inner + i)
}

/** `sum` and `prod`. */
const fold = (join: Scalar2, start: number): ReduceKernel<T, T> => ({
  run(outer, k, inner, x, xo, out, oo) {
    fibres(outer, inner, k, (at, to) => {
      let total = start
      for (let j = 0; j < k; j++) total = join(total, x[xo + at + j * inner]!)
      out[oo + to] = total
    })
  },
})

/** `better(v, held)`: v takes the place of what is held. */
type Choice = (v: number, held: number) => boolean
export const greater: Choice = (v, held) => v > held
const less: Choice = (v, held) => v < held

/** The index of the first of the best; the first NaN counts as one. */
export function firstBest(better: Choice, x: T, from: number, k: number, step: number): number {
  let best = 0
  for (let j = 1; j < k; j++) {
    const held = x[from + best * step]!
    const v = x[from + j * step]!
    if (Number.isNaN(held)) break
    if (better(v, held) || Number.isNaN(v)) best = j
  }
  return best
}

/** `amax`, `amin`. */
const extreme = (better: Choice): ReduceKernel<T, T> => ({
  run(outer, k, inner, x, xo, out, oo) {
    fibres(outer, inner, k, (at, to) => {
      out[oo + to] = x[xo + at + firstBest(better, x, xo + at, k, inner) * inner]!
    })
  },
})

/** `argmax`, `argmin`. */
const placeOf = (better: Choice): ReduceKernel<T, Int32Array> => ({
  run(outer, k, inner, x, xo, out, oo) {
    fibres(outer, inner, k, (at, to) => {
      out[oo + to] = firstBest(better, x, xo + at, k, inner)
    })
  },
})

const variance: VarianceKernel<T> = {
  run(outer, k, inner, x, xo, out, oo, correction, root) {
    fibres(outer, inner, k, (at, to) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += x[xo + at + j * inner]!
      const mean = sum / k
      let squares = 0
      for (let j = 0; j < k; j++) squares += (x[xo + at + j * inner]! - mean) ** 2
      const found = squares / Math.max(0, k - correction)
      out[oo + to] = root ? Math.sqrt(found) : found
    })
  },
}

/** `cumsum`, `cumprod`; `reverse` starts at the end. */
const scan = (join: Scalar2, start: number, reverse: boolean): ScanKernel<T> => ({
  run(outer, k, inner, x, xo, out, oo) {
    fibres(outer, inner, k, (at) => {
      let total = start
      for (let j = 0; j < k; j++) {
        const here = at + (reverse ? k - 1 - j : j) * inner
        total = join(total, x[xo + here]!)
        out[oo + here] = total
      }
    })
  },
})

/** Products from the left up to each place, then from the right: neither has the factor itself. */
const prodBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, x, xo, out, oo) {
    fibres(outer, inner, k, (at, to) => {
      const left = new Float64Array(k)
      let product = 1
      for (let j = 0; j < k; j++) {
        left[j] = product
        product *= x[xo + at + j * inner]!
      }
      product = grad[go + to]!
      for (let j = k - 1; j >= 0; j--) {
        out[oo + at + j * inner] = left[j]! * product
        product *= x[xo + at + j * inner]!
      }
    })
  },
}

/** Horner's rule from the right: the sum over j ≥ i of grad j · x (i+1) … x j, times the product to the left. */
const cumprodBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, x, xo, out, oo) {
    fibres(outer, inner, k, (at) => {
      const left = new Float64Array(k)
      let product = 1
      for (let j = 0; j < k; j++) {
        left[j] = product
        product *= x[xo + at + j * inner]!
      }
      let sum = 0
      for (let j = k - 1; j >= 0; j--) {
        sum = grad[go + at + j * inner]! + (j === k - 1 ? 0 : sum * x[xo + at + (j + 1) * inner]!)
        out[oo + at + j * inner] = left[j]! * sum
      }
    })
  },
}

export const cells = {
  sum: real({ run: sumLoop }, fold(plusInt, 0), REAL_OR_INT),
  prod: real(fold(times, 1), fold(Math.imul, 1), REAL_OR_INT),
  amax: { ...everywhere(extreme(greater)), bool: anyKernel },
  amin: { ...everywhere(extreme(less)), bool: allKernel },
  argmax: { ...everywhere(placeOf(greater)), float32: argmaxF32 },
  argmin: { ...everywhere(placeOf(less)), float32: argminF32 },
  variance: real(variance, REAL_MEAN, REAL_MEAN),
  prodBackward: real(prodBackward, REAL_MEAN, REAL_MEAN),
  cumprodBackward: real(cumprodBackward, REAL_MEAN, REAL_MEAN),
  cumsum: { ...real(scan(plus, 0, false), scan(plusInt, 0, false), REAL_OR_INT), float32: cumsumF32 },
  cumprod: { ...real(scan(times, 1, false), scan(Math.imul, 1, false), REAL_OR_INT), float32: cumprodF32 },
  reverseCumsum: { ...real(scan(plus, 0, true), scan(plusInt, 0, true), REAL_OR_INT), float32: reverseCumsumF32 },
}
