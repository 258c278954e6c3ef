/**
 * The sine, the cosine and the tangent of float32, computed in double and rounded once (within 0.51 units in the last place), and the sine and the cosine of float64 (within
 * 1 unit). Two lanes at a time. Coefficients of float64: FreeBSD msun (`k_sin.c`, `k_cos.c`, `e_rem_pio2.c`). For `wasm/elementwise.ts`.
 */
import { join4, upperPair } from './parts/pairs'

const enum Circular { sin, cos, tan }

const PI: f64 = 3.141592653589793
/** 1.5 · 2^52: adding it rounds to an integer, which is then in the low bits of the sum. */
const ROUNDER: f64 = 6755399441055744

/** The host's `Math.sin` and `Math.cos`, for arguments whose reduction needs more bits than the kernels have of π. */
@external('math', 'sin')
declare function hostSin(x: f64): f64
@external('math', 'cos')
declare function hostCos(x: f64): f64

@inline function splat(x: f64): v128 {
  return f64x2.splat(x)
}

/** a · x + b */
@inline function madd(a: v128, x: v128, b: f64): v128 {
  return f64x2.add(f64x2.mul(a, x), splat(b))
}

// pi in two parts: the first has 33 bits, so that n · PI_1 is exact for |n| < 2^20.
const PI_1: f64 = 3.1415926218032836914
const PI_2: f64 = 3.17865095470563921e-8
/** From here on the two parts do not suffice, and the host computes. */
const REDUCIBLE: f32 = 1_000_000

/** The integer next to x, plus ROUNDER: so its lowest bit is the lowest of all. */
@inline function rounded(x: v128): v128 {
  return f64x2.add(x, splat(ROUNDER))
}

/** x − n · pi · share, where share is 1 or 1/2. */
@inline function remaining(x: v128, n: v128, share: f64): v128 {
  return f64x2.sub(f64x2.sub(x, f64x2.mul(n, splat(PI_1 * share))), f64x2.mul(n, splat(PI_2 * share)))
}

/** sin r for |r| ≤ pi / 2, relative error 3 · 10⁻¹¹ (Remez). -0 stays -0. */
@inline function sinOf(r: v128): v128 {
  const z = f64x2.mul(r, r)
  let p = madd(splat(-2.3888698839756071e-8), z, 2.7525372907043854e-6)
  p = madd(p, z, -1.9840867994984725e-4)
  p = madd(p, z, 8.3333311070504764e-3)
  p = madd(p, z, -1.6666666626116087e-1)
  return f64x2.mul(r, madd(p, z, 1))
}

/** cos r for |r| ≤ pi / 4. FreeBSD msun `__cosdf`. */
@inline function cosOf(r: v128): v128 {
  const z = f64x2.mul(r, r)
  let p = madd(splat(2.43904487962774090654e-5), z, -1.38867637746099294692e-3)
  p = madd(p, z, 4.16666233237390631894e-2)
  p = madd(p, z, -4.99999997251031003120e-1)
  return madd(p, z, 1)
}

@inline function circular2(op: Circular, x: v128): v128 {
  if (op == Circular.sin) {
    const n = rounded(f64x2.mul(x, splat(1 / PI)))
    const y = sinOf(remaining(x, f64x2.sub(n, splat(ROUNDER)), 1))
    return v128.xor(y, i64x2.shl(n, 63)) // odd n: -sin
  }
  if (op == Circular.cos) {
    // x is (n + 1/2) pi + r, so that its cosine is -sin r for even n.
    const n = rounded(f64x2.sub(f64x2.mul(x, splat(1 / PI)), splat(0.5)))
    const y = sinOf(remaining(x, f64x2.add(f64x2.sub(n, splat(ROUNDER)), splat(0.5)), 1))
    return v128.xor(v128.xor(y, splat(-0.0)), i64x2.shl(n, 63))
  }
  const n = rounded(f64x2.mul(x, splat(2 / PI)))
  const r = remaining(x, f64x2.sub(n, splat(ROUNDER)), 0.5)
  const s = sinOf(r)
  const c = cosOf(r)
  const isOdd = i64x2.lt_s(i64x2.shl(n, 63), i64x2.splat(0)) // -cos r / sin r
  const y = f64x2.div(v128.bitselect(c, s, isOdd), v128.bitselect(s, c, isOdd))
  return v128.xor(y, v128.and(isOdd, splat(-0.0)))
}

function hostCircular(op: Circular, x: f64): f64 {
  return op == Circular.sin ? hostSin(x) : op == Circular.cos ? hostCos(x) : hostSin(x) / hostCos(x)
}

/** y with the host's results where |x| is too large, or NaN. */
function withHost4(op: Circular, x: v128, y: v128): v128 {
  const far = v128.not(f32x4.lt(f32x4.abs(x), f32x4.splat(REDUCIBLE)))
  if (i32x4.extract_lane(far, 0)) y = f32x4.replace_lane(y, 0, <f32>hostCircular(op, <f64>f32x4.extract_lane(x, 0)))
  if (i32x4.extract_lane(far, 1)) y = f32x4.replace_lane(y, 1, <f32>hostCircular(op, <f64>f32x4.extract_lane(x, 1)))
  if (i32x4.extract_lane(far, 2)) y = f32x4.replace_lane(y, 2, <f32>hostCircular(op, <f64>f32x4.extract_lane(x, 2)))
  if (i32x4.extract_lane(far, 3)) y = f32x4.replace_lane(y, 3, <f32>hostCircular(op, <f64>f32x4.extract_lane(x, 3)))
  return y
}

@inline function circular4(op: Circular, x: v128): v128 {
  const y = join4(circular2(op, f64x2.promote_low_f32x4(x)), circular2(op, upperPair(x)))
  return i32x4.all_true(f32x4.lt(f32x4.abs(x), f32x4.splat(REDUCIBLE))) ? y : withHost4(op, x, y)
}

/** @exports f32 */
@inline function circular(op: Circular, n: i32, x: usize, out: usize): void {
  const end = x + (<usize>n << 2)
  const endOfVectors = x + (<usize>(n & ~3) << 2)
  for (; x < endOfVectors; x += 16, out += 16) v128.store(out, circular4(op, v128.load(x)))
  for (; x < end; x += 4, out += 4) f32.store(out, f32x4.extract_lane(circular4(op, v128.load32_splat(x)), 0))
}

// π / 2 in parts: the first two have 33 bits, so that their products with n below 2^20 are exact.
const HALF_PI_1: f64 = 1.57079632673412561417
const HALF_PI_2: f64 = 6.07710050630396597660e-11
const HALF_PI_3: f64 = 2.02226624879595063154e-21
/** As REDUCIBLE. */
const REDUCIBLE_DOUBLE: f64 = 1_000_000
/** Neither do the parts suffice where so little is left of x. */
const LITTLE: f64 = 5.684341886080802e-14 // 2^-44

/** sin (x + y) for |x| ≤ π / 4, y the rest of x. */
@inline function sinNear(x: v128, y: v128): v128 {
  const z = f64x2.mul(x, x)
  const v = f64x2.mul(z, x)
  let r = madd(splat(1.58969099521155010221e-10), z, -2.50507602534068634195e-8)
  r = madd(r, z, 2.75573137070700676789e-6)
  r = madd(r, z, -1.98412698298579493134e-4)
  r = madd(r, z, 8.33333333332248946124e-3)
  const low = f64x2.sub(f64x2.mul(z, f64x2.sub(f64x2.mul(splat(0.5), y), f64x2.mul(v, r))), y)
  return f64x2.sub(x, f64x2.sub(low, f64x2.mul(v, splat(-1.66666666666666324348e-1))))
}

/** cos (x + y) likewise. */
@inline function cosNear(x: v128, y: v128): v128 {
  const z = f64x2.mul(x, x)
  let r = madd(splat(-1.13596475577881948265e-11), z, 2.08757232129817482790e-9)
  r = madd(r, z, -2.75573143513906633035e-7)
  r = madd(r, z, 2.48015872894767294178e-5)
  r = madd(r, z, -1.38888888888741095749e-3)
  r = f64x2.mul(madd(r, z, 4.16666666666666019037e-2), z)
  const half = f64x2.mul(splat(0.5), z)
  const w = f64x2.sub(splat(1), half)
  const rest = f64x2.sub(f64x2.sub(splat(1), w), half)
  return f64x2.add(w, f64x2.add(rest, f64x2.sub(f64x2.mul(z, r), f64x2.mul(x, y))))
}

/** -0 stays -0; infinity and NaN give NaN. */
@inline function circularOf(op: Circular, x: v128): v128 {
  // x is n π / 2 + a + b, and n is in the low bits of `shifted`.
  const shifted = f64x2.add(f64x2.mul(x, splat(6.36619772367581382433e-1)), splat(ROUNDER))
  const n = f64x2.sub(shifted, splat(ROUNDER))
  const t = f64x2.sub(x, f64x2.mul(n, splat(HALF_PI_1)))
  const w = f64x2.mul(n, splat(HALF_PI_2))
  const r = f64x2.sub(t, w)
  const low = f64x2.sub(f64x2.mul(n, splat(HALF_PI_3)), f64x2.sub(f64x2.sub(t, r), w))
  const a = f64x2.sub(r, low)
  const b = f64x2.sub(f64x2.sub(r, a), low)
  const quarter = op == Circular.sin ? shifted : i64x2.add(shifted, i64x2.splat(1))
  const isOdd = i64x2.lt_s(i64x2.shl(quarter, 63), i64x2.splat(0))
  const y = v128.bitselect(cosNear(a, b), sinNear(a, b), isOdd)
  const result = v128.xor(y, i64x2.shl(i64x2.shr_u(quarter, 1), 63))
  const isNear = v128.or(f64x2.ge(f64x2.abs(a), splat(LITTLE)), f64x2.eq(n, splat(0)))
  const isExact = v128.and(isNear, f64x2.lt(f64x2.abs(x), splat(REDUCIBLE_DOUBLE)))
  return i64x2.all_true(isExact) ? result : withHost2(op, x, result, isExact)
}

/** The host's results where the kernel's are not exact enough. */
function withHost2(op: Circular, x: v128, y: v128, isExact: v128): v128 {
  if (!i64x2.extract_lane(isExact, 0)) y = f64x2.replace_lane(y, 0, hostCircular(op, f64x2.extract_lane(x, 0)))
  if (!i64x2.extract_lane(isExact, 1)) y = f64x2.replace_lane(y, 1, hostCircular(op, f64x2.extract_lane(x, 1)))
  return y
}

/** @exports sin cos: f64 */
@inline function circularDoubles(op: Circular, n: i32, x: usize, out: usize): void {
  const end = x + (<usize>n << 3)
  const endOfVectors = x + (<usize>(n & ~1) << 3)
  for (; x < endOfVectors; x += 16, out += 16) v128.store(out, circularOf(op, v128.load(x)))
  if (x < end) f64.store(out, f64x2.extract_lane(circularOf(op, v128.load64_splat(x)), 0))
}
