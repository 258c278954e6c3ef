/**
 * Functions of an instruction or two, which are exact or correctly rounded: rounding to integers, reciprocals, signs and bounds. Runs are
 * dense. Above: `wasm/exact.ts`. float32's first six are in `activations.ts`.
 */

const FLOOR = 0
const CEIL = 1
const ROUND = 2
const TRUNC = 3
const RECIPROCAL = 4
const RSQRT = 5
const SIGN = 6
const CLAMP = 7

// @ts-ignore: decorator
@inline function exact<T>(op: i32, x: v128, low: v128, high: v128): v128 {
  if (op == SIGN) {
    const zero = v128.splat<T>(0)
    const one = v128.splat<T>(1)
    // NaN is neither: 0.
    return v128.sub<T>(v128.and(v128.gt<T>(x, zero), one), v128.and(v128.lt<T>(x, zero), one))
  }
  if (isFloat<T>()) {
    if (op == CLAMP) return v128.min<T>(v128.max<T>(x, low), high)
    if (op == FLOOR) return v128.floor<T>(x)
    if (op == CEIL) return v128.ceil<T>(x)
    if (op == ROUND) return v128.nearest<T>(x)
    if (op == TRUNC) return v128.trunc<T>(x)
    if (op == RECIPROCAL) return v128.div<T>(v128.splat<T>(1), x)
    return v128.div<T>(v128.splat<T>(1), v128.sqrt<T>(x))
  }
  return i32x4.min_s(i32x4.max_s(x, low), high)
}

// @ts-ignore: decorator
@inline function exactLoop<T>(op: i32, n: i32, x: usize, out: usize, p0: T, p1: T): void {
  const low = v128.splat<T>(p0)
  const high = v128.splat<T>(p1)
  const lanes = 16 / sizeof<T>()
  const whole = <usize>(n & ~(<i32>lanes - 1)) * sizeof<T>()
  const all = <usize>n * sizeof<T>()
  let i: usize = 0
  for (; i < whole; i += 16) v128.store(out + i, exact<T>(op, v128.load(x + i), low, high))
  for (; i < all; i += sizeof<T>()) store<T>(out + i, v128.extract_lane<T>(exact<T>(op, v128.splat<T>(load<T>(x + i)), low, high), 0))
}

export function floor_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(FLOOR, n, x, out, p0, p1)
}
export function ceil_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(CEIL, n, x, out, p0, p1)
}
export function round_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(ROUND, n, x, out, p0, p1)
}
export function trunc_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(TRUNC, n, x, out, p0, p1)
}
export function reciprocal_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(RECIPROCAL, n, x, out, p0, p1)
}
export function rsqrt_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(RSQRT, n, x, out, p0, p1)
}
export function sign_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  exactLoop<f32>(SIGN, n, x, out, p0, p1)
}
export function sign_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(SIGN, n, x, out, p0, p1)
}
export function sign_i32(n: i32, x: usize, out: usize, p0: i32, p1: i32): void {
  exactLoop<i32>(SIGN, n, x, out, p0, p1)
}
export function clamp_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  exactLoop<f32>(CLAMP, n, x, out, p0, p1)
}
export function clamp_f64(n: i32, x: usize, out: usize, p0: f64, p1: f64): void {
  exactLoop<f64>(CLAMP, n, x, out, p0, p1)
}
export function clamp_i32(n: i32, x: usize, out: usize, p0: i32, p1: i32): void {
  exactLoop<i32>(CLAMP, n, x, out, p0, p1)
}
