/** Kernels of neural networks. */

import type { ConvGeometry, PoolGeometry } from '../table/neural.js'
import type { AvgPool, Conv, MaxPool, Norm, NormBackward, Operand } from '../table/operands.js'
import { type Any, type Block, type Cell, maxAbs } from './cell.suite.js'
import { elementsOf, operandOf } from './layouts.suite.js'

export function conv(cell: Cell): void {
  const { op } = cell
  for (const g of cell.sizes(convGeometries(cell.isSlow), () => drawnConv(cell))) {
    const [x, y, weight] = [
      [g.n, g.c, g.h, g.w],
      [g.n, g.o, g.oh, g.ow],
      [g.o, g.c / g.groups, g.kh, g.kw],
    ]
    const [aShape, bShape, shape] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
    const plain = cell.values(elementsOf(aShape) + 3, cell.dtype, false)
    const b = cell.values(elementsOf(bShape) + 3, cell.dtype, false)
    const biases = cell.values(g.o + 2, cell.dtype, false)
    const terms = op === 'conv2d' ? elementsOf(weight) / g.o : op === 'conv2dInput' ? (g.o / g.groups) * g.kh * g.kw : g.n * g.oh * g.ow
    const isLarge = plain.length > 1000
    // Not in b: whether a weight meets the padding depends on the form (rule CONV).
    for (const a of isLarge ? [plain] : cell.variants(plain)) {
      for (const bias of op !== 'conv2d' ? [null] : isLarge ? [biases] : [null, biases]) {
        const what = `${JSON.stringify(g)}${bias === null ? '' : ' with a bias'}`
        const largest = maxAbs(a) * maxAbs(b) + maxAbs(biases)
        cell.compare<Conv>(what, cell.rubbish(cell.dtype, elementsOf(shape) + 6), terms + 1, largest, (k, o) =>
          k(operandOf(a, 2, aShape), operandOf(b, 1, bShape), bias && operandOf(bias, 2, [g.o]), operandOf(o, 3, shape), g),
        )
      }
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
    return { ...g, oh: extentOf(g.h, g.kh, g.strideH, g.padH, g.dilH, below), ow: extentOf(g.w, g.kw, g.strideW, g.padW, g.dilW, right) }
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

/** Windows that fit into a row of so many places; `more` are padding on its right alone. */
const extentOf = (size: number, window: number, stride: number, pad: number, dilation: number, more: number): number =>
  Math.floor((size + 2 * pad + more - dilation * (window - 1) - 1) / stride) + 1

/** One direction of a drawn window: it sees something, and its windows are at least one. */
function drawnSide(cell: Cell, sizeMax: number, padMax: number) {
  const [size, dil] = [cell.extent(sizeMax), cell.random() < 0.7 ? 1 : cell.extent(3)]
  const pad = cell.below(padMax + 1)
  const k = Math.min(cell.one([1, 2, 3, 3, 5, 7]), Math.floor((size + 2 * pad - 1) / dil) + 1)
  const stride = cell.random() < 0.6 ? 1 : cell.extent(4)
  return { size, k, stride, pad, dil, windows: extentOf(size, k, stride, pad, dil, cell.below(2)) }
}

const windowOf = (y: ReturnType<typeof drawnSide>, x: ReturnType<typeof drawnSide>) => ({
  ...{ h: y.size, w: x.size, kh: y.k, kw: x.k, oh: y.windows, ow: x.windows },
  ...{ strideH: y.stride, strideW: x.stride, padH: y.pad, padW: x.pad, dilH: y.dil, dilW: x.dil },
})

function drawnConv(cell: Cell): ConvGeometry {
  const window = windowOf(drawnSide(cell, 20, 3), drawnSide(cell, 40, 3))
  const groups = cell.random() < 0.7 ? 1 : cell.extent(4)
  // At most so many products.
  const [n, c, o] = cell.extents(3, Math.max(1, Math.floor(60_000 / (window.oh * window.ow * window.kh * window.kw * groups)))) as [
    number,
    number,
    number,
  ]
  return { ...window, n, c: c * groups, o: o * groups, groups }
}

function drawnPool(cell: Cell): PoolGeometry {
  const window = windowOf(drawnSide(cell, 16, 1), drawnSide(cell, 30, 1))
  // PyTorch pads by half of a window at most.
  const [padH, padW] = [Math.min(window.padH, window.kh >> 1), Math.min(window.padW, window.kw >> 1)]
  const [oh, ow] = [
    extentOf(window.h, window.kh, window.strideH, padH, window.dilH, 0),
    extentOf(window.w, window.kw, window.strideW, padW, window.dilW, 0),
  ]
  return { ...window, padH, padW, oh: Math.max(1, oh), ow: Math.max(1, ow), planes: cell.extent(6, 0) }
}

/** The maxima and their places, each compared in turn. */
export function maxPool(cell: Cell): void {
  for (const g of cell.sizes(poolGeometries(), () => drawnPool(cell))) {
    const [plane, pooled] = shapesOf(g)
    const size = elementsOf(pooled)
    for (const special of [false, true]) {
      const values = cell.values(elementsOf(plane) + 3, cell.dtype, special)
      for (let i = 0; i + 3 < values.length; i += 4) values[i] = values[i + 3]! // ties
      const x = operandOf(values, 2, plane)
      const what = JSON.stringify(g)
      const places = operandOf(new Int32Array(size + 6), 3, pooled)
      cell.compare<MaxPool>(what, cell.rubbish(cell.dtype, size + 6), 1, 0, (k, o) => k(x, operandOf(o, 3, pooled), places, g))
      const out = operandOf(cell.rubbish(cell.dtype, size + 6), 3, pooled)
      cell.compare<MaxPool>(`places of ${what}`, cell.rubbish('int32', size + 6), 1, 0, (k, o) => k(x, out, operandOf(o, 3, pooled), g))
    }
  }
}

const shapesOf = (g: PoolGeometry) =>
  [
    [g.planes, g.h, g.w],
    [g.planes, g.oh, g.ow],
  ] as const

export function avgPool(cell: Cell): void {
  const { op } = cell
  const own = poolGeometries().filter((g) => g.dilH * g.dilW === 1)
  for (const window of cell.sizes(own, () => ({ ...drawnPool(cell), dilH: 1, dilW: 1 }))) {
    for (const [includePad, divisor] of [
      [1, 0],
      [0, 0],
      [1, 7],
    ] as const) {
      const g = { ...window, includePad, divisor }
      const [plane, pooled] = shapesOf(g)
      const [from, to] = op === 'avgPool2d' ? [plane, pooled] : [pooled, plane]
      for (const x of cell.variants(cell.values(elementsOf(from) + 3, cell.dtype, false))) {
        cell.compare<AvgPool>(JSON.stringify(g), cell.rubbish(cell.dtype, elementsOf(to) + 6), g.kh * g.kw, maxAbs(x), (k, o) =>
          k(operandOf(x, 2, from), operandOf(o, 3, to), g),
        )
      }
    }
  }
}

export function layerNorm(cell: Cell): void {
  const own: readonly (readonly [number, number])[] = [
    [3, 4],
    [1, 1],
    [2, 37],
    [5, 8],
    [0, 3],
    [6, 50],
    // More than is read at once, and not a multiple of it.
    ...(cell.isSlow ? [] : ([[90, 50]] as const)),
  ]
  const draw = (): (typeof own)[number] => {
    const [rows, d] = cell.extents(2, 2500, 0) as [number, number]
    return [rows, Math.max(1, d)]
  }
  for (const [rows, d] of cell.sizes(own, draw)) {
    norm(cell, [rows, d], rows, d, Math.max(1, d, rows), (x, grad, spread) => 10 * (x + 1) * (1 + grad) * (1 + spread) ** 2)
  }
}

export function channelNorm(cell: Cell): void {
  const own: readonly Block[] = [
    [3, 2, 4],
    [4, 3, 1],
    [1, 1, 2],
    [2, 5, 9],
    [7, 2, 12],
    [3, 0, 4],
    // Long runs, and more than is read at once: in the middle of an image, and of a row of channels.
    ...(cell.isSlow
      ? []
      : ([
          [2, 3, 41],
          [3, 3, 1501],
          [70, 71, 1],
        ] as const)),
  ]
  for (const [outer, c, inner] of cell.sizes(own, () => cell.block(2500))) {
    norm(cell, [outer, c, inner], c, c, outer * inner, (x, grad) => 10 * (x + 1) ** 2 * (1 + grad))
  }
}

/** x [shape] of so many statistics and weights; `scale` is of the largest x, gradient and spread. Of the three outputs each in turn is compared. */
function norm(
  cell: Cell,
  shape: readonly number[],
  statistics: number,
  weights: number,
  terms: number,
  scale: (x: number, grad: number, spread: number) => number,
): void {
  type K = Norm & NormBackward
  const forward = cell.op === 'layerNorm' || cell.op === 'channelNorm'
  const vector = (array: Any | null, offset: number, n: number) => (array === null ? null : operandOf(array, offset, [n]))
  const values = (n: number) => cell.values(n + 3, cell.dtype, false)
  for (const [affine, x, grad] of normInputs(cell, values(elementsOf(shape)), values(elementsOf(shape)))) {
    const [weight, bias] = affine ? [values(weights), values(weights)] : [null, null]
    const [mean, spread] = [values(statistics), values(statistics).map(Math.abs)]
    const [w, b, m, s] = [
      vector(weight, 1, weights),
      vector(bias, 2, weights),
      vector(mean, 1, statistics)!,
      vector(spread, 2, statistics)!,
    ]
    const shapes = forward ? [shape, [statistics], [statistics]] : [shape, [weights], [weights]]
    const size = scale(maxAbs(x), maxAbs(grad), maxAbs(spread)) * (weight === null ? 1 : maxAbs(weight) + 1)
    for (let output = 0; output < 3; output++) {
      const what = `[${shape.join(', ')}] ${affine ? 'with' : 'without'} weights, output ${output}`
      cell.compare<K>(what, cell.rubbish(cell.dtype, elementsOf(shapes[output]!) + 4), terms, size, (k, o) => {
        const outs = shapes.map((each, i) => operandOf(i === output ? o : cell.rubbish(cell.dtype, elementsOf(each) + 4), 2, each))
        const [p, q, r] = outs as [Operand, Operand, Operand]
        if (forward) (k as Norm)(operandOf(x, 2, shape), w, b, p, q, r, 0.5)
        else (k as NormBackward)(operandOf(grad, 1, shape), operandOf(x, 2, shape), m, s, w, p, q, r, 0.5)
      })
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
    // More planes than the wasm backend stages at once.
    { planes: 4, h: 30, w: 30, oh: 15, ow: 15 },
    // Dilation carries the only window over the whole plane.
    { h: 2, w: 2, dilH: 3, dilW: 3, padH: 1, padW: 1, oh: 1, ow: 1 },
    { planes: 0 },
  ].map((changes) => ({ ...base, ...changes }))
}
