/**
 * Sums and products of the wasm backend, for [outer, k, inner], and what other reductions of this folder share. The order of summation is part of the contract
 * (KERNELS.md, rule SUM), so each kernel here has two forms with the same bits: kernels.wasm, and a plain loop for small inputs.
 */
import { allocate, type DType } from '../../../values/dtype.js'
import { join, joinProducts } from '../../js/sum.js'
import type { Rows } from '../../table/operands.js'
import { align, type LazyInstance, SIMD_FROM, type WasmInstance } from '../calls/instance.js'
import { by, byInput, loopsOf, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { type Elements, SLICE, stage, unstage, viewOf } from '../calls/strided.js'

export type RowsExport = (rows: number, k: number, x: number, out: number) => void
/** Rows lie `row` bytes apart; they are joined to what is `held` for each of n columns. */
export type ColumnsExport = (rows: number, n: number, x: number, row: number, held: number) => void
type GroupsExport = (n: number, x: number, accumulators: number) => void
type Fold = 'sum' | 'prod'
type Suffix = 'f32' | 'f64' | 'i32'
declare module '../calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<`${Fold}_rows_${Suffix}`, RowsExport>>,
      Readonly<Record<`${Fold}_groups_${'f32' | 'f64'}`, GroupsExport>>,
      Readonly<Record<`${Fold}_columns_${Suffix}`, ColumnsExport>> {}
}

/** Elements that are staged at once; a multiple of 64, so that a long row's groups do not straddle chunks, and neither do those of a slice. */
export const CHUNK = 2048
/** Bytes of room for a chunk of any dtype. */
export const ROOM = CHUNK * 8
/** The work of an element, in multiplications, for the question whether threads share a reduction. */
export const SHARED_WORK_PER_ELEMENT = 2
/** Elements of a unit of rows, and units of columns for each thread. */
const UNIT = 32_768
const UNITS_PER_THREAD = 4
/** Rows of a column's group (rule SUM), which no call of a kernel cuts. */
const GROUP = 8
/** Bytes of eight double accumulators. */
export const SUMS = 64

const fold = (lazy: LazyInstance, op: Fold, dtype: 'float32' | 'float64' | 'int32', suffix: Suffix): Rows => {
  const loop = loopsOf(op)[dtype] as Rows
  const [alongRows, alongColumns] = [`${op}_rows_${suffix}`, `${op}_columns_${suffix}`] as const
  const start = op === 'sum' ? 0 : 1
  const held = dtype === 'int32' ? 'int32' : 'float64'
  return (x, out, outer, k, inner) => {
    if (outer * k * inner < SIMD_FROM || k === 0) {
      loop(x, out, outer, k, inner)
      return
    }
    const instance = lazy.get()
    const { kernels } = instance
    if (inner > 1) reduceColumns(instance, kernels[alongColumns], start, held, x, out, k, inner)
    else if (k <= CHUNK) reduceRows(instance, kernels[alongRows], outer, k, x, 0, out, 0)
    else if (suffix === 'i32') reduceLongRows(instance, kernels[alongRows], outer, k, x, out)
    else for (let o = 0; o < outer; o++) out.storage.host![out.offset + o] = foldLongRow(instance, op, suffix, k, x, o * k)
  }
}

function foldLongRow(instance: WasmInstance, op: Fold, suffix: 'f32' | 'f64', k: number, x: Elements, from: number): number {
  const staged = instance.begin(ROOM + SUMS)
  const sums = staged + ROOM
  const { f64 } = instance
  const host = x.storage.host!
  const kernel = instance.kernels[`${op}_groups_${suffix}`]
  const at = sums / 8
  f64.fill(op === 'sum' ? 0 : 1, at, at + 8)
  const xAt = instance.direct(host, x.offset + from)
  const size = host.BYTES_PER_ELEMENT
  const chunk = xAt < 0 ? CHUNK : SLICE
  const groups = k - (k % 8)
  for (let i = 0; i < groups; i += chunk) {
    const count = Math.min(chunk, groups - i)
    if (xAt < 0) stage(instance, count, x, staged, from + i)
    kernel(count, xAt < 0 ? staged : xAt + i * size, sums)
    workedElements(count)
  }
  const joined = op === 'prod' ? joinProducts : join
  let total = joined(f64[at]!, f64[at + 1]!, f64[at + 2]!, f64[at + 3]!, f64[at + 4]!, f64[at + 5]!, f64[at + 6]!, f64[at + 7]!)
  for (let i = x.offset + from + groups; i < x.offset + from + k; i++) total = op === 'prod' ? total * host[i]! : total + host[i]!
  return total
}

/** Whole rows of x, from element `from` on, to one element each of out, from element `to` on. Where x lies elsewhere they are staged whole. */
export function reduceRows(
  instance: WasmInstance,
  kernel: RowsExport,
  rows: number,
  k: number,
  x: Elements,
  from: number,
  out: Elements,
  to: number,
): void {
  const host = x.storage.host!
  const size = host.BYTES_PER_ELEMENT
  const xAt = instance.direct(host, x.offset + from)
  if (xAt >= 0 && instance.shares(rows * k * SHARED_WORK_PER_ELEMENT)) {
    shareRows(instance, kernel, rows, k, xAt, size, out, to)
    return
  }
  const room = xAt < 0 ? align(Math.max(CHUNK, k) * size) : 0
  const staged = instance.begin(room + ROOM)
  const results = staged + room
  const atOnce = Math.max(1, Math.min(CHUNK, Math.floor((xAt < 0 ? CHUNK : SLICE) / k)))
  for (let r = 0; r < rows; r += atOnce) {
    const count = Math.min(atOnce, rows - r)
    if (xAt < 0) stage(instance, count * k, x, staged, from + r * k)
    kernel(count, k, xAt < 0 ? staged : xAt + r * k * size, results)
    workedElements(count * k)
    unstage(instance, count, results, out, to + r)
  }
}

/** By all threads. Results lie in scratch, as few are not in the memory. */
function shareRows(
  instance: WasmInstance,
  kernel: RowsExport,
  rows: number,
  k: number,
  x: number,
  size: number,
  out: Elements,
  to: number,
): void {
  const resultSize = viewOf(instance, out.dtype).BYTES_PER_ELEMENT
  const results = instance.begin(rows * resultSize)
  const part = Math.max(1, Math.floor(UNIT / k))
  const unit = (i: number): void => {
    const count = Math.min(part, rows - i * part)
    kernel(count, k, x + i * part * k * size, results + i * part * resultSize)
    workedElements(count * k)
  }
  instance.share(Math.ceil(rows / part), part * k * SHARED_WORK_PER_ELEMENT, unit)
  unstage(instance, rows, results, out, to)
}

/** Long rows in pieces, for reductions to x's dtype in which the order does not count. */
export function reduceLongRows(instance: WasmInstance, kernel: RowsExport, rows: number, k: number, x: Elements, out: Elements): void {
  for (let r = 0; r < rows; r++) {
    const found = piecesOfRow(instance, kernel, k, x, r * k)
    reduceRows(instance, kernel, 1, found.storage.host!.length, found, 0, out, r)
  }
}

/** The results of a long row's pieces of CHUNK elements, of which the last may be shorter. */
export function piecesOfRow(instance: WasmInstance, kernel: RowsExport, k: number, x: Elements, from: number): Elements {
  const whole = Math.floor(k / CHUNK)
  const rest = k % CHUNK
  const found = { storage: { host: allocate(x.dtype, whole + Math.sign(rest)) }, offset: 0, dtype: x.dtype }
  reduceRows(instance, kernel, whole, CHUNK, x, from, found, 0)
  if (rest > 0) reduceRows(instance, kernel, 1, rest, x, from + whole * CHUNK, found, whole)
  return found
}

/** Columns of x [outer, k, inner] to out: in tiles, whose results are `held` in scratch, from `start` on, while row after row joins them. */
export function reduceColumns(
  instance: WasmInstance,
  kernel: ColumnsExport,
  start: number,
  held: DType,
  x: Elements & { readonly numel: number },
  out: Elements,
  k: number,
  inner: number,
): void {
  const staged = instance.begin(2 * ROOM + 16)
  const heldAt = staged + ROOM
  const totals = viewOf(instance, held)
  const size = totals.BYTES_PER_ELEMENT
  const at = heldAt / size
  const startAt = heldAt + ROOM
  const shares = instance.direct(x.storage.host!, x.offset) >= 0 && instance.shares(k * Math.min(inner, CHUNK) * SHARED_WORK_PER_ELEMENT)
  totals[startAt / size] = start
  const tile = columnsAtOnce(instance, x)
  for (let first = 0; first < x.numel; first += k * inner) {
    for (let i = 0; i < inner; i += tile) {
      const width = Math.min(tile, inner - i)
      if (shares) {
        const part = Math.ceil(width / (instance.threads * UNITS_PER_THREAD) / 64) * 64
        const unit = (u: number): void => {
          const [own, count] = [heldAt + u * part * size, Math.min(part, width - u * part)]
          instance.kernels[size === 8 ? 'move_64' : size === 4 ? 'move_32' : 'move_8'](1, count, startAt, 0, 0, own, 0, size)
          overRows(instance, x, first + i + u * part, count, k, inner, staged, (rows, _, from, row) => kernel(rows, count, from, row, own))
        }
        instance.share(Math.ceil(width / part), k * part * SHARED_WORK_PER_ELEMENT, unit)
      } else {
        totals.fill(start, at, at + width)
        overRows(instance, x, first + i, width, k, inner, staged, (rows, _, from, row) => kernel(rows, width, from, row, heldAt))
      }
      // A total of float32 takes half of its room, so each is read before its place is written.
      if (held !== out.dtype) instance.kernels.convert_f64_f32(width, heldAt, heldAt)
      unstage(instance, width, heldAt, out, first / k + i)
    }
  }
}

/** The columns of a tile: of staged operands so few that a group of rows fits into a chunk. */
export const columnsAtOnce = (instance: WasmInstance, x: Elements): number =>
  instance.direct(x.storage.host!, x.offset) >= 0 ? CHUNK : CHUNK / GROUP

/**
 * Calls `f` for the k rows of a tile of columns, which begins at element `from`: as many at once as a slice has, or as a chunk holds if they are staged,
 * but whole groups. `f` gets their number, the first one's, its address, and the bytes from row to row.
 */
export function overRows(
  instance: WasmInstance,
  x: Elements,
  from: number,
  width: number,
  k: number,
  inner: number,
  staged: number,
  f: (rows: number, first: number, x: number, row: number) => void,
): void {
  const host = x.storage.host!
  const size = host.BYTES_PER_ELEMENT
  const xAt = instance.direct(host, x.offset + from)
  const atOnce = Math.floor((xAt >= 0 ? SLICE : CHUNK) / width / GROUP) * GROUP
  const row = (xAt >= 0 ? inner : width) * size
  for (let r = 0; r < k; r += atOnce) {
    const rows = Math.min(atOnce, k - r)
    if (xAt < 0 && width === inner) stage(instance, rows * width, x, staged, from + r * inner)
    else if (xAt < 0) for (let i = 0; i < rows; i++) stage(instance, width, x, staged + i * row, from + (r + i) * inner)
    f(rows, r, xAt < 0 ? staged : xAt + r * row, row)
    workedElements(rows * width)
  }
}

const folds = (lazy: LazyInstance, op: Fold) =>
  by(byInput, {
    float32: fold(lazy, op, 'float32', 'f32'),
    float64: fold(lazy, op, 'float64', 'f64'),
    int32: fold(lazy, op, 'int32', 'i32'),
  })

export const cells = (instance: LazyInstance): OwnCells => ({
  sum: folds(instance, 'sum'),
  prod: folds(instance, 'prod'),
})
