/**
 * Matrix products of the wasm backend: operands are staged once per batch entry with their strides (a transpose is only strides), the
 * tiles of kernels.wasm do the work. Rule DOT (KERNELS.md): each element is the sum over p in ascending order, every product and every
 * sum rounded, in each of the forms below.
 */
import type { ArrayOf } from '../../dtype.js'
import type { MatmulKernel } from '../table.js'
import { align, type LazyInstance, SINGLE_BELOW, type WasmInstance } from './instance.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

/** Elements of one product's result from which on it goes through tiles. */
export const TILES_FROM = 16
/** Elements of b up to which it is used where it lies: more no longer fits the second-level cache with what else is in use. */
const UNPACKED_MAX = 65_536
/** Rows of a below which packing b costs more than it brings. */
const PACKED_ROWS_MIN = 8
/** Bytes before the packed panel of `sgemm_unpacked`: its scratch tile. */
const TILE_BYTES = 128

/** Where a matrix lies for the kernel: a byte address and element strides. */
class Placed {
  pointer = 0
  row = 0
  col = 0

  /** Takes it where it lies, if it lies in the memory and the kernel takes its strides: any, or adjacent columns. */
  isDirect(instance: WasmInstance, rows: number, cols: number, x: Real, xo: number, row: number, col: number, anyOrder: boolean): boolean {
    if (rows * cols < SINGLE_BELOW || x.length < SINGLE_BELOW || !(anyOrder || col === 1)) return false
    this.pointer = instance.direct(x, xo)
    this.row = row
    this.col = col
    return this.pointer >= 0
  }
}

export class MatmulTiles<A extends Real> implements MatmulKernel<A> {
  readonly #instance: LazyInstance
  readonly #bytes: 4 | 8
  readonly #a = new Placed()
  readonly #b = new Placed()

  constructor(instance: LazyInstance, dtype: 'float32' | 'float64') {
    this.#instance = instance
    this.#bytes = dtype === 'float32' ? 4 : 8
  }

  run(
    batch: number,
    m: number,
    n: number,
    k: number,
    a: A,
    ao: number,
    aBatch: number,
    aRow: number,
    aCol: number,
    b: A,
    bo: number,
    bBatch: number,
    bRow: number,
    bCol: number,
    out: A,
    oo: number,
  ): void {
    const each = m * n
    if (batch * each === 0) return
    if (k === 0) {
      out.fill(0, oo, oo + batch * each)
      return
    }
    for (let t = 0; t < batch; t++) {
      const at = ao + t * aBatch
      const bt = bo + t * bBatch
      if (each < TILES_FROM) this.#loop(m, n, k, a, at, aRow, aCol, b, bt, bRow, bCol, out, oo + t * each)
      else this.#tiles(m, n, k, a, at, aRow, aCol, b, bt, bRow, bCol, out, oo + t * each)
    }
  }

  #loop(
    m: number,
    n: number,
    k: number,
    a: A,
    ao: number,
    aRow: number,
    aCol: number,
    b: A,
    bo: number,
    bRow: number,
    bCol: number,
    out: A,
    oo: number,
  ): void {
    const single = this.#bytes === 4
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let x = ao + i * aRow
        let y = bo + j * bCol
        let sum = 0
        if (single) for (let p = 0; p < k; p++, x += aCol, y += bRow) sum = Math.fround(sum + Math.fround(a[x]! * b[y]!))
        else for (let p = 0; p < k; p++, x += aCol, y += bRow) sum += a[x]! * b[y]!
        out[oo + i * n + j] = sum
      }
    }
  }

  #tiles(
    m: number,
    n: number,
    k: number,
    a: A,
    ao: number,
    aRow: number,
    aCol: number,
    b: A,
    bo: number,
    bRow: number,
    bCol: number,
    out: A,
    oo: number,
  ): void {
    const instance = this.#instance.get()
    const { kernels } = instance
    const bytes = this.#bytes
    const packed = bytes === 4 && ((bCol !== 1 && n > 1) || (n * k > UNPACKED_MAX && m >= PACKED_ROWS_MIN))
    const scratchBytes = bytes === 8 ? 0 : packed ? kernels.sgemm_scratch() : TILE_BYTES + k * 32
    const x = this.#a
    const y = this.#b
    // What must be staged is known before scratch is reserved, and stays so: growing the memory makes nothing managed direct.
    instance.begin(0)
    const aBytes = x.isDirect(instance, m, k, a, ao, aRow, aCol, true) ? 0 : m * k * bytes
    const bBytes = y.isDirect(instance, k, n, b, bo, bRow, bCol, packed) ? 0 : k * n * bytes
    const direct = m * n < SINGLE_BELOW ? -1 : instance.direct(out, oo)
    const outBytes = direct < 0 ? m * n * bytes : 0
    instance.begin(align(aBytes) + align(bBytes) + align(outBytes) + align(scratchBytes))
    const memory = (bytes === 4 ? instance.f32 : instance.f64) as A
    if (aBytes > 0) stage(memory, instance.take(aBytes), m, k, a, ao, aRow, aCol, true, x)
    if (bBytes > 0) stage(memory, instance.take(bBytes), k, n, b, bo, bRow, bCol, packed, y)
    const outAt = direct < 0 ? instance.take(outBytes) : direct
    const scratch = instance.take(scratchBytes)
    if (bytes === 8) kernels.dgemm(m, n, k, x.pointer, x.row, x.col, y.pointer, y.row, outAt)
    else if (packed) kernels.sgemm_packed(m, n, k, x.pointer, x.row, x.col, y.pointer, y.row, y.col, outAt, scratch)
    else kernels.sgemm_unpacked(m, n, k, x.pointer, x.row, x.col, y.pointer, y.row, outAt, scratch)
    if (direct < 0) out.set(memory.subarray(outAt / bytes, outAt / bytes + m * n), oo)
  }
}

/**
 * Copies a [rows, cols] matrix to `pointer` and says with which strides it lies there: as it is where its elements are dense in some order,
 * else row by row (column by column, element by element). With `anyOrder` false its columns come out adjacent.
 */
function stage<A extends Real>(
  memory: A,
  pointer: number,
  rows: number,
  cols: number,
  x: A,
  xo: number,
  row: number,
  col: number,
  anyOrder: boolean,
  to: Placed,
): void {
  const at = pointer / memory.BYTES_PER_ELEMENT
  const span = (rows - 1) * row + (cols - 1) * col + 1
  to.pointer = pointer
  to.row = row
  to.col = col
  // A repeated row or column (stride 0) spans even less than the matrix has elements.
  if (span <= rows * cols && (anyOrder || col === 1)) {
    memory.set(x.subarray(xo, xo + span), at)
    return
  }
  if (row === 1 && anyOrder) {
    to.col = rows
    for (let j = 0; j < cols; j++) memory.set(x.subarray(xo + j * col, xo + j * col + rows), at + j * rows)
    return
  }
  to.row = cols
  to.col = 1
  for (let i = 0; i < rows; i++) {
    if (col === 1) memory.set(x.subarray(xo + i * row, xo + i * row + cols), at + i * cols)
    else for (let j = 0; j < cols; j++) memory[at + i * cols + j] = x[xo + i * row + j * col]!
  }
}
