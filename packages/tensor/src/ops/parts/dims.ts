/** Dimensions in formulas of derivatives: finds reduced ones, and undoes a reduction or a broadcast. */
import type { Tensor } from '../../tensor/tensor.js'
import { shapeMismatch, shapeText } from '../../values/errors.js'
import { broadcastsTo, type DimsArg, normalizeDim, numelOf, type Shape, sameShape } from '../../values/shape.js'
import { type Ops, rawOperations } from '../define/define.js'

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
 * @returns `x` summed to `shape`; `x` itself where the shapes are equal, a view of it where the elements are the same
 * @throws SHAPE_MISMATCH unless `shape` broadcasts to x's
 */
export function sumToShape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x
  if (!broadcastsTo(shape, x.shape)) {
    throw shapeMismatch(
      'sumToShape',
      `a shape that broadcasts to ${shapeText(x.shape)}`,
      shapeText(shape),
      'Pass the shape from before broadcasting.',
    )
  }
  // Where only extents of 1 go there is nothing to add up (a batch of one).
  if (x.numel === numelOf(shape) && !x.requiresGrad) return rawOperations.reshape(x, shape)
  const lead = x.shape.length - shape.length
  const dims = allDims(x.shape).filter((i) => i < lead || (shape[i - lead] === 1 && x.shape[i] !== 1))
  return x.requiresGrad ? x.sum(dims, true).reshape(shape) : rawOperations.reshape(rawOperations.sum(x, dims), shape)
}

/** The dimension to cut along and its extent. @throws DIM_OUT_OF_RANGE, SHAPE_MISMATCH: a 0-d tensor has nothing to cut */
export function cut(op: string, x: Tensor, dim: number): [dim: number, extent: number] {
  if (x.shape.length === 0) throw shapeMismatch(op, 'a tensor with at least one dimension', '[]', 'Use reshape([1]) first.')
  const d = normalizeDim(op, dim, x.shape.length)
  return [d, x.shape[d]!]
}
