/** Derivatives with a kernel of their own: what would be many operations, or need a division, in one pass. `ops/parts/slopes.ts` says when they run. */

import type { GradOp, GradRowsOp } from '../kernels/table/table.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { contiguous } from './copy.js'

export function productBackward(op: 'prodBackward' | 'cumprodBackward', g: Tensor, x: Tensor, dim: number | undefined): Tensor {
  const { shape } = x
  const d = dim === undefined ? 0 : normalizeDim(op, dim, shape.length)
  const whole = dim === undefined || shape.length === 0
  const [outer, k, inner] = whole ? [1, x.numel, 1] : [numelOf(shape.slice(0, d)), shape[d]!, numelOf(shape.slice(d + 1))]
  const grad = contiguous(g)
  const dense = contiguous(x)
  const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
  kernelsFor(x)[op][x.dtype](grad, dense, out, outer, k, inner)
  return out
}

/** out = g times the slope at x (of a result: at its argument), element by element. g is one element repeated, or as x. */
export function gradient(op: GradOp, g: Tensor, x: Tensor, p0: number, p1: number): Tensor {
  const dense = contiguous(x)
  const repeated = !g.isContiguous && g.strides.every((s, d) => s === 0 || g.shape[d] === 1)
  const grad = repeated ? g : contiguous(g)
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  const single = x.dtype === 'float32'
  kernelsFor(x)[op][x.dtype](grad, dense, out, single ? Math.fround(p0) : p0, single ? Math.fround(p1) : p1)
  return out
}

export function gradientRows(op: GradRowsOp, g: Tensor, y: Tensor, dim: number): Tensor {
  const { shape } = y
  const d = normalizeDim(op, dim, shape.length)
  const grad = contiguous(g)
  const dense = contiguous(y)
  const out = Tensor.uninitialized(y.dtype, shape, y.storage.memory)
  const [outer, k, inner] = [numelOf(shape.slice(0, d)), shape.length === 0 ? 1 : shape[d]!, numelOf(shape.slice(d + 1))]
  kernelsFor(y)[op][y.dtype](grad, dense, out, outer, k, inner)
  return out
}
