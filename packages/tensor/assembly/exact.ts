/**
 * Functions of an instruction or two, which are exact or correctly rounded: signs, bounds, roots, rounding to integers, reciprocals. Runs are dense.
 * For `wasm/elementwise.ts`.
 */

const enum Op { neg, abs, relu, sign, sqrt, floor, ceil, round, trunc, reciprocal, rsqrt, clamp }

@inline function exact<T>(op: Op, x: v128, low: v128, high: v128): v128 {
  const zero = v128.splat<T>(0)
  const one = v128.splat<T>(1)
  if (op == Op.neg) return v128.neg<T>(x)
  if (op == Op.abs) return v128.abs<T>(x)
  // pmax is one instruction where max is nine, and keeps NaN; the sum makes 0 of -0.
  if (op == Op.relu) return isFloat<T>() ? v128.add<T>(v128.pmax<T>(x, zero), zero) : v128.max<T>(x, zero)
  // NaN is neither: 0.
  if (op == Op.sign) return v128.sub<T>(v128.and(v128.gt<T>(x, zero), one), v128.and(v128.lt<T>(x, zero), one))
  if (isFloat<T>()) {
    if (op == Op.sqrt) return v128.sqrt<T>(x)
    if (op == Op.floor) return v128.floor<T>(x)
    if (op == Op.ceil) return v128.ceil<T>(x)
    if (op == Op.round) return v128.nearest<T>(x)
    if (op == Op.trunc) return v128.trunc<T>(x)
    if (op == Op.reciprocal) return v128.div<T>(one, x)
    if (op == Op.rsqrt) return v128.div<T>(one, v128.sqrt<T>(x))
  }
  return v128.min<T>(v128.max<T>(x, low), high)
}

/**
 * clamp by single instructions, for bounds that are numbers and for an upper one that is not -0. Where x equals a bound, it stays: at a lower bound of 0 a sum
 * makes 0 of -0 (`isFrom0`, which is a constant).
 */
@inline function within<T>(x: v128, low: v128, high: v128, isFrom0: bool): v128 {
  const above = v128.pmax<T>(x, low)
  return v128.pmin<T>(isFrom0 ? v128.add<T>(above, v128.splat<T>(0)) : above, high)
}

@inline function clampLoop<T>(fours: usize, whole: usize, x: usize, out: usize, low: v128, high: v128, isFrom0: bool): void {
  let i: usize = 0
  for (; i < fours; i += 64) {
    const from = x + i
    const to = out + i
    v128.store(to, within<T>(v128.load(from), low, high, isFrom0))
    v128.store(to, within<T>(v128.load(from, 16), low, high, isFrom0), 16)
    v128.store(to, within<T>(v128.load(from, 32), low, high, isFrom0), 32)
    v128.store(to, within<T>(v128.load(from, 48), low, high, isFrom0), 48)
  }
  for (; i < whole; i += 16) v128.store(out + i, within<T>(v128.load(x + i), low, high, isFrom0))
}

@inline function isNegativeZero<T>(x: T): bool {
  return x == 0 && <T>1 / x < 0
}

/**
 * The bounds of clamp are p0 and p1.
 * @exports neg abs relu sign clamp: f32 f64 i32
 * @exports sqrt floor ceil round trunc reciprocal rsqrt: f32 f64
 */
@inline function exactLoop<T>(op: Op, n: i32, x: usize, out: usize, p0: T, p1: T): void {
  const low = v128.splat<T>(p0)
  const high = v128.splat<T>(p1)
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  // Four vectors share what a round of a loop costs, which is more than these functions do.
  const fours = whole & ~63
  let i: usize = 0
  if (isFloat<T>() && op == Op.clamp && p0 == p0 && p1 == p1 && !isNegativeZero<T>(p1)) {
    if (p0 == 0 && !isNegativeZero<T>(p0)) clampLoop<T>(fours, whole, x, out, low, high, true)
    else clampLoop<T>(fours, whole, x, out, low, high, false)
    i = whole
  }
  for (; i < fours; i += 64) {
    const from = x + i
    const to = out + i
    v128.store(to, exact<T>(op, v128.load(from), low, high))
    v128.store(to, exact<T>(op, v128.load(from, 16), low, high), 16)
    v128.store(to, exact<T>(op, v128.load(from, 32), low, high), 32)
    v128.store(to, exact<T>(op, v128.load(from, 48), low, high), 48)
  }
  for (; i < whole; i += 16) v128.store(out + i, exact<T>(op, v128.load(x + i), low, high))
  for (; i < all; i += sizeof<T>()) store<T>(out + i, v128.extract_lane<T>(exact<T>(op, v128.splat<T>(load<T>(x + i)), low, high), 0))
}
