/** Reductions that are a few other operations. */
import type { Ops } from '../ops.js'
import type { ReduceCompositeOps } from '../ops-reduce.js'
import type { Tensor } from '../tensor.js'

export function reduceComposites(ops: Ops<Tensor>): ReduceCompositeOps<Tensor> {
  return {
    varMean: (x, dims, keepdim, options) => [ops.var(x, dims, keepdim, options), ops.mean(x, dims, keepdim)],
    // By a sum, which over nothing is 0 where a maximum would refuse.
    any: (x, dims, keepdim) => ops.to(ops.sum(ops.to(x, 'bool'), dims, keepdim), 'bool'),
    all: (x, dims, keepdim) => ops.logicalNot(ops.any(ops.logicalNot(x), dims, keepdim)),
    countNonzero: (x, dims) => ops.sum(ops.to(x, 'bool'), dims),
  }
}
