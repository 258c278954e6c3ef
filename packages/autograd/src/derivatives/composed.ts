/**
 * Derivatives that have a kernel of their own (tensor's `ops-derivative.ts`), composed of recorded operations: what formulas call under
 * createGraph, where the derivative is to be differentiated again. They hold more in memory than the kernels.
 */
import { arange, type Tensor } from '@postgrad/tensor'
import type { DerivativeOps } from '@postgrad/tensor/internal'
import type { TensorOps } from '../graph/formula.js'

/** @param recorded all recorded operations; called late, since it is made of these */
export function composedDerivatives(recorded: () => TensorOps): DerivativeOps<Tensor> {
  /** x […, k] as […, k, k]: row i is x with a 1 in the place of its element i. */
  const withoutEach = (x: Tensor): Tensor => {
    const ops = recorded()
    const k = x.shape.at(-1)!
    const index = arange(0, k, 1, { dtype: 'int32', device: x.device })
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
      const index = arange(0, last.shape.at(-1)!, 1, { dtype: 'int32', device: x.device })
      // [i, j]: the product of the elements 0 … j without element i, which stands in result j if i ≤ j.
      const partial = ops.mul(ops.cumprod(withoutEach(last), -1), ops.unsqueeze(ops.transpose(g, dim, -1), -2))
      const sums = ops.sum(ops.where(ops.le(ops.unsqueeze(index, 1), index), partial, 0), -1)
      return ops.transpose(sums, dim, -1)
    },
    // g, but 0 where y ≤ 0
    reluBackward(g, y) {
      const ops = recorded()
      return ops.where(ops.le(y, 0), 0, g)
    },
    // g (1 − y²)
    tanhBackward(g, y) {
      const ops = recorded()
      return ops.mul(g, ops.sub(1, ops.mul(y, y)))
    },
    // g y (1 − y)
    sigmoidBackward(g, y) {
      const ops = recorded()
      return ops.mul(g, ops.mul(y, ops.sub(1, y)))
    },
    leakyReluBackward(g, x, slope) {
      const ops = recorded()
      return ops.where(ops.gt(x, 0), g, ops.mul(g, slope))
    },
    eluBackward(g, x, alpha) {
      const ops = recorded()
      // At the kink itself the next derivative is 0, as in PyTorch.
      const negative = ops.where(ops.lt(x, 0), x, 0)
      return ops.where(ops.le(x, 0), ops.mul(g, ops.mul(ops.exp(negative), alpha)), g)
    },
    // g σ (1 + x (1 − σ))
    siluBackward(g, x) {
      const ops = recorded()
      const sigmoid = ops.sigmoid(x)
      return ops.mul(g, ops.mul(sigmoid, ops.add(ops.mul(x, ops.sub(1, sigmoid)), 1)))
    },
    geluBackward(g, x, options) {
      const ops = recorded()
      return ops.mul(g, options?.approximate === 'tanh' ? geluTanhSlope(x, ops) : geluSlope(x, ops))
    },
    softplusBackward(g, x, { beta = 1, threshold = 20 } = {}) {
      const ops = recorded()
      const scaled = ops.mul(x, beta)
      // At the threshold itself the next derivative is 0, as in PyTorch.
      const below = ops.where(ops.ge(scaled, threshold), threshold, scaled)
      return ops.where(ops.gt(scaled, threshold), g, ops.mul(g, ops.sigmoid(below)))
    },
    // y (g − Σ g y)
    softmaxBackward(g, y, dim) {
      const ops = recorded()
      return ops.mul(y, ops.sub(g, ops.sum(ops.mul(g, y), dim, true)))
    },
    // g − eʸ Σ g
    logSoftmaxBackward(g, y, dim) {
      const ops = recorded()
      return ops.sub(g, ops.mul(ops.exp(y), ops.sum(g, dim, true)))
    },
  }
}

/** Φ(a) + a φ(a), of the normal distribution. */
function geluSlope(a: Tensor, ops: TensorOps): Tensor {
  const cdf = ops.mul(ops.add(ops.erf(ops.mul(a, Math.SQRT1_2)), 1), 0.5)
  const pdf = ops.mul(ops.exp(ops.mul(ops.mul(a, a), -0.5)), 1 / Math.sqrt(2 * Math.PI))
  return ops.add(cdf, ops.mul(a, pdf))
}

/** With u = √(2/π) (a + 0.044715 a³): (1 + tanh u) / 2 + a (1 − tanh² u) u′ / 2. */
function geluTanhSlope(a: Tensor, ops: TensorOps): Tensor {
  const scale = Math.sqrt(2 / Math.PI)
  const squared = ops.mul(a, a)
  const tanh = ops.tanh(ops.mul(ops.mul(a, ops.add(ops.mul(squared, 0.044715), 1)), scale))
  const slope = ops.mul(ops.add(ops.mul(squared, 3 * 0.044715), 1), scale)
  const left = ops.add(tanh, 1)
  return ops.mul(ops.add(left, ops.mul(ops.mul(a, ops.sub(1, ops.mul(tanh, tanh))), slope)), 0.5)
}
