/** Copies and conversions: `contiguous`, `clone`, `to`. All other operations stand on these. */

import { currentKernels } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { DTYPES, type DType, isDType } from '../values/dtype.js'
import { dtypeMismatch } from '../values/errors.js'

/** A new contiguous tensor of `dtype`. */
function copyAs(x: Tensor, dtype: DType): Tensor {
  const out = Tensor.uninitialized(dtype, x.shape)
  currentKernels().copy[dtype](x, out)
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
