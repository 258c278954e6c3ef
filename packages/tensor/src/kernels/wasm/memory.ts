/**
 * What kernels.wasm runs in: one shared WebAssembly.Memory, of which the backend knows no more than this interface; the thread's heap is it. Arrays
 * that lie in it are used by address, others are copied into its scratch. Above: `instance.ts`.
 */

export interface KernelHeap {
  /** For the instance's import. It never grows, so its buffer is one and the same for ever. */
  readonly memory: { readonly buffer: SharedArrayBuffer }
  /** Of the memory. An array whose buffer this is can be used by address. */
  readonly buffer: SharedArrayBuffer
  /**
   * The address of at least `bytes` bytes that are this thread's own, 16-byte aligned; never 0, which kernels take for an operand that is not there.
   * Their contents are anything, and nothing survives until the next call, which may answer with another address.
   * @throws STAGING_EXHAUSTED when the memory does not hold them
   */
  scratch(bytes: number): number
}
