/**
 * One instance of kernels.wasm with a memory of its own, into which operands are staged. Above: the kernels of this folder; below:
 * `packages/tensor/assembly`, whose exports `KernelExports` repeats. Nothing is compiled and no memory reserved before the first use.
 *
 * A kernel calls `begin(bytes)`, then `take`s its buffers and fills them: the allocator is a bump pointer that starts anew at each call, so
 * nothing is ever freed and nothing survives a call. The memory grows to the largest call so far and stays.
 */
import assert from 'node:assert'
import { readFileSync } from 'node:fs'
import { PostgradError } from '@postgrad/base'

type Unary = (n: number, x: number, out: number) => void
type Binary = (n: number, a: number, aStep: number, b: number, bStep: number, out: number) => void
type Rows = (rows: number, k: number, x: number, out: number) => void

/** Pointers are bytes, steps 0 or 1, strides elements; see the assembly's comments for each. */
export interface KernelExports {
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
  readonly axpy_f32: (n: number, alpha: number, x: number, xStep: number, out: number) => void
  readonly axpy_f64: (n: number, alpha: number, x: number, xStep: number, out: number) => void
  readonly sum_rows_f32: Rows
  readonly sum_groups_f32: (n: number, x: number, accumulators: number) => void
  readonly add_rows_f32: (rows: number, n: number, x: number, sums: number) => void
  readonly amax_rows_f32: Rows
  readonly softmax_rows_f32: Rows
  readonly log_softmax_rows_f32: Rows
  readonly sgemm_scratch: () => number
  readonly sgemm_unpacked: (
    m: number,
    n: number,
    k: number,
    a: number,
    aRow: number,
    aCol: number,
    b: number,
    bRow: number,
    out: number,
    scratch: number,
  ) => void
  readonly sgemm_packed: (
    m: number,
    n: number,
    k: number,
    a: number,
    aRow: number,
    aCol: number,
    b: number,
    bRow: number,
    bCol: number,
    out: number,
    scratch: number,
  ) => void
  readonly dgemm: (m: number, n: number, k: number, a: number, aRow: number, aCol: number, b: number, bRow: number, out: number) => void
}

/** Names of exports with one signature, for the tables of kernels. */
export type ExportOf<F> = {
  [K in keyof KernelExports]: KernelExports[K] extends F ? (F extends KernelExports[K] ? K : never) : never
}[keyof KernelExports]
export type UnaryExport = ExportOf<Unary>
export type BinaryExport = ExportOf<Binary>

/** What is used of the global: @types/node leaves it to the DOM library, which a package for Node does without. */
interface WasmMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: object }
  Memory: new (limits: { initial: number; maximum: number }) => WasmMemory
}

const PAGE_BYTES = 65_536
/** wasm32 addresses 4 GiB. */
const PAGES_MAX = 65_536
/** Room for the element-wise chunks; most programs never need more for anything but products. */
const PAGES_INITIAL = 16

/** Compiled once per thread: compiling takes milliseconds, and the module has no state. */
let compiled: object | null = null

function kernelModule(): object {
  if (compiled === null) {
    // From dist/kernels/wasm/ to dist/kernels.wasm, where scripts/build-kernels.mjs puts it.
    const url = new URL('../../kernels.wasm', import.meta.url)
    let bytes: Uint8Array
    try {
      bytes = readFileSync(url)
    } catch (cause) {
      throw new PostgradError('KERNELS_MISSING', {
        op: 'device',
        message: `the compiled kernels are not at ${url.pathname}`,
        remedy: 'Run node scripts/build-kernels.mjs, or reinstall @postgrad/tensor.',
        cause,
      })
    }
    compiled = new WebAssembly.Module(bytes)
  }
  return compiled
}

export class WasmInstance {
  readonly kernels: KernelExports
  /** Views on the whole memory; they are replaced when it grows, so read them after `begin`. */
  f32: Float32Array
  f64: Float64Array
  i32: Int32Array
  readonly #memory: WasmMemory
  #next = 0
  #end = 0

  constructor() {
    this.#memory = new WebAssembly.Memory({ initial: PAGES_INITIAL, maximum: PAGES_MAX })
    const imports = { env: { memory: this.#memory }, math: { sin: Math.sin, cos: Math.cos } }
    this.kernels = new WebAssembly.Instance(kernelModule(), imports).exports as unknown as KernelExports
    this.f32 = new Float32Array(this.#memory.buffer)
    this.f64 = new Float64Array(this.#memory.buffer)
    this.i32 = new Int32Array(this.#memory.buffer)
  }

  /** Bytes of memory that this instance holds now. */
  get byteLength(): number {
    return this.#memory.buffer.byteLength
  }

  /** Starts a call that takes `bytes` in all (see `bytesFor`). @throws STAGING_EXHAUSTED when wasm's 4 GiB do not hold it */
  begin(bytes: number): void {
    this.#next = 0
    this.#end = bytes
    if (bytes > this.f32.byteLength) this.#grow(bytes)
  }

  /** The address of the next `bytes` bytes, 16-byte aligned. */
  take(bytes: number): number {
    const pointer = this.#next
    this.#next = pointer + align(bytes)
    assert(this.#next <= this.#end, 'a kernel takes more than it began with')
    return pointer
  }

  #grow(bytes: number): void {
    const pages = Math.ceil(bytes / PAGE_BYTES)
    try {
      this.#memory.grow(pages - this.#memory.buffer.byteLength / PAGE_BYTES)
    } catch (cause) {
      throw new PostgradError('STAGING_EXHAUSTED', {
        op: 'kernel',
        expected: `operands and result of at most ${PAGES_MAX * PAGE_BYTES} bytes together`,
        got: `${bytes} bytes`,
        remedy: 'Split the operands with narrow(), or run this call on another device.',
        values: { bytes },
        cause,
      })
    }
    this.f32 = new Float32Array(this.#memory.buffer)
    this.f64 = new Float64Array(this.#memory.buffer)
    this.i32 = new Int32Array(this.#memory.buffer)
  }
}

/** What `take(bytes)` really takes. */
export function align(bytes: number): number {
  return Math.ceil(bytes / 16) * 16 // beyond 2^31 as well
}

/** Makes the instance at its first use: a worker that never computes reserves no memory (each reserves 10 GiB of addresses in V8). */
export class LazyInstance {
  #instance: WasmInstance | null = null

  get(): WasmInstance {
    if (this.#instance === null) this.#instance = new WasmInstance()
    return this.#instance
  }

  get made(): boolean {
    return this.#instance !== null
  }
}
