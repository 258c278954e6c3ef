/** Dimensions in formulas of derivatives: which were reduced, and spreading a reduction's result over them again. */
import type { DimsArg, Tensor } from '@postgrad/tensor'
import type { TensorOps } from '../graph/formula.js'

type Shape = readonly number[]

export function allDims(shape: Shape): number[] {
  return shape.map((_, i) => i)
}

export function wrap(index: number, length: number): number {
  return index < 0 ? index + length : index
}

export function numel(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1)
}

/** The result of a reduction over `dims`, with or without the reduced dimensions, spread over the shape that was reduced. */
export function spread(x: Tensor, shape: Shape, dims: DimsArg | undefined, ops: TensorOps): Tensor {
  const list = dims === undefined ? [] : typeof dims === 'number' ? [dims] : dims
  const reduced = new Set((list.length === 0 ? allDims(shape) : list).map((dim) => wrap(dim, shape.length)))
  const kept = shape.map((extent, i) => (reduced.has(i) ? 1 : extent))
  return ops.expand(ops.reshape(x, kept), shape)
}
