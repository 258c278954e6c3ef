/** Activations that are a few other operations. */
import type { ActivationCompositeOps, Ops } from '../ops/ops.js'
import type { Tensor } from '../tensor/tensor.js'

/** softplus(x) is x beyond this, in float64 too: e⁻⁴⁰ < 2⁻⁵³. */
export const SOFTPLUS_EXACT = 40

export function activationComposites(ops: Ops<Tensor>): ActivationCompositeOps<Tensor> {
  return {
    // By conditions and not by clamp, whose gradient is 1 at the bounds; NaN meets neither condition and stays.
    hardtanh: (x, min = -1, max = 1) => ops.where(ops.le(x, min), min, ops.where(ops.ge(x, max), max, x)),
    relu6: (x) => ops.hardtanh(x, 0, 6),
    // −log(1 + exp(−x)): without the kinks of |x| and min, so that second derivatives are right at 0 too.
    logSigmoid: (x) => ops.sub(0, ops.softplus(ops.neg(x), { threshold: SOFTPLUS_EXACT })),
    mish: (x) => ops.mul(x, ops.tanh(ops.softplus(x))),
    softsign: (x) => ops.div(x, ops.add(ops.abs(x), 1)),
    tanhshrink: (x) => ops.sub(x, ops.tanh(x)),
  }
}
