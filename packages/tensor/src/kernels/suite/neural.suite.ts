/** Kernels of neural networks. */

import type {
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvGeometry,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
  PoolGeometry,
} from '../table/table.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'

export function conv(cell: Cell): void {
  type K = ConvKernel<Any>
  const { op } = cell
  for (const g of convGeometries(cell.isSlow)) {
    const [x, y] = [g.n * g.c * g.h * g.w, g.n * g.o * g.oh * g.ow]
    const weight = (g.o * g.c * g.kh * g.kw) / g.groups
    const [aSize, bSize, size] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
    const plain = cell.values(aSize + 3, cell.dtype, false)
    const b = cell.values(bSize + 3, cell.dtype, false)
    const terms = op === 'conv2d' ? weight / g.o : op === 'conv2dInput' ? (g.o / g.groups) * g.kh * g.kw : g.n * g.oh * g.ow
    // Not in b: whether a weight meets the padding depends on the form (rule CONV).
    for (const a of aSize > 1000 ? [plain] : cell.variants(plain)) {
      cell.compare<K>(JSON.stringify(g), cell.rubbish(cell.dtype, size + 6), terms, maxAbs(a) * maxAbs(b), (k, o) =>
        k.run(g, a, 2, b, 1, o, 3),
      )
    }
  }
}

/** Strides, paddings, dilations, groups, windows larger than what they read, 1 × 1, depthwise, nothing at all; large ones cut into blocks. */
function convGeometries(slow: boolean): ConvGeometry[] {
  const base = {
    n: 1,
    c: 1,
    h: 5,
    w: 6,
    o: 1,
    kh: 3,
    kw: 3,
    strideH: 1,
    strideW: 1,
    padH: 0,
    padW: 0,
    dilH: 1,
    dilW: 1,
    groups: 1,
    below: 0,
    right: 0,
  }
  const make = (changes: Partial<typeof base>): ConvGeometry => {
    const { below, right, ...g } = { ...base, ...changes }
    const extent = (size: number, k: number, stride: number, pad: number, dilation: number, more: number) =>
      Math.floor((size + 2 * pad + more - dilation * (k - 1) - 1) / stride) + 1
    const oh = extent(g.h, g.kh, g.strideH, g.padH, g.dilH, below)
    return { ...g, oh, ow: extent(g.w, g.kw, g.strideW, g.padW, g.dilW, right) }
  }
  const all = [
    {},
    { n: 2, c: 3, o: 4, padH: 1, padW: 1 },
    { n: 2, c: 4, o: 6, groups: 2, strideH: 2, strideW: 3, padH: 2, padW: 1 },
    { c: 2, o: 3, kh: 2, kw: 4, dilH: 2, dilW: 1, padH: 0, padW: 3 },
    { c: 5, o: 9, kh: 1, kw: 1, n: 3 },
    { c: 2, o: 2, kh: 1, kw: 1, strideH: 2, strideW: 2 },
    { c: 3, o: 3, groups: 3, padH: 1, padW: 1, n: 2 },
    { c: 2, o: 6, groups: 2, padH: 2, padW: 2, dilH: 2, dilW: 2, strideW: 2 },
    { h: 2, w: 2, kh: 2, kw: 2, padH: 3, padW: 3, c: 2, o: 2 },
    { kh: 2, kw: 2, below: 1, right: 1, c: 2, o: 3 },
    { h: 1, w: 20, kh: 1, kw: 5, c: 3, o: 2, padW: 2, n: 2 },
    { w: 6, padW: 6, kw: 1, kh: 1, dilW: 1, strideW: 4 },
    { n: 0, c: 2, o: 2 },
    { c: 0, o: 2 },
  ].map(make)
  if (!slow)
    all.push(
      ...[
        { n: 2, c: 16, o: 10, h: 40, w: 40, padH: 1, padW: 1 },
        { c: 40, o: 3, h: 64, w: 66, kh: 1, kw: 1 },
      ].map(make),
    )
  return all
}

/** The maxima and their places, each compared in turn. */
export function maxPool(cell: Cell): void {
  type K = MaxPoolKernel<Any>
  for (const g of poolGeometries()) {
    const size = g.planes * g.oh * g.ow
    for (const special of [false, true]) {
      const x = cell.values(g.planes * g.h * g.w + 3, cell.dtype, special)
      for (let i = 0; i + 3 < x.length; i += 4) x[i] = x[i + 3]! // ties
      const what = JSON.stringify(g)
      const places = new Int32Array(size + 6)
      cell.compare<K>(what, cell.rubbish(cell.dtype, size + 6), 1, 0, (k, o) => k.run(g, x, 2, o, 3, places, 3))
      const out = cell.rubbish(cell.dtype, size + 6)
      cell.compare<K>(`places of ${what}`, cell.rubbish('int32', size + 6), 1, 0, (k, o) => k.run(g, x, 2, out, 3, o as Int32Array, 3))
    }
  }
}

export function avgPool(cell: Cell): void {
  const { op } = cell
  type K = AvgPoolKernel<Any>
  for (const window of poolGeometries().filter((g) => g.dilH * g.dilW === 1)) {
    for (const [includePad, divisor] of [
      [1, 0],
      [0, 0],
      [1, 7],
    ] as const) {
      const g = { ...window, includePad, divisor }
      const [plane, pooled] = [g.planes * g.h * g.w, g.planes * g.oh * g.ow]
      const [from, to] = op === 'avgPool2d' ? [plane, pooled] : [pooled, plane]
      for (const x of cell.variants(cell.values(from + 3, cell.dtype, false))) {
        cell.compare<K>(JSON.stringify(g), cell.rubbish(cell.dtype, to + 6), g.kh * g.kw, maxAbs(x), (k, o) => k.run(g, x, 2, o, 3))
      }
    }
  }
}

/** Of the three outputs each in turn is the one that is compared. */
export function layerNorm(cell: Cell): void {
  const { op } = cell
  type K = LayerNormKernel<Any> & LayerNormBackwardKernel<Any>
  for (const [rows, d] of [
    [3, 4],
    [1, 1],
    [2, 37],
    [5, 8],
    [0, 3],
    [6, 50],
  ] as const) {
    const plain = cell.values(rows * d + 3, cell.dtype, false)
    const gradient = cell.values(rows * d + 3, cell.dtype, false)
    for (const [affine, x, grad] of normInputs(cell, plain, gradient)) {
      const [w, b] = affine ? [cell.values(d + 2, cell.dtype, false), cell.values(d + 2, cell.dtype, false)] : [null, null]
      const [mean, rstd] = [cell.values(rows, cell.dtype, false), cell.values(rows, cell.dtype, false).map(Math.abs)]
      const sizes = op === 'layerNorm' ? [rows * d, rows, rows] : [rows * d, d, d]
      const scale = 10 * (maxAbs(x) + 1) * (1 + maxAbs(grad)) * (1 + maxAbs(rstd)) ** 2 * (w === null ? 1 : maxAbs(w) + 1)
      for (let output = 0; output < 3; output++) {
        const what = `[${rows}, ${d}] ${affine ? 'with' : 'without'} weights, output ${output}`
        cell.compare<K>(what, cell.rubbish(cell.dtype, sizes[output]! + 2), Math.max(1, d, rows), scale, (k, o) => {
          const [p, q, r] = sizes.map((n, i) => (i === output ? o : cell.rubbish(cell.dtype, n))) as [Any, Any, Any]
          if (op === 'layerNorm') (k as LayerNormKernel<Any>).run(rows, d, 0.5, x, 2, w, 1, b, 2, p, q, r)
          else (k as LayerNormBackwardKernel<Any>).run(rows, d, grad, 1, x, 2, mean, rstd, w, 1, p, q, r)
        })
      }
    }
  }
}

export function channelNorm(cell: Cell): void {
  const { op } = cell
  type K = ChannelNormKernel<Any> & ChannelNormBackwardKernel<Any>
  for (const [outer, c, inner] of [
    [3, 2, 4],
    [4, 3, 1],
    [1, 1, 2],
    [2, 5, 9],
    [7, 2, 12],
    [3, 0, 4],
  ] as const) {
    const n = outer * c * inner
    const plain = cell.values(n + 3, cell.dtype, false)
    const gradient = cell.values(n + 3, cell.dtype, false)
    for (const [affine, x, grad] of normInputs(cell, plain, gradient)) {
      const [w, b] = affine ? [cell.values(c + 2, cell.dtype, false), cell.values(c + 2, cell.dtype, false)] : [null, null]
      const [mean, variance] = [cell.values(c, cell.dtype, false), cell.values(c, cell.dtype, false).map(Math.abs)]
      const sizes = [n, c, c]
      const scale = 10 * (maxAbs(x) + 1) ** 2 * (1 + maxAbs(grad)) * (w === null ? 1 : maxAbs(w) + 1)
      for (let output = 0; output < 3; output++) {
        const what = `[${outer}, ${c}, ${inner}] ${affine ? 'with' : 'without'} weights, output ${output}`
        cell.compare<K>(what, cell.rubbish(cell.dtype, sizes[output]! + 2), outer * inner, scale, (k, o) => {
          const [p, q, r] = sizes.map((size, i) => (i === output ? o : cell.rubbish(cell.dtype, size))) as [Any, Any, Any]
          if (op === 'channelNorm') (k as ChannelNormKernel<Any>).run(outer, c, inner, 0.5, x, 2, w, 1, b, 2, p, q, r)
          else (k as ChannelNormBackwardKernel<Any>).run(outer, c, inner, 0.5, grad, 1, x, 2, mean, variance, w, 1, p, q, r)
        })
      }
    }
  }
}

/** With weights and without; then strange numbers, in x going forward and in the gradient going back. */
function normInputs(cell: Cell, x: Any, grad: Any): (readonly [affine: boolean, x: Any, grad: Any])[] {
  const forward = cell.op === 'layerNorm' || cell.op === 'channelNorm'
  const strange = forward
    ? cell.variants(x).map((v) => [true, v, grad] as const)
    : cell.variants(grad, true).map((v) => [true, x, v] as const)
  return [...strange, [false, x, grad]]
}

/** Windows side by side, overlapping, padded, dilated, larger than the plane with its padding; nothing at all. */
function poolGeometries(): PoolGeometry[] {
  const base = { planes: 2, h: 4, w: 5, kh: 2, kw: 2, oh: 2, ow: 2, strideH: 2, strideW: 2, padH: 0, padW: 0, dilH: 1, dilW: 1 }
  return [
    {},
    { kh: 3, kw: 3, padH: 1, padW: 1, oh: 2, ow: 3, planes: 3 },
    { strideH: 1, strideW: 1, oh: 3, ow: 4 },
    { kh: 1, kw: 3, strideH: 3, strideW: 1, oh: 2, ow: 3 },
    { kh: 2, kw: 3, dilH: 3, dilW: 2, oh: 1, ow: 1 },
    { kh: 2, kw: 3, dilH: 2, dilW: 2, padH: 1, padW: 1, strideH: 1, strideW: 1, oh: 4, ow: 3 },
    // The last windows end outside (ceilMode).
    { kh: 3, kw: 2, oh: 2, ow: 3 },
    { planes: 9, kh: 3, kw: 3, strideH: 1, strideW: 1, padH: 1, padW: 1, oh: 4, ow: 5 },
    { h: 5, w: 19, kh: 3, kw: 3, padH: 1, padW: 1, oh: 3, ow: 10 },
    // Dilation carries the only window over the whole plane.
    { h: 2, w: 2, dilH: 3, dilW: 3, padH: 1, padW: 1, oh: 1, ow: 1 },
    { planes: 0 },
  ].map((changes) => ({ ...base, ...changes }))
}
