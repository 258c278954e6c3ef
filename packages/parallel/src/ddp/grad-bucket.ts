/** What a communication hook gets and gives. PyTorch: `torch.distributed.GradBucket`. */
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

/** Gradients that are reduced together, one behind the other in one buffer. */
export class GradBucket {
  /** Its number: buckets are reduced in this order, the same on all ranks. */
  readonly index: number
  /** Whether it is the last of the iteration. PyTorch: `is_last`. */
  readonly isLast: boolean
  /** Whose gradients it has. */
  readonly parameters: readonly Tensor[]
  /** @internal Their numbers in the model, which buckets that are made again, and a model that is made again, do not change. */
  readonly numbers: readonly number[]
  /** All gradients, [n]: this rank's, not divided by anything. */
  readonly buffer: Tensor

  /** @internal */
  constructor(index: number, isLast: boolean, parameters: readonly Tensor[], numbers: readonly number[], buffer: Tensor) {
    this.index = index
    this.isLast = isLast
    this.parameters = parameters
    this.numbers = numbers
    this.buffer = buffer
  }

  /** Views on the buffer, each of the shape of its parameter. */
  get gradients(): Tensor[] {
    return viewsOf(this.buffer, this.parameters)
  }
}

/**
 * Takes the place of the all-reduce and of the division by the number of ranks: gives the buffer's reduction, [n], which may be the buffer itself. All ranks call it
 * for the same buckets in the same order, for each when the one before has ended; so it may begin any collectives of the group.
 */
export type CommHook<S = unknown> = (state: S, bucket: GradBucket) => Tensor | PromiseLike<Tensor>

/** Where each of these tensors lies in a flat buffer that has them one after the other. */
export function viewsOf(buffer: Tensor, like: readonly Tensor[]): Tensor[] {
  let at = 0
  return like.map(({ numel, shape }) => {
    const view = raw.reshape(raw.narrow(buffer, 0, at, numel), shape)
    at += numel
    return view
  })
}
