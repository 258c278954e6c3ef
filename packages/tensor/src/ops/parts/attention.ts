/** Attention out of operations: where no kernel does it in one pass, for `ops/neural.ts` and `ops/inner/attention.ts`. */
import { arange } from '../../tensor/create.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { Ops } from '../define/define.js'

/** The shares of the values, […, L, S], of `scaled` queries […, L, E] and keys […, S, E]. */
export function sharesOf(ops: Ops, scaled: Tensor, key: Tensor, mask: Tensor | null, isCausal: boolean): Tensor {
  const scores = ops.matmul(scaled, ops.transpose(key, -2, -1))
  const limits = limitsOf(ops, scaled, key, mask, isCausal)
  if (limits === null) return ops.softmax(scores, -1)
  return ops.softmax(limits.dtype === 'bool' ? ops.where(limits, scores, Number.NEGATIVE_INFINITY) : ops.add(scores, limits), -1)
}

/** The keys that the queries see: true where they do, or numbers that are added; null: all. */
export function limitsOf(ops: Ops, queries: Tensor, key: Tensor, mask: Tensor | null, isCausal: boolean): Tensor | null {
  return isCausal ? causal(ops, queries, key.shape.at(-2)!) : mask
}

function causal(ops: Ops, { shape, device }: Tensor, keys: number): Tensor {
  // In float32, which every device compares.
  return ops.ge(ops.unsqueeze(arange(shape.at(-2)!, { device }), 1), arange(keys, { device }))
}
