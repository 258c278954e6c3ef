/** Joining: `cat`, `stack` and `constantPad` copy their inputs into parts of one new tensor. */

import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import type { DType } from '../values/dtype.js'
import { promote } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, numelOf, type Shape } from '../values/shape.js'
import { fill_ } from './inplace.js'
import { unsqueeze } from './views.js'

/** dtypes promote; tensors of shape [0] are skipped, as in PyTorch. @throws INVALID_ARGUMENT without tensors, SHAPE_MISMATCH */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  if (tensors.length === 0) throw invalidArgument('cat', 'at least one tensor', 'none')
  let dtype: DType = tensors[0]!.dtype
  for (const t of tensors) dtype = promote(dtype, t.dtype)
  const parts = tensors.filter((t) => !(t.shape.length === 1 && t.numel === 0))
  if (parts.length === 0) return Tensor.uninitialized(dtype, [0], tensors[0]!.storage.memory)
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
  const out = Tensor.uninitialized(dtype, first.shape.with(d, extent), first.storage.memory)
  const copy = kernelsFor(first).copy[dtype]
  const isDense = numelOf(first.shape.slice(0, d)) === 1
  let at = 0
  for (const t of parts) {
    copy(t, new Tensor(out.storage, t.shape, out.strides, at * out.strides[d]!, t.numel, isDense))
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

/** @throws INVALID_ARGUMENT unless `pads` holds pairs of integers for at most all dimensions */
export function checkPads(op: string, shape: Shape, pads: readonly number[]): void {
  const ndim = shape.length
  if (Array.isArray(pads) && pads.length % 2 === 0 && pads.length <= 2 * ndim && [...pads].every(Number.isSafeInteger)) return
  const got = Array.isArray(pads) ? shapeText(pads) : typeof pads
  throw invalidArgument(op, `pairs of integers for at most ${ndim} dimensions, the last dimension first`, got)
}

/**
 * x between `value`s: `pads` holds how many before and behind, for the last dimension, the one before it, …; negative ones cut.
 * @throws INVALID_ARGUMENT, SHAPE_MISMATCH when more is cut than there is
 */
export function constantPad(x: Tensor, pads: readonly number[], value = 0): Tensor {
  checkPads('constantPad', x.shape, pads)
  const ndim = x.shape.length
  const shape = new Array<number>(ndim)
  // The part of x that stays.
  const kept = new Array<number>(ndim)
  let from = x.offset
  for (let d = 0; d < ndim; d++) {
    const at = 2 * (ndim - 1 - d)
    const [before, behind] = at < pads.length ? [pads[at]!, pads[at + 1]!] : [0, 0]
    const extent = x.shape[d]!
    shape[d] = extent + before + behind
    kept[d] = extent + Math.min(before, 0) + Math.min(behind, 0)
    if (kept[d]! < 0) {
      throw shapeMismatch('constantPad', 'to cut no more than there is', `${shapeText(pads)} for ${shapeText(x.shape)}`, 'Cut less.')
    }
    if (before < 0) from -= before * x.strides[d]!
  }
  const out = Tensor.empty(x.dtype, shape, x.storage.memory)
  if (value !== 0) fill_(out, value)
  let to = 0
  for (let d = 0; d < ndim; d++) to += Math.max(pads[2 * (ndim - 1 - d)] ?? 0, 0) * out.strides[d]!
  kernelsFor(x).copy[x.dtype](Tensor.view(x, kept, x.strides, from), Tensor.view(out, kept, out.strides, to))
  return out
}
