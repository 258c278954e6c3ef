/** Questions about elements, and their combinations: comparisons and arithmetic of bool (where a product is and, a sum is or). */

import type { LogicOps, Ops } from '../ops/ops.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'

/** The largest finite number of each dtype. */
const LARGEST = { float32: (2 - 2 ** -23) * 2 ** 127, float64: Number.MAX_VALUE, int32: 2 ** 31 - 1, bool: 1 } as const

export function logicComposites(ops: Ops<Tensor>): LogicOps<Tensor> {
  const truth = (x: Tensor) => ops.to(x, 'bool')
  const none = (x: Tensor) => Tensor.empty('bool', x.shape, x.storage.memory)
  return {
    isNaN: (x) => (isFloating(x.dtype) ? ops.ne(x, x) : none(x)),
    isInf: (x) => (isFloating(x.dtype) ? ops.eq(ops.abs(x), Number.POSITIVE_INFINITY) : none(x)),
    isFinite: (x) => (isFloating(x.dtype) ? ops.lt(ops.abs(x), Number.POSITIVE_INFINITY) : ops.logicalNot(none(x))),
    nanToNum(x, { nan = 0, posinf, neginf } = {}) {
      if (!isFloating(x.dtype)) return ops.clone(x)
      const largest = LARGEST[x.dtype]
      const bounded = ops.where(
        ops.eq(x, Number.POSITIVE_INFINITY),
        posinf ?? largest,
        ops.where(ops.eq(x, Number.NEGATIVE_INFINITY), neginf ?? -largest, x),
      )
      return ops.where(ops.isNaN(x), nan, bounded)
    },
    // Beside the number 0 a bool would become an integer, which not every device compares.
    logicalNot: (x) => ops.eq(truth(x), Tensor.empty('bool', [], x.storage.memory)),
    logicalAnd: (a, b) => ops.mul(truth(a), truth(b)),
    logicalOr: (a, b) => ops.add(truth(a), truth(b)),
    logicalXor: (a, b) => ops.ne(truth(a), truth(b)),
  }
}
