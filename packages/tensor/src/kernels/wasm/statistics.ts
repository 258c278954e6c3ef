/**
 * Variances of the wasm backend, for float32 [outer, k, inner]: two passes by rule SUM (KERNELS.md), in kernels.wasm or as a loop with the same bits.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { join, sumRow } from '../js/sum.js'
import type { Operand, Variance } from '../table/operands.js'
import { type LazyInstance, SIMD_FROM } from './instance.js'
import { by, byInput, type OwnCells } from './own.js'
import { shortRows } from './rows.js'

type F32 = ArrayOf['float32']

declare module './instance.js' {
  interface KernelExports {
    readonly variance_rows_f32: (rows: number, k: number, x: number, out: number, divisor: number, root: number) => void
  }
}

const variance =
  (lazy: LazyInstance): Variance =>
  (x, out, outer, k, inner, correction, root) => {
    const divisor = Math.max(0, k - correction)
    const [from, to, xo, oo] = [x.storage.host as F32, out.storage.host as F32, x.offset, out.offset]
    const inRows = (): boolean => {
      const instance = lazy.get()
      const run = (rows: number, k: number, at: number, results: number) =>
        instance.kernels.variance_rows_f32(rows, k, at, results, divisor, root ? 1 : 0)
      return shortRows(instance, run, outer, k, from, xo, to, oo)
    }
    if (inner !== 1) varianceColumns(x, out, outer, k, inner, divisor, root)
    else if (outer * k < SIMD_FROM || !inRows()) {
      for (let o = 0; o < outer; o++) {
        const found = squaresRow(k, from, xo + o * k, sumRow(k, from, xo + o * k) / k) / divisor
        to[oo + o] = root ? Math.sqrt(found) : found
      }
    }
  }

/** Σ (x − mean)² of a row, in the order of rule SUM. */
function squaresRow(k: number, x: F32, xo: number, mean: number): number {
  const sums = [0, 0, 0, 0, 0, 0, 0, 0]
  const groups = k - (k % 8)
  for (let i = 0; i < groups; i++) {
    const d = x[xo + i]! - mean
    sums[i & 7] = sums[i & 7]! + d * d
  }
  const [a0, a1, a2, a3, a4, a5, a6, a7] = sums as [number, number, number, number, number, number, number, number]
  let total = join(a0, a1, a2, a3, a4, a5, a6, a7)
  for (let i = groups; i < k; i++) {
    const d = x[xo + i]! - mean
    total += d * d
  }
  return total
}

/** Row after row, so that memory is read in order; each column element after element, as rule SUM has it. */
function varianceColumns(x: Operand, out: Operand, outer: number, k: number, inner: number, divisor: number, root: boolean): void {
  const [host, to] = [x.storage.host as F32, out.storage.host as F32]
  const means = new Float64Array(inner)
  const squares = new Float64Array(inner)
  for (let o = 0; o < outer; o++) {
    const from = x.offset + o * k * inner
    means.fill(0)
    squares.fill(0)
    for (let j = 0; j < k; j++) for (let i = 0; i < inner; i++) means[i] = means[i]! + host[from + j * inner + i]!
    for (let i = 0; i < inner; i++) means[i] = means[i]! / k
    for (let j = 0; j < k; j++) {
      for (let i = 0; i < inner; i++) {
        const d = host[from + j * inner + i]! - means[i]!
        squares[i] = squares[i]! + d * d
      }
    }
    for (let i = 0; i < inner; i++) {
      const found = squares[i]! / divisor
      to[out.offset + o * inner + i] = root ? Math.sqrt(found) : found
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({ variance: by(byInput, { float32: variance(instance) }) })
