/** Dimensions in formulas of derivatives: which were reduced, and undoing a reduction or a broadcast. */
import * as reduce from '../../raw/reduce.js'
import * as views from '../../raw/views.js'
import type { Tensor } from '../../tensor/tensor.js'
import { broadcastsTo, type DimsArg, numelOf, type Shape, sameShape } from '../../values/shape.js'
import type { Ops } from '../define/define.js'

/** All dimensions of a shape, by number. */
export function allDims(shape: Shape): number[] {
  return shape.map((_, i) => i)
}

export function wrap(index: number, length: number): number {
  return index < 0 ? index + length : index
}

/** The result of a reduction over `dims`, with or without the reduced dimensions, spread over the shape that was reduced. */
export function spread(x: Tensor, shape: Shape, dims: DimsArg | undefined, ops: Ops): Tensor {
  const list = dims === undefined ? [] : typeof dims === 'number' ? [dims] : dims
  const reduced = new Set((list.length === 0 ? allDims(shape) : list).map((dim) => wrap(dim, shape.length)))
  const kept = shape.map((extent, i) => (reduced.has(i) ? 1 : extent))
  return ops.expand(ops.reshape(x, kept), shape)
}

/**
 * Undoes a broadcast: the gradient of a tensor that was spread over a larger shape is the sum over what it was spread to. Recorded where the gradient itself is to be
 * differentiated. PyTorch: `sum_to` in `ATen/ExpandUtils.h`.
 * @returns `x` summed to `shape`, which must broadcast to x's shape; `x` itself where the shapes are equal, a view of it where the elements are the same
 */
export function sumToShape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x
  if (!x.requiresGrad) {
    // Where only extents of 1 go there is nothing to add up (a batch of one).
    return x.numel === numelOf(shape) && broadcastsTo(shape, x.shape) ? views.reshape(x, shape) : reduce.sumToShape(x, shape)
  }
  const lead = x.shape.length - shape.length
  const dims = x.shape.map((_, i) => i).filter((i) => i < lead || (shape[i - lead] === 1 && x.shape[i] !== 1))
  return x.sum(dims, true).reshape(shape)
}
