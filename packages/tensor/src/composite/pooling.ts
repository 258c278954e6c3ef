/** Pooling as users call it: options checked, lines as planes of height 1, and the geometry worked out for `raw/neural/pooling.ts`. */

import type { PoolGeometry } from '../kernels/table/neural.js'
import type { Ops } from '../ops/ops.js'
import type { AvgPoolOptions, MaxPoolOptions, Pair, PoolingOps } from '../ops/ops-neural.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { numelOf } from '../values/shape.js'
import { pair } from './window.js'

export function poolingComposites(ops: Ops<Tensor>): PoolingOps<Tensor> {
  return {
    maxPool1d: (x, kernelSize, options = {}) =>
      line('maxPool1d', x, (plane) => maxPool('maxPool1d', plane, flat(kernelSize), flatten(options))[0]),
    maxPool2d: (x, kernelSize, options = {}) => maxPool('maxPool2d', x, kernelSize, options)[0],
    maxPool2dWithIndices: (x, kernelSize, options = {}) => maxPool('maxPool2dWithIndices', x, kernelSize, options),
    avgPool1d: (x, kernelSize, options = {}) =>
      line('avgPool1d', x, (plane) => avgPool('avgPool1d', plane, flat(kernelSize), flatten(options))),
    avgPool2d: (x, kernelSize, options = {}) => avgPool('avgPool2d', x, kernelSize, options),
    adaptiveAvgPool1d: (x, outputSize) => {
      const [size] = pair('adaptiveAvgPool1d', 'outputSize', outputSize, 0)
      return line('adaptiveAvgPool1d', x, (plane) => adaptive('adaptiveAvgPool1d', plane, [1, size]))
    },
    adaptiveAvgPool2d: (x, outputSize) => adaptive('adaptiveAvgPool2d', x, pair('adaptiveAvgPool2d', 'outputSize', outputSize, 0)),
  }

  /** [N, C, L] as [N, C, 1, L]. */
  function line(op: string, x: Tensor, fn: (x: Tensor) => Tensor): Tensor {
    if (x.ndim !== 2 && x.ndim !== 3) throw wrongRank(op, '[N, C, L] or [C, L]', x)
    return ops.squeeze(fn(ops.unsqueeze(x, -2)), -2)
  }

  function maxPool(op: string, x: Tensor, kernelSize: Pair, options: MaxPoolOptions<Pair>): readonly [Tensor, Tensor] {
    return ops.maxPoolPlanes(x, geometry(op, x, kernelSize, options, options.dilation ?? 1))
  }

  function avgPool(op: string, x: Tensor, kernelSize: Pair, options: AvgPoolOptions<Pair>): Tensor {
    const { countIncludePad = true, divisorOverride = null } = options
    if (divisorOverride !== null && !(Number.isInteger(divisorOverride) && divisorOverride !== 0)) {
      throw invalidArgument(op, 'as divisorOverride an integer that is not 0', divisorOverride)
    }
    const g = geometry(op, x, kernelSize, options, 1)
    return ops.avgPoolPlanes(x, { ...g, includePad: countIncludePad ? 1 : 0, divisor: divisorOverride ?? 0 })
  }

  /** Windows of equal size are an avgPool; others are means along the columns, then along the rows. */
  function adaptive(op: string, x: Tensor, [oh, ow]: readonly [number, number]): Tensor {
    if (x.ndim !== 3 && x.ndim !== 4) throw wrongRank(op, '[N, C, H, W] or [C, H, W]', x)
    const [h, w] = x.shape.slice(-2) as [number, number]
    if (h === 0 || w === 0)
      throw shapeMismatch(op, 'planes of at least one element', shapeText(x.shape), 'There is nothing to take a mean of.')
    if (oh > 0 && ow > 0 && h % oh === 0 && w % ow === 0) return avgPool(op, x, [h / oh, w / ow], {})
    return meansAlong(meansAlong(x, x.ndim - 1, ow), x.ndim - 2, oh)
  }

  /** Each window's places picked side by side, those that it lacks from a 0 behind the last: no window touches what another one sees. */
  function meansAlong(x: Tensor, d: number, to: number): Tensor {
    const from = x.shape[d]!
    const ends = Array.from({ length: to }, (_, i) => [Math.floor((i * from) / to), Math.ceil(((i + 1) * from) / to)] as const)
    const longest = Math.max(1, ...ends.map(([first, end]) => end - first))
    const places = ends.flatMap(([first, end]) => Array.from({ length: longest }, (_, j) => (first + j < end ? first + j : from)))
    const counts = allocate(x.dtype, to)
    for (const [i, [first, end]] of ends.entries()) counts[i] = end - first
    const behind = x.shape.slice(d + 1)
    const padded = ops.constantPad(x, [...behind.flatMap(() => [0, 0]), 0, 1])
    const picked = ops.indexSelect(padded, d, Tensor.over('int32', [places.length], Int32Array.from(places), x.storage.memory))
    const windows = ops.reshape(picked, [...x.shape.slice(0, d), to, longest, ...behind])
    return ops.div(ops.sum(windows, d + 1), Tensor.over(x.dtype, [to, ...behind.map(() => 1)], counts, x.storage.memory))
  }
}

function flat(size: number): Pair {
  return [1, size]
}

function flatten<O extends MaxPoolOptions<number> & AvgPoolOptions<number>>(options: O) {
  const { stride, padding, dilation, ...rest } = options
  return {
    ...rest,
    ...(stride !== undefined && { stride: [1, stride] as const }),
    ...(padding !== undefined && { padding: [0, padding] as const }),
    ...(dilation !== undefined && { dilation: [1, dilation] as const }),
  }
}

function wrongRank(op: string, expected: string, x: Tensor) {
  return shapeMismatch(op, expected, shapeText(x.shape), 'Insert missing dimensions with unsqueeze(), or reshape().')
}

/** @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function geometry(op: string, x: Tensor, kernelSize: Pair, options: MaxPoolOptions<Pair>, dilation: Pair): PoolGeometry {
  if (x.ndim !== 3 && x.ndim !== 4) throw wrongRank(op, '[N, C, H, W] or [C, H, W]', x)
  const [h, w] = x.shape.slice(-2) as [number, number]
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
    // The last window begins within the plane or its padding in front, never behind.
    return options.ceilMode && (out - 1) * stride >= size + pad ? out - 1 : out
  }
  const [oh, ow] = [extent(h, kh, strideH, padH, dilH), extent(w, kw, strideW, padW, dilW)]
  if (oh < 1 || ow < 1) {
    throw shapeMismatch(
      op,
      `planes of at least ${dilH * (kh - 1) + 1} × ${dilW * (kw - 1) + 1} with their padding`,
      shapeText(x.shape),
      'Pad more, or use a smaller kernel.',
    )
  }
  return { planes: numelOf(x.shape.slice(0, -2)), h, w, kh, kw, oh, ow, strideH, strideW, padH, padW, dilH, dilW }
}
