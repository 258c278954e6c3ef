/**
 * Sums, maxima, softmax and its derivatives of the wasm backend, for float32 [outer, k, inner]. The order of summation is part of the contract (KERNELS.md,
 * rule SUM), so each kernel here has two forms with the same bits: kernels.wasm, and a plain loop for small inputs.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { join, sumLoop } from '../js/sum.js'
import type { GradRows, Operand, Rows } from '../table/operands.js'
import { align, copyRun, type LazyInstance, SIMD_FROM, type WasmInstance } from './instance.js'
import { always, by, byInput, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { SLICE } from './strided.js'

type F32 = ArrayOf['float32']

type RowsExport = (rows: number, k: number, x: number, out: number) => void
type GradRowsExport = (rows: number, k: number, g: number, y: number, out: number) => void
declare module './instance.js' {
  interface KernelExports {
    readonly sum_rows_f32: RowsExport
    readonly sum_groups_f32: (n: number, x: number, accumulators: number) => void
    readonly add_rows_f32: (rows: number, n: number, x: number, sums: number) => void
    readonly amax_rows_f32: RowsExport
    readonly amin_rows_f32: RowsExport
    readonly softmax_rows_f32: RowsExport
    readonly log_softmax_rows_f32: RowsExport
    readonly softmax_backward_rows_f32: GradRowsExport
    readonly log_softmax_backward_rows_f32: GradRowsExport
  }
}

/** Floats that are staged at once; a multiple of 8, so that a long row's groups do not straddle chunks. */
const CHUNK = 2048
/** Floats of room for eight double accumulators. */
const SUMS = 16

const sum =
  (lazy: LazyInstance): Rows =>
  (x, out, outer, k, inner) => {
    if (outer * k * inner < SIMD_FROM || k === 0) sumLoop(x, out, outer, k, inner)
    else if (inner > 1) sumColumns(lazy.get(), x, out, outer, k, inner)
    else {
      const instance = lazy.get()
      const [from, to] = [x.storage.host as F32, out.storage.host as F32]
      if (k <= CHUNK) shortRows(instance, instance.kernels.sum_rows_f32, outer, k, from, x.offset, to, out.offset)
      else for (let o = 0; o < outer; o++) to[out.offset + o] = sumOfLongRow(instance, k, from, x.offset + o * k)
    }
  }

function sumOfLongRow(instance: WasmInstance, k: number, x: F32, xo: number): number {
  const staged = instance.begin((CHUNK + SUMS) * 4)
  const sums = staged + CHUNK * 4
  const { f32, f64, kernels } = instance
  const at = sums / 8
  f64.fill(0, at, at + 8)
  const xAt = instance.direct(x, xo)
  const chunk = xAt < 0 ? CHUNK : SLICE
  const groups = k - (k % 8)
  for (let i = 0; i < groups; i += chunk) {
    const count = Math.min(chunk, groups - i)
    if (xAt < 0) copyRun(count, x, xo + i, f32, staged / 4)
    kernels.sum_groups_f32(count, xAt < 0 ? staged : xAt + i * 4, sums)
    workedElements(count)
  }
  let total = join(f64[at]!, f64[at + 1]!, f64[at + 2]!, f64[at + 3]!, f64[at + 4]!, f64[at + 5]!, f64[at + 6]!, f64[at + 7]!)
  for (let i = groups; i < k; i++) total += x[xo + i]!
  return total
}

/** Tiles of columns; of each, as many rows at once as a chunk holds if they are whole. */
function sumColumns(instance: WasmInstance, x: Operand, out: Operand, outer: number, k: number, inner: number): void {
  const staged = instance.begin(CHUNK * 4 + CHUNK * 8)
  const sums = staged + CHUNK * 4
  const { f32, f64, kernels } = instance
  const at = sums / 8
  const [host, to] = [x.storage.host!, out.storage.host!]
  const xAt = instance.direct(host, x.offset)
  for (let o = 0; o < outer; o++) {
    const base = o * k * inner
    for (let i = 0; i < inner; i += CHUNK) {
      const width = Math.min(CHUNK, inner - i)
      const rowsAtOnce = width === inner ? Math.max(1, Math.floor((xAt < 0 ? CHUNK : SLICE) / inner)) : 1
      f64.fill(0, at, at + width)
      for (let r = 0; r < k; r += rowsAtOnce) {
        const rows = Math.min(rowsAtOnce, k - r)
        const from = base + r * inner + i
        if (xAt < 0) copyRun((rows - 1) * inner + width, host, x.offset + from, f32, staged / 4)
        kernels.add_rows_f32(rows, width, xAt < 0 ? staged : xAt + from * 4, sums)
        workedElements(rows * width)
      }
      for (let c = 0; c < width; c++) to[out.offset + o * inner + i + c] = f64[at + c]!
    }
  }
}

/** Whole rows, one result each; at least SIMD_FROM elements in all. Returns false where a row is too long to be staged: never for k ≤ CHUNK. */
export function shortRows(
  instance: WasmInstance,
  kernel: RowsExport,
  rows: number,
  k: number,
  x: F32,
  xo: number,
  out: F32,
  oo: number,
): boolean {
  const staged = instance.begin(2 * CHUNK * 4)
  const { f32 } = instance
  const xAt = instance.direct(x, xo)
  if (xAt < 0 && k > CHUNK) return false
  const results = staged + CHUNK * 4
  const at = results / 4
  const atOnce = xAt < 0 ? Math.floor(CHUNK / k) : Math.max(1, Math.min(CHUNK, Math.floor(SLICE / k)))
  for (let r = 0; r < rows; r += atOnce) {
    const count = Math.min(atOnce, rows - r)
    if (xAt < 0) copyRun(count * k, x, xo + r * k, f32, staged / 4)
    kernel(count, k, xAt < 0 ? staged : xAt + r * k * 4, results)
    workedElements(count * k)
    for (let i = 0; i < count; i++) out[oo + r + i] = f32[at + i]!
  }
  return true
}

/** amax, or by `sign` −1 amin: rows through kernels.wasm, long ones in pieces, columns by a loop; an extreme has the same bits in any order. */
const extreme =
  (lazy: LazyInstance, sign: 1 | -1): Rows =>
  (x, out, outer, k, inner) => {
    const [from, to] = [x.storage.host as F32, out.storage.host as F32]
    if (inner !== 1 || outer * k < SIMD_FROM) {
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) to[out.offset + o * inner + i] = extremeOf(sign, from, x.offset + o * k * inner + i, k, inner)
      }
      return
    }
    const instance = lazy.get()
    const kernel = sign > 0 ? instance.kernels.amax_rows_f32 : instance.kernels.amin_rows_f32
    if (k <= CHUNK) {
      shortRows(instance, kernel, outer, k, from, x.offset, to, out.offset)
      return
    }
    const pieces = Math.floor(k / CHUNK)
    const found = new Float32Array(pieces + 1)
    for (let o = 0; o < outer; o++) {
      const at = x.offset + o * k
      shortRows(instance, kernel, pieces, CHUNK, from, at, found, 0)
      found[pieces] = k % CHUNK === 0 ? found[0]! : extremeOf(sign, from, at + pieces * CHUNK, k % CHUNK, 1)
      to[out.offset + o] = extremeOf(sign, found, 0, pieces + 1, 1)
    }
  }

function extremeOf(sign: 1 | -1, x: F32, from: number, k: number, step: number): number {
  let best = Number.NEGATIVE_INFINITY
  for (let j = 0, at = from; j < k; j++, at += step) best = Math.max(best, sign * x[at]!)
  return sign * best
}

/**
 * Runs `kernel` on the fibres of dense operands [outer, k, inner] as rows, the last operand being the output: where they lie if that is possible,
 * otherwise staged, gathered if need be.
 */
export function runFibres(
  lazy: LazyInstance,
  operands: readonly Operand[],
  [outer, k, inner]: readonly [number, number, number],
  kernel: (instance: WasmInstance, rows: number, at: readonly number[]) => void,
): void {
  if (outer * k * inner === 0) return
  const instance = lazy.get()
  const last = operands.length - 1
  const all = outer * inner
  const chunk = Math.min(all, Math.max(1, Math.floor(CHUNK / k)))
  const bytes = align(chunk * k * 4)
  const staged = instance.begin((last + 1) * bytes)
  const direct = [-1, -1, -1]
  let isDirect = true
  for (let i = last; i >= 0; i--) {
    const { storage, offset } = operands[i]!
    const pointer = inner === 1 ? instance.direct(storage.host!, offset) : -1
    // logSoftmax needs x after it has begun to write.
    direct[i] = i < last && pointer === direct[last] ? -1 : pointer
    isDirect &&= direct[i]! >= 0
  }
  const atOnce = isDirect ? Math.max(1, Math.floor(SLICE / k)) : chunk
  const at = [0, 0, 0]
  const { f32 } = instance
  for (let r = 0; r < all; r += atOnce) {
    const count = Math.min(atOnce, all - r)
    for (let i = 0; i <= last; i++) {
      at[i] = direct[i]! < 0 ? staged + i * bytes : direct[i]! + r * k * 4
      if (i < last && direct[i]! < 0) fibres(count, r, k, inner, operands[i]!, f32, at[i]! / 4, true)
    }
    kernel(instance, count, at)
    workedElements(count * k)
    if (direct[last]! < 0) fibres(count, r, k, inner, operands[last]!, f32, at[last]! / 4, false)
  }
}

/** Copies `count` of the [outer · inner] fibres of x, from r on, to the rows at `to`, or (`reads` false) back. */
function fibres(
  count: number,
  r: number,
  k: number,
  inner: number,
  { storage, offset }: Operand,
  rows: F32,
  to: number,
  reads: boolean,
): void {
  const host = storage.host as F32
  if (inner === 1) {
    if (reads) copyRun(count * k, host, offset + r * k, rows, to)
    else copyRun(count * k, rows, to, host, offset + r * k)
    return
  }
  for (let f = r; f < r + count; f++, to += k) {
    let at = offset + Math.floor(f / inner) * k * inner + (f % inner)
    if (reads) for (let j = 0; j < k; j++, at += inner) rows[to + j] = host[at]!
    else for (let j = 0; j < k; j++, at += inner) host[at] = rows[to + j]!
  }
}

/** softmax and logSoftmax: always kernels.wasm, because their exponentials are its polynomial. */
const softmax =
  (lazy: LazyInstance, name: 'softmax_rows_f32' | 'log_softmax_rows_f32'): Rows =>
  (x, out, outer, k, inner) =>
    runFibres(lazy, [x, out], [outer, k, inner], ({ kernels }, rows, at) => kernels[name](rows, k, at[0]!, at[1]!))

/** softmaxBackward and logSoftmaxBackward. */
const softmaxBackward =
  (lazy: LazyInstance, name: 'softmax_backward_rows_f32' | 'log_softmax_backward_rows_f32'): GradRows =>
  (g, y, out, outer, k, inner) =>
    runFibres(lazy, [g, y, out], [outer, k, inner], ({ kernels }, rows, at) => kernels[name](rows, k, at[0]!, at[1]!, at[2]!))

export const cells = (instance: LazyInstance): OwnCells => ({
  sum: by(byInput, { float32: sum(instance) }),
  amax: by(byInput, { float32: extreme(instance, 1) }),
  amin: by(byInput, { float32: extreme(instance, -1) }),
  softmax: by(always, { float32: softmax(instance, 'softmax_rows_f32') }),
  logSoftmax: by(always, { float32: softmax(instance, 'log_softmax_rows_f32') }),
  softmaxBackward: by(always, { float32: softmaxBackward(instance, 'softmax_backward_rows_f32') }),
  logSoftmaxBackward: by(always, { float32: softmaxBackward(instance, 'log_softmax_backward_rows_f32') }),
})
