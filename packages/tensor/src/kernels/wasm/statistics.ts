/**
 * Variances of the wasm backend, for float32 [outer, k, inner]: two passes by rule SUM (KERNELS.md), in kernels.wasm or as a loop with the same bits.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { join, sumRow } from '../js/sum.js'
import type { VarianceKernel } from '../table/table.js'
import { copyRun, type LazyInstance, SIMD_FROM } from './instance.js'
import { by, byInput, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { SLICE } from './strided.js'

type F32 = ArrayOf['float32']

declare module './instance.js' {
  interface KernelExports {
    readonly variance_rows_f32: (rows: number, k: number, x: number, out: number, divisor: number, root: number) => void
  }
}

/** Floats that are staged at once. */
const CHUNK = 2048

class VarianceRows implements VarianceKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number, correction: number, root: boolean): void {
    const divisor = Math.max(0, k - correction)
    if (inner !== 1) varianceColumns(outer, k, inner, x, xo, out, oo, divisor, root)
    else if (outer * k < SIMD_FROM || !this.#rows(outer, k, x, xo, out, oo, divisor, root)) {
      for (let o = 0; o < outer; o++) {
        const found = squaresRow(k, x, xo + o * k, sumRow(k, x, xo + o * k) / k) / divisor
        out[oo + o] = root ? Math.sqrt(found) : found
      }
    }
  }

  /** Returns false where a row is too long to be staged. */
  #rows(rows: number, k: number, x: F32, xo: number, out: F32, oo: number, divisor: number, root: boolean): boolean {
    const instance = this.#instance.get()
    const staged = instance.begin(2 * CHUNK * 4)
    const { f32, kernels } = instance
    const xAt = instance.direct(x, xo)
    if (xAt < 0 && k > CHUNK) return false
    const results = staged + CHUNK * 4
    const atOnce = xAt < 0 ? Math.floor(CHUNK / k) : Math.max(1, Math.min(CHUNK, Math.floor(SLICE / k)))
    for (let r = 0; r < rows; r += atOnce) {
      const count = Math.min(atOnce, rows - r)
      if (xAt < 0) copyRun(count * k, x, xo + r * k, f32, staged / 4)
      kernels.variance_rows_f32(count, k, xAt < 0 ? staged : xAt + r * k * 4, results, divisor, root ? 1 : 0)
      workedElements(count * k)
      for (let i = 0; i < count; i++) out[oo + r + i] = f32[results / 4 + i]!
    }
    return true
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
function varianceColumns(
  outer: number,
  k: number,
  inner: number,
  x: F32,
  xo: number,
  out: F32,
  oo: number,
  divisor: number,
  root: boolean,
): void {
  const means = new Float64Array(inner)
  const squares = new Float64Array(inner)
  for (let o = 0; o < outer; o++) {
    const from = xo + o * k * inner
    means.fill(0)
    squares.fill(0)
    for (let j = 0; j < k; j++) for (let i = 0; i < inner; i++) means[i] = means[i]! + x[from + j * inner + i]!
    for (let i = 0; i < inner; i++) means[i] = means[i]! / k
    for (let j = 0; j < k; j++) {
      for (let i = 0; i < inner; i++) {
        const d = x[from + j * inner + i]! - means[i]!
        squares[i] = squares[i]! + d * d
      }
    }
    for (let i = 0; i < inner; i++) {
      const found = squares[i]! / divisor
      out[oo + o * inner + i] = root ? Math.sqrt(found) : found
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({ variance: by(byInput, { float32: new VarianceRows(instance) }) })
