/**
 * The heap of this thread: the one that it was attached to, or its own, made at the first use. Per thread and not per worker, since a memory
 * with its instance of the kernels is; two simulated workers share it, and nothing that they compute depends on it.
 */

import { memoryBytes } from '../values/room.js'
import { Heap, type HeapHandle } from './heap.js'

let heap: Heap | null = null

/** Share of the machine's memory (or of the container's) that tensors may take from the heap before they become managed. */
const LIMIT_SHARE = 1 / 4

/** What `limitBytes` is unless somebody says otherwise: then the reserved size bounds it too. */
export function defaultLimitBytes(): number {
  return Math.floor(memoryBytes() * LIMIT_SHARE)
}

/** @throws HEAP_UNAVAILABLE when this thread has none and cannot make one */
export function threadHeap(): Heap {
  if (heap === null) heap = Heap.create({ limitBytes: defaultLimitBytes() })
  return heap
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
