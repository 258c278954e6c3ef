/**
 * One instance of kernels.wasm per thread, on the memory of `memory.ts`, for the kernels of this folder. `KernelExports` types the exports of
 * `packages/tensor/assembly`. Nothing is compiled and no memory reserved before the first use.
 */
import assert from 'node:assert'
import { readFileSync } from 'node:fs'
import { ownFile } from '@postgrad/base/internal'
import type { TypedArray } from '../../../values/dtype.js'
import type { ExportsIn } from '../../elementwise/definition.js'
import type { ROWS } from '../../elementwise/rows.js'
import { type HelperCounts, onComputeThreads, sharedWork, usableCores } from '../threads/compute-threads.js'
import { type HelperScratch, HelperThreads } from '../threads/helper-threads.js'
import { Recorder, type Unit } from '../threads/recorder.js'
import type { External, ExternalProduct } from './external.js'
import type { KernelHeap } from './memory.js'
import { assertNotPausing, withoutPauses } from './pause.js'

/** p0 and p1 where the function has parameters. */
type Unary = (n: number, x: number, out: number, p0?: number, p1?: number) => void
/** An operand in rows: its address, the bytes from each row to the next, and the elements from each element to the next. */
type InRows = readonly [at: number, row: number, step: number]
type Binary = (...args: [rows: number, n: number, ...a: InRows, ...b: InRows, out: number, outRow: number]) => void
type Gradient = (n: number, g: number, gStep: number, x: number, out: number, p0: number, p1: number) => void

/** [h, w] read by a window: sizes of the plane and the kernel, strides, paddings above and on the left; */
export type Plane = readonly [h: number, w: number, kh: number, kw: number, strideH: number, strideW: number, padH: number, padW: number]
/** and its dilations. */
export type Window = readonly [...Plane, dilH: number, dilW: number]

/** The exports that the rows of element-wise ops name. */
type In<F extends keyof typeof ROWS> = ExportsIn<(typeof ROWS)[F]>
export type UnaryExport = In<'unary'>
export type BinaryExport = In<'binary' | 'compare'>
export type GradientExport = In<'grad'>

type Real = 'f32' | 'f64'
type Pack = (extent: number, other: number, x: number, row: number, col: number, to: number) => void
type ColumnByRow = (m: number, n: number, a: number, aRow: number, b: number, bCol: number, out: number, outRow: number) => void
type VectorByRows = (n: number, k: number, a: number, aStep: number, b: number, bRow: number, out: number) => void
type VectorByColumns = (n: number, k: number, a: number, aStep: number, b: number, bRow: number, bCol: number, out: number) => void
/** m × n of k products: a in panels of four rows, b in panels of columns, the last at `tail` if it is ragged; see `assembly/products/matmul.ts`. */
type Left = readonly [at: number, panel: number, row: number, step: number]
type Right = readonly [at: number, panel: number, step: number, tail: number]
type Result = readonly [at: number, row: number, first: number, byPanels: number, tile: number]
type Gemm = (...args: [m: number, n: number, k: number, ...a: Left, ...b: Right, ...out: Result]) => void

/**
 * Those exports, and those of matrix products; each file of this folder adds the ones that it calls. Pointers and rows are bytes, steps of element-wise
 * kernels 0 or 1 element; see the assembly's comments for each.
 */
export interface KernelExports
  extends Readonly<Record<UnaryExport, Unary>>,
    Readonly<Record<BinaryExport, Binary>>,
    Readonly<Record<GradientExport, Gradient>>,
    Readonly<Record<`gemm_${Real}`, Gemm>>,
    Readonly<Record<`pack_${'a' | 'b'}_${Real}`, Pack>>,
    Readonly<Record<`column_by_row_${Real}`, ColumnByRow>>,
    Readonly<Record<`gemv_rows_${Real}`, VectorByRows>>,
    Readonly<Record<`gemv_columns_${Real}`, VectorByColumns>> {}

/** The part used here: @types/node leaves it to the DOM library, which a package for Node does without. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: object }
}

/** Kernels of matrix products, of one dtype. */
export interface ProductKernels {
  readonly gemm: Gemm
  readonly packA: Pack
  readonly packB: Pack
  readonly columnByRow: ColumnByRow
  readonly byRows: VectorByRows
  readonly byColumns: VectorByColumns
}

/** Made once per thread. V8 shares compiled code among the threads of a process: the first takes 1 to 2 ms, others 0.3, so it need not be handed over. */
let compiled: object | null = null

function kernelModule(): object {
  if (compiled === null) {
    // scripts/build-kernels.mjs puts it there.
    compiled = new WebAssembly.Module(readFileSync(ownFile('device', 'tensor', 'kernels.wasm')))
  }
  return compiled
}

/**
 * A kernel's call: `begin(bytes)` reserves scratch for all that is staged and `take` hands it out; `direct` says where an operand lies that
 * needs no staging. Which code computes does not depend on that: only whether its operands are copied before and after.
 */
export class WasmInstance {
  /** With helper threads, these go through the recorder. */
  kernels: KernelExports
  /** By the bytes of an element. */
  products: { readonly 4: ProductKernels; readonly 8: ProductKernels }
  readonly heap: KernelHeap
  /** Asked before each product; null: kernels.wasm computes all. */
  readonly external: ExternalProduct | null
  /** Views on the whole memory. */
  readonly f32: Float32Array
  readonly f64: Float64Array
  readonly i32: Int32Array
  readonly u8: Uint8Array
  /** How many threads compute large kernels, with those that are starting, or that other threads have taken. */
  threads = 1
  readonly #buffer: SharedArrayBuffer
  readonly #library: External | null
  readonly #exports: KernelExports
  readonly #recorder = new Recorder()
  #helpers: HelperThreads | null = null
  #isSharing = false
  #next = 0
  #end = 0

  constructor(heap: KernelHeap, external: External | null = null) {
    this.heap = heap
    this.#library = external
    this.external = external === null ? null : external.productIn(heap)
    const imports = { env: { memory: heap.memory }, math: { sin: Math.sin, cos: Math.cos } }
    this.#exports = new WebAssembly.Instance(kernelModule(), imports).exports as unknown as KernelExports
    this.kernels = this.#exports
    this.products = productsOf(this.#exports)
    const { buffer } = heap
    this.#buffer = buffer
    this.f32 = new Float32Array(buffer) as unknown as Float32Array
    this.f64 = new Float64Array(buffer) as unknown as Float64Array
    this.i32 = new Int32Array(buffer) as unknown as Int32Array
    this.u8 = new Uint8Array(buffer) as unknown as Uint8Array
    // Another thread may have set more; the library has one number for all.
    external?.setThreads(1 + heap.helpersMax())
    onComputeThreads(this)
  }

  /** Large kernels are computed by so many threads from now on, but by no more than there are cores: each takes scratch. */
  useThreads(wanted: number): void {
    assertNotPausing()
    const count = Math.min(wanted, Math.max(1, usableCores()))
    if (count === this.threads) return
    const grant = (helpers: number): number => this.heap.claimHelpers(helpers, usableCores() - 1)
    this.#helpers = HelperThreads.of({ module: kernelModule(), memory: this.heap.memory }, grant)
    this.#helpers.want(count - 1)
    // The library's threads are on the cores that helpers would have.
    if (this.#library !== null) grant(count - 1)
    this.#library?.setThreads(1 + this.heap.helpersMax())
    this.threads = count
    this.kernels = count > 1 ? this.#recorder.over(this.#exports) : this.#exports
    this.products = productsOf(this.kernels)
  }

  /** Whether a kernel of so many multiplications is for several threads: then it takes `scratch` bytes for each of `threads`, and calls `share`. */
  shares(work: number, scratch = 0): boolean {
    return this.threads > 1 && work >= sharedWork() && !this.#isSharing && this.threads * scratch <= SCRATCH_MAX
  }

  /** The same for products: a library has threads of its own, and its calls cannot be handed to helpers. */
  sharesProduct(work: number): boolean {
    return this.external === null && this.shares(work)
  }

  /**
   * Runs units 0, 1, …, `count` − 1, in any order, by this thread and its helpers. A unit calls kernels and does nothing else. It reads nothing that a unit writes,
   * and writes what no other one does, except in its scratch.
   * @param workEach multiplications of a unit
   * @param scratch where this thread has its scratch of a unit
   * @param helpers where helpers have theirs
   */
  share(count: number, workEach: number, unit: Unit, scratch = 0, helpers = NO_SCRATCH): void {
    const threads = this.#helpers!
    let done = 0
    this.#isSharing = true
    try {
      threads.start()
      const program = count > 1 && threads.ready > 0 ? withoutPauses(() => this.#recorder.program(count, unit, scratch)) : null
      if (program !== null) {
        threads.run(program, unit, workEach, scratch, helpers)
        done = program.units
      }
      for (let i = done; i < count; i++) unit(i, scratch)
    } finally {
      this.#isSharing = false
    }
  }

  get helpers(): HelperCounts | null {
    return this.#helpers
  }

  /**
   * Starts a call that takes `bytes` in all (a sum of `align`ed sizes) and returns their address. No other call begins before this one ends: no operand is pending
   * (`tensor/settling.ts`). @throws STAGING_EXHAUSTED
   */
  begin(bytes: number): number {
    assertNotPausing()
    this.#next = this.heap.scratch(bytes)
    this.#end = this.#next + bytes
    return this.#next
  }

  /** The address of the next `bytes` bytes, 16-byte aligned. */
  take(bytes: number): number {
    const pointer = this.#next
    this.#next = pointer + align(bytes)
    assert(this.#next <= this.#end, 'a kernel takes more than it began with')
    return pointer
  }

  /**
   * The address of x[offset] if x lies in the memory, else -1: then it must be staged. So must arrays of up to 64 bytes: V8 keeps them without a buffer,
   * and makes one, for good, when asked.
   */
  direct(x: TypedArray, offset: number): number {
    return x.length >= SINGLE_BELOW && x.buffer === this.#buffer ? x.byteOffset + offset * x.BYTES_PER_ELEMENT : -1
  }
}

function productsOf(k: KernelExports): WasmInstance['products'] {
  return {
    4: {
      gemm: k.gemm_f32,
      packA: k.pack_a_f32,
      packB: k.pack_b_f32,
      columnByRow: k.column_by_row_f32,
      byRows: k.gemv_rows_f32,
      byColumns: k.gemv_columns_f32,
    },
    8: {
      gemm: k.gemm_f64,
      packA: k.pack_a_f64,
      packB: k.pack_b_f64,
      columnByRow: k.column_by_row_f64,
      byRows: k.gemv_rows_f64,
      byColumns: k.gemv_columns_f64,
    },
  }
}

/** Bytes of scratch that all threads of a kernel may take together: a heap never gets scratch back. */
const SCRATCH_MAX = 2 ** 26

/** For units that need no scratch. */
const NO_SCRATCH: HelperScratch = { at: 0, stride: 0 }

/** Elements from which on staging beats the plain loop (measured: both take 130 ns at 64, staging a third at 512). */
export const SIMD_FROM = 80
/** Elements below which operands are copied one by one: a view and a bulk copy cost more, and see `direct`. */
export const SINGLE_BELOW = 65

/** Copies `n` elements of one dtype. A view is made of a part alone: it costs as much as copying 100 elements does. */
export function copyRun(n: number, x: TypedArray, xo: number, out: TypedArray, oo: number): void {
  if (n < SINGLE_BELOW) for (let i = 0; i < n; i++) out[oo + i] = x[xo + i]!
  else out.set(n === x.length ? x : x.subarray(xo, xo + n), oo)
}

/** The bytes that `take` reserves. */
export function align(bytes: number): number {
  return Math.ceil(bytes / 16) * 16 // beyond 2^31 as well
}

/** Makes the instance, and the memory if need be, at its first use: a worker that never computes reserves none. */
export class LazyInstance {
  readonly #heap: () => KernelHeap
  readonly external: External | null
  #instance: WasmInstance | null = null

  constructor(heap: () => KernelHeap, external: External | null = null) {
    this.#heap = heap
    this.external = external
  }

  get(): WasmInstance {
    if (this.#instance === null) this.#instance = new WasmInstance(this.#heap(), this.external)
    return this.#instance
  }

  get made(): boolean {
    return this.#instance !== null
  }
}
