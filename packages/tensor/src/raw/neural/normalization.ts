/** Layer and batch normalisation with their fused backward passes. Autograd uses the latter where no second derivative is wanted. */

import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import { contiguous } from '../copy.js'

/** x [rows, d] normalised along d, weight and bias [d] → [result, mean [rows], 1 / √(variance + eps) [rows]]. @throws DTYPE_MISMATCH */
export function layerNormRows(x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number): readonly [Tensor, Tensor, Tensor] {
  checkDTypes('layerNorm', x, weight, bias)
  const rows = x.shape[0]!
  const [out, mean, rstd] = [
    Tensor.uninitialized(x.dtype, x.shape, x.storage.memory),
    Tensor.uninitialized(x.dtype, [rows], x.storage.memory),
    Tensor.uninitialized(x.dtype, [rows], x.storage.memory),
  ]
  kernelsFor(x).layerNorm[x.dtype](contiguous(x), dense(weight), dense(bias), out, mean, rstd, eps)
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
  const d = x.shape[1]!
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  const weightGrad = wantWeight ? Tensor.uninitialized(x.dtype, [d], x.storage.memory) : null
  const biasGrad = wantBias ? Tensor.uninitialized(x.dtype, [d], x.storage.memory) : null
  kernelsFor(x).layerNormBackward[x.dtype](contiguous(grad), contiguous(x), mean, rstd, dense(weight), out, weightGrad, biasGrad, 0)
  return [out, weightGrad, biasGrad]
}

/** x [N, C, …] normalised over all but C, weight and bias [C] → [result, mean [C], biased variance [C]]. @throws DTYPE_MISMATCH */
export function batchNormTraining(x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number): readonly [Tensor, Tensor, Tensor] {
  checkDTypes('batchNorm', x, weight, bias)
  const c = x.shape[1]!
  const [out, mean, variance] = [
    Tensor.uninitialized(x.dtype, x.shape, x.storage.memory),
    Tensor.uninitialized(x.dtype, [c], x.storage.memory),
    Tensor.uninitialized(x.dtype, [c], x.storage.memory),
  ]
  kernelsFor(x).channelNorm[x.dtype](contiguous(x), dense(weight), dense(bias), out, mean, variance, eps)
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
  const c = x.shape[1]!
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  const weightGrad = wantWeight ? Tensor.uninitialized(x.dtype, [c], x.storage.memory) : null
  const biasGrad = wantBias ? Tensor.uninitialized(x.dtype, [c], x.storage.memory) : null
  const kernel = kernelsFor(x).channelNormBackward[x.dtype]
  kernel(contiguous(grad), contiguous(x), mean, variance, dense(weight), out, weightGrad, biasGrad, eps)
  return [out, weightGrad, biasGrad]
}

const dense = (x: Tensor | null): Tensor | null => (x === null ? null : contiguous(x))

function checkDTypes(op: string, x: Tensor, weight: Tensor | null, bias: Tensor | null): void {
  const others = [weight, bias].filter((t) => t !== null)
  if (isFloating(x.dtype) && others.every((t) => t.dtype === x.dtype)) return
  const got = [x, ...others].map((t) => t.dtype).join(', ')
  throw dtypeMismatch(op, 'one floating point dtype for input, weight and bias', got, "Convert with to('float32').")
}
