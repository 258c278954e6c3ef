/**
 * Memory: it holds the elements of storages. `CPU` is this process; another device has a memory of its own, whose elements only its kernels can
 * reach. A device (`tensor/device.ts`) is a memory and the kernels that compute there.
 */

import { currentHeap } from './thread-heap.js'
import { heapStats } from './verify.js'

/** The bytes of a device's memory that this thread uses: the result of `device.memory()`. PyTorch: `torch.cuda.memory_stats`. */
export interface MemoryStats {
  /** Bytes in tensors that are open. PyTorch: `memory_allocated`. */
  readonly inUse: number
  /** The largest value of `inUse` so far. PyTorch: `max_memory_allocated`. */
  readonly peak: number
  /** Bytes taken from the system, free blocks included. PyTorch: `memory_reserved`. */
  readonly reserved: number
}

/** The buffers of a device, by number, since the host cannot reach their contents. All calls take effect in the order in which they are made. */
export interface Buffers {
  /** A buffer of zeros. @throws TENSOR_TOO_LARGE */
  allocate(bytes: number): number
  /** Gives the buffer back, after all that was queued before. */
  free(buffer: number): void
  /** Copies the bytes before it returns. */
  write(buffer: number, bytes: Uint8Array): void
  /**
   * A copy of `length` bytes from byte `at` on, after all that was queued before. Rejects with the first error of the kernels queued before that no earlier read has
   * reported. All reads that wait after such a kernel reject with its error, since any of them may have its values.
   */
  read(buffer: number, at: number, length: number): Promise<Uint8Array>
  /** If the first byte of the buffer is not 0 after all that was queued before, the next read rejects with `error`. */
  guard(buffer: number, error: Error): void
}

/** Where elements lie. */
export interface Memory {
  /** 'cpu', …: what `device()` and `to()` take, and what a tensor shows. */
  readonly name: string
  /** Null on the cpu, where a storage has an array of the host instead. */
  readonly buffers: Buffers | null
  stats(): MemoryStats
}

/** This process. In use are the blocks that this thread holds in the heap of its process, the kernels' own among them; reserved is that heap, for all of its threads. Smaller tensors are JavaScript's own arrays. */
export const CPU: Memory = {
  name: 'cpu',
  buffers: null,
  stats: () => {
    const heap = currentHeap()
    if (heap === null) return { inUse: 0, peak: 0, reserved: 0 }
    return { inUse: heap.heldBytes, peak: heap.heldBytesPeak, reserved: heapStats(heap).claimedBytes }
  },
}

/** Whether this thread has a memory next to the cpu's: until then no call need ask where its operands lie. */
export let hasDevices = false
export function noteDevice(memory: Memory): void {
  if (memory !== CPU) hasDevices = true
}

/** A buffer in the hands of one storage. It goes back when its owner is collected, at the latest. */
export class BufferLease {
  readonly #buffers: Buffers
  readonly buffer: number
  #returned = false

  constructor(buffers: Buffers, buffer: number) {
    this.#buffers = buffers
    this.buffer = buffer
  }

  own(owner: object): this {
    registry.register(owner, this)
    return this
  }

  /** Gives the buffer back; again does nothing. */
  giveBack(): void {
    if (this.#returned) return
    this.#returned = true
    this.#buffers.free(this.buffer)
  }
}

const registry = new FinalizationRegistry<BufferLease>((lease) => lease.giveBack())
