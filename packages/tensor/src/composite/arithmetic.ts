/** Arithmetic and comparisons of several tensors that are a few other operations. */

import type { Ops } from '../ops/ops.js'
import type { ArithmeticCompositeOps, ValueOptions } from '../ops/ops-arithmetic.js'
import { promoteAll } from '../raw/promotion.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch } from '../values/errors.js'
import { sameShape } from '../values/shape.js'

export function arithmeticComposites(ops: Ops<Tensor>): ArithmeticCompositeOps<Tensor> {
  const scaled = (x: Tensor, { value = 1 }: ValueOptions = {}) => (value === 1 ? x : ops.mul(x, value))
  /** In the dtype of the result, before the first of them loses digits. Integers are left to the operations. */
  const together = (...tensors: [Tensor, Tensor, Tensor]): [Tensor, Tensor, Tensor] => {
    const dtype = promoteAll(tensors)
    return isFloating(dtype) ? (tensors.map((t) => ops.to(t, dtype)) as [Tensor, Tensor, Tensor]) : tensors
  }
  return {
    lerp(a, b, weight) {
      const way = ops.sub(b, a)
      // From the nearer end, as PyTorch: so that weight 1 gives b exactly.
      if (typeof weight === 'number') return weight < 0.5 ? ops.add(a, ops.mul(way, weight)) : ops.sub(b, ops.mul(way, 1 - weight))
      // One product for both ends: the gradient of one that is not chosen would be 0 · ∞.
      const near = ops.lt(ops.abs(weight), 0.5)
      return ops.add(ops.where(near, a, b), ops.mul(way, ops.where(near, weight, ops.sub(weight, 1))))
    },
    addcmul(x, a, b, options) {
      const [p, q, r] = together(x, a, b)
      return ops.add(p, ops.mul(scaled(q, options), r))
    },
    addcdiv(x, a, b, options) {
      const [p, q, r] = together(x, a, b)
      return ops.add(p, ops.div(scaled(q, options), r))
    },
    bitwiseNot(x) {
      if (isFloating(x.dtype)) throw dtypeMismatch('bitwiseNot', 'int32 or bool', x.dtype, "Convert with to('int32') first.")
      return x.dtype === 'bool' ? ops.logicalNot(x) : ops.bitwiseXor(x, -1)
    },
    isclose(a, b, { rtol = 1e-5, atol = 1e-8, equalNan = false } = {}) {
      const same = ops.eq(a, b)
      const close = equalNan ? ops.logicalOr(same, ops.logicalAnd(ops.isNaN(a), ops.isNaN(b))) : same
      if (a.dtype === 'bool' && b.dtype === 'bool') return close
      const allowed = ops.add(ops.mul(ops.abs(isFloating(b.dtype) ? b : ops.to(b, 'float32')), rtol), atol)
      const distance = ops.abs(ops.sub(isFloating(a.dtype) ? a : ops.to(a, 'float32'), b))
      return ops.logicalOr(close, ops.logicalAnd(ops.isFinite(distance), ops.le(distance, allowed)))
    },
    allclose: (a, b, options) => ops.all(ops.isclose(a, b, options)).itemSync() !== 0,
    equal: (a, b) => sameShape(a.shape, b.shape) && ops.all(ops.eq(a, b)).itemSync() !== 0,
  }
}

/** `bound` where x is below it; the gradient goes on as if it were not, as PyTorch has it where it bounds without recording. */
export function atLeast(ops: Pick<Ops<Tensor>, 'where' | 'lt' | 'add' | 'sub'>, x: Tensor, bound: number): Tensor {
  const held = x.requiresGrad ? x.detach() : x
  return ops.where(ops.lt(held, bound), ops.add(ops.sub(x, held), bound), x)
}
