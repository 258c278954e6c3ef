/**
 * Matrix products of the wasm backend: places operands, packs them, and orders the blocks; the tiles of kernels.wasm do the work. Transposes
 * are strides. Rule DOT (KERNELS.md): each element is the sum over p in ascending order, every product and every sum rounded, in each of the
 * forms below, so that the choice between them shows in no bit.
 */
import type { ArrayOf, TypedArray } from '../../../values/dtype.js'
import { type Factor, matmulOf, type Product, type Products } from '../../table/matmul.js'
import type { Matrix, ProductArguments } from '../calls/external.js'
import { align, copyRun, type LazyInstance, type ProductKernels, type WasmInstance } from '../calls/instance.js'
import { by, type OwnCells, type Rule } from '../calls/own.js'
import { rowsAtOnce, worked } from '../calls/pause.js'
import type { HelperScratch } from '../threads/helper-threads.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

/** Multiplications of one product from which on it goes to kernels.wasm. */
const TILES_FROM = 256
/** Bytes of b up to which it is used where it lies: more no longer fits the second-level cache with what else is in use. */
const UNPACKED_MAX = 262_144
/** Rows of a below which packing b costs more than it brings. */
const PACKED_ROWS_MIN = 8
/** With so many rows packing costs nothing, and pays from fewer bytes on: rows of b that lie a power of two apart push each other out of the first-level cache. */
const CHEAP_ROWS_MIN = 64
const CHEAP_UNPACKED_MAX = 65_536
/** Columns of b up to which a is used where it lies: each of its elements is read too seldom to be packed. */
const PACK_A_COLUMNS = 32
/** Rows of a block of a; columns of a block of b, and depth of both, in bytes. A panel of b stays in the first-level cache, both blocks in the second. */
const BLOCK_ROWS = 64
const BLOCK_COLUMNS = 2048
const BLOCK_DEPTH = 1536
/** Bytes of a row of a tile (`WIDTH` in assembly/products/matmul.ts), and of a tile. */
export const PANEL_BYTES = 32
export const TILE_BYTES = 128

/** The matrix with its first element at `pointer`, and the strides of x, which are in elements. */
function matrixAt(pointer: number, { row, col }: Factor, bytes: number): Matrix {
  return { pointer, row: row * bytes, col: col * bytes }
}

const tiles =
  (lazy: LazyInstance, bytes: 4 | 8): Product =>
  (m, n, k, a, b, out, at) => {
    if (m * n * k < TILES_FROM) loop(1, 0, 0, m, n, k, a, b, out as Real, at)
    // A product with a column is one of its transpose with a row.
    else if (n === 1) place(lazy.get(), bytes, 1, m, k, transposed(b), transposed(a), out, at)
    else place(lazy.get(), bytes, m, n, k, a, b, out, at)
  }

/** Batches of small products in one loop; of larger ones by all threads, where every operand lies in the memory. */
const batches =
  (lazy: LazyInstance, bytes: 4 | 8): Products =>
  (count, aStep, bStep, m, n, k, a, b, out, at) => {
    if (m * n * k < TILES_FROM) {
      loop(count, aStep, bStep, m, n, k, a, b, out as Real, at)
      return true
    }
    if (count < 2 || n === 1) return false
    const instance = lazy.get()
    const [x, y, z] = [instance.direct(a.host, a.at), instance.direct(b.host, b.at), instance.direct(out, at)]
    if (!instance.sharesProduct(count * m * n * k) || x < 0 || y < 0 || z < 0) return false
    const own = align(productScratch(m, n, k, bytes, b.col * bytes))
    const scratch = instance.begin(instance.threads * own)
    const unit = (t: number, ownScratch: number): void => {
      const [left, right] = [matrixAt(x + t * aStep * bytes, a, bytes), matrixAt(y + t * bStep * bytes, b, bytes)]
      product(instance, bytes, m, n, k, left, right, z + t * m * n * bytes, n * bytes, ownScratch)
    }
    instance.share(count, m * n * k, unit, scratch, { at: scratch + own, stride: own })
    return true
  }

const transposed = ({ host, at, row, col }: Factor): Factor => ({ host, at, row: col, col: row })

/** `count` products, of which the matrices a and b begin so many elements apart, and the results follow each other. */
function loop(
  count: number,
  aStart: number,
  bStart: number,
  m: number,
  n: number,
  k: number,
  a: Factor,
  b: Factor,
  out: Real,
  at: number,
): void {
  const x = a.host as Real
  const y = b.host as Real
  const aStep = a.col
  const bStep = b.row
  const single = out.BYTES_PER_ELEMENT === 4
  let to = at
  for (let t = 0; t < count; t++) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let ax = a.at + t * aStart + i * a.row
        let by = b.at + t * bStart + j * b.col
        let sum = 0
        if (single) for (let p = 0; p < k; p++, ax += aStep, by += bStep) sum = Math.fround(sum + Math.fround(x[ax]! * y[by]!))
        else for (let p = 0; p < k; p++, ax += aStep, by += bStep) sum += x[ax]! * y[by]!
        out[to++] = sum
      }
    }
  }
}

/** Stages what does not lie in the memory, reserves scratch, and runs the form that fits. A small product costs what is made here, so nothing needless is. */
function place(
  instance: WasmInstance,
  bytes: 4 | 8,
  m: number,
  n: number,
  k: number,
  a: Factor,
  b: Factor,
  out: TypedArray,
  at: number,
): void {
  const memory = bytes === 4 ? instance.f32 : instance.f64
  const x = instance.direct(a.host, a.at)
  const y = instance.direct(b.host, b.at)
  const z = instance.direct(out, at)
  // Staged sizes must be known before scratch is reserved.
  const aBytes = x < 0 ? m * k * bytes : 0
  const bBytes = y < 0 ? k * n * bytes : 0
  const outBytes = z < 0 ? m * n * bytes : 0
  const shares = k <= SHARED_DEPTH_MAX && instance.sharesProduct(m * n * k)
  const scratchBytes = shares
    ? sharedScratch(instance.threads, m, n, k, bytes, b.col * bytes)
    : productScratch(m, n, k, bytes, b.col * bytes)
  instance.begin(align(aBytes) + align(bBytes) + align(outBytes) + align(scratchBytes))
  const left = x < 0 ? stage(memory, instance.take(aBytes), m, k, a) : matrixAt(x, a, bytes)
  const right = y < 0 ? stage(memory, instance.take(bBytes), k, n, b) : matrixAt(y, b, bytes)
  const to = z < 0 ? instance.take(outBytes) : z
  const scratch = instance.take(scratchBytes)
  if (shares) sharedProduct(instance, bytes, m, n, k, left, right, to, n * bytes, scratch)
  else product(instance, bytes, m, n, k, left, right, to, n * bytes, scratch)
  if (z < 0) copyRun(m * n, memory, to / bytes, out, at)
}

/** Whether b is packed: when its columns do not lie side by side, and when it is large. */
function isPacked(m: number, n: number, k: number, bytes: number, bCol: number): boolean {
  if (bCol !== bytes) return m > 1
  return m >= PACKED_ROWS_MIN && n * k * bytes > (m >= CHEAP_ROWS_MIN ? CHEAP_UNPACKED_MAX : UNPACKED_MAX)
}

/** Whether a is read often enough to be packed while b is not; then b is small, and so is a's block. */
function mayPackRows(m: number, n: number): boolean {
  return m >= PACKED_ROWS_MIN && n > PACK_A_COLUMNS
}

/** The depth of the blocks of k: as equal as can be, since each block reads and writes the whole result. */
export function depthOf(k: number, bytes: number): number {
  return Math.ceil(k / Math.ceil((k * bytes) / BLOCK_DEPTH))
}

/** Bytes of scratch that `product` needs for this size, or with a smaller n or k. `bCol`: bytes from a column of b to the next. */
export function productScratch(m: number, n: number, k: number, bytes: number, bCol: number): number {
  if (m === 1 || k === 1) return 0
  const packed = isPacked(m, n, k, bytes, bCol) ? (BLOCK_ROWS + BLOCK_COLUMNS / bytes) * BLOCK_DEPTH : 0
  const rows = mayPackRows(m, n) ? Math.min(m, BLOCK_ROWS) + 3 : 0
  return TILE_BYTES + Math.max(packed, k * PANEL_BYTES + rows * k * bytes)
}

/**
 * out [m, n] = a [m, k] · b [k, n] in the memory of `instance`, for all kernels that use products. m, n, k ≥ 1.
 */
export const product: (instance: WasmInstance, ...args: readonly [...product: ProductArguments, scratch: number]) => void = (
  instance,
  bytes,
  m,
  n,
  k,
  a,
  b,
  out,
  outRow,
  scratch,
) => {
  if (instance.external?.(bytes, m, n, k, a, b, out, outRow)) return
  const kernels = instance.products[bytes]
  if (m === 1) vector(kernels, n, k, bytes, a, b, out)
  else if (k === 1) columnByRow(kernels, m, n, a, b, out, outRow)
  else if (isPacked(m, n, k, bytes, b.col)) blocks(kernels, bytes, m, n, k, a, b, out, outRow, scratch)
  else rowsOf(kernels, bytes, m, n, k, a, b, out, outRow, scratch)
}

/** A column times a row, in pieces of rows. */
function columnByRow(kernels: ProductKernels, m: number, n: number, a: Matrix, b: Matrix, out: number, outRow: number): void {
  const atOnce = rowsAtOnce(n)
  for (let i = 0; i < m; i += atOnce) {
    const rows = Math.min(atOnce, m - i)
    kernels.columnByRow(rows, n, a.pointer + i * a.row, a.row, b.pointer, b.col, out + i * outRow, outRow)
    worked(rows * n)
  }
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
  bytes: number,
  m: number,
  n: number,
  k: number,
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
  bytes: number,
  m: number,
  n: number,
  k: number,
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
  const depth = depthOf(k, bytes)
  const packedB = packedA + BLOCK_ROWS * depth * bytes
  const packs = n > PACK_A_COLUMNS
  for (let j = 0; j < n; j += columns) {
    const nc = Math.min(columns, n - j)
    for (let p = 0; p < k; p += depth) {
      const kc = Math.min(depth, k - p)
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

/** Rows below which a shared product is cut into columns. */
const SHARED_ROWS_MIN = 32
/** Depths up to which a product is shared: its units share 4 KiB of packed b for each step of depth. */
const SHARED_DEPTH_MAX = 8192
/** Units for each thread, so that one that is late leaves the others little to wait for. */
const UNITS_PER_THREAD = 4

/** Rows or columns of a unit: whole tiles. */
function partOf(extent: number, threads: number, atMost: number): number {
  return Math.min(atMost, Math.ceil(extent / (threads * UNITS_PER_THREAD) / 8) * 8)
}

/** How a product is cut into units, and what each thread needs of scratch, next to what all need. */
function cut(threads: number, m: number, n: number, k: number, bytes: number, bCol: number) {
  if (m < SHARED_ROWS_MIN) {
    const columns = partOf(n, threads, n)
    return { rows: m, columns, common: 0, own: align(productScratch(m, columns, k, bytes, bCol)) }
  }
  const rows = partOf(m, threads, BLOCK_ROWS)
  if (!isPacked(m, n, k, bytes, bCol)) return { rows, columns: n, common: 0, own: align(productScratch(rows, n, k, bytes, bCol)) }
  const columns = Math.min(n, BLOCK_COLUMNS / bytes)
  const panels = Math.ceil((columns * bytes) / PANEL_BYTES)
  return { rows, columns, common: panels * PANEL_BYTES * k, own: TILE_BYTES + BLOCK_ROWS * BLOCK_DEPTH * bytes }
}

function sharedScratch(threads: number, m: number, n: number, k: number, bytes: number, bCol: number): number {
  const { common, own } = cut(threads, m, n, k, bytes, bCol)
  return common + threads * own
}

/** `product` by all threads, in units of rows or of columns. Where b is packed, it is packed once for all. */
function sharedProduct(
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
  const { rows, columns, common, own } = cut(instance.threads, m, n, k, bytes, b.col)
  const [first, helpers] = [scratch + common, { at: scratch + common + own, stride: own }]
  if (common > 0) {
    for (let j = 0; j < n; j += columns) {
      const at = { ...b, pointer: b.pointer + j * b.col }
      packedRows(instance, bytes, m, Math.min(columns, n - j), k, a, at, out + j * bytes, outRow, rows, scratch, first, helpers)
    }
    return
  }
  const byRows = rows < m
  const part = byRows ? rows : columns
  const unit = (i: number, ownScratch: number): void => {
    const at = i * part
    if (byRows) {
      const left = { ...a, pointer: a.pointer + at * a.row }
      product(instance, bytes, Math.min(rows, m - at), n, k, left, b, out + at * outRow, outRow, ownScratch)
    } else {
      const right = { ...b, pointer: b.pointer + at * b.col }
      product(instance, bytes, m, Math.min(columns, n - at), k, a, right, out + at * bytes, outRow, ownScratch)
    }
  }
  const extent = byRows ? m : n
  instance.share(Math.ceil(extent / part), (m * n * k * part) / extent, unit, first, helpers)
}

/**
 * All rows of a times columns of b, which are packed here. A unit goes through all of k before it ends: it never adds to what another call of it has left, so it can
 * be computed twice.
 */
function packedRows(
  instance: WasmInstance,
  bytes: 4 | 8,
  m: number,
  n: number,
  k: number,
  a: Matrix,
  b: Matrix,
  out: number,
  outRow: number,
  rows: number,
  packedB: number,
  scratch: number,
  helpers: HelperScratch,
): void {
  const kernels = instance.products[bytes]
  const panels = Math.ceil((n * bytes) / PANEL_BYTES)
  const whole = Math.floor((n * bytes) / PANEL_BYTES)
  for (let p = 0; p < k; p += BLOCK_DEPTH) {
    const kc = Math.min(BLOCK_DEPTH, k - p)
    kernels.packB(kc, n, b.pointer + p * b.row, b.row, b.col, packedB + p * panels * PANEL_BYTES)
    worked(kc * n)
  }
  const unit = (i: number, own: number): void => {
    const mc = Math.min(rows, m - i * rows)
    const packedA = own + TILE_BYTES
    for (let p = 0; p < k; p += BLOCK_DEPTH) {
      const kc = Math.min(BLOCK_DEPTH, k - p)
      const at = a.pointer + i * rows * a.row + p * a.col
      const from = packedB + p * panels * PANEL_BYTES
      const panel = kc * PANEL_BYTES
      kernels.packA(mc, kc, at, a.row, a.col, packedA)
      const step = 4 * bytes
      const to = out + i * rows * outRow
      const first = p === 0 ? 1 : 0
      kernels.gemm(mc, n, kc, packedA, kc * step, bytes, step, from, panel, PANEL_BYTES, from + whole * panel, to, outRow, first, 1, own)
      worked(mc * n * kc)
    }
  }
  instance.share(Math.ceil(m / rows), rows * n * k, unit, scratch, helpers)
}

/**
 * Copies a [rows, cols] matrix to `pointer` and says with which strides it lies there: as it is where its elements are dense in some order,
 * else row by row (column by column, element by element).
 */
function stage(memory: Real, pointer: number, rows: number, cols: number, x: Factor): Matrix {
  const { host, at: from, row, col } = x
  const bytes = memory.BYTES_PER_ELEMENT
  const at = pointer / bytes
  const span = (rows - 1) * row + (cols - 1) * col + 1
  // A repeated row or column (stride 0) spans even less than the matrix has elements.
  if (span <= rows * cols) {
    copyRun(span, host, from, memory, at)
    return matrixAt(pointer, x, bytes)
  }
  if (row === 1) {
    for (let j = 0; j < cols; j++) copyRun(rows, host, from + j * col, memory, at + j * rows)
    return { pointer, row: bytes, col: rows * bytes }
  }
  for (let i = 0; i < rows; i++) {
    if (col === 1) copyRun(cols, host, from + i * row, memory, at + i * cols)
    else for (let j = 0; j < cols; j++) memory[at + i * cols + j] = host[from + i * row + j * col]!
  }
  return { pointer, row: cols * bytes, col: bytes }
}

const byProduct =
  ({ external }: LazyInstance): Rule =>
  () =>
    `${external === null ? '' : `${external.name} (for large products), `}simd tiles (loop for small products)`

export const cells = (instance: LazyInstance): OwnCells => ({
  matmul: by(byProduct(instance), {
    float32: matmulOf(tiles(instance, 4), batches(instance, 4)),
    float64: matmulOf(tiles(instance, 8), batches(instance, 8)),
  }),
})
