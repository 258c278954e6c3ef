/** Convolutions. */

import type { ConvGeometry } from '../kernels/table/neural.js'
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { ConvOptions, ConvTransposeOptions, Pair } from '../values/options-neural.js'
import type { Shape } from '../values/shape.js'
import { composite, type Functional, type Ops } from './define/define.js'
import { pair } from './parts/window.js'

/**
 * Convolution of x [N, C, L] or [C, L] with weight [O, C / groups, k] and bias [O] → [N, O, oL] or [O, oL]. Defaults: stride 1, padding 0, dilation 1, groups
 * 1. `padding` may be 'same' or 'valid'. PyTorch: `torch.nn.functional.conv1d`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the tensors are not all float32 or all float64; INVALID_ARGUMENT if an option is invalid
 * @example conv1d(tensor([[1, 2, 3, 4]]), tensor([[[1, -1]]])) // [[-1, -1, -1]]: the difference of neighbours
 */
export const conv1d: Functional<(x: Tensor, weight: Tensor, bias?: Tensor | null, options?: ConvOptions<number>) => Tensor> = composite(
  'conv1d',
  {
    args: ['tensor', 'tensor', 'tensor??', 'options?'],
    options: { stride: true, padding: true, dilation: true, groups: true },
    isFunctional: true,
    of:
      (ops) =>
      (x, weight, bias = null, options = {}) =>
        onPlanes(ops, 'conv1d', 1, x, weight, (x4, w4) => forward(ops, 'conv1d', x4, w4, bias, flatOptions('conv1d', options))),
  },
)

/**
 * Convolution of x [N, C, H, W] or [C, H, W] with weight [O, C / groups, kH, kW] and bias [O] → [N, O, oH, oW] or [O, oH, oW]. Defaults: stride 1, padding 0,
 * dilation 1, groups 1. `padding` may be 'same' or 'valid'. PyTorch: `torch.nn.functional.conv2d`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the tensors are not all float32 or all float64; INVALID_ARGUMENT if an option is invalid
 * @example conv2d(ones([1, 3, 8, 8]), ones([16, 3, 3, 3]), null, { stride: 2, padding: 1 }) // shape [1, 16, 4, 4]
 */
export const conv2d: Functional<(x: Tensor, weight: Tensor, bias?: Tensor | null, options?: ConvOptions<Pair>) => Tensor> = composite(
  'conv2d',
  {
    args: ['tensor', 'tensor', 'tensor??', 'options?'],
    options: { stride: true, padding: true, dilation: true, groups: true },
    isFunctional: true,
    of:
      (ops) =>
      (x, weight, bias = null, options = {}) =>
        onPlanes(ops, 'conv2d', 2, x, weight, (x4, w4) => forward(ops, 'conv2d', x4, w4, bias, options)),
  },
)

/**
 * Transposed convolution: the gradient of conv1d for its input. x [N, C, L] or [C, L], weight [C, O / groups, k], bias [O] → [N, O, oL] or [O, oL]. PyTorch:
 * `torch.nn.functional.conv_transpose1d`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the tensors are not all float32 or all float64; INVALID_ARGUMENT if an option is invalid
 * @example convTranspose1d(tensor([[1, 2]]), tensor([[[1, 10]]]), null, { stride: 2 }) // [[1, 10, 2, 20]]
 */
export const convTranspose1d: Functional<
  (x: Tensor, weight: Tensor, bias?: Tensor | null, options?: ConvTransposeOptions<number>) => Tensor
> = composite('convTranspose1d', {
  args: ['tensor', 'tensor', 'tensor??', 'options?'],
  options: { stride: true, padding: true, outputPadding: true, dilation: true, groups: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, weight, bias = null, options = {}) =>
      onPlanes(ops, 'convTranspose1d', 1, x, weight, (x4, w4) =>
        transposed(ops, 'convTranspose1d', x4, w4, bias, flatTranspose('convTranspose1d', options)),
      ),
})

/**
 * Transposed convolution: the gradient of conv2d for its input. x [N, C, H, W] or [C, H, W], weight [C, O / groups, kH, kW], bias [O] → [N, O, oH, oW] or [O,
 * oH, oW]. PyTorch: `torch.nn.functional.conv_transpose2d`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the tensors are not all float32 or all float64; INVALID_ARGUMENT if an option is invalid
 * @example convTranspose2d(ones([1, 16, 4, 4]), ones([16, 3, 2, 2]), null, { stride: 2 }) // shape [1, 3, 8, 8]
 */
export const convTranspose2d: Functional<
  (x: Tensor, weight: Tensor, bias?: Tensor | null, options?: ConvTransposeOptions<Pair>) => Tensor
> = composite('convTranspose2d', {
  args: ['tensor', 'tensor', 'tensor??', 'options?'],
  options: { stride: true, padding: true, outputPadding: true, dilation: true, groups: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, weight, bias = null, options = {}) =>
      onPlanes(ops, 'convTranspose2d', 2, x, weight, (x4, w4) => transposed(ops, 'convTranspose2d', x4, w4, bias, options)),
})

function flatOptions(op: string, { stride, padding, dilation, groups }: ConvOptions<number>): ConvOptions<Pair> {
  return {
    ...(stride !== undefined && { stride: [1, lineOf(op, 'stride', stride)] }),
    ...(padding !== undefined && { padding: typeof padding === 'string' ? padding : [0, lineOf(op, 'padding', padding)] }),
    ...(dilation !== undefined && { dilation: [1, lineOf(op, 'dilation', dilation)] }),
    ...(groups !== undefined && { groups }),
  }
}

function flatTranspose(op: string, { outputPadding, ...rest }: ConvTransposeOptions<number>): ConvTransposeOptions<Pair> {
  const flat = flatOptions(op, rest) as ConvTransposeOptions<Pair>
  return outputPadding === undefined ? flat : { ...flat, outputPadding: [0, lineOf(op, 'outputPadding', outputPadding)] }
}

function lineOf(op: string, name: string, value: number): number {
  if (typeof value !== 'number') throw invalidArgument(op, `a number as ${name}`, String(value), 'There is but one dimension here.')
  return value
}

function forward(ops: Ops, op: string, x: Tensor, weight: Tensor, bias: Tensor | null, options: ConvOptions<Pair>): Tensor {
  return ops.convolution(x, weight, bias, convGeometry(op, x.shape, weight.shape, bias, options))
}

function transposed(ops: Ops, op: string, x: Tensor, weight: Tensor, bias: Tensor | null, options: ConvTransposeOptions<Pair>): Tensor {
  const out = ops.convolutionInput(x, weight, transposedGeometry(op, x.shape, weight.shape, bias, options))
  return bias === null ? out : ops.add(out, ops.reshape(bias, [bias.shape[0]!, 1, 1]))
}

/** `fn` takes x [N, C, H, W]. A line is a plane of height 1; an image without a batch is one of 1. @param rank how many dimensions an image has */
function onPlanes(ops: Ops, op: string, rank: 1 | 2, x: Tensor, weight: Tensor, fn: (x: Tensor, weight: Tensor) => Tensor): Tensor {
  if (weight.ndim !== rank + 2 || (x.ndim !== rank + 1 && x.ndim !== rank + 2)) {
    throw shapeMismatch(
      op,
      rank === 1 ? 'an input [N, C, L] or [C, L] and a weight [·, ·, k]' : 'an input [N, C, H, W] or [C, H, W] and a weight [·, ·, kH, kW]',
      `${shapeText(x.shape)} and ${shapeText(weight.shape)}`,
      'Insert missing dimensions with unsqueeze(), or use the function of the other number of dimensions.',
    )
  }
  const isBatch = x.ndim === rank + 2
  const images = isBatch ? x : ops.unsqueeze(x, 0)
  const out = rank === 2 ? fn(images, weight) : ops.squeeze(fn(ops.unsqueeze(images, 2), ops.unsqueeze(weight, 2)), 2)
  return isBatch ? out : ops.squeeze(out, 0)
}

/** @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function convGeometry(op: string, x: Shape, weight: Shape, bias: Tensor | null, options: ConvOptions<Pair>): ConvGeometry {
  const [n, c, h, w] = x as readonly [number, number, number, number]
  const [o, cg, kh, kw] = weight as readonly [number, number, number, number]
  const groups = options.groups ?? 1
  checkGroups(op, groups, c, o)
  if (cg * groups !== c || kh === 0 || kw === 0) {
    throw shapeMismatch(
      op,
      `a weight [O, ${c / groups}, kH, kW], for ${c} input channels in ${groups} group${groups === 1 ? '' : 's'}`,
      shapeText(weight),
      'The second extent of the weight is the number of input channels (C of [N, C, H, W]) divided by groups.',
      { x: [...x], weight: [...weight], groups },
    )
  }
  checkBias(op, bias, o)
  const [strideH, strideW] = pair(op, 'stride', options.stride ?? 1, 1)
  const [dilH, dilW] = pair(op, 'dilation', options.dilation ?? 1, 1)
  const base = { n, c, h, w, o, kh, kw, strideH, strideW, dilH, dilW, groups }
  const padding = options.padding === 'valid' ? 0 : (options.padding ?? 0)
  if (padding === 'same') {
    if (strideH !== 1 || strideW !== 1) {
      throw invalidArgument(op, "stride 1 with padding 'same'", `stride ${strideH}, ${strideW}`, 'Give the padding as numbers.')
    }
    return { ...base, padH: Math.floor((dilH * (kh - 1)) / 2), padW: Math.floor((dilW * (kw - 1)) / 2), oh: h, ow: w }
  }
  const [padH, padW] = pair(op, 'padding', padding as Pair, 0)
  const oh = Math.floor((h + 2 * padH - dilH * (kh - 1) - 1) / strideH) + 1
  const ow = Math.floor((w + 2 * padW - dilW * (kw - 1) - 1) / strideW) + 1
  if (oh < 1 || ow < 1) {
    throw shapeMismatch(
      op,
      `an input of at least ${dilH * (kh - 1) + 1} × ${dilW * (kw - 1) + 1} with its padding`,
      `${h + 2 * padH} × ${w + 2 * padW}`,
      'Pad more, or use a smaller kernel.',
      { x: [...x], weight: [...weight] },
    )
  }
  return { ...base, padH, padW, oh, ow }
}

/** The convolution whose adjoint this is: it maps our result [N, O, oH, oW] to our input [N, C, H, W]. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function transposedGeometry(op: string, x: Shape, weight: Shape, bias: Tensor | null, options: ConvTransposeOptions<Pair>): ConvGeometry {
  const [n, c, oh, ow] = x as readonly [number, number, number, number]
  const [rows, outputsOfGroup, kh, kw] = weight as readonly [number, number, number, number]
  const groups = options.groups ?? 1
  const outputs = outputsOfGroup * groups
  checkGroups(op, groups, c, outputs)
  if (rows !== c || kh === 0 || kw === 0) {
    throw shapeMismatch(
      op,
      `a weight [${c}, O / groups, kH, kW]`,
      shapeText(weight),
      'The first extent of the weight is the number of input channels.',
      {
        x: [...x],
        weight: [...weight],
      },
    )
  }
  checkBias(op, bias, outputs)
  const [strideH, strideW] = pair(op, 'stride', options.stride ?? 1, 1)
  const [dilH, dilW] = pair(op, 'dilation', options.dilation ?? 1, 1)
  const [padH, padW] = pair(op, 'padding', options.padding ?? 0, 0)
  const [moreH, moreW] = pair(op, 'outputPadding', options.outputPadding ?? 0, 0)
  if (moreH >= Math.max(strideH, dilH) || moreW >= Math.max(strideW, dilW)) {
    throw invalidArgument(
      op,
      'outputPadding smaller than stride or dilation',
      `${moreH}, ${moreW}`,
      'Only so many sizes map to one size of the input.',
    )
  }
  const h = (oh - 1) * strideH - 2 * padH + dilH * (kh - 1) + moreH + 1
  const w = (ow - 1) * strideW - 2 * padW + dilW * (kw - 1) + moreW + 1
  if (h < 1 || w < 1)
    throw shapeMismatch(op, 'a result of at least 1 × 1', `${h} × ${w}`, 'Use less padding.', { x: [...x], weight: [...weight] })
  return { n, c: outputs, h, w, o: c, kh, kw, oh, ow, strideH, strideW, padH, padW, dilH, dilW, groups }
}

function checkGroups(op: string, groups: number, channels: number, outputs: number): void {
  if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0 || outputs % groups !== 0) {
    throw invalidArgument(op, `groups that divide ${channels} input and ${outputs} output channels`, groups)
  }
}

function checkBias(op: string, bias: Tensor | null, outputs: number): void {
  if (bias === null || (bias.ndim === 1 && bias.shape[0] === outputs)) return
  throw shapeMismatch(op, `a bias [${outputs}]`, shapeText(bias.shape), 'There is one bias for each output channel.')
}
