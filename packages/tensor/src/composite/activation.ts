/** Activations that are a few other operations. */
import type { ActivationCompositeOps, Ops } from '../ops.js'
import type { Tensor } from '../tensor.js'

export function activationComposites(ops: Ops<Tensor>): ActivationCompositeOps<Tensor> {
  return {
    // By conditions and not by clamp, whose gradient is 1 at the bounds; NaN meets neither condition and stays.
    hardtanh: (x, min = -1, max = 1) => ops.where(ops.le(x, min), min, ops.where(ops.ge(x, max), max, x)),
    relu6: (x) => ops.hardtanh(x, 0, 6),
    // min(x, 0) − log(1 + exp(−|x|)): the exponential cannot overflow.
    logSigmoid: (x) => ops.sub(ops.minimum(x, 0), ops.log1p(ops.exp(ops.neg(ops.abs(x))))),
    mish: (x) => ops.mul(x, ops.tanh(ops.softplus(x))),
    softsign: (x) => ops.div(x, ops.add(ops.abs(x), 1)),
    tanhshrink: (x) => ops.sub(x, ops.tanh(x)),
  }
}
