/**
 * Functions by polynomials, activations and their derivatives over dense runs of float32: four lanes, then the rest one by one with the same vector
 * code, as in `elementwise.ts`. p0 and p1 are the function's parameters (slope; alpha; beta and threshold). `wasm/elementwise.ts` calls them.
 */
import { areModest4, erf4, exp4, expm14, expOf4, gauss4, log1p4, log4, normalCdf4, sigmoid4, tanh4 } from './parts/math'

// Which function a shared loop inlines: compile-time constants, as in `elementwise.ts`.
const enum Forward {
  exp, log, tanh, sigmoid, erf, expm1, log1p, leaky_relu, elu, silu, softplus, gelu, gelu_tanh,
}
const enum Backward {
  relu_backward, tanh_backward, sigmoid_backward, leaky_relu_backward, elu_backward, silu_backward, softplus_backward, gelu_backward, gelu_tanh_backward,
}

const ONE_OVER_SQRT_2PI: f32 = 0.3989422804014327
const TWO_SQRT_2_OVER_PI: f32 = 1.5957691216057308
const CUBIC: f32 = 0.044715

@inline function one(): v128 {
  return f32x4.splat(1)
}

/** 2 √(2/π) (x + 0.044715 x³), of which gelu's approximation takes the sigmoid. */
@inline function geluArgument(x: v128): v128 {
  const cube = f32x4.mul(f32x4.mul(f32x4.mul(x, x), x), f32x4.splat(CUBIC))
  return f32x4.mul(f32x4.splat(TWO_SQRT_2_OVER_PI), f32x4.add(x, cube))
}

/** Functions of one exponential of ±x, which costs less where |x| is modest: most numbers are. */
@inline function isExponential(op: Forward): bool {
  return op == Forward.exp || op == Forward.silu
}

/** `modest`, for functions of one exponential: the caller has seen that |x| is at most 87 in all lanes. */
@inline function forward(op: Forward, modest: bool, x: v128, p0: v128, p1: v128): v128 {
  if (op == Forward.exp) return expOf4(x, modest)
  if (op == Forward.log) return log4(x)
  if (op == Forward.tanh) return tanh4(x)
  if (op == Forward.sigmoid) return sigmoid4(x)
  if (op == Forward.erf) return erf4(x)
  if (op == Forward.expm1) return expm14(x)
  if (op == Forward.log1p) return log1p4(x)
  if (op == Forward.leaky_relu) return v128.bitselect(x, f32x4.mul(x, p0), f32x4.gt(x, f32x4.splat(0)))
  if (op == Forward.elu) return v128.bitselect(f32x4.mul(p0, expm14(x)), x, f32x4.le(x, f32x4.splat(0)))
  if (op == Forward.silu) return f32x4.div(x, f32x4.add(one(), expOf4(f32x4.neg(x), modest)))
  if (op == Forward.softplus) {
    const t = f32x4.mul(x, p0)
    return v128.bitselect(x, f32x4.div(log1p4(exp4(t)), p0), f32x4.gt(t, p1))
  }
  if (op == Forward.gelu) return f32x4.mul(x, normalCdf4(x, gauss4(x)))
  return f32x4.div(x, f32x4.add(one(), exp4(f32x4.neg(geluArgument(x)))))
}

/** g times the slope at x; of relu, tanh and sigmoid x is their result. */
@inline function backward(op: Backward, g: v128, x: v128, p0: v128, p1: v128): v128 {
  if (op == Backward.relu_backward) return v128.andnot(g, f32x4.le(x, f32x4.splat(0)))
  if (op == Backward.tanh_backward) return f32x4.mul(g, f32x4.sub(one(), f32x4.mul(x, x)))
  if (op == Backward.sigmoid_backward) return f32x4.mul(g, f32x4.mul(x, f32x4.sub(one(), x)))
  if (op == Backward.leaky_relu_backward) return v128.bitselect(g, f32x4.mul(g, p0), f32x4.gt(x, f32x4.splat(0)))
  if (op == Backward.elu_backward) return v128.bitselect(f32x4.mul(g, f32x4.mul(exp4(x), p0)), g, f32x4.le(x, f32x4.splat(0)))
  if (op == Backward.silu_backward) {
    const s = sigmoid4(x)
    return f32x4.mul(g, f32x4.mul(s, f32x4.add(f32x4.mul(x, f32x4.sub(one(), s)), one())))
  }
  if (op == Backward.softplus_backward) {
    const t = f32x4.mul(x, p0)
    return v128.bitselect(g, f32x4.mul(g, sigmoid4(t)), f32x4.gt(t, p1))
  }
  if (op == Backward.gelu_backward) {
    const gauss = gauss4(x)
    const density = f32x4.mul(gauss, f32x4.splat(ONE_OVER_SQRT_2PI))
    return f32x4.mul(g, f32x4.add(normalCdf4(x, gauss), f32x4.mul(x, density)))
  }
  // Beyond 20 the slope is 0 or 1, and the cube of a large number would be infinite.
  x = f32x4.min(f32x4.max(x, f32x4.splat(-20)), f32x4.splat(20))
  const s = sigmoid4(geluArgument(x))
  const slope = f32x4.mul(f32x4.splat(TWO_SQRT_2_OVER_PI), f32x4.add(f32x4.mul(f32x4.mul(x, x), f32x4.splat(3 * CUBIC)), one()))
  // s + x s (1 − s) slope
  return f32x4.mul(g, f32x4.add(s, f32x4.mul(f32x4.mul(x, slope), f32x4.mul(s, f32x4.sub(one(), s)))))
}

@inline function areModest(x: usize): bool {
  return areModest4(v128.load(x), v128.load(x, 16), v128.load(x, 32), v128.load(x, 48))
}

/** @exports f32 */
@inline function forwardLoop(op: Forward, n: i32, x: usize, out: usize, p0: f32, p1: f32): void {
  const a = f32x4.splat(p0)
  const b = f32x4.splat(p1)
  const end = x + (<usize>n << 2)
  if (isExponential(op)) {
    const fours = x + (<usize>(n & ~15) << 2)
    // V8 makes a constant anew in each round, unless the round's code runs before its condition, as that of modest ones does.
    while (x < fours) {
      if (areModest(x)) {
        do {
          forwardFour(op, true, x, out, a, b)
          x += 64
          out += 64
        } while (x < fours && areModest(x))
      } else {
        forwardFour(op, false, x, out, a, b)
        x += 64
        out += 64
      }
    }
  }
  // Two vectors share the constants, which are more than there are registers.
  for (const pairs = x + (<usize>(<i32>(end - x) & ~31)); x < pairs; x += 32, out += 32) {
    const y0 = forward(op, false, v128.load(x), a, b)
    const y1 = forward(op, false, v128.load(x, 16), a, b)
    v128.store(out, y0)
    v128.store(out, y1, 16)
  }
  for (; x < end; x += 4, out += 4) f32.store(out, f32x4.extract_lane(forward(op, false, v128.load32_splat(x), a, b), 0))
}

@inline function forwardFour(op: Forward, modest: bool, x: usize, out: usize, a: v128, b: v128): void {
  v128.store(out, forward(op, modest, v128.load(x), a, b))
  v128.store(out, forward(op, modest, v128.load(x, 16), a, b), 16)
  v128.store(out, forward(op, modest, v128.load(x, 32), a, b), 32)
  v128.store(out, forward(op, modest, v128.load(x, 48), a, b), 48)
}

/** @exports f32 */
@inline function backwardLoop(op: Backward, n: i32, g: usize, gStep: i32, x: usize, out: usize, p0: f32, p1: f32): void {
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
