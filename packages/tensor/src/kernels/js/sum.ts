/** Sums and products of the js backend, by rule SUM (KERNELS.md). The wasm backend runs them for few elements, and its SIMD has their order. */
import type { ArrayOf } from '../../values/dtype.js'
import type { Rows } from '../table/operands.js'

const { fround } = Math
type Real = ArrayOf['float32'] | ArrayOf['float64']

/**
 * Rule SUM of float64, inner = 1: element i goes to double accumulator i mod 8 while whole groups of 8 last; the accumulators are joined in the order
 * of `join`; the rest is added one by one; the total is rounded once. inner > 1: element after element in double, rounded once.
 */
export const sumLoop: Rows = (x, out, outer, k, inner) => {
  const [from, to] = [x.storage.host as Real, out.storage.host as Real]
  for (let o = 0; o < outer; o++) {
    if (inner === 1) to[out.offset + o] = totalRow(k, from, x.offset + o * k)
    else {
      for (let i = 0; i < inner; i++) {
        let total = 0
        for (let j = 0, at = x.offset + o * k * inner + i; j < k; j++, at += inner) total += from[at]!
        to[out.offset + o * inner + i] = total
      }
    }
  }
}

/** Rule SUM of float32: the same, but eight elements of an accumulator, or of a column, are added in float32 while whole groups of 64, or of eight, last. */
export const sumLoopF32: Rows = (x, out, outer, k, inner) => {
  const [from, to] = [x.storage.host as ArrayOf['float32'], out.storage.host as ArrayOf['float32']]
  for (let o = 0; o < outer; o++) {
    if (inner === 1) to[out.offset + o] = totalRow(k, from, x.offset + o * k, k - (k % 64))
    else for (let i = 0; i < inner; i++) to[out.offset + o * inner + i] = sumColumn(k, from, x.offset + o * k * inner + i, inner)
  }
}

function sumColumn(k: number, x: ArrayOf['float32'], at: number, inner: number): number {
  let total = 0
  let j = 0
  for (; j + 8 <= k; j += 8, at += 8 * inner) total += eight(x, at, inner)
  for (; j < k; j++, at += inner) total += x[at]!
  return total
}

/** The sum of eight elements, in float32: neighbours first, then pairs, then fours. */
function eight(x: Real, at: number, step: number): number {
  const low = fround(fround(x[at]! + x[at + step]!) + fround(x[at + 2 * step]! + x[at + 3 * step]!))
  const high = fround(fround(x[at + 4 * step]! + x[at + 5 * step]!) + fround(x[at + 6 * step]! + x[at + 7 * step]!))
  return fround(low + high)
}

/** Products, in the same order. */
export const prodLoop: Rows = (x, out, outer, k, inner) => {
  const [from, to] = [x.storage.host as Real, out.storage.host as Real]
  for (let o = 0; o < outer; o++) {
    if (inner === 1) to[out.offset + o] = prodRow(k, from, x.offset + o * k)
    else {
      for (let i = 0; i < inner; i++) {
        let total = 1
        for (let j = 0, at = x.offset + o * k * inner + i; j < k; j++, at += inner) total *= from[at]!
        to[out.offset + o * inner + i] = total
      }
    }
  }
}

function prodRow(k: number, x: Real, xo: number): number {
  let [a0, a1, a2, a3, a4, a5, a6, a7] = [1, 1, 1, 1, 1, 1, 1, 1]
  const groups = k - (k % 8)
  for (let i = xo; i < xo + groups; i += 8) {
    a0 *= x[i]!
    a1 *= x[i + 1]!
    a2 *= x[i + 2]!
    a3 *= x[i + 3]!
    a4 *= x[i + 4]!
    a5 *= x[i + 5]!
    a6 *= x[i + 6]!
    a7 *= x[i + 7]!
  }
  let total = joinProducts(a0, a1, a2, a3, a4, a5, a6, a7)
  for (let i = xo + groups; i < xo + k; i++) total *= x[i]!
  return total
}

/** A row: eight accumulators, then the rest. The first `eights` elements, a multiple of 64, are added in float32 by eights. */
export function totalRow(k: number, x: Real, xo: number, eights = 0): number {
  let a0 = 0
  let a1 = 0
  let a2 = 0
  let a3 = 0
  let a4 = 0
  let a5 = 0
  let a6 = 0
  let a7 = 0
  for (let i = xo; i < xo + eights; i += 64) {
    a0 += eight(x, i, 8)
    a1 += eight(x, i + 1, 8)
    a2 += eight(x, i + 2, 8)
    a3 += eight(x, i + 3, 8)
    a4 += eight(x, i + 4, 8)
    a5 += eight(x, i + 5, 8)
    a6 += eight(x, i + 6, 8)
    a7 += eight(x, i + 7, 8)
  }
  const groups = k - (k % 8)
  for (let i = xo + eights; i < xo + groups; i += 8) {
    a0 += x[i]!
    a1 += x[i + 1]!
    a2 += x[i + 2]!
    a3 += x[i + 3]!
    a4 += x[i + 4]!
    a5 += x[i + 5]!
    a6 += x[i + 6]!
    a7 += x[i + 7]!
  }
  let total = join(a0, a1, a2, a3, a4, a5, a6, a7)
  for (let i = xo + groups; i < xo + k; i++) total += x[i]!
  return total
}

export function join(a0: number, a1: number, a2: number, a3: number, a4: number, a5: number, a6: number, a7: number): number {
  return a0 + a2 + (a4 + a6) + (a1 + a3 + (a5 + a7))
}

/** The same for eight products. */
export function joinProducts(a0: number, a1: number, a2: number, a3: number, a4: number, a5: number, a6: number, a7: number): number {
  return a0 * a2 * (a4 * a6) * (a1 * a3 * (a5 * a7))
}
