/** The reference kernels of neural networks: each the definition written down, in double precision with one rounding on storing. */
import type { TypedArray } from '../../values/dtype.js'
import type {
  AvgPoolGeometry,
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvGeometry,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
  NEURAL_KERNEL_OPS,
  PoolGeometry,
} from '../table/neural.js'
import { type ArrayKernelTable, unsupported } from '../table/table.js'

type T = TypedArray

/** Calls `f` for every product of a convolution, in ascending order of y's elements and, for each, of the weight's. */
function products(g: ConvGeometry, f: (y: number, x: number, weight: number) => void): void {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  for (let n = 0; n < g.n; n++) {
    for (let o = 0; o < g.o; o++) {
      const first = Math.floor(o / og) * cg
      for (let oy = 0; oy < g.oh; oy++) {
        for (let ox = 0; ox < g.ow; ox++) {
          for (let c = 0; c < cg; c++) {
            for (let ky = 0; ky < g.kh; ky++) {
              for (let kx = 0; kx < g.kw; kx++) {
                const iy = oy * g.strideH - g.padH + ky * g.dilH
                const ix = ox * g.strideW - g.padW + kx * g.dilW
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue
                f(
                  ((n * g.o + o) * g.oh + oy) * g.ow + ox,
                  ((n * g.c + first + c) * g.h + iy) * g.w + ix,
                  ((o * cg + c) * g.kh + ky) * g.kw + kx,
                )
              }
            }
          }
        }
      }
    }
  }
}

/** Sums in double what `f` adds up, and stores it. */
function summed(length: number, out: T, oo: number, f: (sums: Float64Array) => void): void {
  const sums = new Float64Array(length)
  f(sums)
  for (let i = 0; i < length; i++) out[oo + i] = sums[i]!
}

const conv2d: ConvKernel<T> = {
  run(g, x, xo, weight, wo, out, oo) {
    summed(g.n * g.o * g.oh * g.ow, out, oo, (sums) => products(g, (y, i, k) => (sums[y]! += x[xo + i]! * weight[wo + k]!)))
  },
}

const conv2dInput: ConvKernel<T> = {
  run(g, grad, go, weight, wo, out, oo) {
    summed(g.n * g.c * g.h * g.w, out, oo, (sums) => products(g, (y, i, k) => (sums[i]! += grad[go + y]! * weight[wo + k]!)))
  },
}

const conv2dWeight: ConvKernel<T> = {
  run(g, x, xo, grad, go, out, oo) {
    const length = (g.o * g.c * g.kh * g.kw) / g.groups
    summed(length, out, oo, (sums) => products(g, (y, i, k) => (sums[k]! += x[xo + i]! * grad[go + y]!)))
  },
}

/** Calls `f` with each place of the result and each place of the plane that its window reads, in row-major order. */
function reads(g: PoolGeometry, f: (to: number, from: number) => void): void {
  for (let to = 0; to < g.planes * g.oh * g.ow; to++) {
    const plane = Math.floor(to / (g.oh * g.ow))
    const oy = Math.floor(to / g.ow) % g.oh
    const ox = to % g.ow
    for (let ky = 0; ky < g.kh; ky++) {
      for (let kx = 0; kx < g.kw; kx++) {
        const y = oy * g.strideH - g.padH + ky * g.dilH
        const x = ox * g.strideW - g.padW + kx * g.dilW
        if (y >= 0 && y < g.h && x >= 0 && x < g.w) f(to, (plane * g.h + y) * g.w + x)
      }
    }
  }
}

const maxPool2d: MaxPoolKernel<T> = {
  run(g, x, xo, out, oo, indices, io) {
    const seen = new Set<number>()
    const inside = (from: number, step: number): number => (from >= 0 ? from : from + Math.ceil(-from / step) * step)
    for (let i = 0; i < g.planes * g.oh * g.ow; i++) {
      // What stays of a window that sees nothing: its first place on or behind the first row and column.
      const [oy, ox] = [Math.floor(i / g.ow) % g.oh, i % g.ow]
      out[oo + i] = Number.NEGATIVE_INFINITY
      indices[io + i] = inside(oy * g.strideH - g.padH, g.dilH) * g.w + inside(ox * g.strideW - g.padW, g.dilW)
    }
    reads(g, (to, from) => {
      const v = x[xo + from]!
      if (seen.has(to) && !(v > out[oo + to]! || Number.isNaN(v))) return
      seen.add(to)
      out[oo + to] = v
      indices[io + to] = from % (g.h * g.w)
    })
  },
}

/** What the sum of the window of each place is divided by. */
function divisors(g: AvgPoolGeometry): number[] {
  return Array.from({ length: g.oh * g.ow }, (_, i) => {
    if (g.divisor !== 0) return g.divisor
    const extent = (o: number, stride: number, pad: number, k: number, size: number): number => {
      const from = o * stride - pad
      return g.includePad ? Math.min(from + k, size + pad) - from : Math.min(from + k, size) - Math.max(from, 0)
    }
    return extent(Math.floor(i / g.ow), g.strideH, g.padH, g.kh, g.h) * extent(i % g.ow, g.strideW, g.padW, g.kw, g.w)
  })
}

const avgPool2d: AvgPoolKernel<T> = {
  run(g, x, xo, out, oo) {
    const by = divisors(g)
    const sums = new Float64Array(g.planes * g.oh * g.ow)
    reads(g, (to, from) => (sums[to]! += x[xo + from]!))
    for (let i = 0; i < sums.length; i++) out[oo + i] = sums[i] === 0 ? 0 : sums[i]! / by[i % by.length]!
  },
}

const avgPool2dBackward: AvgPoolKernel<T> = {
  run(g, grad, go, out, oo) {
    const by = divisors(g)
    summed(g.planes * g.h * g.w, out, oo, (sums) => reads(g, (to, from) => (sums[from]! += grad[go + to]! / by[to % by.length]!)))
  },
}

/** Which of x's elements share statistics (of `stats` of them), and which share a weight. */
interface Grouping {
  readonly elements: number
  readonly stats: number
  readonly affine: number
  stat(i: number): number
  column(i: number): number
}

const ofRows = (rows: number, d: number): Grouping => ({
  ...{ elements: rows * d, stats: rows, affine: d },
  stat: (i) => Math.floor(i / d),
  column: (i) => i % d,
})

function ofChannels(outer: number, c: number, inner: number): Grouping {
  const channel = (i: number): number => Math.floor(i / inner) % c
  return { elements: outer * c * inner, stats: c, affine: c, stat: channel, column: channel }
}

function moments(g: Grouping, x: T, xo: number): { mean: Float64Array; variance: Float64Array } {
  const count = g.elements / g.stats
  const mean = new Float64Array(g.stats)
  const variance = new Float64Array(g.stats)
  for (let i = 0; i < g.elements; i++) mean[g.stat(i)]! += x[xo + i]! / count
  for (let i = 0; i < g.elements; i++) variance[g.stat(i)]! += (x[xo + i]! - mean[g.stat(i)]!) ** 2 / count
  return { mean, variance }
}

function normalise(
  g: Grouping,
  rstd: (s: number) => number,
  mean: ArrayLike<number>,
  x: T,
  xo: number,
  w: T | null,
  wo: number,
  b: T | null,
  bo: number,
  out: T,
): void {
  for (let i = 0; i < g.elements; i++) {
    const column = g.column(i)
    const xhat = (x[xo + i]! - mean[g.stat(i)]!) * rstd(g.stat(i))
    out[i] = xhat * (w === null ? 1 : w[wo + column]!) + (b === null ? 0 : b[bo + column]!)
  }
}

/** dx = rstd (g w − mean(g w) − x̂ mean(g w x̂)), means over those that share statistics. */
function normaliseBackward(
  g: Grouping,
  rstd: (s: number) => number,
  grad: T,
  go: number,
  x: T,
  xo: number,
  mean: T,
  w: T | null,
  wo: number,
  out: T,
  weightGrad: T | null,
  biasGrad: T | null,
): void {
  const count = g.elements / g.stats
  const xhat = (i: number): number => (x[xo + i]! - mean[g.stat(i)]!) * rstd(g.stat(i))
  const gw = (i: number): number => grad[go + i]! * (w === null ? 1 : w[wo + g.column(i)]!)
  const [first, second] = [new Float64Array(g.stats), new Float64Array(g.stats)]
  const [forWeight, forBias] = [new Float64Array(g.affine), new Float64Array(g.affine)]
  for (let i = 0; i < g.elements; i++) {
    first[g.stat(i)]! += gw(i) / count
    second[g.stat(i)]! += (gw(i) * xhat(i)) / count
    forWeight[g.column(i)]! += grad[go + i]! * xhat(i)
    forBias[g.column(i)]! += grad[go + i]!
  }
  for (let i = 0; i < g.elements; i++) out[i] = rstd(g.stat(i)) * (gw(i) - first[g.stat(i)]! - xhat(i) * second[g.stat(i)]!)
  weightGrad?.set(forWeight)
  biasGrad?.set(forBias)
}

const layerNorm: LayerNormKernel<T> = {
  run(rows, d, eps, x, xo, w, wo, b, bo, out, mean, rstd) {
    const g = ofRows(rows, d)
    const found = moments(g, x, xo)
    const of = (s: number): number => 1 / Math.sqrt(found.variance[s]! + eps)
    normalise(g, of, found.mean, x, xo, w, wo, b, bo, out)
    mean.set(found.mean)
    for (let s = 0; s < rows; s++) rstd[s] = of(s)
  },
}

const layerNormBackward: LayerNormBackwardKernel<T> = {
  run(rows, d, grad, go, x, xo, mean, rstd, w, wo, out, weightGrad, biasGrad) {
    normaliseBackward(ofRows(rows, d), (s) => rstd[s]!, grad, go, x, xo, mean, w, wo, out, weightGrad, biasGrad)
  },
}

const channelNorm: ChannelNormKernel<T> = {
  run(outer, c, inner, eps, x, xo, w, wo, b, bo, out, mean, variance) {
    const g = ofChannels(outer, c, inner)
    const found = moments(g, x, xo)
    normalise(g, (s) => 1 / Math.sqrt(found.variance[s]! + eps), found.mean, x, xo, w, wo, b, bo, out)
    mean.set(found.mean)
    variance.set(found.variance)
  },
}

const channelNormBackward: ChannelNormBackwardKernel<T> = {
  run(outer, c, inner, eps, grad, go, x, xo, mean, variance, w, wo, out, weightGrad, biasGrad) {
    const rstd = (s: number): number => 1 / Math.sqrt(variance[s]! + eps)
    normaliseBackward(ofChannels(outer, c, inner), rstd, grad, go, x, xo, mean, w, wo, out, weightGrad, biasGrad)
  },
}

const REAL = unsupported('images, weights and statistics are real numbers')
const real = <K>(kernel: K) => ({ float32: kernel, float64: kernel, int32: REAL, bool: REAL })

/** A part of the table of `backend.ts`. */
export const neuralKernels: Pick<ArrayKernelTable, (typeof NEURAL_KERNEL_OPS)[number]> = {
  conv2d: real(conv2d),
  conv2dInput: real(conv2dInput),
  conv2dWeight: real(conv2dWeight),
  maxPool2d: real(maxPool2d),
  avgPool2d: real(avgPool2d),
  avgPool2dBackward: real(avgPool2dBackward),
  layerNorm: real(layerNorm),
  layerNormBackward: real(layerNormBackward),
  channelNorm: real(channelNorm),
  channelNormBackward: real(channelNormBackward),
}
