/** Rows of the table of derivatives (`derivatives.ts`): activations. g is the gradient of the result, σ the sigmoid, Φ and φ the normal distribution. */
import type { Tensor } from '@postgrad/tensor'
import type { ActivationOps } from '@postgrad/tensor/internal'
import { ofTensor, type TensorOps, type UnaryRows } from './formula.js'

export const activations: UnaryRows<ActivationOps<Tensor>> = {
  // g where a > 0, else g · slope
  leakyRelu: { a: ofTensor(['a'], (g, s, ops) => ops.where(ops.gt(s.a, 0), g, ops.mul(g, s.attrs[0] ?? 0.01))) },
  // g (Φ(a) + a φ(a)), or the derivative of the approximation
  gelu: {
    a: ofTensor(['a'], (g, s, ops) => ops.mul(g, s.attrs[0]?.approximate === 'tanh' ? geluTanhSlope(s.a, ops) : geluSlope(s.a, ops))),
  },
  // g σ (1 + a (1 − σ))
  silu: {
    a: ofTensor(['a'], (g, s, ops) => {
      const sigmoid = ops.sigmoid(s.a)
      return ops.mul(g, ops.mul(sigmoid, ops.add(ops.mul(s.a, ops.sub(1, sigmoid)), 1)))
    }),
  },
  // g σ(beta a); g above the threshold
  softplus: {
    a: ofTensor(['a'], (g, s, ops) => {
      const { beta = 1, threshold = 20 } = s.attrs[0] ?? {}
      const scaled = ops.mul(s.a, beta)
      return ops.where(ops.gt(scaled, threshold), g, ops.mul(g, ops.sigmoid(scaled)))
    }),
  },
  // g where a > 0, else g · alpha · eᵃ
  elu: { a: ofTensor(['a'], (g, s, ops) => ops.where(ops.gt(s.a, 0), g, ops.mul(g, ops.mul(ops.exp(s.a), s.attrs[0] ?? 1)))) },
}

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
