/**
 * Roundings, activations and the derivatives of activations over dense runs of float32: four lanes, then the rest one by one with the same vector
 * code, as in `elementwise.ts`. p0 and p1 are the function's parameters (slope; alpha; beta and threshold). Above: `wasm/elementwise.ts`,
 * `wasm/gradients.ts`.
 */
import { erf4, exp4, expm14, log1p4, normalCdf4, sigmoid4 } from './math'

// Which function a shared loop inlines: compile-time constants, as in `elementwise.ts`.
const FLOOR = 0
const CEIL = 1
const ROUND = 2
const TRUNC = 3
const RECIPROCAL = 4
const RSQRT = 5
const ERF = 6
const EXPM1 = 7
const LOG1P = 8
const LEAKY_RELU = 9
const ELU = 10
const SILU = 11
const SOFTPLUS = 12
const GELU = 13
const GELU_TANH = 14

const RELU = 20
const TANH = 21
const SIGMOID = 22

const ONE_OVER_SQRT_2PI: f32 = 0.3989422804014327
const TWO_SQRT_2_OVER_PI: f32 = 1.5957691216057308
const CUBIC: f32 = 0.044715

// @ts-ignore: decorator
@inline function one(): v128 {
  return f32x4.splat(1)
}

/** 2 √(2/π) (x + 0.044715 x³), of which gelu's approximation takes the sigmoid. */
// @ts-ignore: decorator
@inline function geluArgument(x: v128): v128 {
  const cube = f32x4.mul(f32x4.mul(f32x4.mul(x, x), x), f32x4.splat(CUBIC))
  return f32x4.mul(f32x4.splat(TWO_SQRT_2_OVER_PI), f32x4.add(x, cube))
}

// @ts-ignore: decorator
@inline function forward(op: i32, x: v128, p0: v128, p1: v128): v128 {
  if (op == FLOOR) return f32x4.floor(x)
  if (op == CEIL) return f32x4.ceil(x)
  if (op == ROUND) return f32x4.nearest(x)
  if (op == TRUNC) return f32x4.trunc(x)
  if (op == RECIPROCAL) return f32x4.div(one(), x)
  if (op == RSQRT) return f32x4.div(one(), f32x4.sqrt(x))
  if (op == ERF) return erf4(x)
  if (op == EXPM1) return expm14(x)
  if (op == LOG1P) return log1p4(x)
  if (op == LEAKY_RELU) return v128.bitselect(x, f32x4.mul(x, p0), f32x4.gt(x, f32x4.splat(0)))
  if (op == ELU) return v128.bitselect(f32x4.mul(p0, expm14(x)), x, f32x4.le(x, f32x4.splat(0)))
  if (op == SILU) return f32x4.div(x, f32x4.add(one(), exp4(f32x4.neg(x))))
  if (op == SOFTPLUS) {
    const t = f32x4.mul(x, p0)
    return v128.bitselect(x, f32x4.div(log1p4(exp4(t)), p0), f32x4.gt(t, p1))
  }
  if (op == GELU) return f32x4.mul(x, normalCdf4(x))
  return f32x4.div(x, f32x4.add(one(), exp4(f32x4.neg(geluArgument(x)))))
}

/** g times the slope at x; of relu, tanh and sigmoid x is their result. */
// @ts-ignore: decorator
@inline function backward(op: i32, g: v128, x: v128, p0: v128, p1: v128): v128 {
  if (op == RELU) return v128.andnot(g, f32x4.le(x, f32x4.splat(0)))
  if (op == TANH) return f32x4.mul(g, f32x4.sub(one(), f32x4.mul(x, x)))
  if (op == SIGMOID) return f32x4.mul(g, f32x4.mul(x, f32x4.sub(one(), x)))
  if (op == LEAKY_RELU) return v128.bitselect(g, f32x4.mul(g, p0), f32x4.gt(x, f32x4.splat(0)))
  if (op == ELU) return v128.bitselect(f32x4.mul(g, f32x4.mul(exp4(x), p0)), g, f32x4.le(x, f32x4.splat(0)))
  if (op == SILU) {
    const s = sigmoid4(x)
    return f32x4.mul(g, f32x4.mul(s, f32x4.add(f32x4.mul(x, f32x4.sub(one(), s)), one())))
  }
  if (op == SOFTPLUS) {
    const t = f32x4.mul(x, p0)
    return v128.bitselect(g, f32x4.mul(g, sigmoid4(t)), f32x4.gt(t, p1))
  }
  if (op == GELU) {
    const density = f32x4.mul(exp4(f32x4.mul(f32x4.mul(x, x), f32x4.splat(-0.5))), f32x4.splat(ONE_OVER_SQRT_2PI))
    return f32x4.mul(g, f32x4.add(normalCdf4(x), f32x4.mul(x, density)))
  }
  // Beyond 20 the slope is 0 or 1, and the cube of a large number would be infinite.
  x = f32x4.min(f32x4.max(x, f32x4.splat(-20)), f32x4.splat(20))
  const s = sigmoid4(geluArgument(x))
  const slope = f32x4.mul(f32x4.splat(TWO_SQRT_2_OVER_PI), f32x4.add(f32x4.mul(f32x4.mul(x, x), f32x4.splat(3 * CUBIC)), one()))
  // s + x s (1 − s) slope
  return f32x4.mul(g, f32x4.add(s, f32x4.mul(f32x4.mul(x, slope), f32x4.mul(s, f32x4.sub(one(), s)))))
}

// @ts-ignore: decorator
@inline function forwardLoop(op: i32, n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  const a = f32x4.splat(p0)
  const b = f32x4.splat(p1)
  const end = x + (<usize>n << 2)
  const endOfVectors = x + (<usize>(n & ~3) << 2)
  for (; x < endOfVectors; x += 16, out += 16) v128.store(out, forward(op, v128.load(x), a, b))
  for (; x < end; x += 4, out += 4) f32.store(out, f32x4.extract_lane(forward(op, v128.load32_splat(x), a, b), 0))
}

// @ts-ignore: decorator
@inline function backwardLoop(op: i32, n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  const a = f32x4.splat(p0)
  const b = f32x4.splat(p1)
  const whole = <usize>(n & ~3) << 2
  const all = <usize>n << 2
  let i: usize = 0
  if (gStep) for (; i < whole; i += 16) v128.store(out + i, backward(op, v128.load(g + i), v128.load(x + i), a, b))
  else {
    const repeated = v128.load32_splat(g)
    for (; i < whole; i += 16) v128.store(out + i, backward(op, repeated, v128.load(x + i), a, b))
  }
  for (; i < all; i += 4) {
    const last = backward(op, v128.load32_splat(g + (gStep ? i : 0)), v128.load32_splat(x + i), a, b)
    f32.store(out + i, f32x4.extract_lane(last, 0))
  }
}

export function floor_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(FLOOR, n, x, out, p0, p1)
}
export function ceil_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(CEIL, n, x, out, p0, p1)
}
export function round_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(ROUND, n, x, out, p0, p1)
}
export function trunc_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(TRUNC, n, x, out, p0, p1)
}
export function reciprocal_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(RECIPROCAL, n, x, out, p0, p1)
}
export function rsqrt_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(RSQRT, n, x, out, p0, p1)
}
export function erf_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(ERF, n, x, out, p0, p1)
}
export function expm1_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(EXPM1, n, x, out, p0, p1)
}
export function log1p_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(LOG1P, n, x, out, p0, p1)
}
export function leaky_relu_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(LEAKY_RELU, n, x, out, p0, p1)
}
export function elu_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(ELU, n, x, out, p0, p1)
}
export function silu_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(SILU, n, x, out, p0, p1)
}
export function softplus_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(SOFTPLUS, n, x, out, p0, p1)
}
export function gelu_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(GELU, n, x, out, p0, p1)
}
export function gelu_tanh_f32(n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  forwardLoop(GELU_TANH, n, x, out, p0, p1)
}

export function relu_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(RELU, n, g, gStep, x, out, p0, p1)
}
export function tanh_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(TANH, n, g, gStep, x, out, p0, p1)
}
export function sigmoid_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(SIGMOID, n, g, gStep, x, out, p0, p1)
}
export function leaky_relu_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(LEAKY_RELU, n, g, gStep, x, out, p0, p1)
}
export function elu_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(ELU, n, g, gStep, x, out, p0, p1)
}
export function silu_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(SILU, n, g, gStep, x, out, p0, p1)
}
export function softplus_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(SOFTPLUS, n, g, gStep, x, out, p0, p1)
}
export function gelu_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(GELU, n, g, gStep, x, out, p0, p1)
}
export function gelu_tanh_backward_f32(n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  backwardLoop(GELU_TANH, n, g, gStep, x, out, p0, p1)
}

/** y (g − Σ g y) for each row of softmax's result y; the sum in double, two accumulators, then the rest. */
export function softmax_backward_rows_f32(rows: i32, k: i32, g: usize, y: usize, out: usize): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const sum = <f32>dot(whole, all, g, y)
    const s = f32x4.splat(sum)
    let i: usize = 0
    for (; i < whole; i += 16) v128.store(out + i, f32x4.mul(v128.load(y + i), f32x4.sub(v128.load(g + i), s)))
    for (; i < all; i += 4) f32.store(out + i, f32.load(y + i) * (f32.load(g + i) - sum))
    g += all
    y += all
    out += all
  }
}

/** g − eʸ Σ g for each row of logSoftmax's result y. */
export function log_softmax_backward_rows_f32(rows: i32, k: i32, g: usize, y: usize, out: usize): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const sum = f32x4.splat(<f32>total(whole, all, g))
    let i: usize = 0
    for (; i < whole; i += 16) v128.store(out + i, f32x4.sub(v128.load(g + i), f32x4.mul(exp4(v128.load(y + i)), sum)))
    for (; i < all; i += 4) {
      const last = f32x4.sub(v128.load32_splat(g + i), f32x4.mul(exp4(v128.load32_splat(y + i)), sum))
      f32.store(out + i, f32x4.extract_lane(last, 0))
    }
    g += all
    y += all
    out += all
  }
}

/** Products are rounded to float32 as `mul` does, then added in double. */
// @ts-ignore: decorator
@inline function dot(whole: usize, all: usize, a: usize, b: usize): f64 {
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  let i: usize = 0
  for (; i < whole; i += 16) {
    const p = f32x4.mul(v128.load(a + i), v128.load(b + i))
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(p))
    s1 = f64x2.add(s1, f64x2.promote_low_f32x4(i8x16.shuffle(p, p, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)))
  }
  const s = f64x2.add(s0, s1)
  let sum = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) sum += <f64>(f32.load(a + i) * f32.load(b + i))
  return sum
}

// @ts-ignore: decorator
@inline function total(whole: usize, all: usize, a: usize): f64 {
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  let i: usize = 0
  for (; i < whole; i += 16) {
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(v128.load64_zero(a + i)))
    s1 = f64x2.add(s1, f64x2.promote_low_f32x4(v128.load64_zero(a + i, 8)))
  }
  const s = f64x2.add(s0, s1)
  let sum = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) sum += <f64>f32.load(a + i)
  return sum
}
