/** Rule CONV of KERNELS.md: the order in which convolutions of the wasm backend add, whatever the blocks are. */
import { expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { threadHeap } from '../../../heap/thread-heap.js'
import { allocate } from '../../../values/dtype.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { ConvGeometry } from '../../table/neural.js'
import type { Conv } from '../../table/operands.js'
import { isUnsupported } from '../../table/table.js'
import { createWasmBackend } from '../backend.js'

const { kernels } = createWasmBackend(threadHeap)
const SEED = 17

type Elements = Float32Array | Float64Array

/** A convolution with strides, paddings and dilations that are equal in both directions. */
function geometry(
  [n, c, h, w, o, kh, kw]: readonly [number, number, number, number, number, number, number],
  stride: number,
  pad: number,
  dilation: number,
  groups = 1,
): ConvGeometry {
  const extent = (size: number, window: number) => Math.floor((size + 2 * pad - dilation * (window - 1) - 1) / stride) + 1
  return {
    ...{ n, c, h, w, o, kh, kw, groups, oh: extent(h, kh), ow: extent(w, kw) },
    ...{ strideH: stride, strideW: stride, padH: pad, padW: pad, dilH: dilation, dilW: dilation },
  }
}

const CASES: readonly ConvGeometry[] = [
  // More places, output channels and window elements than one call takes.
  geometry([1, 30, 25, 33, 66, 3, 3], 1, 1, 1),
  // Rows longer than one call takes; odd sizes, whose last tiles are cut.
  geometry([1, 2, 2, 1601, 5, 2, 3], 1, 1, 1),
  // Strides, dilations, groups, and padding beyond the window.
  geometry([3, 4, 21, 23, 6, 3, 4], 2, 1, 1, 2),
  geometry([1, 3, 17, 19, 9, 3, 3], 1, 2, 2),
  geometry([1, 2, 6, 7, 3, 2, 2], 1, 3, 1),
  geometry([1, 3, 30, 31, 2, 5, 5], 3, 2, 2),
  // Few channels, whose lanes are places, with more window elements than one call takes; of the result and of the image.
  geometry([2, 120, 6, 23, 3, 3, 3], 1, 1, 1),
  geometry([2, 2, 6, 23, 240, 3, 3], 1, 1, 1),
  geometry([1, 4, 9, 19, 130, 3, 3], 1, 0, 1, 2),
  // Narrow results, and a 1 × 1 window.
  geometry([2, 5, 90, 4, 7, 3, 3], 1, 0, 1),
  geometry([2, 12, 20, 20, 11, 1, 1], 1, 0, 1),
  geometry([2, 6, 5, 5, 9, 1, 1], 1, 0, 1, 3),
]

/** Without globals in the loops: in jest's realm each look-up costs more than the rest. */
const { floor, fround } = Math
const { isInteger } = Number
type Round = (x: number) => number

function run(
  kernel: object,
  a: Elements,
  aShape: number[],
  b: Elements,
  bShape: number[],
  out: Elements,
  shape: number[],
  g: ConvGeometry,
) {
  if (isUnsupported(kernel as never)) throw new Error('a convolution without a kernel')
  ;(kernel as Conv)(operandOf(a, 0, aShape), operandOf(b, 0, bShape), null, operandOf(out, 0, shape), g)
}

test.each(['float32', 'float64'] as const)(`CONV: convolutions add in the documented order (%s, seed ${SEED})`, (dtype) => {
  const generator = xoroshiro128plus(SEED)
  const random = () => (generator.next() >>> 0) / 2 ** 32 - 0.5
  const round = dtype === 'float32' ? fround : (x: number) => x
  const make = (n: number) => (allocate(dtype, n) as Float64Array).map(random) as Elements
  for (const g of CASES) {
    const cg = g.c / g.groups
    const sizes = { x: g.n * g.c * g.h * g.w, weight: g.o * cg * g.kh * g.kw, y: g.n * g.o * g.oh * g.ow }
    const shapes = { x: [g.n, g.c, g.h, g.w], weight: [g.o, cg, g.kh, g.kw], y: [g.n, g.o, g.oh, g.ow] }
    const [x, weight, y] = [make(sizes.x), make(sizes.weight), make(sizes.y)]
    const got = { conv2d: make(sizes.y), conv2dInput: make(sizes.x), conv2dWeight: make(sizes.weight) }
    run(kernels.conv2d[dtype], x, shapes.x, weight, shapes.weight, got.conv2d, shapes.y, g)
    run(kernels.conv2dInput[dtype], y, shapes.y, weight, shapes.weight, got.conv2dInput, shapes.x, g)
    run(kernels.conv2dWeight[dtype], x, shapes.x, y, shapes.y, got.conv2dWeight, shapes.weight, g)
    const zeros = (n: number) => allocate(dtype, n) as Elements
    const want = { conv2d: zeros(sizes.y), conv2dInput: zeros(sizes.x), conv2dWeight: zeros(sizes.weight) }
    forward(g, x, weight, want.conv2d, round)
    input(g, y, weight, want.conv2dInput, round)
    weights(g, x, y, want.conv2dWeight, round)
    for (const op of ['conv2d', 'conv2dInput', 'conv2dWeight'] as const) {
      const wrong = got[op].findIndex((value, i) => value !== want[op][i])
      if (wrong >= 0) throw new Error(`${op} of ${JSON.stringify(g)} at ${wrong}: ${got[op][wrong]} is not ${want[op][wrong]}`)
      expect(want[op].some((value) => value !== 0)).toBe(true)
    }
  }
})

/** Each element over (c, ky, kx). */
function forward(g: ConvGeometry, x: Elements, weight: Elements, y: Elements, round: Round): void {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  for (let at = 0; at < y.length; at++) {
    const [ox, oy] = [at % g.ow, floor(at / g.ow) % g.oh]
    const plane = floor(at / (g.ow * g.oh))
    const [o, n] = [plane % g.o, floor(plane / g.o)]
    let sum = 0
    for (let c = 0; c < cg; c++) {
      for (let ky = 0; ky < g.kh; ky++) {
        for (let kx = 0; kx < g.kw; kx++) {
          const iy = oy * g.strideH - g.padH + ky * g.dilH
          const ix = ox * g.strideW - g.padW + kx * g.dilW
          if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue
          const value = x[((n * g.c + floor(o / og) * cg + c) * g.h + iy) * g.w + ix]!
          sum = round(sum + round(weight[((o * cg + c) * g.kh + ky) * g.kw + kx]! * value))
        }
      }
    }
    y[at] = sum
  }
}

/** Each element over (o, ky, kx); with strides over o for each (ky, kx), and these products are added. */
function input(g: ConvGeometry, y: Elements, weight: Elements, x: Elements, round: Round): void {
  const [cg, og, window] = [g.c / g.groups, g.o / g.groups, g.kh * g.kw]
  for (let at = 0; at < x.length; at++) {
    const [ix, iy] = [at % g.w, floor(at / g.w) % g.h]
    const plane = floor(at / (g.w * g.h))
    const [channel, n] = [plane % g.c, floor(plane / g.c)]
    const first = floor(channel / cg) * og
    const add = (sum: number, o: number, k: number): number => {
      const oy = (iy + g.padH - floor(k / g.kw) * g.dilH) / g.strideH
      const ox = (ix + g.padW - (k % g.kw) * g.dilW) / g.strideW
      if (!isInteger(oy) || !isInteger(ox) || oy < 0 || oy >= g.oh || ox < 0 || ox >= g.ow) return sum
      const factor = weight[((first + o) * cg + (channel % cg)) * window + k]!
      return round(sum + round(factor * y[((n * g.o + first + o) * g.oh + oy) * g.ow + ox]!))
    }
    let sum = 0
    if (g.strideH * g.strideW === 1) {
      for (let o = 0; o < og; o++) for (let k = 0; k < window; k++) sum = add(sum, o, k)
    } else {
      for (let k = 0; k < window; k++) {
        let product = 0
        for (let o = 0; o < og; o++) product = add(product, o, k)
        sum = round(sum + product)
      }
    }
    x[at] = sum
  }
}

/** Each element over (oy, ox) of each image, and these sums are added. */
function weights(g: ConvGeometry, x: Elements, y: Elements, weight: Elements, round: Round): void {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  for (let at = 0; at < weight.length; at++) {
    const [kx, ky] = [at % g.kw, floor(at / g.kw) % g.kh]
    const row = floor(at / (g.kh * g.kw))
    const [c, o] = [row % cg, floor(row / cg)]
    let total = 0
    for (let n = 0; n < g.n; n++) {
      let sum = 0
      for (let oy = 0; oy < g.oh; oy++) {
        for (let ox = 0; ox < g.ow; ox++) {
          const iy = oy * g.strideH - g.padH + ky * g.dilH
          const ix = ox * g.strideW - g.padW + kx * g.dilW
          if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue
          const value = x[((n * g.c + floor(o / og) * cg + c) * g.h + iy) * g.w + ix]!
          sum = round(sum + round(value * y[((n * g.o + o) * g.oh + oy) * g.ow + ox]!))
        }
      }
      total = round(total + sum)
    }
    weight[at] = total
  }
}
