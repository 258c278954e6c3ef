/** Derivatives with a kernel of their own: what would be many operations, or need a division, in one pass. See `ops-derivative.ts`. */
import { currentKernels } from '../device.js'
import type { TypedArray } from '../dtype.js'
import type { ProductBackwardKernel } from '../kernels/table.js'
import { normalizeDim, numelOf } from '../shape.js'
import { Tensor } from '../tensor.js'
import { contiguous } from './copy.js'

function productBackward(op: 'prodBackward' | 'cumprodBackward', g: Tensor, x: Tensor, dim: number | undefined): Tensor {
  const { shape } = x
  const d = dim === undefined ? 0 : normalizeDim(op, dim, shape.length)
  const whole = dim === undefined || shape.length === 0
  const [outer, k, inner] = whole ? [1, x.numel, 1] : [numelOf(shape.slice(0, d)), shape[d]!, numelOf(shape.slice(d + 1))]
  const grad = contiguous(g)
  const dense = contiguous(x)
  const out = Tensor.uninitialized(x.dtype, shape)
  const kernel = currentKernels()[op][x.dtype] as ProductBackwardKernel<TypedArray>
  kernel.run(outer, k, inner, grad.storage.array, grad.offset, dense.storage.array, dense.offset, out.storage.array, 0)
  return out
}

export const prodBackward = (g: Tensor, x: Tensor, dim?: number): Tensor => productBackward('prodBackward', g, x, dim)
export const cumprodBackward = (g: Tensor, x: Tensor, dim: number): Tensor => productBackward('cumprodBackward', g, x, dim)
