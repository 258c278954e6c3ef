/**
 * Functions of float32 that are computed in double, two lanes at a time, and rounded once: the result is within 0.51 units in the last place, and special
 * values follow from the arithmetic. Logarithms and powers to other bases, pow, hyperbolic functions, arcs, remainders (exact). `circular.ts` has
 * the sine, the cosine and the tangent. For `wasm/elementwise.ts`.
 */
import { join4, upperPair } from './parts/pairs'

const enum Op { log2, log10, exp2, sinh, cosh, asin, acos, atan, pow, atan2, power }
const enum Rest { modulo, fmod, floor_divide }

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

/** 2^t, relative error 4 · 10⁻¹¹ (Remez): infinity and 0 in float32 are reached long before the bounds. NaN stays. */
@inline function exp2Of(input: v128): v128 {
  const t = f64x2.pmin(f64x2.pmax(input, splat(-400)), splat(400))
  const shifted = f64x2.add(t, splat(ROUNDER))
  const r = f64x2.sub(t, f64x2.sub(shifted, splat(ROUNDER)))
  let p = madd(splat(1.52019496398050815e-5), r, 1.54692908795655496e-4)
  p = madd(p, r, 1.3333922421237843e-3)
  p = madd(p, r, 9.61802725498758955e-3)
  p = madd(p, r, 5.55041035366790275e-2)
  p = madd(p, r, 2.40226511981425658e-1)
  p = madd(p, r, 6.93147180728357593e-1)
  p = madd(p, r, 9.99999999961691853e-1)
  // 2^n: n plus the exponent's bias; the shift drops the bits above.
  return f64x2.mul(p, i64x2.shl(i64x2.add(shifted, i64x2.splat(1023)), 52))
}

/** log2 of a finite float32 above 0 as a double, which is never denormal; relative error 10⁻¹³ (Remez). */
@inline function log2OfPositive(x: v128): v128 {
  // The exponent that brings the mantissa to [√½, √2), by the words that hold the exponents.
  const e = i32x4.shr_s(i32x4.sub(x, i64x2.splat(0x3fe6a09e00000000)), 20)
  const m = i64x2.sub(x, i64x2.shl(v128.and(e, i64x2.splat(0xffffffff00000000)), 20))
  const f = f64x2.sub(m, splat(1))
  const s = f64x2.div(f, f64x2.add(m, splat(1)))
  const z = f64x2.mul(s, s)
  let p = madd(splat(0.282899319034162326), z, 0.319905752833130873)
  p = madd(p, z, 0.41220925109770712)
  p = madd(p, z, 0.577077942376510909)
  p = madd(p, z, 0.961796694113306902)
  p = madd(p, z, 2.88539008177785001)
  return f64x2.add(f64x2.mul(p, s), f64x2.convert_low_i32x4_s(v128.shuffle<i32>(e, e, 1, 3, 1, 3)))
}

/** -∞ at 0, NaN below. */
@inline function log2Of(x: v128): v128 {
  let r = log2OfPositive(x)
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

/** Functions by a logarithm, whose special cases cost as much as the logarithm does. */
@inline function hasPlain(op: Op): bool {
  return op == Op.log2 || op == Op.log10 || op == Op.pow || op == Op.power
}

/** Whether none of the special cases of these functions is met: x is finite and above 0. */
@inline function isPlain(x: v128): v128 {
  return v128.and(f32x4.gt(x, f32x4.splat(0)), f32x4.lt(x, f32x4.splat(Infinity)))
}

/** `of2` there, with the same bits; an exponent y is finite. */
@inline function plain2(op: Op, x: v128, y: v128): v128 {
  const log = log2OfPositive(x)
  if (op == Op.log2) return log
  return op == Op.log10 ? f64x2.mul(log, splat(LOG10_2)) : exp2Of(f64x2.mul(y, log))
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

/** The function of four float32 elements; y is in double, and `isFinite` says whether all of it is. */
@inline function of4(op: Op, x: v128, yLow: v128, yHigh: v128, isFinite: bool): v128 {
  if (hasPlain(op) && isFinite && i32x4.all_true(isPlain(x))) {
    return join4(plain2(op, f64x2.promote_low_f32x4(x), yLow), plain2(op, upperPair(x), yHigh))
  }
  return join4(of2(op, f64x2.promote_low_f32x4(x), yLow), of2(op, upperPair(x), yHigh))
}

/** The exponent of pow is p0. @exports log2 log10 exp2 sinh cosh asin acos atan pow: f32 */
@inline function unary(op: Op, n: i32, x: usize, out: usize, p0: f64): void {
  const y = splat(p0)
  const isFinite = op != Op.pow || abs(p0) < Infinity
  let i = 0
  for (; i < (n & ~3); i += 4) {
    v128.store(out + (<usize>i << 2), of4(op, v128.load(x + (<usize>i << 2)), y, y, isFinite))
  }
  for (; i < n; i++) {
    const v = f64x2.promote_low_f32x4(v128.load32_splat(x + (<usize>i << 2)))
    f32.store(out + (<usize>i << 2), <f32>f64x2.extract_lane(of2(op, v, y), 0))
  }
}

/** Whole quotients below this have so few bits that their product with a float32 is exact in double. */
const EXACT: f64 = 536870912 // 2^29

/** All ones where a rest other than 0 has not the sign of b. */
@inline function isOpposite(rest: v128, b: v128): v128 {
  const differ = i64x2.lt_s(v128.xor(rest, b), i64x2.splat(0))
  return v128.and(differ, f64x2.ne(rest, splat(0)))
}

/** As `scalars.ts` defines them, of the rest of a after b. */
@inline function rest2(op: Rest, a: v128, b: v128, rest: v128): v128 {
  if (op == Rest.fmod) return rest
  const opposite = isOpposite(rest, b)
  if (op == Rest.modulo) return v128.bitselect(f64x2.add(rest, b), rest, opposite)
  const quotient = f64x2.sub(f64x2.div(f64x2.sub(a, rest), b), v128.and(opposite, splat(1)))
  const down = f64x2.floor(quotient)
  const whole = f64x2.add(down, v128.and(f64x2.gt(f64x2.sub(quotient, down), splat(0.5)), splat(1)))
  // A zero has the sign of the quotient that it is rounded from.
  const zero = v128.and(v128.xor(a, b), splat(-0.0))
  return v128.bitselect(zero, whole, f64x2.eq(quotient, splat(0)))
}

/** A lane whose quotient is large or no number, or whose b is infinite. */
function slowRest(op: Rest, a: f64, b: f64): f64 {
  const y = f64x2.extract_lane(rest2(op, splat(a), splat(b), splat(a % b)), 0)
  return op == Rest.floor_divide && b == 0 ? a / b : y
}

/** Two of them. With a quotient below EXACT, rounding never makes it a whole number, and a − b · floor(a / b) is the rest, rounded once at most. */
@inline function restPair(op: Rest, a: v128, b: v128): v128 {
  const q = f64x2.div(a, b)
  const whole = op == Rest.fmod ? f64x2.trunc(q) : f64x2.floor(q)
  const rest = f64x2.sub(a, f64x2.mul(whole, b))
  // A rest of 0 has the sign of a. With an infinite b the rest is NaN here.
  let y = op == Rest.floor_divide ? whole : v128.or(rest, v128.and(f64x2.eq(rest, splat(0)), v128.and(a, splat(-0.0))))
  const near = v128.and(f64x2.lt(f64x2.abs(q), splat(EXACT)), f64x2.eq(rest, rest))
  if (i64x2.all_true(near)) return y
  if (!i64x2.extract_lane(near, 0)) y = f64x2.replace_lane(y, 0, slowRest(op, f64x2.extract_lane(a, 0), f64x2.extract_lane(b, 0)))
  if (!i64x2.extract_lane(near, 1)) y = f64x2.replace_lane(y, 1, slowRest(op, f64x2.extract_lane(a, 1), f64x2.extract_lane(b, 1)))
  return y
}

/** The rest of a division with the sign of b, with that of a, and the quotient rounded down. @exports f32 */
@inline function restRows(op: Rest, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  for (let r = 0; r < rows; r++) {
    let i = 0
    for (; i < (n & ~3); i += 4) {
      const x = aStep == 0 ? v128.load32_splat(a) : v128.load(a + (<usize>i << 2))
      const y = bStep == 0 ? v128.load32_splat(b) : v128.load(b + (<usize>i << 2))
      const low = restPair(op, f64x2.promote_low_f32x4(x), f64x2.promote_low_f32x4(y))
      v128.store(out + (<usize>i << 2), join4(low, restPair(op, upperPair(x), upperPair(y))))
    }
    for (; i < n; i++) {
      const x = f64x2.promote_low_f32x4(v128.load32_splat(a + (<usize>(i * aStep) << 2)))
      const y = f64x2.promote_low_f32x4(v128.load32_splat(b + (<usize>(i * bStep) << 2)))
      f32.store(out + (<usize>i << 2), <f32>f64x2.extract_lane(restPair(op, x, y), 0))
    }
    a += aRow
    b += bRow
    out += outRow
  }
}

/** @exports power atan2: f32 */
@inline function binary(op: Op, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32): void {
  for (let r = 0; r < rows; r++) {
    let i = 0
    for (; i < (n & ~3); i += 4) {
      const x = aStep == 0 ? v128.load32_splat(a) : v128.load(a + (<usize>i << 2))
      const y = bStep == 0 ? v128.load32_splat(b) : v128.load(b + (<usize>i << 2))
      const isFinite = op == Op.power && i32x4.all_true(f32x4.lt(f32x4.abs(y), f32x4.splat(Infinity)))
      v128.store(out + (<usize>i << 2), of4(op, x, f64x2.promote_low_f32x4(y), upperPair(y), isFinite))
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
