/** Layer and batch normalisation with their fused backward passes. Autograd uses the latter where no second derivative is wanted. */

import type { ChannelNormBackwardKernel, ChannelNormKernel, LayerNormBackwardKernel, LayerNormKernel } from '../../kernels/table/table.js'
import { currentKernels } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating, type TypedArray } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import { numelOf } from '../../values/shape.js'
import { contiguous } from '../copy.js'

/** x [rows, d] normalised along d, weight and bias [d] → [result, mean [rows], 1 / √(variance + eps) [rows]]. @throws DTYPE_MISMATCH */
export function layerNormRows(x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number): readonly [Tensor, Tensor, Tensor] {
  checkDTypes('layerNorm', x, weight, bias)
  const [rows, d] = x.shape as readonly [number, number]
  const [xs, w, b] = [contiguous(x), dense(weight), dense(bias)]
  const [out, mean, rstd] = [
    Tensor.uninitialized(x.dtype, x.shape),
    Tensor.uninitialized(x.dtype, [rows]),
    Tensor.uninitialized(x.dtype, [rows]),
  ]
  const kernel = currentKernels().layerNorm[x.dtype] as LayerNormKernel<TypedArray>
  const to = [out.storage.host, mean.storage.host, rstd.storage.host] as const
  kernel.run(rows, d, eps, xs.storage.host, xs.offset, arrayOf(w), w?.offset ?? 0, arrayOf(b), b?.offset ?? 0, ...to)
  return [out, mean, rstd]
}

/** The gradients of x, weight and bias (null where not wanted). */
export function layerNormRowsBackward(
  grad: Tensor,
  x: Tensor,
  mean: Tensor,
  rstd: Tensor,
  weight: Tensor | null,
  wantWeight: boolean,
  wantBias: boolean,
): [Tensor, Tensor | null, Tensor | null] {
  const [rows, d] = x.shape as readonly [number, number]
  const [g, xs, w] = [contiguous(grad), contiguous(x), dense(weight)]
  const out = Tensor.uninitialized(x.dtype, x.shape)
  const weightGrad = wantWeight ? Tensor.uninitialized(x.dtype, [d]) : null
  const biasGrad = wantBias ? Tensor.uninitialized(x.dtype, [d]) : null
  const kernel = currentKernels().layerNormBackward[x.dtype] as LayerNormBackwardKernel<TypedArray>
  const saved = [mean.storage.host, rstd.storage.host] as const
  const to = [out.storage.host, arrayOf(weightGrad), arrayOf(biasGrad)] as const
  kernel.run(rows, d, g.storage.host, g.offset, xs.storage.host, xs.offset, ...saved, arrayOf(w), w?.offset ?? 0, ...to)
  return [out, weightGrad, biasGrad]
}

/** x [N, C, …] normalised over all but C, weight and bias [C] → [result, mean [C], biased variance [C]]. @throws DTYPE_MISMATCH */
export function batchNormTraining(x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number): readonly [Tensor, Tensor, Tensor] {
  checkDTypes('batchNorm', x, weight, bias)
  const [outer, c] = x.shape as readonly [number, number]
  const [xs, w, b] = [contiguous(x), dense(weight), dense(bias)]
  const [out, mean, variance] = [
    Tensor.uninitialized(x.dtype, x.shape),
    Tensor.uninitialized(x.dtype, [c]),
    Tensor.uninitialized(x.dtype, [c]),
  ]
  const kernel = currentKernels().channelNorm[x.dtype] as ChannelNormKernel<TypedArray>
  const to = [out.storage.host, mean.storage.host, variance.storage.host] as const
  kernel.run(outer, c, innerOf(x), eps, xs.storage.host, xs.offset, arrayOf(w), w?.offset ?? 0, arrayOf(b), b?.offset ?? 0, ...to)
  return [out, mean, variance]
}

/** The gradients of x, weight and bias (null where not wanted). */
export function batchNormTrainingBackward(
  grad: Tensor,
  x: Tensor,
  mean: Tensor,
  variance: Tensor,
  weight: Tensor | null,
  eps: number,
  wantWeight: boolean,
  wantBias: boolean,
): [Tensor, Tensor | null, Tensor | null] {
  const [outer, c] = x.shape as readonly [number, number]
  const [g, xs, w] = [contiguous(grad), contiguous(x), dense(weight)]
  const out = Tensor.uninitialized(x.dtype, x.shape)
  const weightGrad = wantWeight ? Tensor.uninitialized(x.dtype, [c]) : null
  const biasGrad = wantBias ? Tensor.uninitialized(x.dtype, [c]) : null
  const kernel = currentKernels().channelNormBackward[x.dtype] as ChannelNormBackwardKernel<TypedArray>
  const saved = [mean.storage.host, variance.storage.host] as const
  const to = [out.storage.host, arrayOf(weightGrad), arrayOf(biasGrad)] as const
  kernel.run(outer, c, innerOf(x), eps, g.storage.host, g.offset, xs.storage.host, xs.offset, ...saved, arrayOf(w), w?.offset ?? 0, ...to)
  return [out, weightGrad, biasGrad]
}

const innerOf = (x: Tensor): number => numelOf(x.shape.slice(2))
const dense = (x: Tensor | null): Tensor | null => (x === null ? null : contiguous(x))
const arrayOf = (x: Tensor | null): TypedArray | null => (x === null ? null : x.storage.host)

function checkDTypes(op: string, x: Tensor, weight: Tensor | null, bias: Tensor | null): void {
  const others = [weight, bias].filter((t) => t !== null)
  if (isFloating(x.dtype) && others.every((t) => t.dtype === x.dtype)) return
  const got = [x, ...others].map((t) => t.dtype).join(', ')
  throw dtypeMismatch(op, 'one floating point dtype for input, weight and bias', got, "Convert with to('float32').")
}
