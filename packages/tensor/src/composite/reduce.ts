/** Reductions that are a few other operations. */

import type { DimsArg, Ops } from '../ops/ops.js'
import type { ReduceCompositeOps, ValuesAndIndices } from '../ops/ops-reduce.js'
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import { normalizeDim } from '../values/shape.js'

export function reduceComposites(ops: Ops<Tensor>): ReduceCompositeOps<Tensor> {
  type Extreme = ReduceCompositeOps<Tensor>['max']
  /** The values at `indices`, which keep the dimension. */
  const at = (x: Tensor, dim: number, indices: Tensor, keepdim: boolean): ValuesAndIndices<Tensor> => {
    const values = ops.gather(x, dim, indices)
    return keepdim || x.ndim === 0 ? { values, indices } : { values: ops.squeeze(values, dim), indices: ops.squeeze(indices, dim) }
  }
  const max = (x: Tensor, dim?: number, keepdim = false) =>
    dim === undefined ? ops.amax(x) : at(x, dim, ops.argmax(x, dim, true), keepdim)
  const min = (x: Tensor, dim?: number, keepdim = false) =>
    dim === undefined ? ops.amin(x) : at(x, dim, ops.argmin(x, dim, true), keepdim)
  const ofNothing = (x: Tensor, dims?: DimsArg, keepdim?: boolean) => ops.to(ops.sum(ops.to(x, 'float32'), dims, keepdim), 'bool')
  return {
    max: max as Extreme,
    min: min as Extreme,
    sort: (x, dim = -1, options) => at(x, dim, ops.argsort(x, dim, options), true),
    topk(x, k, dim = -1, { largest = true } = {}) {
      const d = normalizeDim('topk', dim, x.ndim)
      const extent = x.ndim === 0 ? 1 : x.shape[d]!
      if (!Number.isInteger(k) || k < 0 || k > extent)
        throw invalidArgument('topk', `k from 0 to ${extent}, the extent of dimension ${d}`, k)
      const order = ops.argsort(x, d, { descending: largest })
      return at(x, d, x.ndim === 0 ? order : ops.narrow(order, d, 0, k), true)
    },
    varMean: (x, dims, keepdim, options) => [ops.var(x, dims, keepdim, options), ops.mean(x, dims, keepdim)],
    // By an extreme, which every device has of bool; over nothing, where that would refuse, by a sum.
    any: (x, dims, keepdim) => (x.numel === 0 ? ofNothing(x, dims, keepdim) : ops.amax(ops.to(x, 'bool'), dims, keepdim)),
    all: (x, dims, keepdim) => (x.numel === 0 ? ops.logicalNot(ofNothing(x, dims, keepdim)) : ops.amin(ops.to(x, 'bool'), dims, keepdim)),
    countNonzero: (x, dims) => ops.sum(ops.to(x, 'bool'), dims),
  }
}
