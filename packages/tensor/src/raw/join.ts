/** Joining: `cat`, `stack` and `constantPad` copy their inputs into parts of one new tensor. */
import type { DType } from '../dtype.js'
import { promote } from '../dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../errors.js'
import { normalizeDim, type Shape } from '../shape.js'
import { Tensor } from '../tensor.js'
import { copyKernel } from './copy.js'
import { fill_ } from './inplace.js'
import { narrow, unsqueeze } from './views.js'

/** dtypes promote; tensors of shape [0] are skipped, as in PyTorch. @throws INVALID_ARGUMENT without tensors, SHAPE_MISMATCH */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  if (tensors.length === 0) throw invalidArgument('cat', 'at least one tensor', 'none')
  let dtype: DType = tensors[0]!.dtype
  for (const t of tensors) dtype = promote(dtype, t.dtype)
  const parts = tensors.filter((t) => !(t.shape.length === 1 && t.numel === 0))
  if (parts.length === 0) return Tensor.uninitialized(dtype, [0])
  const first = parts[0]!
  if (first.shape.length === 0) throw shapeMismatch('cat', 'tensors with at least one dimension', '[]', 'Use stack() for 0-d tensors.')
  const d = normalizeDim('cat', dim, first.shape.length)
  let extent = 0
  for (const t of parts) {
    if (t.shape.length !== first.shape.length || t.shape.some((n, i) => i !== d && n !== first.shape[i])) {
      throw shapeMismatch(
        'cat',
        `shapes that are equal except in dimension ${d}`,
        `${shapeText(first.shape)} and ${shapeText(t.shape)}`,
        'Reshape or narrow the one that differs.',
      )
    }
    extent += t.shape[d]!
  }
  const out = Tensor.uninitialized(dtype, first.shape.with(d, extent))
  const kernel = copyKernel(dtype)
  let at = 0
  for (const t of parts) {
    const to = at * out.strides[d]!
    if (d === 0 && t.isContiguous) kernel.flat(t.numel, t.storage.array, t.offset, out.storage.array, to)
    else kernel.strided(t.shape, t.storage.array, t.offset, t.strides, out.storage.array, to, out.strides)
    at += t.shape[d]!
  }
  return out
}

/** Joins along a new dimension. @throws INVALID_ARGUMENT without tensors, SHAPE_MISMATCH unless all shapes are equal */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  if (tensors.length === 0) throw invalidArgument('stack', 'at least one tensor', 'none')
  const first = tensors[0]!
  for (const t of tensors) {
    if (t.shape.length !== first.shape.length || t.shape.some((n, i) => n !== first.shape[i])) {
      throw shapeMismatch(
        'stack',
        'equal shapes',
        `${shapeText(first.shape)} and ${shapeText(t.shape)}`,
        'Use cat() to join along a dimension that differs.',
      )
    }
  }
  const d = normalizeDim('stack', dim, first.shape.length + 1)
  return cat(
    tensors.map((t) => unsqueeze(t, d)),
    d,
  )
}

/** Extents before and behind each dimension, from `pads` as PyTorch orders them. @throws INVALID_ARGUMENT */
export function padsOf(op: string, shape: Shape, pads: readonly number[]): (readonly [before: number, behind: number])[] {
  const ndim = shape.length
  if (!Array.isArray(pads) || pads.length % 2 !== 0 || pads.length > 2 * ndim || !pads.every(Number.isSafeInteger)) {
    const got = Array.isArray(pads) ? shapeText(pads) : typeof pads
    throw invalidArgument(op, `pairs of integers for at most ${ndim} dimensions, the last dimension first`, got)
  }
  return shape.map((_, d) => [pads[2 * (ndim - 1 - d)] ?? 0, pads[2 * (ndim - 1 - d) + 1] ?? 0] as const)
}

/**
 * x between `value`s: `pads` holds how many before and behind, for the last dimension, the one before it, …; negative ones cut.
 * @throws INVALID_ARGUMENT, SHAPE_MISMATCH when more is cut than there is
 */
export function constantPad(x: Tensor, pads: readonly number[], value = 0): Tensor {
  const each = padsOf('constantPad', x.shape, pads)
  if (each.some(([before, behind], d) => Math.min(before, 0) + Math.min(behind, 0) + x.shape[d]! < 0)) {
    throw shapeMismatch('constantPad', 'to cut no more than there is', `${shapeText(pads)} for ${shapeText(x.shape)}`, 'Cut less.')
  }
  const shape = x.shape.map((n, d) => n + each[d]![0] + each[d]![1])
  const out = Tensor.uninitialized(x.dtype, shape)
  if (each.some(([before, behind]) => before > 0 || behind > 0)) fill_(out, value)
  let from = x
  let to = out
  for (const [d, [before, behind]] of each.entries()) {
    const kept = x.shape[d]! + Math.min(before, 0) + Math.min(behind, 0)
    from = narrow(from, d, Math.max(-before, 0), kept)
    to = narrow(to, d, Math.max(before, 0), kept)
  }
  const source = from.storage.array
  copyKernel(x.dtype).strided(from.shape, source, from.offset, from.strides, out.storage.array, to.offset, to.strides)
  return out
}
