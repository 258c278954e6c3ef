/** Views: new shapes and strides on the same storage. Only `reshape` may copy. No kernels. */
import { PostgradError } from '@postgrad/base'
import { Tensor } from '../tensor/tensor.js'
import { indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { DimsArg } from '../values/shape.js'
import {
  broadcastStrides,
  broadcastsTo,
  checkShape,
  inferShape,
  isContiguous,
  normalizeDim,
  normalizeDims,
  type Shape,
  viewStrides,
} from '../values/shape.js'
import { contiguous } from './copy.js'

/** @throws VIEW_NOT_CONTIGUOUS when the strides do not allow it, SHAPE_MISMATCH, INVALID_ARGUMENT */
export function view(x: Tensor, shape: Shape): Tensor {
  const target = inferShape('view', shape, x.numel)
  const strides = viewStrides(x.shape, x.strides, target)
  if (strides === null) {
    throw new PostgradError('VIEW_NOT_CONTIGUOUS', {
      op: 'view',
      expected: `strides under which ${shapeText(target)} needs no copy`,
      got: `shape ${shapeText(x.shape)} with strides ${shapeText(x.strides)}`,
      remedy: 'Use reshape(), which copies when it must, or contiguous() first.',
      values: { shape: [...x.shape], strides: [...x.strides], target: [...target] },
    })
  }
  return new Tensor(x.storage, target, strides, x.offset, x.numel, x.isContiguous || isContiguous(target, strides))
}

/** A view where possible, else a contiguous copy. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
export function reshape(x: Tensor, shape: Shape): Tensor {
  const target = inferShape('reshape', shape, x.numel)
  const strides = viewStrides(x.shape, x.strides, target)
  if (strides === null) return view(contiguous(x), target)
  return new Tensor(x.storage, target, strides, x.offset, x.numel, x.isContiguous || isContiguous(target, strides))
}

export function transpose(x: Tensor, dim0: number, dim1: number): Tensor {
  const a = normalizeDim('transpose', dim0, x.shape.length)
  const b = normalizeDim('transpose', dim1, x.shape.length)
  if (a === b) return Tensor.view(x, x.shape, x.strides, x.offset)
  const shape = x.shape.slice()
  const strides = x.strides.slice()
  shape[a] = x.shape[b]!
  shape[b] = x.shape[a]!
  strides[a] = x.strides[b]!
  strides[b] = x.strides[a]!
  return Tensor.view(x, shape, strides, x.offset)
}

/** @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT unless `dims` names each dimension once */
export function permute(x: Tensor, dims: readonly number[]): Tensor {
  const order = dims.map((d) => normalizeDim('permute', d, x.shape.length))
  if (order.length !== x.shape.length || new Set(order).size !== order.length) {
    throw invalidArgument('permute', `each of the ${x.shape.length} dimensions once`, shapeText(dims))
  }
  return Tensor.view(
    x,
    order.map((d) => x.shape[d]!),
    order.map((d) => x.strides[d]!),
    x.offset,
  )
}

/** Repeats extents of 1 and leading dimensions without copying. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
export function expand(x: Tensor, shape: Shape): Tensor {
  const missing = shape.length - x.shape.length
  if (missing < 0) {
    throw shapeMismatch('expand', `at least ${x.shape.length} dimensions`, shapeText(shape), 'Name every dimension; -1 keeps one.')
  }
  const target = shape.map((extent, i) => {
    if (extent !== -1) return extent
    if (i < missing) throw invalidArgument('expand', 'no -1 for a new leading dimension', shapeText(shape), 'Write its extent.')
    return x.shape[i - missing]!
  })
  checkShape('expand', target)
  if (!broadcastsTo(x.shape, target)) {
    throw shapeMismatch(
      'expand',
      `a shape to which ${shapeText(x.shape)} broadcasts`,
      shapeText(target),
      'Only extents of 1 can be expanded.',
    )
  }
  return Tensor.view(x, target, broadcastStrides(x.shape, x.strides, target), x.offset)
}

/** Without `dims`: drops all extents of 1. A dimension of another extent stays, as in PyTorch. */
export function squeeze(x: Tensor, dims?: DimsArg): Tensor {
  const only = dims === undefined ? null : typeof dims === 'number' ? [normalizeDim('squeeze', dims, x.shape.length)] : named(x, dims)
  const keep = (_: number, d: number): boolean => x.shape[d] !== 1 || (only !== null && !only.includes(d))
  return Tensor.view(x, x.shape.filter(keep), x.strides.filter(keep), x.offset)
}

/** No dimensions are none, not all. */
function named(x: Tensor, dims: readonly number[]): readonly number[] {
  return dims.length === 0 ? dims : normalizeDims('squeeze', dims, x.shape.length)
}

export function unsqueeze(x: Tensor, dim: number): Tensor {
  const d = normalizeDim('unsqueeze', dim, x.shape.length + 1)
  const stride = d < x.shape.length ? x.shape[d]! * x.strides[d]! : 1
  return Tensor.view(x, x.shape.toSpliced(d, 0, 1), x.strides.toSpliced(d, 0, stride), x.offset)
}

/** Elements start … start+length−1 of a dimension; a negative start counts from the end. @throws INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
export function narrow(x: Tensor, dim: number, start: number, length: number): Tensor {
  const d = dimension('narrow', x, dim)
  const extent = x.shape[d]!
  const from = start < 0 ? start + extent : start
  if (!Number.isInteger(from) || from < 0 || from > extent) {
    throw indexOutOfRange('narrow', `a start from ${-extent} to ${extent}`, start, `Dimension ${d} has ${extent} elements.`)
  }
  if (!Number.isInteger(length) || length < 0 || from + length > extent) {
    throw indexOutOfRange(
      'narrow',
      `a length from 0 to ${extent - from}`,
      length,
      `Dimension ${d} has ${extent} elements, the start is ${from}.`,
    )
  }
  return Tensor.view(x, x.shape.with(d, length), x.strides, x.offset + from * x.strides[d]!)
}

/** Drops a dimension at one index. @throws INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
export function select(x: Tensor, dim: number, index: number): Tensor {
  const d = dimension('select', x, dim)
  const extent = x.shape[d]!
  const at = index < 0 ? index + extent : index
  if (!Number.isInteger(at) || at < 0 || at >= extent) {
    throw indexOutOfRange('select', `an index from ${-extent} to ${extent - 1}`, index, `Dimension ${d} has ${extent} elements.`)
  }
  return Tensor.view(x, x.shape.toSpliced(d, 1), x.strides.toSpliced(d, 1), x.offset + at * x.strides[d]!)
}

/** Elements 0, step, 2 · step, … of a dimension: what `slice` is made of, beside narrow. @throws INVALID_ARGUMENT unless step ≥ 1, DIM_OUT_OF_RANGE */
export function everyNth(x: Tensor, dim: number, step: number): Tensor {
  const d = dimension('everyNth', x, dim)
  if (!Number.isSafeInteger(step) || step < 1) throw invalidArgument('everyNth', 'an integer step ≥ 1', step)
  return Tensor.view(x, x.shape.with(d, Math.ceil(x.shape[d]! / step)), x.strides.with(d, x.strides[d]! * step), x.offset)
}

/**
 * The elements [i, i + offset] of the planes dim1 × dim2: […, k], with k as the last dimension. A view.
 * @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export function diagonal(x: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  const ndim = x.shape.length
  if (ndim < 2) throw shapeMismatch('diagonal', 'at least two dimensions', shapeText(x.shape), 'Use diag() or diagEmbed() for a vector.')
  const a = normalizeDim('diagonal', dim1, ndim)
  const b = normalizeDim('diagonal', dim2, ndim)
  if (a === b) throw invalidArgument('diagonal', 'two different dimensions', `${dim1} and ${dim2}`)
  if (!Number.isInteger(offset)) throw invalidArgument('diagonal', 'an integer offset', offset)
  const row = Math.max(-offset, 0)
  const column = Math.max(offset, 0)
  const length = Math.max(Math.min(x.shape[a]! - row, x.shape[b]! - column), 0)
  const kept = (values: Shape): number[] => values.filter((_, d) => d !== a && d !== b)
  const from = length === 0 ? x.offset : x.offset + row * x.strides[a]! + column * x.strides[b]!
  return Tensor.view(x, [...kept(x.shape), length], [...kept(x.strides), x.strides[a]! + x.strides[b]!], from)
}

/** A 0-d tensor has nothing to cut. */
function dimension(op: string, x: Tensor, dim: number): number {
  if (x.shape.length > 0) return normalizeDim(op, dim, x.shape.length)
  throw shapeMismatch(op, 'a tensor with at least one dimension', '[]', 'Use reshape([1]) first.')
}

/** The same elements without a history. */
export function detach(x: Tensor): Tensor {
  return new Tensor(x.storage, x.shape, x.strides, x.offset, x.numel, x.isContiguous)
}
