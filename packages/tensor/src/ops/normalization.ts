/** Normalizations. */

import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { BatchNormOptions, NormOptions } from '../values/options-neural.js'
import { numelOf, type Shape, sameShape } from '../values/shape.js'
import { composite, type Functional, type Ops } from './define/define.js'

/**
 * Normalizes over the last dimensions, whose shape is `normalizedShape`. weight and bias have that shape; eps is 1e-5 by default. PyTorch:
 * `torch.nn.functional.layer_norm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the tensors are not all float32 or all float64
 * @example layerNorm(tensor([[1, 2, 3], [0, 0, 6]]), 3) // [[-1.2247, 0, 1.2247], [-0.7071, -0.7071, 1.4142]]
 */
export const layerNorm: Functional<
  (x: Tensor, normalizedShape: number | readonly number[], weight?: Tensor | null, bias?: Tensor | null, options?: NormOptions) => Tensor
> = composite('layerNorm', {
  args: ['tensor', 'dims', 'tensor??', 'tensor??', 'options?'],
  options: { eps: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, normalizedShape, weight = null, bias = null, { eps = 1e-5 } = {}) => {
      const shape = typeof normalizedShape === 'number' ? [normalizedShape] : normalizedShape
      const lead = x.ndim - shape.length
      if (shape.length === 0 || lead < 0 || !sameShape(x.shape.slice(lead), shape)) {
        throw shapeMismatch(
          'layerNorm',
          `an input […, ${shape.join(', ')}]`,
          shapeText(x.shape),
          'The last extents of the input are the normalizedShape.',
        )
      }
      checkAffine('layerNorm', 'weight', weight, shape)
      checkAffine('layerNorm', 'bias', bias, shape)
      const d = numelOf(shape)
      const rows = numelOf(x.shape.slice(0, lead))
      const flat = (t: Tensor | null): Tensor | null => (t === null ? null : ops.reshape(t, [d]))
      return ops.reshape(ops.layerNormRows(ops.reshape(x, [rows, d]), flat(weight), flat(bias), eps)[0], x.shape)
    },
})

/**
 * Normalizes each channel of x [N, C, …]. The running statistics, weight and bias are [C]. With `training` (default false) it uses the statistics of the batch,
 * and updates the running statistics in place with momentum 0.1. eps is 1e-5 by default. PyTorch: `torch.nn.functional.batch_norm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit, or there is only one value for each channel in training; INVALID_ARGUMENT if there are neither running
 * statistics nor `training`
 * @example batchNorm(tensor([[1, 10], [3, 30]]), null, null, null, null, { training: true }) // [[-1, -1], [1, 1]]
 */
export const batchNorm: Functional<
  (
    x: Tensor,
    runningMean?: Tensor | null,
    runningVar?: Tensor | null,
    weight?: Tensor | null,
    bias?: Tensor | null,
    options?: BatchNormOptions,
  ) => Tensor
> = composite('batchNorm', {
  args: ['tensor', 'tensor??', 'tensor??', 'tensor??', 'tensor??', 'options?'],
  options: { eps: true, training: true, momentum: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, runningMean = null, runningVar = null, weight = null, bias = null, options = {}) => {
      const { training = false, momentum = 0.1, eps = 1e-5 } = options
      if (x.ndim < 2)
        throw shapeMismatch('batchNorm', 'an input [N, C] or [N, C, …]', shapeText(x.shape), 'Insert the batch with unsqueeze(0).')
      const c = x.shape[1]!
      checkAffine('batchNorm', 'runningMean', runningMean, [c])
      checkAffine('batchNorm', 'runningVar', runningVar, [c])
      checkAffine('batchNorm', 'weight', weight, [c])
      checkAffine('batchNorm', 'bias', bias, [c])
      if (training) {
        const count = c === 0 ? 0 : x.numel / c
        // As PyTorch: nothing to normalize, and the running statistics stay. The gradients of weight and bias are 0.
        if (count === 0) return affine(ops, weight === null ? ops.clone(x) : x, weight, bias)
        if (count <= 1) {
          throw oneValue('batchNorm', 'more than one value for each channel when training', x, 'Use a larger batch, or eval().')
        }
        const [out, mean, variance] = ops.batchNormTraining(x, weight, bias, eps)
        keep(ops, runningMean, mean, momentum)
        keep(ops, runningVar, ops.mul(variance, count / (count - 1)), momentum)
        return out
      }
      if (runningMean === null || runningVar === null) {
        throw invalidArgument('batchNorm', 'running statistics when not training', 'null', 'Pass { training: true }, or the statistics.')
      }
      const scale = ops.rsqrt(ops.add(runningVar, eps))
      const factor = weight === null ? scale : ops.mul(scale, weight)
      return affine(ops, ops.sub(x, column(ops, runningMean, x)), factor, bias)
    },
})

/**
 * Normalizes groups of channels of each image of x [N, C, …]. The number of groups divides C; weight and bias are [C]; eps is 1e-5 by default. PyTorch:
 * `torch.nn.functional.group_norm`.
 * @throws SHAPE_MISMATCH if weight or bias is not [C]; INVALID_ARGUMENT if the groups do not divide C
 * @example groupNorm(tensor([[1, 3, 10, 30]]), 2) // [[-1, 1, -1, 1]]: channels 0 and 1, then 2 and 3
 */
export const groupNorm: Functional<
  (x: Tensor, groups: number, weight?: Tensor | null, bias?: Tensor | null, options?: NormOptions) => Tensor
> = composite('groupNorm', {
  args: ['tensor', 'number', 'tensor??', 'tensor??', 'options?'],
  options: { eps: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, groups, weight = null, bias = null, { eps = 1e-5 } = {}) => {
      // As PyTorch, which counts over the batch too.
      if (x.ndim >= 2 && x.numel === groups) throw oneValue('groupNorm', 'more than one value for each group', x)
      return grouped(ops, 'groupNorm', x, groups, weight, bias, eps)
    },
})

/**
 * Normalizes each channel of each image of x [N, C, …]. weight and bias are [C]; eps is 1e-5 by default. PyTorch: `torch.nn.functional.instance_norm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit, or a channel has only one element
 * @example instanceNorm(tensor([[[1, 3], [10, 30]]])) // [[[-1, 1], [-1, 1]]]
 */
export const instanceNorm: Functional<(x: Tensor, weight?: Tensor | null, bias?: Tensor | null, options?: NormOptions) => Tensor> =
  composite('instanceNorm', {
    args: ['tensor', 'tensor??', 'tensor??', 'options?'],
    options: { eps: true },
    isFunctional: true,
    of:
      (ops) =>
      (x, weight = null, bias = null, { eps = 1e-5 } = {}) => {
        if (numelOf(x.shape.slice(2)) === 1) throw oneValue('instanceNorm', 'more than one place for each channel', x)
        return grouped(ops, 'instanceNorm', x, x.shape[1] ?? 1, weight, bias, eps)
      },
  })

/** Of one value nothing is left once its mean is taken out. */
function oneValue(op: string, expected: string, x: Tensor, remedy = 'Use a larger input, or layerNorm over more dimensions.') {
  return shapeMismatch(op, expected, shapeText(x.shape), remedy)
}

function checkAffine(op: string, name: string, t: Tensor | null, shape: Shape): void {
  if (t === null || sameShape(t.shape, shape)) return
  throw shapeMismatch(op, `a ${name} ${shapeText(shape)}`, shapeText(t.shape), 'There is one for each channel or normalised element.')
}

/** A vector [C] for x [N, C, …]. */
function column(ops: Ops, t: Tensor, x: Tensor): Tensor {
  return ops.reshape(t, [t.numel, ...new Array<number>(x.ndim - 2).fill(1)])
}

function affine(ops: Ops, x: Tensor, weight: Tensor | null, bias: Tensor | null): Tensor {
  const scaled = weight === null ? x : ops.mul(x, column(ops, weight, x))
  return bias === null ? scaled : ops.add(scaled, column(ops, bias, x))
}

function keep(ops: Ops, running: Tensor | null, now: Tensor, momentum: number): void {
  if (running === null) return
  ops.mul_(running, 1 - momentum)
  ops.add_(running, now, momentum)
}

function grouped(ops: Ops, op: string, x: Tensor, groups: number, weight: Tensor | null, bias: Tensor | null, eps: number): Tensor {
  const c = x.shape[1] ?? 0
  if (x.ndim < 2 || !Number.isInteger(groups) || groups < 1 || c % groups !== 0) {
    throw invalidArgument(op, 'an input [N, C, …] whose channels the groups divide', `${shapeText(x.shape)} in ${groups} groups`)
  }
  checkAffine(op, 'weight', weight, [c])
  checkAffine(op, 'bias', bias, [c])
  const rows = x.shape[0]! * groups
  const normal = ops.reshape(ops.layerNormRows(ops.reshape(x, [rows, rows === 0 ? 0 : x.numel / rows]), null, null, eps)[0], x.shape)
  return affine(ops, normal, weight, bias)
}
