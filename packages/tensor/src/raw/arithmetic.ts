/** Functions of two tensors beyond those of `elementwise.ts`; they broadcast and promote as those do. */

import type { BinaryOp } from '../kernels/table/table.js'
import type { DivOptions } from '../ops/ops-arithmetic.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'
import { to } from './copy.js'
import { roundedDivision } from './division.js'
import * as elementwise from './elementwise.js'
import { binary, powNumber } from './elementwise.js'
import { trunc } from './math.js'

type Operand = Tensor | number

/** @throws DTYPE_MISMATCH when both sides are bool: PyTorch has no such function of it */
function numeric(op: BinaryOp, name: string, a: Operand, b: Operand): Tensor {
  if (typeof a === 'object' && typeof b === 'object' && a?.dtype === 'bool' && b?.dtype === 'bool') {
    throw dtypeMismatch(name, 'numbers', 'bool', "Convert with to('int32') or to('float32') first.")
  }
  return binary(op, a, b, false, false)
}

/** aᵇ. @throws INVALID_ARGUMENT for a negative number as the exponent of integers, DTYPE_MISMATCH for two bools, SHAPE_MISMATCH */
export function pow(a: Operand, b: Operand): Tensor {
  return typeof a === 'object' && typeof b === 'number' ? powNumber(a, b) : numeric('power', 'pow', a, b)
}

/** With the sign of b. @throws DTYPE_MISMATCH for two bools, SHAPE_MISMATCH; as the next ones */
export const remainder = (a: Operand, b: Operand): Tensor => numeric('remainder', 'remainder', a, b)
/** With the sign of a. */
export const fmod = (a: Operand, b: Operand): Tensor => numeric('fmod', 'fmod', a, b)
export const floorDivide = (a: Operand, b: Operand): Tensor => numeric('floorDivide', 'floorDivide', a, b)
export const atan2 = (a: Tensor, b: Tensor): Tensor => binary('atan2', a, b, false, true)

/** Of real numbers, towards 0. */
export const truncDivide = (a: Operand, b: Operand): Tensor => trunc(elementwise.div(a, b))

/** @throws INVALID_ARGUMENT for an unknown roundingMode */
export function div(a: Operand, b: Operand, options?: DivOptions): Tensor {
  return options === undefined
    ? elementwise.div(a, b)
    : roundedDivision({ div: elementwise.div, floorDivide, truncDivide, to }, a, b, options)
}

function bitwise(op: 'bitwiseAnd' | 'bitwiseOr' | 'bitwiseXor', a: Operand, b: Operand): Tensor {
  for (const x of [a, b]) {
    if (typeof x === 'object' && isFloating(x.dtype)) throw dtypeMismatch(op, 'int32 or bool', x.dtype, "Convert with to('int32') first.")
    if (typeof x === 'number' && !Number.isInteger(x)) throw invalidArgument(op, 'an integer', x)
  }
  return binary(op, a, b, false, false)
}

/** @throws DTYPE_MISMATCH for real numbers, INVALID_ARGUMENT for a number that is no integer; as the others */
export const bitwiseAnd = (a: Operand, b: Operand): Tensor => bitwise('bitwiseAnd', a, b)
export const bitwiseOr = (a: Operand, b: Operand): Tensor => bitwise('bitwiseOr', a, b)
export const bitwiseXor = (a: Operand, b: Operand): Tensor => bitwise('bitwiseXor', a, b)
