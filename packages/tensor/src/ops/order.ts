/** Operations that depend on the order of elements along a dimension: extremes with their places, sorting, running sums. */

import { arange } from '../tensor/create.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import type { ExtremeOf, SortOptions, TopkOptions, ValuesAndIndices } from '../values/options.js'
import { normalizeDim } from '../values/shape.js'
import { composite, type Ops, primitive, type WithInPlace } from './define/define.js'
import { formula } from './define/formula.js'
import { withoutEach } from './parts/common.js'
import { fibresAlong, scan } from './parts/fibres.js'
import { gradientRows, slope } from './parts/slopes.js'

/**
 * The largest of all elements; along `dim`, { values, indices } of the largest. NaN counts as the largest. Of several equal elements, `indices` names the
 * first. With `dim` that element gets the gradient; without `dim` equal elements share it. PyTorch: `torch.max`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 5], [7, 2]]).max(1) // { values: [5, 7], indices: [1, 0] }
 */
export const max: ExtremeOf<Tensor> = composite('max', {
  args: ['tensor', 'number?', 'boolean?'] as never,
  of: ((ops: Ops) =>
    (x: Tensor, dim?: number, keepdim = false) =>
      dim === undefined ? ops.amax(x) : valuesAt(ops, x, dim, ops.argmax(x, dim, true), keepdim)) as never,
})

/**
 * The smallest of all elements; along `dim`, { values, indices } of the smallest. NaN counts as the smallest. Of several equal elements, `indices` names the
 * first. With `dim` that element gets the gradient; without `dim` equal elements share it. PyTorch: `torch.min`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 5], [7, 2]]).min(0) // { values: [1, 2], indices: [0, 1] }
 */
export const min: ExtremeOf<Tensor> = composite('min', {
  args: ['tensor', 'number?', 'boolean?'] as never,
  of: ((ops: Ops) =>
    (x: Tensor, dim?: number, keepdim = false) =>
      dim === undefined ? ops.amin(x) : valuesAt(ops, x, dim, ops.argmin(x, dim, true), keepdim)) as never,
})

/**
 * The indices (int32) that sort x along `dim` (default −1, the last), in ascending order unless `descending`. Equal elements keep their order; NaN is the
 * greatest. PyTorch: `torch.argsort`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([3, 1, 2]).argsort(0, { descending: true }) // [0, 2, 1]: from the largest down
 */
export const argsort: (x: Tensor, dim?: number, options?: SortOptions) => Tensor = primitive('argsort', {
  args: ['tensor', 'number?', 'options?'],
  options: { descending: true },
  raw: (x, dim = -1, { descending = false } = {}) => firstPlaces('argsort', x, dim, null, descending),
  grad: null,
})

/**
 * { values, indices } of x sorted along `dim` (default −1, the last), in ascending order unless `descending`. Equal elements keep their order; NaN is the
 * greatest. PyTorch: `torch.sort`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([3, 1, 2]).sort() // { values: [1, 2, 3], indices: [1, 2, 0] }
 */
export const sort: (x: Tensor, dim?: number, options?: SortOptions) => ValuesAndIndices<Tensor> = composite('sort', {
  args: ['tensor', 'number?', 'options?'],
  options: { descending: true },
  of:
    (ops) =>
    (x, dim = -1, options) =>
      valuesAt(ops, x, dim, ops.argsort(x, dim, options), true),
})

/**
 * { values, indices } of the k largest elements along `dim` (default −1, the last), the largest first; with `largest: false` the k smallest, the smallest
 * first. PyTorch: `torch.topk`.
 * @throws INVALID_ARGUMENT if k is not from 0 to the extent of `dim`; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([3, 1, 2]).topk(2) // { values: [3, 2], indices: [0, 2] }
 */
export const topk: (x: Tensor, k: number, dim?: number, options?: TopkOptions) => ValuesAndIndices<Tensor> = composite('topk', {
  args: ['tensor', 'number', 'number?', 'options?'],
  options: { largest: true },
  of:
    (ops) =>
    (x, k, dim = -1, { largest = true } = {}) => {
      const d = normalizeDim('topk', dim, x.ndim)
      const extent = x.ndim === 0 ? 1 : x.shape[d]!
      if (!Number.isInteger(k) || k < 0 || k > extent)
        throw invalidArgument('topk', `k from 0 to ${extent}, the extent of dimension ${d}`, k)
      return valuesAt(ops, x, d, firstPlaces('topk', x, d, k, largest), true)
    },
})

/**
 * Cumulative sums: element i is the sum of elements 0 … i along `dim`. int32 and bool give int32. PyTorch: `torch.cumsum`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [3, 4]]).cumsum(0) // [[1, 2], [4, 6]]
 */
export const cumsum: WithInPlace<(x: Tensor, dim: number) => Tensor> = primitive('cumsum', {
  args: ['tensor', 'number'],
  inPlace: true,
  raw: (x, dim) => scan('cumsum', x, dim),
  // element i of a went into all results from i on
  grad: formula([], (g, s, ops) => ops.to(ops.reverseCumsum(g, s.attrs[0]), s.dtypeA)),
})

/**
 * Cumulative products: element i is the product of elements 0 … i along `dim`. int32 and bool give int32. PyTorch: `torch.cumprod`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([1, 2, 3, 4]).cumprod(0) // [1, 2, 6, 24]
 */
export const cumprod: WithInPlace<(x: Tensor, dim: number) => Tensor> = primitive('cumprod', {
  args: ['tensor', 'number'],
  inPlace: true,
  raw: (x, dim) => scan('cumprod', x, dim),
  grad: slope(
    'a',
    (g, x, [dim]) => gradientRows('cumprodBackward', g, x, dim),
    (g, x, ops, [dim]) => {
      if (x.ndim === 0) return g
      const last = ops.transpose(x, dim, -1)
      const index = arange(0, last.shape.at(-1)!, 1, { dtype: 'int32', device: x.device })
      // [i, j]: the product of the elements 0 … j without element i, which is in result j if i ≤ j.
      const partial = ops.mul(ops.cumprod(withoutEach(last, ops), -1), ops.unsqueeze(ops.transpose(g, dim, -1), -2))
      const sums = ops.sum(ops.where(ops.le(ops.unsqueeze(index, 1), index), partial, 0), -1)
      return ops.transpose(sums, dim, -1)
    },
  ),
})

/** The places (int32) along `dim` of the first `m` elements (null: all) in order. A 0-d tensor has one place. @throws DIM_OUT_OF_RANGE */
function firstPlaces(op: string, x: Tensor, dim: number, m: number | null, descending: boolean): Tensor {
  const { dense, outer, k, inner } = fibresAlong(op, x, dim)
  const shape = m === null || x.ndim === 0 ? x.shape : x.shape.with(dim, m)
  const out = Tensor.uninitialized('int32', shape, x.storage.memory)
  kernelsFor(x).argsort[x.dtype](dense, out, outer, k, x.ndim === 0 ? 1 : (m ?? k), inner, descending)
  return out
}

/** The values at `indices`, which keep the dimension. */
function valuesAt(ops: Ops, x: Tensor, dim: number, indices: Tensor, keepdim: boolean): ValuesAndIndices<Tensor> {
  const values = ops.gather(x, dim, indices)
  return keepdim || x.ndim === 0 ? { values, indices } : { values: ops.squeeze(values, dim), indices: ops.squeeze(indices, dim) }
}
