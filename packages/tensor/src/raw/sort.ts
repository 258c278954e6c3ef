/** The order of elements along a dimension. `composite/sort.ts` makes sorted values and the largest of it. */

import type { ArgsortKernel } from '../kernels/table/table.js'
import type { SortOptions } from '../ops/ops-reduce.js'
import { currentKernels } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import type { TypedArray } from '../values/dtype.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { contiguous } from './copy.js'

/** Equals keep their order; NaN is the greatest. @throws DIM_OUT_OF_RANGE */
export function argsort(x: Tensor, dim = -1, { descending = false }: SortOptions = {}): Tensor {
  const d = normalizeDim('argsort', dim, x.shape.length)
  const dense = contiguous(x)
  const out = Tensor.uninitialized('int32', x.shape)
  const k = x.shape.length === 0 ? 1 : x.shape[d]!
  const [outer, inner] = [numelOf(x.shape.slice(0, d)), numelOf(x.shape.slice(d + 1))]
  const kernel = currentKernels().argsort[x.dtype] as ArgsortKernel<TypedArray>
  kernel.run(outer, k, inner, dense.storage.host, dense.offset, out.storage.host as Int32Array, 0, descending)
  return out
}
