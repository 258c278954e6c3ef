/**
 * How large tensors travel between workers that share a heap: the message names the block, its bytes stay where they are. `raw/heap-transport.ts` of
 * tensor is the implementation; the codec knows only this. To a worker elsewhere the elements follow the header, uncopied if the transport lends them.
 */
import type { DType, Tensor } from '@postgrad/tensor'
import type { BlockName } from '@postgrad/tensor/internal'

/** Where the elements begin, in five words, of which the second alone may be negative. */
export type { BlockName }
export const BLOCK_WORDS = 5

export interface BlockTransport {
  /**
   * Names the elements, row by row, for the worker at the other end, and holds them for it; null: they have no block, so their bytes
   * travel. Value semantics: a later write to the tensor copies it first.
   */
  give(tensor: Tensor): BlockName | null
  /** The bytes of the elements, row by row, as they lie in memory, which stay as they are until the receiver has read the message; null: they are copied. */
  lend?(tensor: Tensor): Uint8Array | null
  /** A tensor over the bytes of a segment, where the link has read them into memory of the transport's; null: elsewhere. */
  over?(segment: Uint8Array, dtype: DType, shape: readonly number[], numel: number): Tensor | null
  /**
   * The tensor that the other end named. Nothing in the name is trusted.
   * @throws HEAP_BLOCK_STALE when the sender does not hold that block (any more), or the elements do not lie within it
   */
  take(name: BlockName, dtype: DType, shape: readonly number[], numel: number): Tensor
}
