/**
 * Derivatives that have a kernel of their own, since it is faster or safer than what they are made of. Under createGraph they are compositions of recorded operations
 * instead, which can be differentiated again, and hold more in memory. g is the gradient of an operation's result, v its argument or its result.
 */
import { gradientRows } from '../../raw/derivative.js'
import type { Tensor } from '../../tensor/tensor.js'
import { type Ops, rawOperations } from '../define/define.js'
import type { Formula } from '../define/formula.js'

/** @param reads whether v is the operation's argument or its result */
export function slope<Attrs>(
  reads: 'a' | 'result',
  kernel: (g: Tensor, v: Tensor, attrs: Attrs) => Tensor,
  again: (g: Tensor, v: Tensor, ops: Ops, attrs: Attrs) => Tensor,
): Formula<Attrs> {
  return {
    reads: [reads],
    grad: (g, s, ops) => (ops === rawOperations ? kernel(g, s[reads] as Tensor, s.attrs) : again(g, s[reads] as Tensor, ops, s.attrs)),
  }
}

/** Of logSoftmax, y its result: g − eʸ Σ g. */
export function logSoftmaxSlope(g: Tensor, y: Tensor, dim: number, ops: Ops): Tensor {
  if (ops === rawOperations) return gradientRows('logSoftmaxBackward', g, y, dim)
  return ops.sub(g, ops.mul(ops.exp(y), ops.sum(g, dim, true)))
}
