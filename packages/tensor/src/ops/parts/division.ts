/** Division that rounds its result, for `div` with a roundingMode, over raw and over recorded operations. */

import type { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { invalidArgument } from '../../values/errors.js'
import type { DivOptions } from '../../values/options.js'
import type { Ops } from '../define/define.js'

type Operand = Tensor | number
const whole = (x: Operand): boolean => (typeof x === 'number' ? Number.isInteger(x) : !isFloating(x.dtype))

/** @throws INVALID_ARGUMENT for an unknown roundingMode */
export function roundedDivision(ops: Ops, a: Operand, b: Operand, { roundingMode }: DivOptions): Tensor {
  if (roundingMode === undefined || roundingMode === null) return ops.trueDivide(a, b)
  if (roundingMode === 'floor') return ops.floorDivide(a, b)
  if (roundingMode !== 'trunc') throw invalidArgument('div', "'floor' or 'trunc' as roundingMode", String(roundingMode))
  if (!(whole(a) && whole(b))) return ops.truncDivide(a, b)
  // Quotients of 32-bit integers are right in double; the conversion truncates.
  const wide = (x: Operand): Operand => (typeof x === 'number' ? x : ops.to(x, 'float64'))
  return ops.to(ops.trueDivide(wide(a), wide(b)), 'int32')
}
