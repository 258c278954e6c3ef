/** Element-wise functions of one tensor, beyond those of `elementwise.ts`: roundings, logarithms, trigonometry, activations. */

import type { UnaryOp } from '../kernels/table/table.js'
import type { GeluOptions, SoftplusOptions } from '../ops/ops.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'
import { clone, to } from './copy.js'
import { mul, notOnBool, realUnary, unaryKernel } from './elementwise.js'

/** Integers are what they round to. */
function rounding(op: UnaryOp, x: Tensor): Tensor {
  notOnBool(op, x)
  return isFloating(x.dtype) ? unaryKernel(op, x, 0, 0) : clone(x)
}

export const floor = (x: Tensor): Tensor => rounding('floor', x)
export const ceil = (x: Tensor): Tensor => rounding('ceil', x)
export const round = (x: Tensor): Tensor => rounding('round', x)
export const trunc = (x: Tensor): Tensor => rounding('trunc', x)

export const reciprocal = (x: Tensor): Tensor => realUnary('reciprocal', x)
export const rsqrt = (x: Tensor): Tensor => realUnary('rsqrt', x)
export const log1p = (x: Tensor): Tensor => realUnary('log1p', x)
export const expm1 = (x: Tensor): Tensor => realUnary('expm1', x)
export const log2 = (x: Tensor): Tensor => realUnary('log2', x)
export const log10 = (x: Tensor): Tensor => realUnary('log10', x)
export const exp2 = (x: Tensor): Tensor => realUnary('exp2', x)
export const tan = (x: Tensor): Tensor => realUnary('tan', x)
export const sinh = (x: Tensor): Tensor => realUnary('sinh', x)
export const cosh = (x: Tensor): Tensor => realUnary('cosh', x)
export const asin = (x: Tensor): Tensor => realUnary('asin', x)
export const acos = (x: Tensor): Tensor => realUnary('acos', x)
export const atan = (x: Tensor): Tensor => realUnary('atan', x)
export const erf = (x: Tensor): Tensor => realUnary('erf', x)

/** x · x; of bool an int32. */
export function square(x: Tensor): Tensor {
  const factor = x.dtype === 'bool' ? to(x, 'int32') : x
  return mul(factor, factor)
}

/** PyTorch has activations for real numbers alone. */
function activation(op: UnaryOp, name: string, x: Tensor, p0: number, p1: number): Tensor {
  if (!isFloating(x.dtype)) throw dtypeMismatch(name, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
  // As PyTorch, which computes with parameters of the tensor's dtype.
  return x.dtype === 'float32' ? unaryKernel(op, x, Math.fround(p0), Math.fround(p1)) : unaryKernel(op, x, p0, p1)
}

function checkNumber(op: string, what: string, value: unknown): void {
  if (typeof value !== 'number') throw invalidArgument(op, `a number as ${what}`, value === null ? 'null' : typeof value)
}

/** @throws DTYPE_MISMATCH for int32 and bool, as all activations; INVALID_ARGUMENT */
export function leakyRelu(x: Tensor, negativeSlope = 0.01): Tensor {
  checkNumber('leakyRelu', 'negativeSlope', negativeSlope)
  return activation('leakyRelu', 'leakyRelu', x, negativeSlope, 0)
}

export function elu(x: Tensor, alpha = 1): Tensor {
  checkNumber('elu', 'alpha', alpha)
  return activation('elu', 'elu', x, alpha, 0)
}

export const silu = (x: Tensor): Tensor => activation('silu', 'silu', x, 0, 0)

export function gelu(x: Tensor, options?: GeluOptions): Tensor {
  return activation(approximates(options) ? 'geluTanh' : 'gelu', 'gelu', x, 0, 0)
}

/** Whether gelu is to use tanh. @throws INVALID_ARGUMENT */
export function approximates(options: GeluOptions | undefined): boolean {
  const approximate = options?.approximate ?? 'none'
  if (approximate !== 'none' && approximate !== 'tanh') throw invalidArgument('gelu', "'none' or 'tanh' as approximate", approximate)
  return approximate === 'tanh'
}

export function softplus(x: Tensor, { beta = 1, threshold = 20 }: SoftplusOptions = {}): Tensor {
  checkNumber('softplus', 'beta', beta)
  checkNumber('softplus', 'threshold', threshold)
  return activation('softplus', 'softplus', x, beta, threshold)
}
