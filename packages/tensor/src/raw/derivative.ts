/** Derivatives with a kernel of their own: what would be many operations, or need a division, in one pass. See `ops-derivative.ts`. */

import type { GradOp, GradRowsOp } from '../kernels/table/table.js'
import type { GeluOptions, SoftplusOptions } from '../ops/ops.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { contiguous } from './copy.js'
import { approximates } from './math.js'

function productBackward(op: 'prodBackward' | 'cumprodBackward', g: Tensor, x: Tensor, dim: number | undefined): Tensor {
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

export const prodBackward = (g: Tensor, x: Tensor, dim?: number): Tensor => productBackward('prodBackward', g, x, dim)
export const cumprodBackward = (g: Tensor, x: Tensor, dim: number): Tensor => productBackward('cumprodBackward', g, x, dim)

/** out = g times the slope at x (of a result: at its argument), element by element. g is one element repeated, or as x. */
function gradient(op: GradOp, g: Tensor, x: Tensor, p0: number, p1: number): Tensor {
  const dense = contiguous(x)
  const repeated = !g.isContiguous && g.strides.every((s, d) => s === 0 || g.shape[d] === 1)
  const grad = repeated ? g : contiguous(g)
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  const single = x.dtype === 'float32'
  kernelsFor(x)[op][x.dtype](grad, dense, out, single ? Math.fround(p0) : p0, single ? Math.fround(p1) : p1)
  return out
}

export const reluBackward = (g: Tensor, y: Tensor): Tensor => gradient('reluBackward', g, y, 0, 0)
export const tanhBackward = (g: Tensor, y: Tensor): Tensor => gradient('tanhBackward', g, y, 0, 0)
export const sigmoidBackward = (g: Tensor, y: Tensor): Tensor => gradient('sigmoidBackward', g, y, 0, 0)
export const leakyReluBackward = (g: Tensor, x: Tensor, slope: number): Tensor => gradient('leakyReluBackward', g, x, slope, 0)
export const eluBackward = (g: Tensor, x: Tensor, alpha: number): Tensor => gradient('eluBackward', g, x, alpha, 0)
export const siluBackward = (g: Tensor, x: Tensor): Tensor => gradient('siluBackward', g, x, 0, 0)
export const geluBackward = (g: Tensor, x: Tensor, options?: GeluOptions): Tensor =>
  gradient(approximates(options) ? 'geluTanhBackward' : 'geluBackward', g, x, 0, 0)
export const softplusBackward = (g: Tensor, x: Tensor, { beta = 1, threshold = 20 }: SoftplusOptions = {}): Tensor =>
  gradient('softplusBackward', g, x, beta, threshold)

function gradientRows(op: GradRowsOp, g: Tensor, y: Tensor, dim: number): Tensor {
  const { shape } = y
  const d = normalizeDim(op, dim, shape.length)
  const grad = contiguous(g)
  const dense = contiguous(y)
  const out = Tensor.uninitialized(y.dtype, shape, y.storage.memory)
  const [outer, k, inner] = [numelOf(shape.slice(0, d)), shape.length === 0 ? 1 : shape[d]!, numelOf(shape.slice(d + 1))]
  kernelsFor(y)[op][y.dtype](grad, dense, out, outer, k, inner)
  return out
}

export const softmaxBackward = (g: Tensor, y: Tensor, dim: number): Tensor => gradientRows('softmaxBackward', g, y, dim)
export const logSoftmaxBackward = (g: Tensor, y: Tensor, dim: number): Tensor => gradientRows('logSoftmaxBackward', g, y, dim)
