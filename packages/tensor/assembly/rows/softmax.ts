/**
 * Softmax along rows, its logarithm, their derivatives, and the loss of a row's class, of dense float32 [rows, k]. Pointers are bytes. For
 * `wasm/rows/probabilities.ts`. Sums are double, of eight that were added in float32, or of two.
 */
import { greatestOfRow } from './extremes'
import { expSeries4, LN2_HIGH, LN2_LOW, LOG2E, log4, ROUNDER } from '../parts/math'
import { addHalves, upperPair } from '../parts/pairs'

/** `lift` of a softmax: so the exponentials below the normal range keep their digits until the result is rounded. */
const LIFT: f32 = 64
/** Up to this magnitude of its greatest number a row is taken as it is. Farther off, a number's distance from the next multiple of ln 2 loses digits. */
const FAR: f32 = 512

/** exp4 for arguments that are at most 0: one bound and one scale. NaN stays NaN. A result below the normal range is 0. */
@inline function falling4(input: v128): v128 {
  // At the bound the scale is 0.
  const x = f32x4.pmax(input, f32x4.splat(-88))
  // As in expModest4.
  const shifted = f32x4.add(f32x4.mul(x, f32x4.splat(LOG2E)), f32x4.splat(ROUNDER))
  const n = f32x4.sub(shifted, f32x4.splat(ROUNDER))
  return f32x4.mul(f32x4.add(expSeries4(rest4(x, n)), f32x4.splat(1)), i32x4.shl(shifted, 23))
}

/** x − n ln 2 */
@inline function rest4(x: v128, n: v128): v128 {
  return f32x4.sub(f32x4.sub(x, f32x4.mul(n, f32x4.splat(LN2_HIGH))), f32x4.mul(n, f32x4.splat(LN2_LOW)))
}

/**
 * 2^lift exp x over the power of 2 next to exp m: in place of exp(x − m), where the sum of them divides them. x is at most m. NaN stays NaN. A result below
 * the normal range is 0. Relative error 2 · 10⁻⁷, of which half is the series': by Remez, of a degree less than `expSeries4`.
 */
@inline function share4(lift: f32, input: v128, m: v128): v128 {
  const shift = f32x4.sub(f32x4.splat(ROUNDER + lift), f32x4.nearest(f32x4.mul(m, f32x4.splat(LOG2E))))
  // At the bound the scale is 0.
  const x = f32x4.pmax(input, f32x4.sub(m, f32x4.splat(<f32>Math.LN2 * (lift + 126.4))))
  const shifted = f32x4.add(f32x4.mul(x, f32x4.splat(LOG2E)), shift)
  const r = rest4(x, f32x4.sub(shifted, shift))
  const z = f32x4.mul(r, r)
  const low = f32x4.add(f32x4.mul(r, f32x4.splat(1.66671154e-1)), f32x4.splat(4.99992303e-1))
  const high = f32x4.add(f32x4.mul(r, f32x4.splat(8.31250130e-3)), f32x4.splat(4.18903317e-2))
  const p = f32x4.add(f32x4.mul(z, f32x4.add(low, f32x4.mul(z, high))), r)
  return f32x4.mul(f32x4.add(p, f32x4.splat(1)), i32x4.shl(shifted, 23))
}

/** With `shares` `share4`, else exp(x − m). */
@inline function expOf4(shares: bool, lift: f32, x: v128, m: v128): v128 {
  return shares ? share4(lift, x, m) : falling4(f32x4.sub(x, m))
}

/** As `expRow`, of eight numbers: sums of two. */
@inline function exp8(shares: bool, lift: f32, x: usize, m: v128, out: usize): v128 {
  const a = expOf4(shares, lift, v128.load(x), m)
  const b = expOf4(shares, lift, v128.load(x, 16), m)
  if (shares) {
    v128.store(out, a)
    v128.store(out, b, 16)
  }
  return f32x4.add(a, b)
}

/** The sum of `expOf4` over a row, and with `shares` each of them to out, which may be x. */
@inline function expRow(shares: bool, lift: f32, k: i32, x: usize, m: v128, out: usize): f64 {
  let s0 = f64x2.splat(0)
  let s1 = f64x2.splat(0)
  const groups = <usize>(k & ~7) << 2
  const all = <usize>k << 2
  const fourfold = groups & ~127
  let i: usize = 0
  for (; i < fourfold; i += 128) {
    const a = exp8(shares, lift, x + i, m, out + i)
    const b = exp8(shares, lift, x + i + 32, m, out + i + 32)
    const c = exp8(shares, lift, x + i + 64, m, out + i + 64)
    const d = exp8(shares, lift, x + i + 96, m, out + i + 96)
    const sum = f32x4.add(f32x4.add(a, b), f32x4.add(c, d))
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(sum))
    s1 = f64x2.add(s1, upperPair(sum))
  }
  for (; i < groups; i += 32) {
    const sum = exp8(shares, lift, x + i, m, out + i)
    s0 = f64x2.add(s0, f64x2.promote_low_f32x4(sum))
    s1 = f64x2.add(s1, upperPair(sum))
  }
  const s = f64x2.add(s0, s1)
  let total = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1)
  for (; i < all; i += 4) {
    const e = f32x4.extract_lane(expOf4(shares, lift, v128.load32_splat(x + i), m), 0)
    if (shares) f32.store(out + i, e)
    total += <f64>e
  }
  return total
}

/** out = out · factor */
@inline function scaleRow(k: i32, out: usize, factor: f32): void {
  const by = f32x4.splat(factor)
  const end = out + (<usize>k << 2)
  const endOfVectors = out + (<usize>(k & ~3) << 2)
  for (const endOfGroups = out + (<usize>(k & ~15) << 2); out < endOfGroups; out += 64) {
    v128.store(out, f32x4.mul(v128.load(out), by))
    v128.store(out, f32x4.mul(v128.load(out, 16), by), 16)
    v128.store(out, f32x4.mul(v128.load(out, 32), by), 32)
    v128.store(out, f32x4.mul(v128.load(out, 48), by), 48)
  }
  for (; out < endOfVectors; out += 16) v128.store(out, f32x4.mul(v128.load(out), by))
  for (; out < end; out += 4) f32.store(out, f32.load(out) * factor)
}

/** out = x − m */
function lowerRow(k: i32, x: usize, m: f32, out: usize): void {
  for (const end = x + (<usize>k << 2); x < end; x += 4, out += 4) f32.store(out, f32.load(x) - m)
}

/** `share4` of a row to out, which may be x; returns their sum. */
@inline function shareRow(lift: f32, k: i32, x: usize, out: usize): f64 {
  let m = greatestOfRow(k, x)
  if (!(abs(m) <= FAR)) {
    lowerRow(k, x, m, out)
    x = out
    m = 0
  }
  return expRow(true, lift, k, x, f32x4.splat(m), out)
}

/** exp(x − max) / Σ exp(x − max); out may be x. */
export function softmax_rows_f32(rows: i32, k: i32, x: usize, out: usize): void {
  for (let r = 0; r < rows; r++) {
    scaleRow(k, out, <f32>(1 / shareRow(LIFT, k, x, out)))
    x += <usize>k << 2
    out += <usize>k << 2
  }
}

/** log Σ exp(x − m) */
@inline function logSumRow(k: i32, x: usize, m: v128): v128 {
  return log4(f32x4.splat(<f32>expRow(false, 0, k, x, m, 0)))
}

/** (x − max) − log Σ exp(x − max); out may be x. */
export function log_softmax_rows_f32(rows: i32, k: i32, x: usize, out: usize): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const m = f32x4.splat(greatestOfRow(k, x))
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
    const m = f32x4.splat(greatestOfRow(k, x))
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
    const total = shareRow(0, k, x, out)
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
  return op == Backward.softmax_backward_rows ? f32x4.mul(y, f32x4.sub(g, sum)) : f32x4.sub(g, f32x4.mul(falling4(y), sum))
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
