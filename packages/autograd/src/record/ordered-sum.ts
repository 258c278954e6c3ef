/**
 * The sum of gradients that no order of the program tells apart, as a recorded operation: one node, to which all of them are equal. Sums of two at a time would give them depths by the order
 * in which they arrived, and a pass over this graph would see that (Note [Causal order] in `input-order.ts`).
 */
import { rawOperations, rawOrderedSum } from '@postgrad/tensor/internal'
import { recordList } from './record.js'

/** `orderedSum(tensors, leading)`: the first `leading` (0 or 1) as they are, then the others in the order of the bits of each element. */
export const orderedSum = recordList('orderedSum', rawOrderedSum, { each: (g) => g }, () => rawOperations)
