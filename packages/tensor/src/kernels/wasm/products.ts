/**
 * Matrix products of the wasm backend: where operands lie, what is packed, and the order of blocks; the tiles of kernels.wasm do the work. Transposes
 * are strides. Rule DOT (KERNELS.md): each element is the sum over p in ascending order, every product and every sum rounded, in each of the
 * forms below, so that the choice between them shows in no bit.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { MatmulKernel } from '../table/table.js'
import { align, copyRun, type LazyInstance, type ProductKernels, SINGLE_BELOW, type WasmInstance } from './instance.js'
import { by, type OwnCells, type Rule } from './own.js'
import { rowsAtOnce, worked } from './pause.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

/** Multiplications of one product from which on it goes to kernels.wasm. */
const TILES_FROM = 256
/** Bytes of b up to which it is used where it lies: more no longer fits the second-level cache with what else is in use. */
const UNPACKED_MAX = 262_144
/** Rows of a below which packing b costs more than it brings. */
const PACKED_ROWS_MIN = 8
/** Columns of b up to which a is used where it lies: each of its elements is read too seldom to be packed. */
const PACK_A_COLUMNS = 32
/** Rows of a block of a, its depth, columns of a block of b in bytes: a panel of b stays in the first-level cache, both blocks in the second. */
const BLOCK_ROWS = 64
const BLOCK_DEPTH = 256
const BLOCK_COLUMNS = 4096
/** Bytes of a row of a tile (`WIDTH` in assembly/matmul.ts), and of a tile. */
const PANEL_BYTES = 32
const TILE_BYTES = 128

/** Where a matrix lies for the kernel: a byte address and strides in bytes. */
export interface Matrix {
  readonly pointer: number
  readonly row: number
  readonly col: number
}

class Placed implements Matrix {
  pointer = 0
  row = 0
  col = 0

  /** Takes it where it lies, if that is in the memory. */
  isDirect(instance: WasmInstance, x: Real, xo: number, row: number, col: number, bytes: number): boolean {
    if (x.length < SINGLE_BELOW) return false
    this.pointer = instance.direct(x, xo)
    this.row = row * bytes
    this.col = col * bytes
    return this.pointer >= 0
  }
}

class MatmulTiles<A extends Real> implements MatmulKernel<A> {
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
      const ot = oo + t * each
      if (each * k < TILES_FROM) this.#loop(m, n, k, a, at, aRow, aCol, b, bt, bRow, bCol, out, ot)
      // A product with a column is one of its transpose with a row.
      else if (n === 1) this.#place(1, m, k, b, bt, 0, bRow, a, at, aCol, aRow, out, ot)
      else this.#place(m, n, k, a, at, aRow, aCol, b, bt, bRow, bCol, out, ot)
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

  /** Stages what does not lie in the memory, reserves scratch, and runs the form that fits. */
  #place(
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
    const bytes = this.#bytes
    const x = this.#a
    const y = this.#b
    // What must be staged is known before scratch is reserved.
    const aBytes = x.isDirect(instance, a, ao, aRow, aCol, bytes) ? 0 : m * k * bytes
    const bBytes = y.isDirect(instance, b, bo, bRow, bCol, bytes) ? 0 : k * n * bytes
    const direct = m * n < SINGLE_BELOW ? -1 : instance.direct(out, oo)
    const outBytes = direct < 0 ? m * n * bytes : 0
    const scratchBytes = productScratch(m, n, k, bytes, bCol * bytes)
    instance.begin(align(aBytes) + align(bBytes) + align(outBytes) + align(scratchBytes))
    const memory = (bytes === 4 ? instance.f32 : instance.f64) as A
    if (aBytes > 0) stage(memory, instance.take(aBytes), m, k, a, ao, aRow, aCol, x)
    if (bBytes > 0) stage(memory, instance.take(bBytes), k, n, b, bo, bRow, bCol, y)
    const outAt = direct < 0 ? instance.take(outBytes) : direct
    product(instance, bytes, m, n, k, x, y, outAt, n * bytes, instance.take(scratchBytes))
    if (direct < 0) {
      const at = outAt / bytes
      copyRun(m * n, memory, at, out, oo)
    }
  }
}

/** Whether b is packed: when its columns do not lie side by side, and when it is large. */
function isPacked(m: number, n: number, k: number, bytes: number, bCol: number): boolean {
  return m > 1 && (bCol !== bytes || (n * k * bytes > UNPACKED_MAX && m >= PACKED_ROWS_MIN))
}

/** Whether a is read often enough to be packed while b is not; then b is small, and so is a's block. */
function mayPackRows(m: number, n: number): boolean {
  return m >= PACKED_ROWS_MIN && n > PACK_A_COLUMNS
}

/** Bytes of scratch that `product` needs for this size, or with a smaller n or k. `bCol`: bytes from a column of b to the next. */
export function productScratch(m: number, n: number, k: number, bytes: number, bCol: number): number {
  if (m === 1) return 0
  const packed = isPacked(m, n, k, bytes, bCol) ? (BLOCK_ROWS * bytes + BLOCK_COLUMNS) * BLOCK_DEPTH : 0
  const rows = mayPackRows(m, n) ? Math.min(m, BLOCK_ROWS) + 3 : 0
  return TILE_BYTES + Math.max(packed, k * PANEL_BYTES + rows * k * bytes)
}

/**
 * out [m, n] = a [m, k] · b [k, n] in the memory of `instance`, elements of `bytes` bytes; out's rows are `outRow` bytes apart. For all kernels that
 * stand on products. m, n, k ≥ 1.
 */
export function product(
  instance: WasmInstance,
  bytes: 4 | 8,
  m: number,
  n: number,
  k: number,
  a: Matrix,
  b: Matrix,
  out: number,
  outRow: number,
  scratch: number,
): void {
  const kernels = instance.products[bytes]
  if (m === 1) vector(kernels, n, k, bytes, a, b, out)
  else if (isPacked(m, n, k, bytes, b.col)) blocks(kernels, m, n, k, bytes, a, b, out, outRow, scratch)
  else rowsOf(kernels, m, n, k, bytes, a, b, out, outRow, scratch)
}

/** One row times b, in pieces of columns. */
function vector(kernels: ProductKernels, n: number, k: number, bytes: number, a: Matrix, b: Matrix, out: number): void {
  const atOnce = Math.max(64, rowsAtOnce(k))
  for (let j = 0; j < n; j += atOnce) {
    const columns = Math.min(atOnce, n - j)
    const at = b.pointer + j * b.col
    const to = out + j * bytes
    if (b.col === bytes) kernels.byRows(columns, k, a.pointer, a.col, at, b.row, to)
    else kernels.byColumns(columns, k, a.pointer, a.col, at, b.row, b.col, to)
    worked(columns * k)
  }
}

/** b's columns are adjacent; of it no more than a ragged last panel is packed. */
function rowsOf(
  kernels: ProductKernels,
  m: number,
  n: number,
  k: number,
  bytes: number,
  a: Matrix,
  b: Matrix,
  out: number,
  outRow: number,
  scratch: number,
): void {
  const width = PANEL_BYTES / bytes
  const ragged = n % width
  const tile = scratch
  const tail = tile + TILE_BYTES
  if (ragged > 0) kernels.packB(k, ragged, b.pointer + (n - ragged) * bytes, b.row, b.col, tail)
  // Rows of a that lie far apart would push each other out of the first-level cache.
  const packs = a.col !== bytes && mayPackRows(m, n)
  const packedA = tail + k * PANEL_BYTES
  const step = 4 * bytes
  const atOnce = packs ? Math.min(BLOCK_ROWS, rowsAtOnce(n * k)) : rowsAtOnce(n * k)
  for (let i = 0; i < m; i += atOnce) {
    const rows = Math.min(atOnce, m - i)
    const at = a.pointer + i * a.row
    const to = out + i * outRow
    if (packs) {
      kernels.packA(rows, k, at, a.row, a.col, packedA)
      kernels.gemm(rows, n, k, packedA, k * step, bytes, step, b.pointer, PANEL_BYTES, b.row, tail, to, outRow, 1, 0, tile)
    } else kernels.gemm(rows, n, k, at, 4 * a.row, a.row, a.col, b.pointer, PANEL_BYTES, b.row, tail, to, outRow, 1, 0, tile)
    worked(rows * n * k)
  }
}

/** In blocks of b that are packed, and of a if they are used often enough. */
function blocks(
  kernels: ProductKernels,
  m: number,
  n: number,
  k: number,
  bytes: number,
  a: Matrix,
  b: Matrix,
  out: number,
  outRow: number,
  scratch: number,
): void {
  const columns = BLOCK_COLUMNS / bytes
  const width = PANEL_BYTES / bytes
  const tile = scratch
  const packedA = tile + TILE_BYTES
  const packedB = packedA + BLOCK_ROWS * BLOCK_DEPTH * bytes
  const packs = n > PACK_A_COLUMNS
  for (let j = 0; j < n; j += columns) {
    const nc = Math.min(columns, n - j)
    for (let p = 0; p < k; p += BLOCK_DEPTH) {
      const kc = Math.min(BLOCK_DEPTH, k - p)
      const panel = kc * PANEL_BYTES
      kernels.packB(kc, nc, b.pointer + p * b.row + j * b.col, b.row, b.col, packedB)
      const ragged = packedB + Math.floor(nc / width) * panel
      for (let i = 0; i < m; i += BLOCK_ROWS) {
        const mc = Math.min(BLOCK_ROWS, m - i)
        const at = a.pointer + i * a.row + p * a.col
        const to = out + i * outRow + j * bytes
        const first = p === 0 ? 1 : 0
        if (packs) {
          kernels.packA(mc, kc, at, a.row, a.col, packedA)
          const step = 4 * bytes
          kernels.gemm(mc, nc, kc, packedA, kc * step, bytes, step, packedB, panel, PANEL_BYTES, ragged, to, outRow, first, 1, tile)
        } else kernels.gemm(mc, nc, kc, at, 4 * a.row, a.row, a.col, packedB, panel, PANEL_BYTES, ragged, to, outRow, first, 1, tile)
        worked(mc * nc * kc)
      }
    }
  }
}

/**
 * Copies a [rows, cols] matrix to `pointer` and says with which strides it lies there: as it is where its elements are dense in some order,
 * else row by row (column by column, element by element).
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
  to: Placed,
): void {
  const bytes = memory.BYTES_PER_ELEMENT
  const at = pointer / bytes
  const span = (rows - 1) * row + (cols - 1) * col + 1
  to.pointer = pointer
  to.row = row * bytes
  to.col = col * bytes
  // A repeated row or column (stride 0) spans even less than the matrix has elements.
  if (span <= rows * cols) {
    copyRun(span, x, xo, memory, at)
    return
  }
  if (row === 1) {
    to.col = rows * bytes
    for (let j = 0; j < cols; j++) copyRun(rows, x, xo + j * col, memory, at + j * rows)
    return
  }
  to.row = cols * bytes
  to.col = bytes
  for (let i = 0; i < rows; i++) {
    if (col === 1) copyRun(cols, x, xo + i * row, memory, at + i * cols)
    else for (let j = 0; j < cols; j++) memory[at + i * cols + j] = x[xo + i * row + j * col]!
  }
}

const byProduct: Rule = () => 'simd tiles (loop for small products)'

export const cells = (instance: LazyInstance): OwnCells => ({
  matmul: by(byProduct, {
    float32: new MatmulTiles<ArrayOf['float32']>(instance, 'float32'),
    float64: new MatmulTiles<ArrayOf['float64']>(instance, 'float64'),
  }),
})
