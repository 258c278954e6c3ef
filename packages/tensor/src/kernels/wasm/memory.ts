/**
 * What kernels.wasm runs in: one shared WebAssembly.Memory, of which the backend knows no more than this interface. Arrays that lie in it are used
 * by address; others are copied into its scratch. Above: `instance.ts`.
 */
import { PostgradError } from '@postgrad/base'

/** What is used of the global: @types/node leaves it to the DOM library, which a package for Node does without. */
export interface WasmMemory {
  readonly buffer: SharedArrayBuffer
  /** Old buffers and views on them stay valid, but `buffer` is a new object afterwards. @throws RangeError beyond the maximum */
  grow(pages: number): number
}
declare const WebAssembly: {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => WasmMemory
}

export interface KernelHeap {
  readonly memory: { readonly buffer: SharedArrayBuffer }
  /** Of the memory, as it is now. An array whose buffer this is can be used by address. */
  readonly buffer: SharedArrayBuffer
  /**
   * The address of at least `bytes` bytes that are this thread's own, 16-byte aligned. Their contents are anything, and nothing survives until
   * the next call, which may answer with another address.
   * @throws STAGING_EXHAUSTED when the memory does not hold them
   */
  scratch(bytes: number): number
}

export const PAGE_BYTES = 65_536
/** wasm32 addresses 4 GiB. */
export const PAGES_MAX = 65_536
/** Room for the element-wise chunks; most programs never need more for anything but products. */
const PAGES_INITIAL = 16

/** A memory that holds nothing but scratch. It grows to the largest call so far and stays. */
export class ScratchMemory implements KernelHeap {
  readonly memory: WasmMemory = new WebAssembly.Memory({ initial: PAGES_INITIAL, maximum: PAGES_MAX, shared: true })
  buffer: SharedArrayBuffer = this.memory.buffer

  scratch(bytes: number): number {
    if (bytes > this.buffer.byteLength) this.#grow(bytes)
    return 0
  }

  #grow(bytes: number): void {
    try {
      this.memory.grow(Math.ceil((bytes - this.buffer.byteLength) / PAGE_BYTES))
    } catch (cause) {
      throw stagingExhausted(bytes, cause)
    }
    this.buffer = this.memory.buffer
  }
}

export function stagingExhausted(bytes: number, cause?: unknown): PostgradError {
  return new PostgradError('STAGING_EXHAUSTED', {
    op: 'kernel',
    expected: `operands and result of at most ${PAGES_MAX * PAGE_BYTES} bytes together`,
    got: `${bytes} bytes`,
    remedy: 'Split the operands with narrow(), or run this call on another device.',
    values: { bytes },
    cause,
  })
}
