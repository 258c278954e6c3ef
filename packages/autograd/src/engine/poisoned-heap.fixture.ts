/** A heap in which everything lies and what is given back is destroyed at once: whoever reads a block too late reads NaN, or a closed tensor. */
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
