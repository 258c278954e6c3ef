/** Functions of two tensors beyond those of `elementwise.ts`; they broadcast and promote as those do. */

import type { BinaryOp } from '../kernels/table/table.js'
import type { Tensor } from '../tensor/tensor.js'
import { dtypeMismatch } from '../values/errors.js'
import { binary } from './elementwise.js'

export type Operand = Tensor | number

/** @throws DTYPE_MISMATCH when both sides are bool: PyTorch has no such function of it */
export function numeric(op: BinaryOp, name: string, a: Operand, b: Operand): Tensor {
  if (typeof a === 'object' && typeof b === 'object' && a?.dtype === 'bool' && b?.dtype === 'bool') {
    throw dtypeMismatch(name, 'numbers', 'bool', "Convert with to('int32') or to('float32') first.")
  }
  return binary(op, a, b, false, false)
}
