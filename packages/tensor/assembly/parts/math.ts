/**
 * Polynomial exp, log, tanh, sigmoid, expm1, log1p, erf and the normal distribution on four float32 lanes; the other kernels build on them.
 *
 * Error bounds (see `wasm/numerics.test.ts`; over all exponents, in units of the last place of the result): exp 1, log 1, tanh 1.5,
 * sigmoid 2.5, expm1 3.5, log1p 2.5, erf 3; where a result is denormal, one more. Every multiplication and addition rounds to float32 (no fused
 * multiply-add), so that all machines give the same bits. Coefficients: Cephes (Moshier), `logf`, `tanhf`; those of exp by Remez, for this degree.
 *
 * Note on speed: the exponential's polynomial is a short chain (squares on the way), since a result waits for its whole chain.
 */

export const LOG2E: f32 = 1.44269504088896341
/** Adding 1.5 · 2^23 rounds to an integer, which is then in the low bits of the sum; 127 more is the exponent's bias. */
export const ROUNDER: f32 = 12583039
export const LN2_HIGH: f32 = 0.693359375
export const LN2_LOW: f32 = -2.12194440e-4

@inline function splat(x: f32): v128 {
  return f32x4.splat(x)
}

/** a · x + b */
@inline function madd(a: v128, x: v128, b: f32): v128 {
  return f32x4.add(f32x4.mul(a, x), splat(b))
}

/** eˣ − 1 for |x| below ln 2 / 2, relative error of eˣ 4 · 10⁻⁹. */
@inline export function expSeries4(x: v128): v128 {
  const z = f32x4.mul(x, x)
  const low = madd(splat(1.66665211e-1), x, 4.99999940e-1)
  const high = madd(splat(8.36873148e-3), x, 4.16683890e-2)
  const p = f32x4.add(low, f32x4.mul(z, f32x4.add(high, f32x4.mul(z, splat(1.38145685e-3)))))
  return f32x4.add(f32x4.mul(z, p), x)
}

/** Overflows to infinity above 88.73, is denormal below -87.34, zero below -103.98; NaN stays NaN. */
@inline export function exp4(x: v128): v128 {
  // Beyond these bounds the result is infinity or zero whatever the input.
  // pmax and pmin are one instruction each, and give their first operand when it is NaN.
  return expWithin4(f32x4.pmin(f32x4.pmax(x, splat(-105)), splat(90)))
}

/** Whether |x| is at most 87 in all lanes of four vectors: their exponentials are normal numbers. NaN is not. */
@inline export function areModest4(a: v128, b: v128, c: v128, d: v128): bool {
  // As integers, magnitudes have the order of floats, and NaN is above all.
  const most = i32x4.max_s(i32x4.max_s(magnitude(a), magnitude(b)), i32x4.max_s(magnitude(c), magnitude(d)))
  return !v128.any_true(i32x4.gt_s(most, splat(87)))
}

@inline function magnitude(x: v128): v128 {
  return v128.and(x, i32x4.splat(0x7fffffff))
}

/** exp4 where |x| is at most 87, with the same bits: no bounds, and one factor 2^n. */
@inline export function expModest4(x: v128): v128 {
  // As in `expWithin4`. The shift keeps the low bits of the sum, which are 2^n.
  const shifted = f32x4.add(f32x4.mul(x, splat(LOG2E)), splat(ROUNDER))
  const n = f32x4.sub(shifted, splat(ROUNDER))
  const r = f32x4.sub(f32x4.sub(x, f32x4.mul(n, splat(LN2_HIGH))), f32x4.mul(n, splat(LN2_LOW)))
  return f32x4.mul(f32x4.add(expSeries4(r), splat(1)), i32x4.shl(shifted, 23))
}

/** eˣ for x from -170 to 170, in which 2^n can be built from two normal factors. */
@inline function expWithin4(x: v128): v128 {
  const shifted = f32x4.add(f32x4.mul(x, splat(LOG2E)), splat(ROUNDER))
  const n = f32x4.sub(shifted, splat(ROUNDER))
  const k = i32x4.sub(shifted, splat(ROUNDER))
  const r = f32x4.sub(f32x4.sub(x, f32x4.mul(n, splat(LN2_HIGH))), f32x4.mul(n, splat(LN2_LOW)))
  const p = f32x4.add(expSeries4(r), splat(1))
  const half = i32x4.shr_s(k, 1)
  const bias = i32x4.splat(127)
  const scale1 = i32x4.shl(i32x4.add(half, bias), 23)
  const scale2 = i32x4.shl(i32x4.add(i32x4.sub(k, half), bias), 23)
  return f32x4.mul(f32x4.mul(p, scale1), scale2)
}

/** -infinity at ±0, NaN below, infinity at infinity; denormal inputs are exact. */
@inline export function log4(input: v128): v128 {
  const tiny = f32x4.lt(input, splat(1.17549435e-38))
  // A denormal is scaled by 2^25 first, so that its exponent can be read from its bits.
  const x = v128.bitselect(f32x4.mul(input, splat(33554432)), input, tiny)
  const bits = i32x4.sub(i32x4.shr_u(x, 23), v128.bitselect(i32x4.splat(126 + 25), i32x4.splat(126), tiny))
  let m = v128.or(v128.and(x, i32x4.splat(0x007fffff)), i32x4.splat(0x3f000000)) // mantissa in [0.5, 1)
  const low = f32x4.lt(m, splat(0.707106781186547524))
  const e = f32x4.convert_i32x4_s(i32x4.add(bits, low)) // the mask is -1 where it holds
  m = f32x4.sub(f32x4.add(m, v128.and(m, low)), splat(1))
  const z = f32x4.mul(m, m)
  let p = madd(splat(7.0376836292e-2), m, -1.1514610310e-1)
  p = madd(p, m, 1.1676998740e-1)
  p = madd(p, m, -1.2420140846e-1)
  p = madd(p, m, 1.4249322787e-1)
  p = madd(p, m, -1.6668057665e-1)
  p = madd(p, m, 2.0000714765e-1)
  p = madd(p, m, -2.4999993993e-1)
  p = madd(p, m, 3.3333331174e-1)
  p = f32x4.mul(f32x4.mul(p, m), z)
  p = f32x4.add(p, f32x4.mul(e, splat(LN2_LOW)))
  p = f32x4.sub(p, f32x4.mul(z, splat(0.5)))
  let r = f32x4.add(f32x4.add(m, p), f32x4.mul(e, splat(LN2_HIGH)))
  r = v128.bitselect(splat(-Infinity), r, f32x4.eq(input, splat(0)))
  r = v128.bitselect(splat(NaN), r, f32x4.lt(input, splat(0)))
  // Infinity and NaN answer themselves.
  return v128.bitselect(r, input, v128.or(f32x4.lt(input, splat(Infinity)), f32x4.lt(input, splat(0))))
}

/** exp4; `modest`: |x| is at most 87. */
@inline export function expOf4(x: v128, modest: bool): v128 {
  return modest ? expModest4(x) : exp4(x)
}

/** Odd, ±1 from |x| = 9.02 on; -0 stays -0. */
@inline export function tanh4(x: v128): v128 {
  const sign = v128.and(x, i32x4.splat(0x80000000))
  const a = f32x4.abs(x)
  const z = f32x4.mul(x, x)
  let p = madd(splat(-5.70498872745e-3), z, 2.06390887954e-2)
  p = madd(p, z, -5.37397155531e-2)
  p = madd(p, z, 1.33314422036e-1)
  p = madd(p, z, -3.33332819422e-1)
  const small = f32x4.add(f32x4.mul(f32x4.mul(p, z), x), x)
  const large = f32x4.sub(splat(1), f32x4.div(splat(2), f32x4.add(exp4(f32x4.add(a, a)), splat(1))))
  // The sign is that of x in both branches; the sum above loses it at -0.
  return v128.or(v128.bitselect(small, large, f32x4.lt(a, splat(0.625))), sign)
}

/** Sigmoid's exponentials are 2^FALL times as large on the way: so they are normal numbers wherever the result is not 0 or 1. */
const FALL = -24

/** 1 / (1 + exp(-x)): denormal below -87.34, zero below -103.98; NaN stays NaN. */
@inline export function sigmoid4(input: v128): v128 {
  const x = f32x4.pmin(f32x4.pmax(input, splat(-105)), splat(60))
  // As expModest4, of -x.
  const shifted = f32x4.add(f32x4.mul(x, splat(-LOG2E)), splat(ROUNDER + <f32>FALL))
  const n = f32x4.sub(shifted, splat(ROUNDER + <f32>FALL))
  const r = f32x4.sub(f32x4.sub(f32x4.mul(n, splat(-LN2_HIGH)), x), f32x4.mul(n, splat(LN2_LOW)))
  const e = f32x4.mul(f32x4.add(expSeries4(r), splat(1)), i32x4.shl(shifted, 23))
  const one = splat(5.9604644775390625e-8) // 2^FALL
  return f32x4.div(one, f32x4.add(one, e))
}

/** eˣ − 1, as 2^n times the series plus 2^n − 1. -0 stays -0. */
@inline export function expm14(input: v128): v128 {
  // As `exp4` and `expWithin4`.
  const x = f32x4.pmin(f32x4.pmax(input, splat(-105)), splat(90))
  const shifted = f32x4.add(f32x4.mul(x, splat(LOG2E)), splat(ROUNDER))
  const n = f32x4.sub(shifted, splat(ROUNDER))
  const k = i32x4.sub(shifted, splat(ROUNDER))
  const p = expSeries4(f32x4.sub(f32x4.sub(x, f32x4.mul(n, splat(LN2_HIGH))), f32x4.mul(n, splat(LN2_LOW))))
  const half = i32x4.shr_s(k, 1)
  const rest = i32x4.sub(k, half)
  const bias = i32x4.splat(127)
  const scale1 = i32x4.shl(i32x4.add(half, bias), 23)
  const scale2 = i32x4.shl(i32x4.add(rest, bias), 23)
  const one = i32x4.shl(i32x4.sub(bias, rest), 23) // 1 / scale2
  const y = f32x4.mul(f32x4.add(f32x4.mul(p, scale1), f32x4.sub(scale1, one)), scale2)
  return v128.bitselect(input, y, f32x4.eq(input, splat(0)))
}

/** log(1 + x). The factor x / ((1 + x) − 1) corrects the rounding of 1 + x. */
@inline export function log1p4(x: v128): v128 {
  const u = f32x4.add(x, splat(1))
  const y = f32x4.mul(log4(u), f32x4.div(x, f32x4.sub(u, splat(1))))
  // Where 1 + x is 1, the result is x; infinity answers itself, since ∞ / ∞ is NaN.
  return v128.bitselect(x, y, v128.or(f32x4.eq(u, splat(1)), f32x4.eq(x, splat(Infinity))))
}

/** erf a / a for 0 ≤ a < 1, of s = a². Cephes (Moshier), `ndtrf.c`; so is the next. */
@inline function erfSeries4(s: v128): v128 {
  let p = madd(splat(7.853861353153693e-5), s, -8.010193625184903e-4)
  p = madd(p, s, 5.188327685732524e-3)
  p = madd(p, s, -2.685381193529856e-2)
  p = madd(p, s, 1.128358514861418e-1)
  p = madd(p, s, -3.761262582423300e-1)
  return madd(p, s, 1.128379165726710)
}

/** erfc a for a ≥ 1: exp(-a²) P(1/a²) / a, with other coefficients from 2 on; 0 from about 10.05 on. a² is s + e, see the next. */
@inline function erfcTail4(a: v128, s: v128, e: v128): v128 {
  const q = f32x4.div(splat(1), a)
  const y = f32x4.mul(q, q)
  let p = madd(splat(2.326819970068386e-2), y, -1.387039388740657e-1)
  p = madd(p, y, 3.687424674597105e-1)
  p = madd(p, y, -5.824733027278666e-1)
  p = madd(p, y, 6.210004621745983e-1)
  p = madd(p, y, -4.944515323274145e-1)
  p = madd(p, y, 3.404879937665872e-1)
  p = madd(p, y, -2.741127028184656e-1)
  p = madd(p, y, 5.638259427386472e-1)
  let r = madd(splat(-1.047766399936249e1), y, 1.297719955372516e1)
  r = madd(r, y, -7.495518717768503)
  r = madd(r, y, 2.921019019210786)
  r = madd(r, y, -1.015265279202700)
  r = madd(r, y, 4.218463358204948e-1)
  r = madd(r, y, -2.820767439740514e-1)
  r = madd(r, y, 5.641895067754075e-1)
  const ratio = v128.bitselect(p, r, f32x4.lt(a, splat(2)))
  // exp(-s - e) is exp(-s) (1 - e) for an e this small.
  const gauss = exp4(f32x4.neg(s))
  const exact = f32x4.sub(gauss, f32x4.mul(gauss, e))
  const tail = f32x4.mul(f32x4.mul(exact, q), ratio)
  // Beyond this even e and 1/a² may be out of range; NaN meets no bound and stays.
  return v128.bitselect(splat(0), tail, f32x4.gt(a, splat(11)))
}

/** a² − s for s = a² rounded, which the exponential would multiply: the square of the upper 12 bits is exact. */
@inline function squareRest4(a: v128, s: v128): v128 {
  const high = v128.and(a, i32x4.splat(0xfffff000))
  const low = f32x4.sub(a, high)
  return f32x4.add(f32x4.add(f32x4.sub(f32x4.mul(high, high), s), f32x4.mul(f32x4.add(high, high), low)), f32x4.mul(low, low))
}

/** Odd; ±1 from |x| = 3.93 on. */
@inline export function erf4(x: v128): v128 {
  const sign = v128.and(x, i32x4.splat(0x80000000))
  const a = f32x4.abs(x)
  const s = f32x4.mul(x, x)
  const small = f32x4.mul(x, erfSeries4(s))
  const large = f32x4.sub(splat(1), erfcTail4(a, s, squareRest4(a, s)))
  return v128.or(v128.bitselect(small, large, f32x4.lt(a, splat(1))), sign)
}

/** exp(-x² / 2), which is 0 in float32 from |x| = 14.5 on. */
@inline export function gauss4(x: v128): v128 {
  const a = f32x4.pmin(f32x4.abs(x), splat(15))
  const s = f32x4.mul(a, a)
  // exp(-s - e) is exp(-s) (1 - e) for an e this small.
  const gauss = expWithin4(f32x4.mul(s, splat(-0.5)))
  return f32x4.sub(gauss, f32x4.mul(gauss, f32x4.mul(squareRest4(a, s), splat(0.5))))
}

/**
 * The distribution function of the standard normal, by `gauss` = exp(-x² / 2): below 0 the product of that and a polynomial in r = 1 / (|x| + 2√2),
 * relative error 4 · 10⁻⁸ (Remez), so that the left tail keeps its digits.
 */
@inline export function normalCdf4(x: v128, gauss: v128): v128 {
  const r = f32x4.div(splat(1), f32x4.add(f32x4.abs(x), splat(2.828427)))
  let p = madd(splat(-343.006987642), r, 584.265611285)
  p = madd(p, r, -353.837845557)
  p = madd(p, r, 71.6175943309)
  p = madd(p, r, -2.51536115604)
  p = madd(p, r, 6.50178190413)
  p = madd(p, r, 2.74899059899)
  p = madd(p, r, 1.12957000662)
  p = madd(p, r, 0.398929049054)
  const left = f32x4.mul(f32x4.mul(p, r), gauss)
  return v128.bitselect(left, f32x4.sub(splat(1), left), f32x4.lt(x, splat(0)))
}
