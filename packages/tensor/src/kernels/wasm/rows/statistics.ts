/**
 * Variances of the wasm backend, for floats [outer, k, inner]: two passes in double, in the order of rule SUM (KERNELS.md), in kernels.wasm or as a loop with the same bits.
 */
import type { ArrayOf } from '../../../values/dtype.js'
import { join, totalRow } from '../../js/sum.js'
import type { Operand, Variance } from '../../table/operands.js'
import { type LazyInstance, SIMD_FROM, type WasmInstance } from '../calls/instance.js'
import { by, byInput, type OwnCells } from '../calls/own.js'
import { columnsAtOnce, overRows, ROOM, reduceRows } from './rows.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

type VarianceExport = (rows: number, k: number, x: number, out: number, divisor: number, root: number) => void
type MomentsExport = (rows: number, n: number, x: number, row: number, means: number, sums: number) => void
declare module '../calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<`variance_rows_${'f32' | 'f64'}`, VarianceExport>>,
      Readonly<Record<`total_columns_${'f32' | 'f64'}` | `square_columns_${'f32' | 'f64'}`, MomentsExport>> {}
}

const variance =
  (lazy: LazyInstance, suffix: 'f32' | 'f64', rowsOf = `variance_rows_${suffix}` as const): Variance =>
  (x, out, outer, k, inner, correction, root) => {
    const divisor = Math.max(0, k - correction)
    if (outer * k * inner < SIMD_FROM) varianceLoop(x, out, outer, k, inner, divisor, root)
    else if (inner === 1) {
      const instance = lazy.get()
      const run = (rows: number, k: number, at: number, results: number) =>
        instance.kernels[rowsOf](rows, k, at, results, divisor, root ? 1 : 0)
      reduceRows(instance, run, outer, k, x, 0, out, 0)
    } else varianceColumns(lazy.get(), suffix, x, out, k, inner, divisor, root)
  }

function varianceLoop(x: Operand, out: Operand, outer: number, k: number, inner: number, divisor: number, root: boolean): void {
  const [from, to] = [x.storage.host as Real, out.storage.host as Real]
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const at = x.offset + o * k * inner + i
      const squares = inner === 1 ? squaresRow(k, from, at, totalRow(k, from, at) / k) : squaresColumn(k, from, at, inner)
      to[out.offset + o * inner + i] = root ? Math.sqrt(squares / divisor) : squares / divisor
    }
  }
}

/** Down a column, element after element, as rule SUM has it. */
function squaresColumn(k: number, x: Real, from: number, step: number): number {
  let sum = 0
  for (let j = 0; j < k; j++) sum += x[from + j * step]!
  const mean = sum / k
  let squares = 0
  for (let j = 0; j < k; j++) {
    const d = x[from + j * step]! - mean
    squares += d * d
  }
  return squares
}

/** Σ (x − mean)² of a row, in the order of rule SUM. */
function squaresRow(k: number, x: Real, xo: number, mean: number): number {
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

/** In tiles: sums of columns, which become means, then of the squares of what lies around them. */
function varianceColumns(
  instance: WasmInstance,
  suffix: 'f32' | 'f64',
  x: Operand,
  out: Operand,
  k: number,
  inner: number,
  divisor: number,
  root: boolean,
): void {
  const staged = instance.begin(3 * ROOM)
  const [means, squares] = [staged + ROOM, staged + 2 * ROOM]
  const { f64, kernels } = instance
  const to = out.storage.host as Real
  const tile = columnsAtOnce(instance, x)
  for (let first = 0; first < x.numel; first += k * inner) {
    for (let i = 0; i < inner; i += tile) {
      const width = Math.min(tile, inner - i)
      f64.fill(0, means / 8, means / 8 + width)
      f64.fill(0, squares / 8, squares / 8 + width)
      overRows(instance, x, first + i, width, k, inner, staged, (rows, _, at, row) =>
        kernels[`total_columns_${suffix}`](rows, width, at, row, means, means),
      )
      for (let c = means / 8; c < means / 8 + width; c++) f64[c] = f64[c]! / k
      overRows(instance, x, first + i, width, k, inner, staged, (rows, _, at, row) =>
        kernels[`square_columns_${suffix}`](rows, width, at, row, means, squares),
      )
      const place = out.offset + first / k + i
      for (let c = 0; c < width; c++) {
        const found = f64[squares / 8 + c]! / divisor
        to[place + c] = root ? Math.sqrt(found) : found
      }
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({
  variance: by(byInput, { float32: variance(instance, 'f32'), float64: variance(instance, 'f64') }),
})
