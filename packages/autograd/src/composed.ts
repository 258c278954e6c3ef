/**
 * Derivatives that have a kernel of their own (tensor's `ops-derivative.ts`), composed of recorded operations: what formulas call under
 * createGraph, where the derivative is to be differentiated again. They hold more in memory than the kernels.
 */
import { arange, type Tensor } from '@postgrad/tensor'
import type { DerivativeOps } from '@postgrad/tensor/internal'
import type { TensorOps } from './formula.js'

/** @param recorded all recorded operations; called late, since it is made of these */
export function composedDerivatives(recorded: () => TensorOps): DerivativeOps<Tensor> {
  /** x […, k] as […, k, k]: row i is x with a 1 in the place of its element i. */
  const withoutEach = (x: Tensor): Tensor => {
    const ops = recorded()
    const k = x.shape.at(-1)!
    const index = arange(0, k, 1, { dtype: 'int32' })
    return ops.where(ops.eq(ops.unsqueeze(index, 1), index), 1, ops.unsqueeze(x, -2))
  }
  return {
    prodBackward(g, x, dim) {
      const ops = recorded()
      if (dim === undefined || x.ndim === 0) {
        return ops.reshape(ops.mul(ops.prod(withoutEach(ops.reshape(x, [-1])), -1), ops.reshape(g, [])), x.shape)
      }
      const last = ops.transpose(x, dim, -1)
      const others = ops.prod(withoutEach(last), -1)
      // g has lost `dim`, or keeps it as 1: give it back before the dimensions change places.
      const kept = ops.reshape(g, x.shape.with(dim, 1))
      return ops.transpose(ops.mul(others, ops.transpose(kept, dim, -1)), dim, -1)
    },
    cumprodBackward(g, x, dim) {
      const ops = recorded()
      if (x.ndim === 0) return g
      const last = ops.transpose(x, dim, -1)
      const index = arange(0, last.shape.at(-1)!, 1, { dtype: 'int32' })
      // [i, j]: the product of the elements 0 … j without element i, which stands in result j if i ≤ j.
      const partial = ops.mul(ops.cumprod(withoutEach(last), -1), ops.unsqueeze(ops.transpose(g, dim, -1), -2))
      const sums = ops.sum(ops.where(ops.le(ops.unsqueeze(index, 1), index), partial, 0), -1)
      return ops.transpose(sums, dim, -1)
    },
  }
}
