/** This thread's heap, which the workers of its process join. */
import { type Heap, setHeapBytes, threadHeapOrNull } from '@postgrad/tensor/internal'

/**
 * Null on a machine that gives no memory for it: then every tensor is managed.
 * @param bytes how much it takes at most; undefined: as much as fits
 * @throws INVALID_ARGUMENT, HEAP_EXISTS
 */
export function sharedHeap(bytes?: number): Heap | null {
  if (bytes !== undefined) setHeapBytes(bytes)
  return threadHeapOrNull()
}
