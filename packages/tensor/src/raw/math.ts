/** Element-wise functions of one tensor, beyond those of `elementwise.ts`: roundings, logarithms, trigonometry, activations. */

import type { UnaryOp } from '../kernels/table/table.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'
import { clone } from './copy.js'
import { notOnBool, unaryKernel } from './elementwise.js'

/** Integers are what they round to. */
export function rounding(op: UnaryOp, x: Tensor): Tensor {
  notOnBool(op, x)
  return isFloating(x.dtype) ? unaryKernel(op, x, 0, 0) : clone(x)
}

/** PyTorch has activations for real numbers alone. @throws DTYPE_MISMATCH, INVALID_ARGUMENT for a parameter that is no number */
export function activation(op: UnaryOp, name: string, x: Tensor, p0: number, p1: number): Tensor {
  if (!isFloating(x.dtype)) throw dtypeMismatch(name, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
  // As PyTorch, which computes with parameters of the tensor's dtype.
  return x.dtype === 'float32' ? unaryKernel(op, x, Math.fround(p0), Math.fround(p1)) : unaryKernel(op, x, p0, p1)
}

export function checkNumber(op: string, what: string, value: unknown): void {
  if (typeof value !== 'number') throw invalidArgument(op, `a number as ${what}`, value === null ? 'null' : typeof value)
}
