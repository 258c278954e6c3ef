/**
 * The memory of kernels.wasm: one shared WebAssembly.Memory, which the backend sees only through this interface; it is the thread's heap. Kernels
 * use arrays that lie in it by address, and copy others into its scratch. For `instance.ts`.
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
  /** Notes that this thread has up to `wanted` helper threads, so that all threads on the memory have `max` at most. @returns how many it may have */
  claimHelpers(wanted: number, max: number): number
  /** The most that any thread on the memory has noted so. */
  helpersMax(): number
}
