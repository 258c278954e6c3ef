/** The order of elements along a dimension. `ops/order.ts` makes sorted values and the largest of it. */

import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import type { SortOptions } from '../values/options.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { contiguous } from './copy.js'

/** Equals keep their order; NaN is the greatest. @throws DIM_OUT_OF_RANGE */
export function argsort(x: Tensor, dim = -1, { descending = false }: SortOptions = {}): Tensor {
  const d = normalizeDim('argsort', dim, x.shape.length)
  const dense = contiguous(x)
  const out = Tensor.uninitialized('int32', x.shape, x.storage.memory)
  const k = x.shape.length === 0 ? 1 : x.shape[d]!
  const [outer, inner] = [numelOf(x.shape.slice(0, d)), numelOf(x.shape.slice(d + 1))]
  kernelsFor(x).argsort[x.dtype](dense, out, outer, k, inner, descending)
  return out
}
