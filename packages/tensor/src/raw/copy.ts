/** Copies and conversions: `contiguous`, `clone`, `to`. All other operations stand on these. */

import type { CopyKernel } from '../kernels/table/table.js'
import { currentKernels } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import type { TypedArray } from '../values/dtype.js'
import { DTYPES, type DType, isDType } from '../values/dtype.js'
import { dtypeMismatch } from '../values/errors.js'

export function copyKernel(dtype: DType): CopyKernel<TypedArray> {
  return currentKernels().copy[dtype] as CopyKernel<TypedArray>
}

/** A new contiguous tensor of `dtype`. */
function copyAs(x: Tensor, dtype: DType): Tensor {
  const out = Tensor.uninitialized(dtype, x.shape)
  const kernel = copyKernel(dtype)
  if (x.isContiguous) kernel.flat(x.numel, x.storage.host, x.offset, out.storage.host, 0)
  else kernel.strided(x.shape, x.storage.host, x.offset, x.strides, out.storage.host, 0, out.strides)
  return out
}

export function clone(x: Tensor): Tensor {
  return copyAs(x, x.dtype)
}

export function contiguous(x: Tensor): Tensor {
  return x.isContiguous ? x : copyAs(x, x.dtype)
}

/** float → int32 truncates, → bool is `x != 0`. @throws DTYPE_MISMATCH for an unknown dtype */
export function to(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x
  if (!isDType(dtype)) throw dtypeMismatch('to', `one of ${DTYPES.join(', ')}`, String(dtype), 'Pass one of these names.')
  return copyAs(x, dtype)
}
