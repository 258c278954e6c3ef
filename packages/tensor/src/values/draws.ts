/**
 * The numbers of `Generator`, drawn from its source: for it and for the js backend's kernels. Normal numbers are made by arithmetic alone, so that every
 * engine gives the same bits: `Math.log` and `Math.sin` may differ in the last one between versions of V8. `assembly/random.ts` takes the same steps.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator'

/** A uniform number in [0, 1), a multiple of 2⁻²⁴: exact in float32. */
export function uniform(source: RandomGenerator): number {
  return (source.next() >>> 8) / 2 ** 24
}

/** A multiple of 2⁻⁵³. */
export function uniform64(source: RandomGenerator): number {
  return uniformFloat64(source)
}

// ln 2 in two parts, and the series of ln((1 + s) / (1 - s)), sin and cos: FreeBSD msun, e_log.c, k_sin.c, k_cos.c.
const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10

const number = new Float64Array(1)
/** Its bits: the upper half is the second, as in WebAssembly, on all machines for which this library is made. */
const halves = new Int32Array(number.buffer)

/** ln x of a normal number x above 0, within 1 unit in the last place. */
function log(x: number): number {
  number[0] = x
  // The exponent that brings the mantissa to [√½, √2).
  const k = (halves[1]! - 0x3fe6a09e) >> 20
  halves[1]! -= k << 20
  const m = number[0]!
  const f = m - 1
  const s = f / (m + 1)
  const z = s * s
  const w = z * z
  const even = w * ((0.15313837699209373 * w + 0.22222198432149784) * w + 0.3999999999940942)
  const odd = z * (((0.14798198605116586 * w + 0.1818357216161805) * w + 0.2857142874366239) * w + 0.6666666666666735)
  const half = f * f * 0.5
  const small = s * (half + (even + odd)) + k * LN2_LOW
  return k * LN2_HIGH - (half - small - f)
}

/** sin r for |r| ≤ π / 4. */
function sine(r: number): number {
  const z = r * r
  let p = 1.58969099521155e-10 * z - 2.5050760253406863e-8
  p = p * z + 0.0000027557313707070068
  p = p * z - 0.0001984126982985795
  p = p * z + 0.00833333333332249
  p = p * z - 0.16666666666666632
  return r + z * r * p
}

function cosine(r: number): number {
  const z = r * r
  let p = -1.1359647557788195e-11 * z + 2.087572321298175e-9
  p = p * z - 2.7557314351390663e-7
  p = p * z + 0.00002480158728947673
  p = p * z - 0.001388888888887411
  p = p * z + 0.0416666666666666
  return 1 - (z * 0.5 - z * z * p)
}

/** 32 random bits, as an integer with a sign. */
export function bits(source: RandomGenerator): number {
  return source.next()
}

/** Two normal numbers into `pair`, of two uniform ones u and v. Box and Muller: √(-2 ln(1 − u)) · (cos 2πv, sin 2πv). */
export function normalPair(source: RandomGenerator, pair: Float64Array): void {
  const u = uniform64(source)
  const v = uniform64(source)
  const radius = Math.sqrt(-2 * log(1 - u))
  // The quarter of the circle that is nearest, and the angle from there.
  const quarter = Math.floor(4 * v + 0.5)
  const angle = (v - quarter * 0.25) * (2 * Math.PI)
  const s = radius * sine(angle)
  const c = radius * cosine(angle)
  const isOdd = (quarter & 1) === 1
  const [x, y] = isOdd ? [-s, c] : [c, s]
  const isLower = (quarter & 2) === 2
  pair[0] = isLower ? -x : x
  pair[1] = isLower ? -y : y
}
