/** Division that rounds its result: what `div` does with a roundingMode, over raw and over recorded operations. */

import type { Ops } from '../ops/ops.js'
import type { DivOptions } from '../ops/ops-arithmetic.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { invalidArgument } from '../values/errors.js'

type Operand = Tensor | number
const whole = (x: Operand): boolean => (typeof x === 'number' ? Number.isInteger(x) : !isFloating(x.dtype))

/** @throws INVALID_ARGUMENT for an unknown roundingMode */
export function roundedDivision(
  ops: Pick<Ops<Tensor>, 'floorDivide' | 'to'> & { div(a: Operand, b: Operand): Tensor; truncDivide(a: Operand, b: Operand): Tensor },
  a: Operand,
  b: Operand,
  { roundingMode }: DivOptions,
): Tensor {
  if (roundingMode === undefined || roundingMode === null) return ops.div(a, b)
  if (roundingMode === 'floor') return ops.floorDivide(a, b)
  if (roundingMode !== 'trunc') throw invalidArgument('div', "'floor' or 'trunc' as roundingMode", String(roundingMode))
  if (!(whole(a) && whole(b))) return ops.truncDivide(a, b)
  // Quotients of 32-bit integers are right in double; the conversion truncates.
  const wide = (x: Operand): Operand => (typeof x === 'number' ? x : ops.to(x, 'float64'))
  return ops.to(ops.div(wide(a), wide(b)), 'int32')
}
