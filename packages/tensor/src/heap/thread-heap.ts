/**
 * The heap of this thread: the one that it was attached to, or its own, made for the first large tensor or the first kernel. Per thread and not per worker, since a memory
 * with its instance of the kernels is; two simulated workers share it, and nothing that they compute depends on it.
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { memoryBytes } from '../values/room.js'
import { Heap, type HeapHandle } from './heap.js'
import { RESERVED_BYTES_MAX, RESERVED_BYTES_MIN } from './shared-memory.js'

let heap: Heap | null = null
/** The machine gave no memory for it. */
let isRefused = false
let reservedBytes = RESERVED_BYTES_MAX

/**
 * How much address space the heap that this thread makes takes at most.
 * @throws INVALID_ARGUMENT, and HEAP_EXISTS where there is a larger one by now
 */
export function setHeapBytes(bytes: number): void {
  if (!Number.isInteger(bytes) || bytes < RESERVED_BYTES_MIN || bytes > RESERVED_BYTES_MAX) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'heapBytes',
      expected: `a whole number of bytes from ${RESERVED_BYTES_MIN} (64 MiB) to ${RESERVED_BYTES_MAX} (4 GiB)`,
      got: String(bytes),
      remedy: 'Leave it out for as much as fits.',
    })
  }
  if (heap !== null && heap.buffer.byteLength > bytes) {
    throw new PostgradError('HEAP_EXISTS', {
      op: 'heapBytes',
      message: `this thread has made its heap of ${heap.buffer.byteLength} bytes already: a tensor or an earlier launch needed it`,
      remedy: 'Give heapBytes to the first launch, before the first tensor of this thread.',
      values: { heapBytes: heap.buffer.byteLength },
    })
  }
  reservedBytes = bytes
}

/** Share of the machine's memory (or of the container's) that tensors may take from the heap before they become managed. */
const LIMIT_SHARE = 1 / 4

/** The default of `limitBytes`; the reserved size bounds it too. */
export function defaultLimitBytes(): number {
  return Math.floor(memoryBytes() * LIMIT_SHARE)
}

/** @throws HEAP_UNAVAILABLE when this thread has none and cannot make one */
export function threadHeap(): Heap {
  if (heap === null) heap = Heap.create({ reservedBytes, limitBytes: defaultLimitBytes() })
  return heap
}

/** As `threadHeap`, but null on a machine that gives no memory for it, which is asked once. */
export function threadHeapOrNull(): Heap | null {
  if (heap !== null || isRefused) return heap
  try {
    return threadHeap()
  } catch (error) {
    if (!isPostgradError(error, 'HEAP_UNAVAILABLE')) throw error
    isRefused = true
    return null
  }
}

/** The heap if this thread has one already. */
export function currentHeap(): Heap | null {
  return heap
}

/** Joins another thread's heap; before anything was computed here, since the kernels bind to the first memory that they meet. */
export function attachThreadHeap(handle: HeapHandle): Heap {
  heap = Heap.attach(handle)
  return heap
}
