/**
 * Checking indices before a kernel sees them: it takes for granted that they are int32 and within range. Whole numbers in a floating dtype are
 * indices too (rule INDEX in KERNELS.md), since `tensor([0, 1])` and `arange(5)` are float32 here.
 */

import { PostgradError } from '@postgrad/base'
import { CPU } from '../heap/memory.js'
import { elementsOf, isReadable } from '../tensor/bytes.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { dtypeMismatch, indexOutOfRange, invalidArgument, shapeText } from '../values/errors.js'
import type { Shape } from '../values/shape.js'
import { contiguous, to } from './copy.js'
import { rawOperations as ops } from './operations.js'

const REMEDY = "Make them with { dtype: 'int32' }, or convert with to('int32')."
/** Up to here float32 holds every whole number. */
const FLOAT32_WHOLE = 2 ** 24
const INT32_END = 2 ** 31

/**
 * `indices` as int32: themselves, or a copy of those that are whole numbers in float32 or float64.
 * @throws DTYPE_MISMATCH for bool and for numbers that are not whole, or that the dtype or int32 may have rounded; INVALID_ARGUMENT for those that
 * require grad, READ_NOT_SYNCHRONOUS for floating ones that the device has yet to compute
 */
export function wholeIndices(op: string, indices: Tensor, what = 'indices'): Tensor {
  if (indices.dtype === 'int32') return indices
  if (indices.dtype === 'bool') throw dtypeMismatch(op, `int32 ${what}`, 'bool', REMEDY)
  if (indices.requiresGrad) {
    throw invalidArgument(
      op,
      `${what} that require no grad`,
      `a ${indices.dtype} tensor that does`,
      'Pass detach() of it: it gets no gradient.',
    )
  }
  if (!isReadable(indices)) {
    throw new PostgradError('READ_NOT_SYNCHRONOUS', {
      op,
      expected: `int32 ${what}, or ${indices.dtype} ones that can be looked at`,
      got: `${indices.dtype} ones on device '${indices.device}', whose memory is its own`,
      remedy: REMEDY,
    })
  }
  const most = indices.dtype === 'float32' ? FLOAT32_WHOLE : INT32_END - 1
  for (const [i, value] of elementsOf(indices).entries()) {
    if (!Number.isInteger(value) || Math.abs(value) > most) throw notWhole(op, what, indices, value, placeOf(i, indices.shape))
  }
  return to(indices, 'int32')
}

function notWhole(op: string, what: string, { dtype }: Tensor, value: number, at: readonly number[]): Error {
  const place = at.length === 0 ? '' : ` at ${shapeText(at)}`
  const beyond = Number.isInteger(value)
  return dtypeMismatch(
    op,
    `int32 ${what}, or whole numbers${beyond ? ` up to ${dtype === 'float32' ? '2^24 in float32' : '2^31 - 1'}` : ''}`,
    `${dtype} with ${value}${place}`,
    beyond ? REMEDY : `Look at how they were made: ${what} are whole numbers.`,
  )
}

/**
 * Dense int32 indices, made of whole numbers if need be, all of them in 0 … extent−1. With `wrap` negative ones count from the end, and come back as what they mean.
 * On a device with a memory of its own the kernel looks at them, and the next read there reports one that is out of range.
 * @throws DTYPE_MISMATCH, INDEX_OUT_OF_RANGE, READ_NOT_SYNCHRONOUS
 */
export function checkedIndices(op: string, indices: Tensor, extent: number, wrap = false): Tensor {
  const whole = wholeIndices(op, indices)
  if (!isReadable(whole)) return contiguous(wrap ? wrapped(whole, extent) : whole)
  const dense = contiguous(whole)
  const first = firstOutside(dense, Math.min(extent, INT32_END - 1))
  if (first === dense.numel) return dense
  const low = wrap ? -extent : 0
  const elements = elementsOf(dense)
  for (let i = first; i < elements.length; i++) {
    const index = elements[i]!
    if (index < low || index >= extent) throw outOfRange(op, index, low, extent, placeOf(i, whole.shape))
  }
  return wrapped(dense, extent)
}

/** For fewer indices the tensor for a kernel's result costs more than the loop. */
const KERNEL_FROM = 1024

/** The place of the first of these dense indices that is not in 0 … extent − 1; their number if all are. */
function firstOutside(indices: Tensor, extent: number): number {
  if (indices.numel < KERNEL_FROM) {
    const { offset, numel } = indices
    const host = indices.storage.host!
    let i = 0
    while (i < numel && host[offset + i]! >= 0 && host[offset + i]! < extent) i++
    return i
  }
  const out = Tensor.uninitialized('int32', [1], CPU)
  kernelsFor(indices).firstOutside.int32(indices, out, extent)
  return out.storage.host![0]!
}

const wrapped = (indices: Tensor, extent: number): Tensor => ops.where(ops.lt(indices, 0), ops.add(indices, extent), indices)

function outOfRange(op: string, index: number, low: number, extent: number, at: Shape): Error {
  const expected = extent === 0 ? 'no index, for the dimension is empty' : `indices from ${low} to ${extent - 1}`
  const rule = low === 0 ? '; negative ones do not count from the end' : ''
  return indexOutOfRange(op, expected, index, `Check how the indices were made${rule}.`, { at, extent })
}

/** The row-major position `flat` as an index into `shape`. */
function placeOf(flat: number, shape: Shape): number[] {
  const place = new Array<number>(shape.length)
  for (let d = shape.length - 1, rest = flat; d >= 0; d--) {
    place[d] = rest % shape[d]!
    rest = Math.floor(rest / shape[d]!)
  }
  return place
}

/**
 * Indices into the dimensions of `extents`, one tensor each, all of them of `shape` after broadcasting, as indices into those dimensions
 * flattened. Negative ones count from the end. @throws DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
 */
export function flatIndices(op: string, indices: readonly Tensor[], extents: readonly number[], shape: Shape): Tensor {
  const flat = indices
    .map((each, k) => checkedIndices(op, each, extents[k]!, true))
    .reduce((sum, part, k) => ops.add(ops.mul(sum, extents[k]!), part))
  return contiguous(ops.expand(flat, shape))
}
