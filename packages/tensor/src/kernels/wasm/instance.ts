/**
 * One instance of kernels.wasm per thread, on the memory of `memory.ts`. Above: the kernels of this folder; below: `packages/tensor/assembly`,
 * whose exports `KernelExports` repeats. Nothing is compiled and no memory reserved before the first use.
 */
import assert from 'node:assert'
import { readFileSync } from 'node:fs'
import { ownFile } from '@postgrad/base/internal'
import type { TypedArray } from '../../values/dtype.js'
import type { KernelHeap } from './memory.js'
import type { NeuralExports } from './neural-exports.js'
import { assertNotPausing } from './pause.js'

/** p0 and p1 where the function has parameters. */
type Unary = (n: number, x: number, out: number, p0?: number, p1?: number) => void
type Gradient = (n: number, g: number, gStep: number, x: number, out: number, p0: number, p1: number) => void
type GradientRows = (rows: number, k: number, g: number, y: number, out: number) => void
type Binary = (
  rows: number,
  n: number,
  a: number,
  aRow: number,
  aStep: number,
  b: number,
  bRow: number,
  bStep: number,
  out: number,
  outRow: number,
) => void
type Axpy = (rows: number, n: number, alpha: number, x: number, xRow: number, xStep: number, out: number, outRow: number) => void
type Where = (
  rows: number,
  n: number,
  cond: number,
  condRow: number,
  a: number,
  aRow: number,
  aStep: number,
  b: number,
  bRow: number,
  bStep: number,
  out: number,
) => void
type Convert = (n: number, x: number, out: number) => void
type Move = (rows: number, cols: number, x: number, xRow: number, xCol: number, out: number, outRow: number, outCol: number) => void
type Rows = (rows: number, k: number, x: number, out: number) => void

type Pack = (extent: number, other: number, x: number, row: number, col: number, to: number) => void
type VectorByRows = (n: number, k: number, a: number, aStep: number, b: number, bRow: number, out: number) => void
type VectorByColumns = (n: number, k: number, a: number, aStep: number, b: number, bRow: number, bCol: number, out: number) => void
type Gemm = (
  m: number,
  n: number,
  k: number,
  a: number,
  aPanel: number,
  aRow: number,
  aStep: number,
  b: number,
  bPanel: number,
  bStep: number,
  bTail: number,
  out: number,
  outRow: number,
  first: number,
  byPanels: number,
  tile: number,
) => void

/** Pointers and rows are bytes, steps of element-wise kernels 0 or 1 element; see the assembly's comments for each. */
export interface KernelExports extends NeuralExports {
  readonly neg_f32: Unary
  readonly abs_f32: Unary
  readonly sqrt_f32: Unary
  readonly relu_f32: Unary
  readonly exp_f32: Unary
  readonly log_f32: Unary
  readonly tanh_f32: Unary
  readonly sigmoid_f32: Unary
  readonly sin_f32: Unary
  readonly cos_f32: Unary
  readonly floor_f32: Unary
  readonly ceil_f32: Unary
  readonly round_f32: Unary
  readonly trunc_f32: Unary
  readonly reciprocal_f32: Unary
  readonly rsqrt_f32: Unary
  readonly erf_f32: Unary
  readonly expm1_f32: Unary
  readonly log1p_f32: Unary
  readonly leaky_relu_f32: Unary
  readonly elu_f32: Unary
  readonly silu_f32: Unary
  readonly softplus_f32: Unary
  readonly gelu_f32: Unary
  readonly gelu_tanh_f32: Unary
  readonly relu_backward_f32: Gradient
  readonly tanh_backward_f32: Gradient
  readonly sigmoid_backward_f32: Gradient
  readonly leaky_relu_backward_f32: Gradient
  readonly elu_backward_f32: Gradient
  readonly silu_backward_f32: Gradient
  readonly softplus_backward_f32: Gradient
  readonly gelu_backward_f32: Gradient
  readonly gelu_tanh_backward_f32: Gradient
  readonly softmax_backward_rows_f32: GradientRows
  readonly log_softmax_backward_rows_f32: GradientRows
  readonly neg_f64: Unary
  readonly abs_f64: Unary
  readonly sqrt_f64: Unary
  readonly relu_f64: Unary
  readonly neg_i32: Unary
  readonly abs_i32: Unary
  readonly relu_i32: Unary
  readonly add_f32: Binary
  readonly sub_f32: Binary
  readonly mul_f32: Binary
  readonly div_f32: Binary
  readonly maximum_f32: Binary
  readonly minimum_f32: Binary
  readonly add_f64: Binary
  readonly sub_f64: Binary
  readonly mul_f64: Binary
  readonly div_f64: Binary
  readonly maximum_f64: Binary
  readonly minimum_f64: Binary
  readonly add_i32: Binary
  readonly sub_i32: Binary
  readonly mul_i32: Binary
  readonly maximum_i32: Binary
  readonly minimum_i32: Binary
  readonly axpy_f32: Axpy
  readonly axpy_f64: Axpy
  readonly eq_f32: Binary
  readonly ne_f32: Binary
  readonly lt_f32: Binary
  readonly le_f32: Binary
  readonly eq_f64: Binary
  readonly ne_f64: Binary
  readonly lt_f64: Binary
  readonly le_f64: Binary
  readonly eq_i32: Binary
  readonly ne_i32: Binary
  readonly lt_i32: Binary
  readonly le_i32: Binary
  readonly where_32: Where
  readonly where_64: Where
  readonly floor_f64: Unary
  readonly ceil_f64: Unary
  readonly round_f64: Unary
  readonly trunc_f64: Unary
  readonly reciprocal_f64: Unary
  readonly rsqrt_f64: Unary
  readonly log2_f32: Unary
  readonly log10_f32: Unary
  readonly exp2_f32: Unary
  readonly sinh_f32: Unary
  readonly cosh_f32: Unary
  readonly tan_f32: Unary
  readonly asin_f32: Unary
  readonly acos_f32: Unary
  readonly atan_f32: Unary
  readonly pow_f32: Unary
  readonly power_f32: Binary
  readonly atan2_f32: Binary
  readonly sign_f32: Unary
  readonly sign_f64: Unary
  readonly sign_i32: Unary
  readonly clamp_f32: Unary
  readonly clamp_f64: Unary
  readonly clamp_i32: Unary
  readonly convert_u8_f32: Convert
  readonly convert_u8_i32: Convert
  readonly convert_i32_f32: Convert
  readonly convert_u8_f64: Convert
  readonly convert_i32_f64: Convert
  readonly convert_f32_f64: Convert
  readonly convert_f64_f32: Convert
  readonly convert_f32_u8: Convert
  readonly convert_f64_u8: Convert
  readonly convert_i32_u8: Convert
  readonly move_8: Move
  readonly move_32: Move
  readonly move_64: Move
  readonly sum_rows_f32: Rows
  readonly sum_groups_f32: (n: number, x: number, accumulators: number) => void
  readonly add_rows_f32: (rows: number, n: number, x: number, sums: number) => void
  readonly amax_rows_f32: Rows
  readonly amin_rows_f32: Rows
  readonly variance_rows_f32: (rows: number, k: number, x: number, out: number, divisor: number, root: number) => void
  readonly softmax_rows_f32: Rows
  readonly log_softmax_rows_f32: Rows
  readonly gemm_f32: Gemm
  readonly gemm_f64: Gemm
  readonly pack_a_f32: Pack
  readonly pack_a_f64: Pack
  readonly pack_b_f32: Pack
  readonly pack_b_f64: Pack
  readonly gemv_rows_f32: VectorByRows
  readonly gemv_rows_f64: VectorByRows
  readonly gemv_columns_f32: VectorByColumns
  readonly gemv_columns_f64: VectorByColumns
}

/** Names of exports with one signature, for the tables of kernels. */
export type ExportOf<F> = {
  [K in keyof KernelExports]: KernelExports[K] extends F ? (F extends KernelExports[K] ? K : never) : never
}[keyof KernelExports]
export type UnaryExport = ExportOf<Unary>
export type GradientExport = ExportOf<Gradient>
export type GradientRowsExport = ExportOf<GradientRows>
export type BinaryExport = ExportOf<Binary>
export type ConvertExport = ExportOf<Convert>

/** What is used of the global: @types/node leaves it to the DOM library, which a package for Node does without. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: object }
}

/** What a matrix product calls, of one dtype. */
export interface ProductKernels {
  readonly gemm: Gemm
  readonly packA: Pack
  readonly packB: Pack
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
  readonly kernels: KernelExports
  /** By the bytes of an element. */
  readonly products: { readonly 4: ProductKernels; readonly 8: ProductKernels }
  readonly heap: KernelHeap
  /** Views on the whole memory. */
  readonly f32: Float32Array
  readonly f64: Float64Array
  readonly i32: Int32Array
  readonly u8: Uint8Array
  readonly #buffer: SharedArrayBuffer
  #next = 0
  #end = 0

  constructor(heap: KernelHeap) {
    this.heap = heap
    const imports = { env: { memory: heap.memory }, math: { sin: Math.sin, cos: Math.cos } }
    this.kernels = new WebAssembly.Instance(kernelModule(), imports).exports as unknown as KernelExports
    const k = this.kernels
    this.products = {
      4: { gemm: k.gemm_f32, packA: k.pack_a_f32, packB: k.pack_b_f32, byRows: k.gemv_rows_f32, byColumns: k.gemv_columns_f32 },
      8: { gemm: k.gemm_f64, packA: k.pack_a_f64, packB: k.pack_b_f64, byRows: k.gemv_rows_f64, byColumns: k.gemv_columns_f64 },
    }
    const { buffer } = heap
    this.#buffer = buffer
    this.f32 = new Float32Array(buffer) as unknown as Float32Array
    this.f64 = new Float64Array(buffer) as unknown as Float64Array
    this.i32 = new Int32Array(buffer) as unknown as Int32Array
    this.u8 = new Uint8Array(buffer) as unknown as Uint8Array
  }

  /** Starts a call that takes `bytes` in all (a sum of `align`ed sizes) and returns their address. @throws STAGING_EXHAUSTED */
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
   * The address of x[offset] if x lies in the memory, else -1: then it must be staged. Ask only for arrays of more than 64 bytes (`SINGLE_BELOW`):
   * V8 keeps smaller ones without a buffer, and makes one, for good, when asked.
   */
  direct(x: TypedArray, offset: number): number {
    return x.buffer === this.#buffer ? x.byteOffset + offset * x.BYTES_PER_ELEMENT : -1
  }
}

/** Elements below which operands are copied one by one: a view and a bulk copy cost more, and see `direct`. */
export const SINGLE_BELOW = 65

/** Copies `n` elements of one dtype. A view is made of a part alone: it costs as much as copying 100 elements does. */
export function copyRun(n: number, x: TypedArray, xo: number, out: TypedArray, oo: number): void {
  if (n < SINGLE_BELOW) for (let i = 0; i < n; i++) out[oo + i] = x[xo + i]!
  else out.set(n === x.length ? x : x.subarray(xo, xo + n), oo)
}

/** What `take(bytes)` really takes. */
export function align(bytes: number): number {
  return Math.ceil(bytes / 16) * 16 // beyond 2^31 as well
}

/** Makes the instance, and the memory if need be, at its first use: a worker that never computes reserves none. */
export class LazyInstance {
  readonly #heap: () => KernelHeap
  #instance: WasmInstance | null = null

  constructor(heap: () => KernelHeap) {
    this.#heap = heap
  }

  get(): WasmInstance {
    if (this.#instance === null) this.#instance = new WasmInstance(this.#heap())
    return this.#instance
  }

  get made(): boolean {
    return this.#instance !== null
  }
}
