/** A communication hook's bucket and result. PyTorch: `torch.distributed.GradBucket`. */
import type { Tensor } from '@postgrad/tensor'
import { argumentText, invalidArgument, isTensor, raw } from '@postgrad/tensor/internal'

/**
 * Gradients that are reduced together, one after the other in one buffer. Communication hooks receive it. PyTorch: `GradBucket`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(null, async (_state, bucket: GradBucket) => {
 *   bucket.buffer.mul_(1 / getWorldSize())
 *   return allReduce(bucket.buffer)
 * })
 * await model.backward((await model.forward(x)).sum())
 */
export class GradBucket {
  /** The number of the bucket. Buckets are reduced in the order of their numbers, which is the same on all ranks. */
  readonly index: number
  /** Whether this is the first bucket of the iteration that a hook receives. If an earlier iteration was broken off, what it left is no longer valid. */
  readonly isFirst: boolean
  /** Whether this is the last bucket of the iteration that a hook receives. PyTorch: `is_last`. */
  readonly isLast: boolean
  /** The parameters whose gradients are in the bucket. */
  readonly parameters: readonly Tensor[]
  /** @internal Their numbers in the model, which buckets that are made again, and a model that is made again, do not change. */
  readonly numbers: readonly number[]
  /** @internal How many the model has that require a gradient: numbers are smaller. */
  readonly parameterCount: number
  /** All gradients of this rank as one vector [n], not divided by the number of ranks. */
  readonly buffer: Tensor

  /** @internal */
  constructor({ index, isFirst, isLast, parameters, numbers, parameterCount, buffer }: Omit<GradBucket, 'gradients'>) {
    this.index = index
    this.isFirst = isFirst
    this.isLast = isLast
    this.parameters = parameters
    this.numbers = numbers
    this.parameterCount = parameterCount
    this.buffer = buffer
  }

  /** The gradients as views of the buffer, each in the shape of its parameter. */
  get gradients(): Tensor[] {
    return viewsOf(this.buffer, this.parameters)
  }
}

/**
 * A function that reduces a bucket, in place of the all-reduce and the division by the number of ranks. Returns the reduced buffer, [n], which may be
 * `bucket.buffer` itself. All ranks call it for the same buckets in the same order, each time after the previous call has ended. So it may begin any
 * collectives of the group.
 */
export type CommHook<S = unknown> = (state: S, bucket: GradBucket) => Tensor | PromiseLike<Tensor>

/** A hook's result for a bucket. @throws INVALID_ARGUMENT unless it is a tensor of the bucket's size */
export function checkedReduction(result: unknown, { numel }: Tensor): Tensor {
  if (isTensor(result) && result.numel === numel) return result
  throw invalidArgument('a communication hook', `to give a tensor of ${numel} elements, as its bucket has`, argumentText(result))
}

/** Where each of these tensors lies in a flat buffer that has them one after the other. */
export function viewsOf(buffer: Tensor, like: readonly Tensor[]): Tensor[] {
  let at = 0
  return like.map(({ numel, shape }) => {
    const view = raw.reshape(raw.narrow(buffer, 0, at, numel), shape)
    at += numel
    return view
  })
}
