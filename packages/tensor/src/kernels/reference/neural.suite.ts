/** The oracle of convolutions, pooling and normalisation: each element from its definition, in double precision. Part of `oracle.suite.ts`. */
import type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from '../table/neural.js'
import type { AvgPool, Conv, MaxPool, Norm, NormBackward, Operand } from '../table/operands.js'
import { unsupported } from '../table/table.js'

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

/** Element i of a dense operand. */
const at = (x: Operand, i: number): number => x.storage.host![x.offset + i]!
function put(x: Operand, i: number, value: number): void {
  x.storage.host![x.offset + i] = value
}

/** Writes `f` of each index of `shape`. */
function fill(out: Operand, shape: Index, f: (...index: number[]) => number): void {
  let i = 0
  for (const index of indicesOf(...shape)) put(out, i++, f(...index))
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

const conv2d: Conv = (x, weight, bias, out, g) => {
  const { cg, shapes, term } = convolution(g)
  const added = (o: number): number => (bias === null ? 0 : at(bias, o))
  fill(out, shapes.y, (...y) => sumOver([cg, g.kh, g.kw], (...k) => term(y, k, (i, _, w) => at(x, i) * at(weight, w))) + added(y[1]!))
}

const conv2dInput: Conv = (grad, weight, _, out, g) => {
  const { cg, og, shapes, term } = convolution(g)
  fill(out, shapes.x, (n, channel, iy, ix) =>
    sumOver([og, g.kh, g.kw], (o, ky, kx) => {
      const [oy, ox] = [(iy! + g.padH - ky! * g.dilH) / g.strideH, (ix! + g.padW - kx! * g.dilW) / g.strideW]
      if (!Number.isInteger(oy) || !Number.isInteger(ox) || oy < 0 || oy >= g.oh || ox < 0 || ox >= g.ow) return 0
      const y = [n!, Math.floor(channel! / cg) * og + o!, oy, ox]
      return term(y, [channel! % cg, ky!, kx!], (_, place, w) => at(grad, place) * at(weight, w))
    }),
  )
}

const conv2dWeight: Conv = (x, grad, _, out, g) => {
  const { shapes, term } = convolution(g)
  fill(out, shapes.weight, (o, ...k) =>
    sumOver([g.n, g.oh, g.ow], (n, oy, ox) => term([n!, o!, oy!, ox!], k, (i, y) => at(x, i) * at(grad, y))),
  )
}

/** The places within the plane that the window at (oy, ox) reads. */
function windowOf(g: PoolGeometry, oy: number, ox: number): number[] {
  const places = [...indicesOf(g.kh, g.kw)].map(([ky, kx]) => [
    oy * g.strideH - g.padH + ky! * g.dilH,
    ox * g.strideW - g.padW + kx! * g.dilW,
  ])
  return places.filter(([y, x]) => y! >= 0 && y! < g.h && x! >= 0 && x! < g.w).map(([y, x]) => y! * g.w + x!)
}

const maxPool2d: MaxPool = (x, out, indices, g) => {
  fill(indices, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
    const window = windowOf(g, oy!, ox!)
    const values = window.map((place) => at(x, plane! * g.h * g.w + place))
    const nan = values.findLastIndex(Number.isNaN)
    if (values.length > 0) return window[nan >= 0 ? nan : values.indexOf(Math.max(...values))]!
    // A window that sees nothing has its first place that is not before the plane.
    const first = (o: number, stride: number, pad: number, step: number): number => {
      let from = o * stride - pad
      while (from < 0) from += step
      return from
    }
    return first(oy!, g.strideH, g.padH, g.dilH) * g.w + first(ox!, g.strideW, g.padW, g.dilW)
  })
  fill(out, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
    if (windowOf(g, oy!, ox!).length === 0) return Number.NEGATIVE_INFINITY
    return at(x, plane! * g.h * g.w + at(indices, placeOf([g.planes, g.oh, g.ow], [plane!, oy!, ox!])))
  })
}

/** The divisor of a window's sum. */
function divisorOf(g: AvgPoolGeometry, oy: number, ox: number): number {
  if (g.divisor !== 0) return g.divisor
  const padded = { ...g, h: g.h + 2 * g.padH, w: g.w + 2 * g.padW, padH: 0, padW: 0 }
  return windowOf(g.includePad ? padded : g, oy, ox).length
}

const avgPool2d: AvgPool = (x, out, g) =>
  fill(out, [g.planes, g.oh, g.ow], (plane, oy, ox) => {
    const total = windowOf(g, oy!, ox!).reduce((sum, place) => sum + at(x, plane! * g.h * g.w + place), 0)
    return total === 0 ? 0 : total / divisorOf(g, oy!, ox!)
  })

const avgPool2dBackward: AvgPool = (grad, out, g) => {
  const windows = [...indicesOf(g.oh, g.ow)].map(([oy, ox]) => ({ seen: windowOf(g, oy!, ox!), by: divisorOf(g, oy!, ox!) }))
  fill(out, [g.planes, g.h * g.w], (plane, place) =>
    windows.reduce((sum, { seen, by }, i) => (seen.includes(place!) ? sum + at(grad, plane! * windows.length + i) / by : sum), 0),
  )
}

/** The places that share statistics, and the place in the weight of each. */
interface Groups {
  readonly groups: readonly (readonly number[])[]
  readonly weightOf: (place: number) => number
  /** Elements of the weight. */
  readonly columns: number
}

function ofRows({ shape }: Operand): Groups {
  const [rows, d] = shape as readonly [number, number]
  return {
    groups: Array.from({ length: rows }, (_, row) => Array.from({ length: d }, (_, i) => row * d + i)),
    weightOf: (place) => place % d,
    columns: d,
  }
}

/** x [outer, c, inner] by channel. */
function ofChannels({ shape }: Operand): Groups {
  const [outer, c, inner] = shape as readonly [number, number, number]
  return {
    groups: Array.from({ length: c }, (_, channel) => [...indicesOf(outer, inner)].map(([o, i]) => (o! * c + channel) * inner + i!)),
    weightOf: (place) => Math.floor(place / inner) % c,
    columns: c,
  }
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** `spreadOf` is what goes out of a variance. */
const norm =
  (groupsOf: (x: Operand) => Groups, spreadOf: (variance: number, eps: number) => number): Norm =>
  (x, weight, bias, out, mean, spread, eps) => {
    const { groups, weightOf } = groupsOf(x)
    groups.forEach((places, group) => {
      const m = meanOf(places.map((place) => at(x, place)))
      const variance = meanOf(places.map((place) => (at(x, place) - m) ** 2))
      for (const place of places) {
        const y = ((at(x, place) - m) / Math.sqrt(variance + eps)) * (weight === null ? 1 : at(weight, weightOf(place)))
        put(out, place, y + (bias === null ? 0 : at(bias, weightOf(place))))
      }
      put(mean, group, m)
      put(spread, group, spreadOf(variance, eps))
    })
  }

/** dx = rstd (g w − mean(g w) − x̂ mean(g w x̂)), means over those that share statistics. */
const normBackward =
  (groupsOf: (x: Operand) => Groups, rstdOf: (spread: number, eps: number) => number): NormBackward =>
  (grad, x, mean, spread, weight, out, weightGrad, biasGrad, eps) => {
    const { groups, weightOf, columns } = groupsOf(x)
    const [forWeight, forBias] = [new Float64Array(columns), new Float64Array(columns)]
    groups.forEach((places, group) => {
      const rstd = rstdOf(at(spread, group), eps)
      const xhat = (place: number): number => (at(x, place) - at(mean, group)) * rstd
      const scaled = (place: number): number => at(grad, place) * (weight === null ? 1 : at(weight, weightOf(place)))
      const first = meanOf(places.map(scaled))
      const second = meanOf(places.map((place) => scaled(place) * xhat(place)))
      for (const place of places) {
        put(out, place, rstd * (scaled(place) - first - xhat(place) * second))
        forWeight[weightOf(place)]! += at(grad, place) * xhat(place)
        forBias[weightOf(place)]! += at(grad, place)
      }
    })
    if (weightGrad !== null) for (const [i, value] of forWeight.entries()) put(weightGrad, i, value)
    if (biasGrad !== null) for (const [i, value] of forBias.entries()) put(biasGrad, i, value)
  }

const rstdOf = (variance: number, eps: number): number => 1 / Math.sqrt(variance + eps)
const itself = (spread: number): number => spread

const NONE = unsupported('images, weights and statistics are real numbers')
const real = <K>(kernel: K) => ({ float32: kernel, float64: kernel, int32: NONE, bool: NONE })

export const neural = {
  conv2d: real(conv2d),
  conv2dInput: real(conv2dInput),
  conv2dWeight: real(conv2dWeight),
  maxPool2d: real(maxPool2d),
  avgPool2d: real(avgPool2d),
  avgPool2dBackward: real(avgPool2dBackward),
  layerNorm: real(norm(ofRows, rstdOf)),
  layerNormBackward: real(normBackward(ofRows, itself)),
  channelNorm: real(norm(ofChannels, itself)),
  channelNormBackward: real(normBackward(ofChannels, rstdOf)),
}
