/** Rows of the table of derivatives (`derivatives.ts`): activations. Their slopes have kernels; `composed.ts` has them as compositions. */
import type { Tensor } from '@postgrad/tensor'
import type { ActivationOps } from '@postgrad/tensor/internal'
import { ofTensor, type UnaryRows } from '../graph/formula.js'

export const activations: UnaryRows<ActivationOps<Tensor>> = {
  // g where a > 0, else g · slope
  leakyRelu: { a: ofTensor(['a'], (g, s, ops) => ops.leakyReluBackward(g, s.a, s.attrs[0] ?? 0.01)) },
  // g (Φ(a) + a φ(a)), or the derivative of the approximation
  gelu: { a: ofTensor(['a'], (g, s, ops) => ops.geluBackward(g, s.a, s.attrs[0])) },
  // g σ (1 + a (1 − σ))
  silu: { a: ofTensor(['a'], (g, s, ops) => ops.siluBackward(g, s.a)) },
  // g σ(beta a); g above the threshold
  softplus: { a: ofTensor(['a'], (g, s, ops) => ops.softplusBackward(g, s.a, s.attrs[0])) },
  // g where a > 0, else g · alpha · eᵃ
  elu: { a: ofTensor(['a'], (g, s, ops) => ops.eluBackward(g, s.a, s.attrs[0] ?? 1)) },
}
