/** A heap that holds all storage and overwrites a block as soon as it is given back: a later read finds NaN, or a closed tensor. */
import { threadHeap, withHeapFrom, withHeapLimit } from '@postgrad/tensor/internal'

const PLENTY = 64 * 1024 * 1024

/** Runs `fn`, which is synchronous, and says how many blocks were given back meanwhile. */
export function withPoisonedHeap<T>(fn: () => T): { result: T; givenBack: number } {
  const heap = threadHeap()
  const { release } = heap
  let givenBack = 0
  heap.release = (block) => {
    new Uint8Array(heap.buffer, block.address, block.capacityBytes).fill(0xff)
    givenBack++
    release.call(heap, block)
  }
  try {
    const result = withHeapFrom(1, () => withHeapLimit(PLENTY, fn))
    return { result, givenBack }
  } finally {
    heap.release = release
  }
}
