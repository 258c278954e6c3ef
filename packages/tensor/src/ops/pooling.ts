/** Pooling. NaN is greater than any number, the first of equals wins. */

import type { PoolGeometry } from '../kernels/table/neural.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { AvgPoolOptions, MaxPoolOptions, Pair } from '../values/options-neural.js'
import { composite, type Functional, type Ops } from './define/define.js'
import { placesFor } from './parts/common.js'
import { pair } from './parts/window.js'

/**
 * Maxima of windows: [N, C, L] or [C, L] → [N, C, oL] or [C, oL]. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch:
 * `torch.nn.functional.max_pool1d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions, or is smaller than the window; INVALID_ARGUMENT if an option is invalid
 * @example maxPool1d(tensor([[1, 4, 2, 3]]), 2, { stride: 1 }) // [[4, 4, 3]]
 */
export const maxPool1d: Functional<(x: Tensor, kernelSize: number, options?: MaxPoolOptions<number>) => Tensor> = composite('maxPool1d', {
  args: ['tensor', 'number', 'options?'],
  options: { stride: true, padding: true, ceilMode: true, dilation: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, kernelSize, options = {}) =>
      onLine(ops, 'maxPool1d', x, (plane) => maxPool(ops, 'maxPool1d', plane, flatPair(kernelSize), flatPooling(options))[0]),
})

/**
 * Maxima of windows: [N, C, H, W] or [C, H, W] → [N, C, oH, oW] or [C, oH, oW]. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch:
 * `torch.nn.functional.max_pool2d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions, or is smaller than the window; INVALID_ARGUMENT if an option is invalid
 * @example maxPool2d(tensor([[[1, 2, 5, 6], [3, 4, 7, 8]]]), 2) // [[[4, 8]]]
 */
export const maxPool2d: Functional<(x: Tensor, kernelSize: Pair, options?: MaxPoolOptions<Pair>) => Tensor> = composite('maxPool2d', {
  args: ['tensor', 'dims', 'options?'],
  options: { stride: true, padding: true, ceilMode: true, dilation: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, kernelSize, options = {}) =>
      maxPool(ops, 'maxPool2d', x, kernelSize, options)[0],
})

/**
 * `maxPool2d` and the place of each maximum in its plane: [maxima, places], where a place is y · W + x, as int32. PyTorch:
 * `torch.nn.functional.max_pool2d(return_indices=True)`.
 * @throws SHAPE_MISMATCH if x is not [N, C, H, W] or [C, H, W], or is smaller than the window; INVALID_ARGUMENT if an option is invalid
 * @example maxPool2dWithIndices(tensor([[[1, 2, 5, 6], [3, 4, 7, 8]]]), 2) // [[[[4, 8]]], [[[5, 7]]]]: maxima, and their places
 */
export const maxPool2dWithIndices: Functional<(x: Tensor, kernelSize: Pair, options?: MaxPoolOptions<Pair>) => readonly [Tensor, Tensor]> =
  composite('maxPool2dWithIndices', {
    args: ['tensor', 'dims', 'options?'],
    options: { stride: true, padding: true, ceilMode: true, dilation: true },
    isFunctional: true,
    of:
      (ops) =>
      (x, kernelSize, options = {}) =>
        maxPool(ops, 'maxPool2dWithIndices', x, kernelSize, options),
  })

/**
 * Means of windows: [N, C, L] or [C, L] → [N, C, oL] or [C, oL]. Defaults: stride = kernelSize, padding 0. Padding counts as zeros. PyTorch:
 * `torch.nn.functional.avg_pool1d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions, or is smaller than the window; INVALID_ARGUMENT if an option is invalid
 * @example avgPool1d(tensor([[1, 3, 5, 7]]), 2) // [[2, 6]]
 */
export const avgPool1d: Functional<(x: Tensor, kernelSize: number, options?: AvgPoolOptions<number>) => Tensor> = composite('avgPool1d', {
  args: ['tensor', 'number', 'options?'],
  options: { stride: true, padding: true, ceilMode: true, countIncludePad: true, divisorOverride: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, kernelSize, options = {}) =>
      onLine(ops, 'avgPool1d', x, (plane) => avgPool(ops, 'avgPool1d', plane, flatPair(kernelSize), flatPooling(options))),
})

/**
 * Means of windows: [N, C, H, W] or [C, H, W] → [N, C, oH, oW] or [C, oH, oW]. Defaults: stride = kernelSize, padding 0. Padding counts as zeros. PyTorch:
 * `torch.nn.functional.avg_pool2d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions, or is smaller than the window; INVALID_ARGUMENT if an option is invalid
 * @example avgPool2d(tensor([[[4, 8]]]), 2, { padding: 1, countIncludePad: false }) // [[[4, 8]]]
 */
export const avgPool2d: Functional<(x: Tensor, kernelSize: Pair, options?: AvgPoolOptions<Pair>) => Tensor> = composite('avgPool2d', {
  args: ['tensor', 'dims', 'options?'],
  options: { stride: true, padding: true, ceilMode: true, countIncludePad: true, divisorOverride: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, kernelSize, options = {}) =>
      avgPool(ops, 'avgPool2d', x, kernelSize, options),
})

/**
 * Means over `outputSize` windows of (nearly) equal size: [N, C, L] or [C, L] → […, outputSize]. PyTorch: `torch.nn.functional.adaptive_avg_pool1d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions; DTYPE_MISMATCH if x is int32 or bool
 * @example adaptiveAvgPool1d(tensor([[1, 2, 3]]), 2) // [[1.5, 2.5]]
 */
export const adaptiveAvgPool1d: Functional<(x: Tensor, outputSize: number) => Tensor> = composite('adaptiveAvgPool1d', {
  args: ['tensor', 'number'],
  isFunctional: true,
  of: (ops) => (x, outputSize) => {
    const [size] = pair('adaptiveAvgPool1d', 'outputSize', outputSize, 0)
    return onLine(ops, 'adaptiveAvgPool1d', x, (plane) => adaptive(ops, 'adaptiveAvgPool1d', plane, [1, size]))
  },
})

/**
 * Means over oH × oW windows of (nearly) equal size: [N, C, H, W] or [C, H, W] → […, oH, oW]. `outputSize` is one number for both, or [oH, oW]. PyTorch:
 * `torch.nn.functional.adaptive_avg_pool2d`.
 * @throws SHAPE_MISMATCH if x does not have these dimensions; DTYPE_MISMATCH if x is int32 or bool
 * @example adaptiveAvgPool2d(tensor([[[1, 2], [3, 4]]]), 1) // [[[2.5]]]
 */
export const adaptiveAvgPool2d: Functional<(x: Tensor, outputSize: Pair) => Tensor> = composite('adaptiveAvgPool2d', {
  args: ['tensor', 'dims'],
  isFunctional: true,
  of: (ops) => (x, outputSize) => adaptive(ops, 'adaptiveAvgPool2d', x, pair('adaptiveAvgPool2d', 'outputSize', outputSize, 0)),
})

function flatPair(size: number): Pair {
  return [1, size]
}

function flatPooling<O extends MaxPoolOptions<number> & AvgPoolOptions<number>>(options: O) {
  const { stride, padding, dilation, ...rest } = options
  return {
    ...rest,
    ...(stride !== undefined && { stride: [1, stride] as const }),
    ...(padding !== undefined && { padding: [0, padding] as const }),
    ...(dilation !== undefined && { dilation: [1, dilation] as const }),
  }
}

function onLine(ops: Ops, op: string, x: Tensor, fn: (x: Tensor) => Tensor): Tensor {
  if (x.ndim !== 2 && x.ndim !== 3) throw wrongRank(op, '[N, C, L] or [C, L]', x)
  return ops.squeeze(fn(ops.unsqueeze(x, -2)), -2)
}

function maxPool(ops: Ops, op: string, x: Tensor, kernelSize: Pair, options: MaxPoolOptions<Pair>): readonly [Tensor, Tensor] {
  return ops.maxPoolPlanes(x, geometry(op, x, kernelSize, options, options.dilation ?? 1))
}

function avgPool(ops: Ops, op: string, x: Tensor, kernelSize: Pair, options: AvgPoolOptions<Pair>): Tensor {
  const { countIncludePad = true, divisorOverride = null } = options
  if (divisorOverride !== null && !(Number.isInteger(divisorOverride) && divisorOverride !== 0)) {
    throw invalidArgument(op, 'as divisorOverride an integer that is not 0', divisorOverride)
  }
  const g = geometry(op, x, kernelSize, options, 1)
  return ops.avgPoolPlanes(x, { ...g, includePad: countIncludePad ? 1 : 0, divisor: divisorOverride ?? 0 })
}

function adaptive(ops: Ops, op: string, x: Tensor, [oh, ow]: readonly [number, number]): Tensor {
  if (x.ndim !== 3 && x.ndim !== 4) throw wrongRank(op, '[N, C, H, W] or [C, H, W]', x)
  const [h, w] = x.shape.slice(-2) as [number, number]
  if (h === 0 || w === 0)
    throw shapeMismatch(op, 'planes of at least one element', shapeText(x.shape), 'There is nothing to take a mean of.')
  if (oh > 0 && ow > 0 && h % oh === 0 && w % ow === 0) return avgPool(ops, op, x, [h / oh, w / ow], {})
  return meansAlong(ops, meansAlong(ops, x, x.ndim - 1, ow), x.ndim - 2, oh)
}

function meansAlong(ops: Ops, x: Tensor, d: number, to: number): Tensor {
  const from = x.shape[d]!
  const ends = Array.from({ length: to }, (_, i) => [Math.floor((i * from) / to), Math.ceil(((i + 1) * from) / to)] as const)
  const longest = Math.max(1, ...ends.map(([first, end]) => end - first))
  const places = ends.flatMap(([first, end]) => Array.from({ length: longest }, (_, j) => (first + j < end ? first + j : from)))
  const counts = allocate(x.dtype, to)
  for (const [i, [first, end]] of ends.entries()) counts[i] = end - first
  const behind = x.shape.slice(d + 1)
  const padded = ops.constantPad(x, [...behind.flatMap(() => [0, 0]), 0, 1])
  const picked = ops.indexSelect(
    padded,
    d,
    placesFor(x, places.length, (i) => places[i]!),
  )
  const windows = ops.reshape(picked, [...x.shape.slice(0, d), to, longest, ...behind])
  return ops.div(ops.sum(windows, d + 1), Tensor.over(x.dtype, [to, ...behind.map(() => 1)], counts, x.storage.memory))
}

function wrongRank(op: string, expected: string, x: Tensor) {
  return shapeMismatch(op, expected, shapeText(x.shape), 'Insert missing dimensions with unsqueeze(), or reshape().')
}

/** @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function geometry(op: string, x: Tensor, kernelSize: Pair, options: MaxPoolOptions<Pair>, dilation: Pair): PoolGeometry {
  const { ndim, shape } = x
  if (ndim !== 3 && ndim !== 4) throw wrongRank(op, '[N, C, H, W] or [C, H, W]', x)
  const h = shape[ndim - 2]!
  const w = shape[ndim - 1]!
  const [kh, kw] = pair(op, 'kernelSize', kernelSize, 1)
  const [strideH, strideW] = pair(op, 'stride', options.stride ?? kernelSize, 1)
  const [padH, padW] = pair(op, 'padding', options.padding ?? 0, 0)
  const [dilH, dilW] = pair(op, 'dilation', dilation, 1)
  if (padH > kh / 2 || padW > kw / 2) {
    throw invalidArgument(
      op,
      `a padding of at most half the kernel, ${kh} × ${kw}`,
      `${padH}, ${padW}`,
      'More would make windows of nothing but padding.',
    )
  }
  const extent = (size: number, k: number, stride: number, pad: number, dil: number): number => {
    const out = Math.floor((size + 2 * pad - dil * (k - 1) - 1 + (options.ceilMode ? stride - 1 : 0)) / stride) + 1
    // The last window begins within the plane or its front padding, never after it.
    return options.ceilMode && (out - 1) * stride >= size + pad ? out - 1 : out
  }
  const [oh, ow] = [extent(h, kh, strideH, padH, dilH), extent(w, kw, strideW, padW, dilW)]
  if (oh < 1 || ow < 1) {
    throw shapeMismatch(
      op,
      `planes of at least ${dilH * (kh - 1) + 1} × ${dilW * (kw - 1) + 1} with their padding`,
      shapeText(shape),
      'Pad more, or use a smaller kernel.',
    )
  }
  const planes = ndim === 3 ? shape[0]! : shape[0]! * shape[1]!
  return { planes, h, w, kh, kw, oh, ow, strideH, strideW, padH, padW, dilH, dilW }
}
