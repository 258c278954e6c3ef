/**
 * Softmax along rows, its logarithm, their derivatives, and the loss of a row's class, of dense float32 [rows, k]. Pointers are bytes. For
 * `wasm/rows/probabilities.ts`. Sums are double, of four that were added in float32, or of two.
 */
import { extremeRow } from './extremes'
import { expSeries4, LN2_HIGH, LN2_LOW, LOG2E, log4, ROUNDER } from '../parts/math'
import { addHalves, upperPair } from '../parts/pairs'

/** Softmax's exponentials are 2^LIFT times as large on the way, so that those below the normal range keep their digits until the result is rounded. */
const LIFT = 64

/** exp4 for arguments that are at most 0: one bound and one scale; with `lift` times 2^LIFT. NaN stays NaN. A result below the normal range is 0. */
@inline function falling4(lift: bool, input: v128): v128 {
  // At the bound the scale is 0.
  const x = f32x4.pmax(input, f32x4.splat(lift ? -132.5 : -88))
  // As in expModest4.
  const rounder = lift ? ROUNDER + <f32>LIFT : ROUNDER
  const shifted = f32x4.add(f32x4.mul(x, f32x4.splat(LOG2E)), f32x4.splat(rounder))
  const n = f32x4.sub(shifted, f32x4.splat(rounder))
  const r = f32x4.sub(f32x4.sub(x, f32x4.mul(n, f32x4.splat(LN2_HIGH))), f32x4.mul(n, f32x4.splat(LN2_LOW)))
  return f32x4.mul(f32x4.add(expSeries4(r), f32x4.splat(1)), i32x4.shl(shifted, 23))
}

/** Σ exp(x − m), and with `writes` each of them to out, which may be x; with `lift` times 2^LIFT. */
@inline function expRow(writes: bool, lift: bool, k: i32, x: usize, m: v128, out: usize): f64 {
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  const groups = <usize>(k & ~7) << 2
  const all = <usize>k << 2
  const twice = groups & ~63
  let i: usize = 0
  for (; i < twice; i += 64) {
    const at = x + i
    const to = out + i
    const a = falling4(lift, f32x4.sub(v128.load(at), m))
    const b = falling4(lift, f32x4.sub(v128.load(at, 16), m))
    if (writes) {
      v128.store(to, a)
      v128.store(to, b, 16)
    }
    const c = falling4(lift, f32x4.sub(v128.load(at, 32), m))
    const d = falling4(lift, f32x4.sub(v128.load(at, 48), m))
    if (writes) {
      v128.store(to, c, 32)
      v128.store(to, d, 48)
    }
    const sum = f32x4.add(f32x4.add(a, b), f32x4.add(c, d))
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(sum))
    s1 = f64x2.add(s1, upperPair(sum))
  }
  for (; i < groups; i += 32) {
    const a = falling4(lift, f32x4.sub(v128.load(x + i), m))
    const b = falling4(lift, f32x4.sub(v128.load(x + i, 16), m))
    if (writes) {
      v128.store(out + i, a)
      v128.store(out + i, b, 16)
    }
    const sum = f32x4.add(a, b)
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(sum))
    s1 = f64x2.add(s1, upperPair(sum))
  }
  const s = f64x2.add(s0, s1)
  let total = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) {
    const e = f32x4.extract_lane(falling4(lift, f32x4.sub(v128.load32_splat(x + i), m)), 0)
    if (writes) f32.store(out + i, e)
    total += <f64>e
  }
  return total
}

/** out = out · factor */
@inline function scaleRow(k: i32, out: usize, factor: f32): void {
  const by = f32x4.splat(factor)
  const end = out + (<usize>k << 2)
  const endOfVectors = out + (<usize>(k & ~3) << 2)
  for (; out < endOfVectors; out += 16) v128.store(out, f32x4.mul(v128.load(out), by))
  for (; out < end; out += 4) f32.store(out, f32.load(out) * factor)
}

/** exp(x − max) / Σ exp(x − max); out may be x. */
export function softmax_rows_f32(rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    const total = expRow(true, true, k, x, f32x4.splat(extremeRow<f32>(false, k, x)), out)
    scaleRow(k, out, <f32>(1 / total))
    x += <usize>k << 2
    out += <usize>k << 2
  }
}

/** log Σ exp(x − m) */
@inline function logSumRow(k: i32, x: usize, m: v128): v128 {
  return log4(f32x4.splat(<f32>expRow(false, false, k, x, m, 0)))
}

/** (x − max) − log Σ exp(x − max); out may be x. */
export function log_softmax_rows_f32(rows: i32, k: i32, x: usize, out: usize): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const m = f32x4.splat(extremeRow<f32>(false, k, x))
    const sum = logSumRow(k, x, m)
    let i: usize = 0
    for (; i < whole; i += 16) v128.store(out + i, f32x4.sub(f32x4.sub(v128.load(x + i), m), sum))
    for (; i < all; i += 4) f32.store(out + i, f32x4.extract_lane(f32x4.sub(f32x4.sub(v128.load32_splat(x + i), m), sum), 0))
    x += all
    out += all
  }
}

/** out [rows] = −logSoftmax(x) at the row's class; target [rows] int32. */
export function class_loss_rows_f32(rows: i32, k: i32, x: usize, target: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    const m = f32x4.splat(extremeRow<f32>(false, k, x))
    const at = v128.load32_splat(x + (<usize>i32.load(target) << 2))
    const logp = f32x4.sub(f32x4.sub(at, m), logSumRow(k, x, m))
    f32.store(out, -f32x4.extract_lane(logp, 0))
    x += <usize>k << 2
    target += 4
    out += 4
  }
}

/** out [rows, k] = g (softmax(x) − 1 at the row's class); g lies `gRow` bytes from row to row. */
export function class_loss_backward_rows_f32(rows: i32, k: i32, g: usize, gRow: i32, x: usize, target: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    const total = expRow(true, false, k, x, f32x4.splat(extremeRow<f32>(false, k, x)), out)
    const grad = f32.load(g)
    scaleRow(k, out, <f32>(<f64>grad / total))
    const at = out + (<usize>i32.load(target) << 2)
    f32.store(at, f32.load(at) - grad)
    x += <usize>k << 2
    out += <usize>k << 2
    g += gRow
    target += 4
  }
}

const enum Backward { softmax_backward_rows, log_softmax_backward_rows }

@inline function backward(op: Backward, g: v128, y: v128, sum: v128): v128 {
  return op == Backward.softmax_backward_rows ? f32x4.mul(y, f32x4.sub(g, sum)) : f32x4.sub(g, f32x4.mul(falling4(false, y), sum))
}

/**
 * For each row y (g − Σ g y), where y is softmax's result, or g − eʸ Σ g, where y is logSoftmax's.
 * @exports f32
 */
@inline function backwardRows(op: Backward, rows: i32, k: i32, g: usize, y: usize, out: usize): void {
  const groups = <usize>(k & ~7) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const sum = f32x4.splat(<f32>sumOf(op == Backward.softmax_backward_rows, k, g, y))
    let i: usize = 0
    for (; i < groups; i += 32) {
      const a = backward(op, v128.load(g + i), v128.load(y + i), sum)
      const b = backward(op, v128.load(g + i, 16), v128.load(y + i, 16), sum)
      v128.store(out + i, a)
      v128.store(out + i, b, 16)
    }
    for (; i < all; i += 4) {
      f32.store(out + i, f32x4.extract_lane(backward(op, v128.load32_splat(g + i), v128.load32_splat(y + i), sum), 0))
    }
    g += all
    y += all
    out += all
  }
}

/** Σ g, or with `products` Σ g y: products are rounded to float32 as `mul` does. Two accumulators in double, then the rest. */
@inline function sumOf(products: bool, k: i32, g: usize, y: usize): f64 {
  const groups = <usize>(k & ~7) << 2
  const all = <usize>k << 2
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  let i: usize = 0
  for (; i < groups; i += 32) {
    const a = products ? f32x4.mul(v128.load(g + i), v128.load(y + i)) : v128.load(g + i)
    const b = products ? f32x4.mul(v128.load(g + i, 16), v128.load(y + i, 16)) : v128.load(g + i, 16)
    s0 = addHalves(s0, a)
    s1 = addHalves(s1, b)
  }
  const s = f64x2.add(s0, s1)
  let sum = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) sum += <f64>(products ? f32.load(g + i) * f32.load(y + i) : f32.load(g + i))
  return sum
}
