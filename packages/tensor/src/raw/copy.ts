/** Copies and conversions: `contiguous`, `clone`, `to`, and `detach`. All other operations use these. */

import { PostgradError } from '@postgrad/base'
import { chainsFrom, recorded, records } from '../chains/record.js'
import { CPU } from '../heap/memory.js'
import type { DeviceLike } from '../tensor/arguments.js'
import { upload } from '../tensor/create.js'
import { type Device, type DeviceSpec, deviceFor, kernelsFor } from '../tensor/device.js'
import { isTensor, Tensor } from '../tensor/tensor.js'
import { DTYPES, type DType, isDType } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'

/** A new contiguous tensor of `dtype`. */
function copyAs(x: Tensor, dtype: DType): Tensor {
  if (records && x.numel >= chainsFrom) {
    const step = recorded('conversion', 'copy', dtype, dtype, x.shape, [x])
    if (step !== null) return step
  }
  const out = Tensor.uninitialized(dtype, x.shape, x.storage.memory)
  kernelsFor(x).copy[dtype](x, out)
  return out
}

export function clone(x: Tensor): Tensor {
  return copyAs(x, x.dtype)
}

/**
 * As `clone`, but elements that an expanded x repeats stay one element that is repeated, and dense elements in the heap are copied only when x or the result is
 * written, unless they are a small part of their block.
 */
export function lazyClone(x: Tensor): Tensor {
  if (x.isContiguous) {
    const storage = x.storage.isSmallPart(x.numel) ? null : x.storage.fork(x.offset, x.numel)
    return storage === null ? clone(x) : new Tensor(storage, x.shape, x.strides, 0, x.numel, true)
  }
  const isRepeated = (d: number): boolean => x.strides[d] === 0 && x.shape[d]! > 1
  if (!x.shape.some((_, d) => isRepeated(d))) return clone(x)
  const single = x.shape.map((n, d) => (isRepeated(d) ? 1 : n))
  const once = clone(Tensor.view(x, single, x.strides, x.offset))
  const strides = once.strides.map((step, d) => (isRepeated(d) ? 0 : step))
  return Tensor.view(once, x.shape, strides, 0)
}

export function contiguous(x: Tensor): Tensor {
  return x.isContiguous ? x : copyAs(x, x.dtype)
}

/** A tensor with the same elements, in the same memory, without a history. */
export function detach(x: Tensor): Tensor {
  return new Tensor(x.storage, x.shape, x.strides, x.offset, x.numel, x.isContiguous)
}

/**
 * x on that device, in that dtype; x itself if it is already there and has the dtype. float → int32 truncates, → bool is `x != 0`.
 * @throws DTYPE_MISMATCH for an unknown dtype, DEVICE_UNKNOWN, READ_NOT_SYNCHRONOUS from a device whose elements the host cannot read at once
 */
export function to(x: Tensor, target: Target | string | DeviceLike, dtype?: DType): Tensor {
  if (target === x.dtype && dtype === undefined) return x
  if (isDType(target)) {
    if (dtype !== undefined) throw invalidArgument('to', 'one dtype, or a device and a dtype', `${target} and ${dtype}`)
    return copyAs(x, target)
  }
  const like = isTensor(target) ? target : null
  const { home } = like?.device ?? targetDevice(target)
  const wanted = checkDType(dtype ?? like?.dtype ?? x.dtype)
  const { memory } = x.storage
  if (memory === home) return wanted === x.dtype ? x : copyAs(x, wanted)
  if (memory !== CPU) {
    throw new PostgradError('READ_NOT_SYNCHRONOUS', {
      op: 'to',
      message: `device '${x.device}' computes asynchronously, so its elements cannot be copied at once`,
      remedy: 'Write await x.cpu().',
      values: { device: x.device.spec },
    })
  }
  return upload(wanted === x.dtype ? x : copyAs(x, wanted), home)
}

/** For `to`: a dtype, a device, or a tensor that has both. */
export type Target = DType | Device | DeviceSpec | Tensor

function checkDType(dtype: DType): DType {
  if (isDType(dtype)) return dtype
  throw dtypeMismatch('to', `one of ${DTYPES.join(', ')}`, String(dtype), 'Pass one of these names.')
}

/** Names that PyTorch's users know as dtypes, and that none of ours is. */
const DTYPE_NAME = /^(u?int|float|double|half|long|short|byte|char|bool|bfloat|complex)/

function targetDevice(target: unknown): Device {
  if (typeof target === 'string' && DTYPE_NAME.test(target)) checkDType(target as DType)
  return deviceFor('to', target)
}
