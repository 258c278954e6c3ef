/**
 * Functions of float32 that are computed in double, two lanes at a time, and rounded once: the result is within 0.51 units in the last place, and special
 * values follow from the arithmetic. Logarithms and powers to other bases, pow, hyperbolic functions, sin, cos, tan, arcs. For `wasm/elementwise.ts`.
 */
import { cos1, sin1, tan1 } from './math'
import { join4, upperPair } from './pairs'

const enum Op { log2, log10, exp2, sinh, cosh, asin, acos, atan, pow, atan2, power }
const enum Single { sin, cos, tan }

const LN2: f64 = 0.6931471805599453
const LOG2E: f64 = 1.4426950408889634
const LOG10_2: f64 = 0.3010299956639812
const PI: f64 = 3.141592653589793
/** 1.5 · 2^52: adding it rounds to an integer, which is then in the low bits of the sum. */
const ROUNDER: f64 = 6755399441055744

@inline function splat(x: f64): v128 {
  return f64x2.splat(x)
}

/** a · x + b */
@inline function madd(a: v128, x: v128, b: f64): v128 {
  return f64x2.add(f64x2.mul(a, x), splat(b))
}

/** 2^t, relative error 10⁻¹²: infinity and 0 in float32 are reached long before the bounds. NaN stays. */
@inline function exp2Of(input: v128): v128 {
  const t = f64x2.pmin(f64x2.pmax(input, splat(-400)), splat(400))
  const shifted = f64x2.add(t, splat(ROUNDER))
  const r = f64x2.mul(f64x2.sub(t, f64x2.sub(shifted, splat(ROUNDER))), splat(LN2))
  let p = madd(splat(2.7557319223985893e-7), r, 2.7557319223985893e-6)
  p = madd(p, r, 2.4801587301587302e-5)
  p = madd(p, r, 1.984126984126984e-4)
  p = madd(p, r, 1.388888888888889e-3)
  p = madd(p, r, 8.333333333333333e-3)
  p = madd(p, r, 4.1666666666666664e-2)
  p = madd(p, r, 1.6666666666666666e-1)
  p = madd(p, r, 0.5)
  p = madd(p, r, 1)
  p = madd(p, r, 1)
  // 2^n: n plus the exponent's bias; the shift drops the bits above.
  return f64x2.mul(p, i64x2.shl(i64x2.add(shifted, i64x2.splat(1023)), 52))
}

/** log2 of a float32 as a double, which is never denormal; relative error 10⁻¹². -∞ at 0, NaN below. */
@inline function log2Of(x: v128): v128 {
  // The exponent that brings the mantissa to [√½, √2).
  const e = i64x2.shr_s(i64x2.sub(x, i64x2.splat(0x3fe6a09e667f3bcd)), 52)
  const m = i64x2.sub(x, i64x2.shl(e, 52))
  const f = f64x2.sub(m, splat(1))
  const s = f64x2.div(f, f64x2.add(m, splat(1)))
  const z = f64x2.mul(s, s)
  let p = madd(splat(0.13333333333333333), z, 0.15384615384615385)
  p = madd(p, z, 0.18181818181818182)
  p = madd(p, z, 0.2222222222222222)
  p = madd(p, z, 0.2857142857142857)
  p = madd(p, z, 0.4)
  p = madd(p, z, 0.6666666666666666)
  p = madd(p, z, 2)
  // |e| is below 1024, so its low word is all of it.
  const exponent = f64x2.convert_low_i32x4_s(v128.shuffle<i32>(e, e, 0, 2, 0, 2))
  let r = f64x2.add(f64x2.mul(f64x2.mul(p, s), splat(LOG2E)), exponent)
  r = v128.bitselect(splat(-Infinity), r, f64x2.eq(x, splat(0)))
  r = v128.bitselect(splat(NaN), r, f64x2.lt(x, splat(0)))
  // Infinity and NaN answer themselves.
  return v128.bitselect(r, x, f64x2.lt(x, splat(Infinity)))
}

/** atan of a ≥ 0. Cephes (Moshier), `atan.c`. */
@inline function atanOf(a: v128): v128 {
  const isLarge = f64x2.gt(a, splat(2.414213562373095))
  const isMiddle = v128.andnot(f64x2.gt(a, splat(0.66)), isLarge)
  const above = v128.bitselect(splat(-1), f64x2.sub(a, splat(1)), isLarge)
  const below = v128.bitselect(a, f64x2.add(a, splat(1)), isLarge)
  const isReduced = v128.or(isLarge, isMiddle)
  const x = v128.bitselect(f64x2.div(above, below), a, isReduced)
  const from = v128.or(v128.and(isLarge, splat(PI / 2)), v128.and(isMiddle, splat(PI / 4)))
  const z = f64x2.mul(x, x)
  let p = madd(splat(-8.750608600031904122785e-1), z, -1.615753718733365076637e1)
  p = madd(p, z, -7.500855792314704667340e1)
  p = madd(p, z, -1.228866684490136173410e2)
  p = madd(p, z, -6.485021904942025371773e1)
  let q = madd(splat(1), z, 2.485846490142306297962e1)
  q = madd(q, z, 1.650270098316988542046e2)
  q = madd(q, z, 4.328810604912902668951e2)
  q = madd(q, z, 4.853903996359136964868e2)
  q = madd(q, z, 1.945506571482613964425e2)
  return f64x2.add(from, f64x2.add(x, f64x2.mul(x, f64x2.div(f64x2.mul(z, p), q))))
}

@inline function withSignOf(a: v128, x: v128): v128 {
  return v128.or(a, v128.and(x, splat(-0.0)))
}

/** The magnitude comes from |x| below: what is small is not a difference of exponentials. */
@inline function sinhOf(x: v128, e: v128): v128 {
  const z = f64x2.mul(x, x)
  let p = madd(splat(2.48015873015873e-5 / 9), z, 1.984126984126984e-4)
  p = madd(p, z, 8.333333333333333e-3)
  p = madd(p, z, 1.6666666666666666e-1)
  const small = f64x2.add(x, f64x2.mul(f64x2.mul(p, z), x))
  const a = f64x2.abs(x)
  const large = f64x2.mul(f64x2.sub(e, f64x2.div(splat(1), e)), splat(0.5))
  return v128.bitselect(small, withSignOf(large, x), f64x2.lt(a, splat(0.25)))
}

/** C's pow. */
@inline function powOf(x: v128, y: v128): v128 {
  const one = splat(1)
  const a = f64x2.abs(x)
  let r = exp2Of(f64x2.mul(y, log2Of(a)))
  // 0 · ∞ in the exponent: |x| = 1 to any power that is a number, and anything to the power 0.
  r = v128.bitselect(one, r, v128.and(f64x2.eq(a, one), f64x2.eq(y, y)))
  const isWhole = f64x2.eq(f64x2.floor(y), y)
  const half = f64x2.mul(y, splat(0.5))
  const isOdd = v128.andnot(isWhole, f64x2.eq(f64x2.floor(half), half))
  r = v128.xor(r, v128.and(v128.and(x, splat(-0.0)), isOdd))
  const isFiniteNegative = v128.and(f64x2.lt(x, splat(0)), f64x2.gt(x, splat(-Infinity)))
  r = v128.bitselect(splat(NaN), r, v128.andnot(isFiniteNegative, isWhole))
  return v128.bitselect(one, r, v128.or(f64x2.eq(x, one), f64x2.eq(y, splat(0))))
}

/** Of y and x, as atan2 is written. */
@inline function atan2Of(y: v128, x: v128): v128 {
  const a = f64x2.abs(y)
  const b = f64x2.abs(x)
  // Quotients of float32 neither overflow nor vanish in double; 0 / 0 is 0 here, ∞ / ∞ is 1.
  let q = f64x2.div(a, b)
  q = v128.bitselect(splat(0), q, v128.and(f64x2.eq(a, splat(0)), f64x2.eq(b, b)))
  q = v128.bitselect(splat(1), q, v128.and(f64x2.eq(a, splat(Infinity)), f64x2.eq(b, splat(Infinity))))
  const arc = atanOf(q)
  const isLeft = i64x2.lt_s(x, i64x2.splat(0)) // the sign bit, of -0 too
  return withSignOf(v128.bitselect(f64x2.sub(splat(PI), arc), arc, v128.and(isLeft, f64x2.eq(x, x))), y)
}

@inline function of2(op: Op, x: v128, y: v128): v128 {
  if (op == Op.log2) return log2Of(x)
  if (op == Op.log10) return f64x2.mul(log2Of(x), splat(LOG10_2))
  if (op == Op.exp2) return exp2Of(x)
  if (op == Op.sinh) return sinhOf(x, exp2Of(f64x2.mul(f64x2.abs(x), splat(LOG2E))))
  if (op == Op.cosh) {
    const e = exp2Of(f64x2.mul(f64x2.abs(x), splat(LOG2E)))
    return f64x2.mul(f64x2.add(e, f64x2.div(splat(1), e)), splat(0.5))
  }
  if (op == Op.atan) return withSignOf(atanOf(f64x2.abs(x)), x)
  if (op == Op.asin) {
    const a = f64x2.abs(x)
    return withSignOf(atanOf(f64x2.div(a, f64x2.sqrt(f64x2.mul(f64x2.sub(splat(1), a), f64x2.add(splat(1), a))))), x)
  }
  if (op == Op.acos) return f64x2.mul(splat(2), atanOf(f64x2.sqrt(f64x2.div(f64x2.sub(splat(1), x), f64x2.add(splat(1), x)))))
  if (op == Op.atan2) return atan2Of(x, y)
  return powOf(x, y)
}

/** The function of four float32 elements; y is in double. */
@inline function of4(op: Op, x: v128, yLow: v128, yHigh: v128): v128 {
  return join4(of2(op, f64x2.promote_low_f32x4(x), yLow), of2(op, upperPair(x), yHigh))
}

/** The exponent of pow is p0. @exports log2 log10 exp2 sinh cosh asin acos atan pow: f32 */
@inline function unary(op: Op, n: i32, x: usize, out: usize, p0: f64): void {
  const y = splat(p0)
  let i = 0
  for (; i < (n & ~3); i += 4) {
    v128.store(out + (<usize>i << 2), of4(op, v128.load(x + (<usize>i << 2)), y, y))
  }
  for (; i < n; i++) {
    const v = f64x2.promote_low_f32x4(v128.load32_splat(x + (<usize>i << 2)))
    f32.store(out + (<usize>i << 2), <f32>f64x2.extract_lane(of2(op, v, y), 0))
  }
}

/** One element at a time. @exports f32 */
@inline function unarySingle(op: Single, n: i32, x: usize, out: usize): void {
  for (const end = x + (<usize>n << 2); x < end; x += 4, out += 4) {
    const v = f32.load(x)
    f32.store(out, op == Single.sin ? sin1(v) : op == Single.cos ? cos1(v) : tan1(v))
  }
}

/** @exports power atan2: f32 */
@inline function binary(op: Op, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  for (let r = 0; r < rows; r++) {
    let i = 0
    for (; i < (n & ~3); i += 4) {
      const x = aStep == 0 ? v128.load32_splat(a) : v128.load(a + (<usize>i << 2))
      const y = bStep == 0 ? v128.load32_splat(b) : v128.load(b + (<usize>i << 2))
      v128.store(out + (<usize>i << 2), of4(op, x, f64x2.promote_low_f32x4(y), upperPair(y)))
    }
    for (; i < n; i++) {
      const x = f64x2.promote_low_f32x4(v128.load32_splat(a + (<usize>(i * aStep) << 2)))
      const y = f64x2.promote_low_f32x4(v128.load32_splat(b + (<usize>(i * bStep) << 2)))
      f32.store(out + (<usize>i << 2), <f32>f64x2.extract_lane(of2(op, x, y), 0))
    }
    a += aRow
    b += bRow
    out += outRow
  }
}
