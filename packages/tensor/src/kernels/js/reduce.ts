/** Reductions and running sums of the js backend for every dtype, in double precision. Neighbours: `sum.ts` and `running.ts`, for float32. */
import type { TypedArray } from '../../values/dtype.js'
import type { Scalar2 } from '../elementwise/definition.js'
import type { GradRows, Rows, Variance } from '../table/operands.js'
import { allKernel, anyKernel } from './bool.js'
import { everywhere, REAL_MEAN, REAL_OR_INT, real } from './cells.js'
import { argmaxF32, argminF32, cumprodF32, cumsumF32, reverseCumsumF32 } from './running.js'
import { prodLoop, sumLoop, sumLoopF32 } from './sum.js'

type T = TypedArray

export const plus: Scalar2 = (a, b) => a + b
export const plusInt: Scalar2 = (a, b) => (a + b) | 0
export const times: Scalar2 = (a, b) => a * b

/** Calls `f` with the place of each fibre's first element (its step is `inner`) and that of its one result, both from 0 on. */
export function fibres(outer: number, k: number, inner: number, f: (at: number, to: number) => void): void {
  for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) f(o * k * inner + i, o * inner + i)
}

/** `of` gives the one result of a fibre, which begins at `at`. */
function reduction(of: (x: T, at: number, k: number, step: number) => number): Rows {
  return (x, out, outer, k, inner) => {
    const [from, to] = [x.storage.host!, out.storage.host!]
    fibres(outer, k, inner, (at, place) => {
      to[out.offset + place] = of(from, x.offset + at, k, inner)
    })
  }
}

/** `sum` and `prod` of integers, `amax`, `amin`. */
const fold = (join: Scalar2, start: number): Rows =>
  reduction((x, at, k, step) => {
    let total = start
    for (let j = 0; j < k; j++) total = join(total, x[at + j * step]!)
    return total
  })

/** `better(v, held)`: v takes the place of what is held. */
type Choice = (v: number, held: number) => boolean
export const greater: Choice = (v, held) => v > held
export const less: Choice = (v, held) => v < held

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

/** `argmax`, `argmin`. */
const placeOf = (better: Choice): Rows => reduction((x, at, k, step) => firstBest(better, x, at, k, step))

const variance: Variance = (x, out, outer, k, inner, correction, root) =>
  reduction((from, at) => {
    let sum = 0
    for (let j = 0; j < k; j++) sum += from[at + j * inner]!
    const mean = sum / k
    let squares = 0
    for (let j = 0; j < k; j++) squares += (from[at + j * inner]! - mean) ** 2
    const found = squares / Math.max(0, k - correction)
    return root ? Math.sqrt(found) : found
  })(x, out, outer, k, inner)

/** `cumsum`, `cumprod`; `reverse` starts at the end. */
const scan =
  (join: Scalar2, start: number, reverse: boolean): Rows =>
  (x, out, outer, k, inner) => {
    const [from, to] = [x.storage.host!, out.storage.host!]
    fibres(outer, k, inner, (at) => {
      let total = start
      for (let j = 0; j < k; j++) {
        const here = at + (reverse ? k - 1 - j : j) * inner
        total = join(total, from[x.offset + here]!)
        to[out.offset + here] = total
      }
    })
  }

/** For each factor the product of the factors to its left. */
function leftOf(x: T, at: number, k: number, step: number): Float64Array {
  const left = new Float64Array(k)
  let product = 1
  for (let j = 0; j < k; j++) {
    left[j] = product
    product *= x[at + j * step]!
  }
  return left
}

/** Products from the left up to each place, then from the right: neither has the factor itself. */
const prodBackward: GradRows = (grad, x, out, outer, k, inner) => {
  const [g, from, to] = [grad.storage.host!, x.storage.host!, out.storage.host!]
  fibres(outer, k, inner, (at, single) => {
    const left = leftOf(from, x.offset + at, k, inner)
    let product = g[grad.offset + single]!
    for (let j = k - 1; j >= 0; j--) {
      to[out.offset + at + j * inner] = left[j]! * product
      product *= from[x.offset + at + j * inner]!
    }
  })
}

/** Horner's rule from the right: the sum over j ≥ i of grad j · x (i+1) … x j, times the product to the left. */
const cumprodBackward: GradRows = (grad, x, out, outer, k, inner) => {
  const [g, from, to] = [grad.storage.host!, x.storage.host!, out.storage.host!]
  fibres(outer, k, inner, (at) => {
    const left = leftOf(from, x.offset + at, k, inner)
    let sum = 0
    for (let j = k - 1; j >= 0; j--) {
      sum = g[grad.offset + at + j * inner]! + (j === k - 1 ? 0 : sum * from[x.offset + at + (j + 1) * inner]!)
      to[out.offset + at + j * inner] = left[j]! * sum
    }
  })
}

export const cells = {
  sum: { ...real(sumLoop, fold(plusInt, 0), REAL_OR_INT), float32: sumLoopF32 },
  prod: real(prodLoop, fold(Math.imul, 1), REAL_OR_INT),
  amax: { ...everywhere(fold(Math.max, -Infinity)), bool: anyKernel },
  amin: { ...everywhere(fold(Math.min, Infinity)), bool: allKernel },
  argmax: { ...everywhere(placeOf(greater)), float32: argmaxF32 },
  argmin: { ...everywhere(placeOf(less)), float32: argminF32 },
  variance: real(variance, REAL_MEAN, REAL_MEAN),
  prodBackward: real(prodBackward, REAL_MEAN, REAL_MEAN),
  cumprodBackward: real(cumprodBackward, REAL_MEAN, REAL_MEAN),
  cumsum: { ...real(scan(plus, 0, false), scan(plusInt, 0, false), REAL_OR_INT), float32: cumsumF32 },
  cumprod: { ...real(scan(times, 1, false), scan(Math.imul, 1, false), REAL_OR_INT), float32: cumprodF32 },
  reverseCumsum: { ...real(scan(plus, 0, true), scan(plusInt, 0, true), REAL_OR_INT), float32: reverseCumsumF32 },
}
