/** The oracle of convolutions, pooling and normalisation: each element from its definition, in double precision. Part of `oracle.suite.ts`. */
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
  PoolGeometry,
} from '../table/neural.js'
import { unsupported } from '../table/table.js'

type T = TypedArray
type Index = readonly number[]

/** All indices of a shape, in row-major order. */
function* indicesOf(...shape: readonly number[]): Iterable<Index> {
  const [extent, ...rest] = shape
  if (extent === undefined) yield []
  else for (let i = 0; i < extent; i++) for (const inner of indicesOf(...rest)) yield [i, ...inner]
}

/** The place of an index in a dense array of that shape. */
const placeOf = (shape: Index, index: Index): number => index.reduce((at, i, d) => at * shape[d]! + i, 0)

function sumOver(shape: Index, term: (...index: number[]) => number): number {
  let total = 0
  for (const index of indicesOf(...shape)) total += term(...index)
  return total
}

/** Writes `f` of each index of `shape`. */
function fill(out: T, oo: number, shape: Index, f: (...index: number[]) => number): void {
  let at = oo
  for (const index of indicesOf(...shape)) out[at++] = f(...index)
}

/** The places of one convolution, and what is at them: nothing (0) outside. */
function convolution(g: ConvGeometry) {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  const shapes = { x: [g.n, g.c, g.h, g.w], y: [g.n, g.o, g.oh, g.ow], weight: [g.o, cg, g.kh, g.kw] }
  return {
    ...{ cg, og, shapes },
    /** The product of x and the weight, or of two others at the same places, for one element of y and one of the weight; 0 outside of x. */
    term([n, o, oy, ox]: Index, [c, ky, kx]: Index, multiply: (x: number, y: number, weight: number) => number): number {
      const [iy, ix] = [oy! * g.strideH - g.padH + ky! * g.dilH, ox! * g.strideW - g.padW + kx! * g.dilW]
      if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) return 0
      const channel = Math.floor(o! / og) * cg + c!
      return multiply(
        placeOf(shapes.x, [n!, channel, iy, ix]),
        placeOf(shapes.y, [n!, o!, oy!, ox!]),
        placeOf(shapes.weight, [o!, c!, ky!, kx!]),
      )
    },
  }
}

const conv2d: ConvKernel<T> = {
  run(g, x, xo, weight, wo, out, oo) {
    const { cg, shapes, term } = convolution(g)
    fill(out, oo, shapes.y, (...y) => sumOver([cg, g.kh, g.kw], (...k) => term(y, k, (i, _, w) => x[xo + i]! * weight[wo + w]!)))
  },
}

const conv2dInput: ConvKernel<T> = {
  run(g, grad, go, weight, wo, out, oo) {
    const { cg, og, shapes, term } = convolution(g)
    fill(out, oo, shapes.x, (n, channel, iy, ix) =>
      sumOver([og, g.kh, g.kw], (o, ky, kx) => {
        const [oy, ox] = [(iy! + g.padH - ky! * g.dilH) / g.strideH, (ix! + g.padW - kx! * g.dilW) / g.strideW]
        if (!Number.isInteger(oy) || !Number.isInteger(ox) || oy < 0 || oy >= g.oh || ox < 0 || ox >= g.ow) return 0
        const y = [n!, Math.floor(channel! / cg) * og + o!, oy, ox]
        return term(y, [channel! % cg, ky!, kx!], (_, at, w) => grad[go + at]! * weight[wo + w]!)
      }),
    )
  },
}

const conv2dWeight: ConvKernel<T> = {
  run(g, x, xo, grad, go, out, oo) {
    const { shapes, term } = convolution(g)
    fill(out, oo, shapes.weight, (o, ...k) =>
      sumOver([g.n, g.oh, g.ow], (n, oy, ox) => term([n!, o!, oy!, ox!], k, (i, y) => x[xo + i]! * grad[go + y]!)),
    )
  },
}

/** The places within the plane that the window at (oy, ox) reads. */
function windowOf(g: PoolGeometry, oy: number, ox: number): number[] {
  const places = [...indicesOf(g.kh, g.kw)].map(([ky, kx]) => [
    oy * g.strideH - g.padH + ky! * g.dilH,
    ox * g.strideW - g.padW + kx! * g.dilW,
  ])
  return places.filter(([y, x]) => y! >= 0 && y! < g.h && x! >= 0 && x! < g.w).map(([y, x]) => y! * g.w + x!)
}

const maxPool2d: MaxPoolKernel<T> = {
  run(g, x, xo, out, oo, indices, io) {
    fill(indices, io, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
      const window = windowOf(g, oy!, ox!)
      const values = window.map((place) => x[xo + plane! * g.h * g.w + place]!)
      const nan = values.findLastIndex(Number.isNaN)
      if (values.length > 0) return window[nan >= 0 ? nan : values.indexOf(Math.max(...values))]!
      // Of a window that sees nothing: its first place that is not before the plane.
      const first = (o: number, stride: number, pad: number, step: number): number => {
        let at = o * stride - pad
        while (at < 0) at += step
        return at
      }
      return first(oy!, g.strideH, g.padH, g.dilH) * g.w + first(ox!, g.strideW, g.padW, g.dilW)
    })
    fill(out, oo, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
      if (windowOf(g, oy!, ox!).length === 0) return Number.NEGATIVE_INFINITY
      return x[xo + plane! * g.h * g.w + indices[io + placeOf([g.planes, g.oh, g.ow], [plane!, oy!, ox!])]!]!
    })
  },
}

/** What the sum of a window is divided by. */
function divisorOf(g: AvgPoolGeometry, oy: number, ox: number): number {
  if (g.divisor !== 0) return g.divisor
  const padded = { ...g, h: g.h + 2 * g.padH, w: g.w + 2 * g.padW, padH: 0, padW: 0 }
  return windowOf(g.includePad ? padded : g, oy, ox).length
}

const avgPool2d: AvgPoolKernel<T> = {
  run(g, x, xo, out, oo) {
    fill(out, oo, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
      const total = windowOf(g, oy!, ox!).reduce((sum, place) => sum + x[xo + plane! * g.h * g.w + place]!, 0)
      return total === 0 ? 0 : total / divisorOf(g, oy!, ox!)
    })
  },
}

const avgPool2dBackward: AvgPoolKernel<T> = {
  run(g, grad, go, out, oo) {
    const windows = [...indicesOf(g.oh, g.ow)].map(([oy, ox]) => ({ seen: windowOf(g, oy!, ox!), by: divisorOf(g, oy!, ox!) }))
    fill(out, oo, [g.planes, g.h * g.w], (plane, place) =>
      windows.reduce((sum, { seen, by }, i) => (seen.includes(place!) ? sum + grad[go + plane! * windows.length + i]! / by : sum), 0),
    )
  },
}

/** The places that share statistics, and the place in the weight of each. */
interface Groups {
  readonly groups: readonly (readonly number[])[]
  readonly weightOf: (place: number) => number
  /** Elements of the weight. */
  readonly columns: number
}

const ofRows = (rows: number, d: number): Groups => ({
  groups: Array.from({ length: rows }, (_, row) => Array.from({ length: d }, (_, i) => row * d + i)),
  weightOf: (place) => place % d,
  columns: d,
})

const ofChannels = (outer: number, c: number, inner: number): Groups => ({
  groups: Array.from({ length: c }, (_, channel) => [...indicesOf(outer, inner)].map(([o, i]) => (o! * c + channel) * inner + i!)),
  weightOf: (place) => Math.floor(place / inner) % c,
  columns: c,
})

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

function normalise(
  { groups, weightOf }: Groups,
  eps: number,
  x: (place: number) => number,
  weight: (column: number) => number,
  bias: (column: number) => number,
  out: T,
  statistics: (group: number, mean: number, variance: number) => void,
): void {
  groups.forEach((places, group) => {
    const mean = meanOf(places.map(x))
    const variance = meanOf(places.map((place) => (x(place) - mean) ** 2))
    for (const place of places) {
      out[place] = ((x(place) - mean) / Math.sqrt(variance + eps)) * weight(weightOf(place)) + bias(weightOf(place))
    }
    statistics(group, mean, variance)
  })
}

/** dx = rstd (g w − mean(g w) − x̂ mean(g w x̂)), means over those that share statistics. */
function normaliseBackward(
  { groups, weightOf, columns }: Groups,
  rstd: (group: number) => number,
  grad: (place: number) => number,
  x: (place: number) => number,
  mean: T,
  weight: (column: number) => number,
  out: T,
  weightGrad: T | null,
  biasGrad: T | null,
): void {
  const [forWeight, forBias] = [new Float64Array(columns), new Float64Array(columns)]
  groups.forEach((places, group) => {
    const xhat = (place: number): number => (x(place) - mean[group]!) * rstd(group)
    const scaled = (place: number): number => grad(place) * weight(weightOf(place))
    const first = meanOf(places.map(scaled))
    const second = meanOf(places.map((place) => scaled(place) * xhat(place)))
    for (const place of places) {
      out[place] = rstd(group) * (scaled(place) - first - xhat(place) * second)
      forWeight[weightOf(place)]! += grad(place) * xhat(place)
      forBias[weightOf(place)]! += grad(place)
    }
  })
  weightGrad?.set(forWeight)
  biasGrad?.set(forBias)
}

const at =
  (x: T | null, offset: number, none = 0) =>
  (place: number) =>
    x === null ? none : x[offset + place]!

const layerNorm: LayerNormKernel<T> = {
  run: (rows, d, eps, x, xo, w, wo, b, bo, out, mean, rstd) =>
    normalise(ofRows(rows, d), eps, at(x, xo), at(w, wo, 1), at(b, bo), out, (row, m, variance) => {
      mean[row] = m
      rstd[row] = 1 / Math.sqrt(variance + eps)
    }),
}

const layerNormBackward: LayerNormBackwardKernel<T> = {
  run: (rows, d, grad, go, x, xo, mean, rstd, w, wo, out, weightGrad, biasGrad) =>
    normaliseBackward(ofRows(rows, d), at(rstd, 0), at(grad, go), at(x, xo), mean, at(w, wo, 1), out, weightGrad, biasGrad),
}

const channelNorm: ChannelNormKernel<T> = {
  run: (outer, c, inner, eps, x, xo, w, wo, b, bo, out, mean, variance) =>
    normalise(ofChannels(outer, c, inner), eps, at(x, xo), at(w, wo, 1), at(b, bo), out, (channel, m, found) => {
      mean[channel] = m
      variance[channel] = found
    }),
}

const channelNormBackward: ChannelNormBackwardKernel<T> = {
  run(outer, c, inner, eps, grad, go, x, xo, mean, variance, w, wo, out, weightGrad, biasGrad) {
    const rstd = (channel: number): number => 1 / Math.sqrt(variance[channel]! + eps)
    normaliseBackward(ofChannels(outer, c, inner), rstd, at(grad, go), at(x, xo), mean, at(w, wo, 1), out, weightGrad, biasGrad)
  },
}

const NONE = unsupported('images, weights and statistics are real numbers')
const real = <K>(kernel: K) => ({ float32: kernel, float64: kernel, int32: NONE, bool: NONE })

export const neural = {
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
