/**
 * Undoing a broadcast: the gradient of a tensor that was spread over a larger shape is the sum over what it was spread to. Recorded where the
 * gradient itself is to be differentiated. PyTorch: `sum_to` in `ATen/ExpandUtils.h`.
 */
import type { Tensor } from '@postgrad/tensor'
import { broadcastsTo, raw, sameShape } from '@postgrad/tensor/internal'
import { numel } from './dims.js'

/** `x` summed to `shape`, which must broadcast to x's shape; `x` itself where the shapes are equal, a view of it where the elements are the same. */
export function sumToShape(x: Tensor, shape: readonly number[]): Tensor {
  if (sameShape(x.shape, shape)) return x
  if (!x.requiresGrad) {
    // Where only extents of 1 go there is nothing to add up (a batch of one).
    return x.numel === numel(shape) && broadcastsTo(shape, x.shape) ? raw.reshape(x, shape) : raw.sumToShape(x, shape)
  }
  const lead = x.shape.length - shape.length
  const dims = x.shape.map((_, i) => i).filter((i) => i < lead || (shape[i - lead] === 1 && x.shape[i] !== 1))
  return x.sum(dims, true).reshape(shape)
}
