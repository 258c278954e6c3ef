/** Losses whose gradient is none of their operations': it is bounded where theirs is 0 · ∞. */
import type { Tensor } from '../../tensor/tensor.js'
import { add, clamp, log, mul, neg, sub } from '../elementwise.js'

/** log of a probability is cut off here, as PyTorch does, so that 0 · log 0 is 0. */
const LOG_MIN = -100

/** −t log p − (1 − t) log(1 − p), element by element. */
export function binaryCrossEntropy(p: Tensor, target: Tensor): Tensor {
  const bounded = (x: Tensor): Tensor => clamp(log(x), LOG_MIN)
  return neg(add(mul(target, bounded(p)), mul(sub(1, target), bounded(sub(1, p)))))
}
