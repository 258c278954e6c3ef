/**
 * exp, log, tanh and sigmoid of float64, two lanes at a time: exp and log within 1 unit in the last place, tanh and sigmoid 2. Coefficients: FreeBSD msun
 * (`e_exp.c`, `e_log.c`), tanh: Cephes (Moshier). For `wasm/elementwise.ts`; `random.ts` takes logarithms from here.
 */

const enum Op { exp, log, tanh, sigmoid }

const LOG2E: f64 = 1.4426950408889634
// ln 2 in two parts: the first has 33 bits, so that its products with exponents are exact.
const LN2_HIGH: f64 = 6.93147180369123816490e-1
const LN2_LOW: f64 = 1.90821492927058770002e-10
/** 1.5 · 2^52: adding it rounds to an integer, which is then in the low bits of the sum. */
const ROUNDER: f64 = 6755399441055744

@inline function splat(x: f64): v128 {
  return f64x2.splat(x)
}

/** a · x + b */
@inline function madd(a: v128, x: v128, b: f64): v128 {
  return f64x2.add(f64x2.mul(a, x), splat(b))
}

/** Infinity above 709.79, denormal below -708.4, zero below -745.14; NaN stays NaN. */
@inline function expOf(input: v128): v128 {
  // Beyond these bounds the result is infinity or zero whatever the input; within them 2^n can be built from two normal factors.
  const x = f64x2.pmin(f64x2.pmax(input, splat(-750)), splat(710))
  const shifted = f64x2.add(f64x2.mul(x, splat(LOG2E)), splat(ROUNDER))
  const n = f64x2.sub(shifted, splat(ROUNDER))
  const high = f64x2.sub(x, f64x2.mul(n, splat(LN2_HIGH)))
  const low = f64x2.mul(n, splat(LN2_LOW))
  const r = f64x2.sub(high, low)
  const t = f64x2.mul(r, r)
  let p = madd(splat(4.13813679705723846039e-8), t, -1.65339022054652515390e-6)
  p = madd(p, t, 6.61375632143793436117e-5)
  p = madd(p, t, -2.77777777770155933842e-3)
  p = madd(p, t, 1.66666666666666019037e-1)
  const c = f64x2.sub(r, f64x2.mul(p, t))
  const quotient = f64x2.div(f64x2.mul(r, c), f64x2.sub(splat(2), c))
  const y = f64x2.sub(splat(1), f64x2.sub(f64x2.sub(low, quotient), high))
  // The low words of `shifted` are n; its halves are the exponents of two factors.
  const half = i32x4.shr_s(shifted, 1)
  const rest = i32x4.sub(shifted, half)
  const scale1 = i64x2.shl(i64x2.add(half, i64x2.splat(1023)), 52)
  const scale2 = i64x2.shl(i64x2.add(rest, i64x2.splat(1023)), 52)
  return f64x2.mul(f64x2.mul(y, scale1), scale2)
}

/** The logarithm of x · 2^k0, for normal numbers x above 0. */
@inline export function logOf(x: v128, k0: v128): v128 {
  // The exponent that brings the mantissa to [√½, √2), by the words that hold the exponents.
  const e = i32x4.shr_s(i32x4.sub(x, i64x2.splat(0x3fe6a09e00000000)), 20)
  const upper = v128.and(e, i64x2.splat(0xffffffff00000000))
  const m = i64x2.sub(x, i64x2.shl(upper, 20))
  const k = f64x2.add(f64x2.convert_low_i32x4_s(v128.shuffle<i32>(e, e, 1, 3, 1, 3)), k0)
  const f = f64x2.sub(m, splat(1))
  const s = f64x2.div(f, f64x2.add(m, splat(1)))
  const z = f64x2.mul(s, s)
  const w = f64x2.mul(z, z)
  let even = madd(splat(1.531383769920937332e-1), w, 2.222219843214978396e-1)
  even = f64x2.mul(w, madd(even, w, 3.999999999940941908e-1))
  let odd = madd(splat(1.479819860511658591e-1), w, 1.818357216161805012e-1)
  odd = madd(odd, w, 2.857142874366239149e-1)
  odd = f64x2.mul(z, madd(odd, w, 6.666666666666735130e-1))
  const half = f64x2.mul(f64x2.mul(f, f), splat(0.5))
  const small = f64x2.add(f64x2.mul(s, f64x2.add(half, f64x2.add(even, odd))), f64x2.mul(k, splat(LN2_LOW)))
  return f64x2.sub(f64x2.mul(k, splat(LN2_HIGH)), f64x2.sub(f64x2.sub(half, small), f))
}

/** -infinity at ±0, NaN below, infinity at infinity. */
@inline function logOfAny(input: v128): v128 {
  const tiny = f64x2.lt(input, splat(2.2250738585072014e-308))
  // A denormal is scaled by 2^54 first, so that its exponent can be read from its bits.
  const x = v128.bitselect(f64x2.mul(input, splat(18014398509481984)), input, tiny)
  let r = logOf(x, v128.and(tiny, splat(-54)))
  r = v128.bitselect(splat(-Infinity), r, f64x2.eq(input, splat(0)))
  r = v128.bitselect(splat(NaN), r, f64x2.lt(input, splat(0)))
  // Infinity and NaN answer themselves.
  return v128.bitselect(r, input, v128.or(f64x2.lt(input, splat(Infinity)), f64x2.lt(input, splat(0))))
}

/** Odd, ±1 from |x| = 19.1 on; -0 stays -0. */
@inline function tanhOf(x: v128): v128 {
  const sign = v128.and(x, splat(-0.0))
  const a = f64x2.abs(x)
  const z = f64x2.mul(x, x)
  let p = madd(splat(-9.64399179425052238628e-1), z, -9.92877231001918586564e1)
  p = madd(p, z, -1.61468768441708447952e3)
  let q = madd(splat(1), z, 1.12811678491632931402e2)
  q = madd(q, z, 2.23548839060100448583e3)
  q = madd(q, z, 4.84406305325125486048e3)
  const isSmall = f64x2.lt(a, splat(0.625))
  // One division serves both: z P / Q, and 2 / (e²ᵃ + 1).
  const above = v128.bitselect(f64x2.mul(z, p), splat(2), isSmall)
  const below = v128.bitselect(q, f64x2.add(expOf(f64x2.add(a, a)), splat(1)), isSmall)
  const quotient = f64x2.div(above, below)
  const y = v128.bitselect(f64x2.add(a, f64x2.mul(a, quotient)), f64x2.sub(splat(1), quotient), isSmall)
  return v128.or(y, sign)
}

@inline function of2(op: Op, x: v128): v128 {
  if (op == Op.exp) return expOf(x)
  if (op == Op.log) return logOfAny(x)
  if (op == Op.tanh) return tanhOf(x)
  return f64x2.div(splat(1), f64x2.add(splat(1), expOf(f64x2.neg(x))))
}

/** @exports f64 */
@inline function unary(op: Op, n: i32, x: usize, out: usize): void {
  const end = x + (<usize>n << 3)
  const endOfVectors = x + (<usize>(n & ~1) << 3)
  for (; x < endOfVectors; x += 16, out += 16) v128.store(out, of2(op, v128.load(x)))
  if (x < end) f64.store(out, f64x2.extract_lane(of2(op, v128.load64_splat(x)), 0))
}
