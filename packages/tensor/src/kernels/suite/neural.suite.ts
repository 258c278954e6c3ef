/** Kernels of neural networks. */

import type { ConvGeometry, ConvKernel } from '../table.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'

export function conv(cell: Cell): void {
  type K = ConvKernel<Any>
  const { op } = cell
  for (const g of convGeometries(cell.isSlow)) {
    const [x, y] = [g.n * g.c * g.h * g.w, g.n * g.o * g.oh * g.ow]
    const weight = (g.o * g.c * g.kh * g.kw) / g.groups
    const [aSize, bSize, size] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
    const a = cell.values(aSize + 3, cell.dtype, false)
    const b = cell.values(bSize + 3, cell.dtype, false)
    const terms = op === 'conv2d' ? weight / g.o : op === 'conv2dInput' ? (g.o / g.groups) * g.kh * g.kw : g.n * g.oh * g.ow
    cell.compare<K>(JSON.stringify(g), cell.rubbish(cell.dtype, size + 6), terms, maxAbs(a) * maxAbs(b), (k, o) =>
      k.run(g, a, 2, b, 1, o, 3),
    )
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
