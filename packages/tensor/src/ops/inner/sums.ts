/** The sum of gradients that have no order in the program. */
import { orderedSum as ordered } from '../../sparse/ordered-sum.js'
import type { Tensor } from '../../tensor/tensor.js'
import { type Functional, primitive } from '../define/define.js'

/**
 * The first `leading` (0 or 1) as they are, then the others in the order of the bits of each element. One node, to which all of them are equal: sums of two at a time would give
 * them depths by the order in which they arrived, and a pass over this graph would see that.
 */
export const orderedSum: Functional<(tensors: readonly Tensor[], leading?: number) => Tensor> = primitive('orderedSum', {
  raw: ordered,
  grad: { each: (g) => g },
})
