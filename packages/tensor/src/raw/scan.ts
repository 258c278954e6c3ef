/** Running sums and products along a dimension. int32 and bool run in int32. */

import type { ScanOp } from '../kernels/table/table.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { contiguous, to } from './copy.js'

export function scan(op: ScanOp, x: Tensor, dim: number): Tensor {
  const d = normalizeDim(op, dim, x.shape.length)
  const dense = contiguous(x.dtype === 'bool' ? to(x, 'int32') : x)
  const out = Tensor.uninitialized(dense.dtype, x.shape, dense.storage.memory)
  const k = x.shape.length === 0 ? 1 : x.shape[d]!
  kernelsFor(dense)[op][dense.dtype](dense, out, numelOf(x.shape.slice(0, d)), k, numelOf(x.shape.slice(d + 1)))
  return out
}
