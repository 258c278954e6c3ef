/** The heap of this thread, which the workers of its process join. */
import { isPostgradError } from '@postgrad/base'
import { type Heap, threadHeap } from '@postgrad/tensor/internal'

/** Null on a machine that gives no memory for it: then every tensor is managed. */
export function sharedHeap(): Heap | null {
  try {
    return threadHeap()
  } catch (error) {
    if (isPostgradError(error, 'HEAP_UNAVAILABLE')) return null
    throw error
  }
}
