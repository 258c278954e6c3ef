/**
 * Pooling of one plane of float32, rows oy0 … oy1 − 1 of the result: four windows side by side where all of their columns lie inside, one at a time at
 * the edges and for strides beyond 2. The same bits as `js/pool.ts`. For `wasm/pool.ts`. Pointers are bytes, everything else counts elements.
 */
import { join4, upperPair } from './parts/pairs'

/** Elements x[0], x[step], x[2 · step], x[3 · step] for step 1 or 2, reading none beyond the last. */
@inline function every(x: usize, step: i32): v128 {
  const a = v128.load(x)
  return step == 1 ? a : v128.shuffle<f32>(a, v128.load(x, 12), 0, 2, 5, 7)
}

/** The first place from `from` on, in steps, that is not before the plane. */
@inline function inside(from: i32, step: i32): i32 {
  return from >= 0 ? from : from + ((step - 1 - from) / step) * step
}

/** The first of outputs 0 … n − 1 whose window [o · stride − pad, + extent) begins inside of `size`, and the end of those that end there. */
@inline function firstWhole(pad: i32, stride: i32, n: i32): i32 {
  return min(n, (pad + stride - 1) / stride)
}
@inline function endWhole(size: i32, pad: i32, extent: i32, stride: i32, n: i32): i32 {
  const room = size + pad - extent
  return room < 0 ? 0 : min(n, room / stride + 1)
}

/** Whether v takes the place of what is held: NaN does. Not !(v <= held): what is held may be NaN. */
@inline function takes4(v: v128, held: v128): v128 {
  return v128.or(f32x4.gt(v, held), f32x4.ne(v, v))
}

/**
 * Four windows of 2 × 2 side by side, the first one's corner at `x`, which is element `at` of the plane: the better of each row, then of both. That gives the first of
 * equals and the last NaN, too.
 */
@inline function maximaOfPairs(x: usize, w: i32, at: i32, out: usize, places: usize): void {
  const a = v128.load(x)
  const b = v128.load(x, 16)
  const c = v128.load(x + (<usize>w << 2))
  const d = v128.load(x + (<usize>w << 2), 16)
  const left = v128.shuffle<f32>(a, b, 0, 2, 4, 6)
  const right = v128.shuffle<f32>(a, b, 1, 3, 5, 7)
  const leftBelow = v128.shuffle<f32>(c, d, 0, 2, 4, 6)
  const rightBelow = v128.shuffle<f32>(c, d, 1, 3, 5, 7)
  const isRight = takes4(right, left)
  const isRightBelow = takes4(rightBelow, leftBelow)
  const above = v128.bitselect(right, left, isRight)
  const below = v128.bitselect(rightBelow, leftBelow, isRightBelow)
  const isBelow = takes4(below, above)
  // A mask is -1 where it holds.
  const first = i32x4.add(i32x4.splat(at), i32x4(0, 2, 4, 6))
  const place = i32x4.sub(first, isRight)
  const placeBelow = i32x4.sub(i32x4.add(first, i32x4.splat(w)), isRightBelow)
  v128.store(out, v128.bitselect(below, above, isBelow))
  v128.store(places, v128.bitselect(placeBelow, place, isBelow))
}

/** Maxima and their places: the first of equals, the last NaN; -∞ of a window that sees nothing. */
export function max_pool_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, dh: i32, dw: i32, ow: i32, oy0: i32, oy1: i32, x: usize, out: usize, places: usize,
): void {
  const extent = (kw - 1) * dw + 1
  const from = firstWhole(pw, sw, ow)
  const to = sw <= 2 ? endWhole(w, pw, extent, sw, ow) : 0
  const lanes = i32x4.mul(i32x4.splat(sw), i32x4(0, 1, 2, 3))
  // Windows of pairs that lie side by side, wholly inside: the usual case.
  const arePairs = kh == 2 && kw == 2 && sw == 2 && dh == 1 && dw == 1 && pw == 0
  for (let oy = oy0; oy < oy1; oy++) {
    const top = inside(oy * sh - ph, dh)
    const bottom = min(oy * sh - ph + (kh - 1) * dh + 1, h)
    let ox = 0
    if (arePairs && bottom - top == 2) {
      for (; ox + 4 <= to; ox += 4) {
        const at = top * w + 2 * ox
        maximaOfPairs(x + (<usize>at << 2), w, at, out, places)
        out += 16
        places += 16
      }
    }
    while (ox < ow) {
      if (top < bottom && ox >= from && ox + 4 <= to) {
        const left = ox * sw - pw
        let best = every(x + (<usize>(top * w + left) << 2), sw)
        let at = i32x4.add(i32x4.splat(top * w + left), lanes)
        for (let y = top; y < bottom; y += dh) {
          for (let i = y * w + left; i < y * w + left + extent; i += dw) {
            const v = every(x + (<usize>i << 2), sw)
            const takes = takes4(v, best)
            best = v128.bitselect(v, best, takes)
            at = v128.bitselect(i32x4.add(i32x4.splat(i), lanes), at, takes)
          }
        }
        v128.store(out, best)
        v128.store(places, at)
        ox += 4
        out += 16
        places += 16
      } else {
        const left = inside(ox * sw - pw, dw)
        const right = min(ox * sw - pw + extent, w)
        let at = top * w + left
        let best = top < bottom && left < right ? f32.load(x + (<usize>at << 2)) : -Infinity
        for (let y = top; y < bottom; y += dh) {
          for (let i = y * w + left; i < y * w + right; i += dw) {
            const v = f32.load(x + (<usize>i << 2))
            if (v > best || v != v) {
              best = v
              at = i
            }
          }
        }
        f32.store(out, best)
        i32.store(places, at)
        ox++
        out += 4
        places += 4
      }
    }
  }
}

/** The divisor of a window's sum; see `AvgPoolGeometry`. */
@inline function divisorOf(h: i32, w: i32, kh: i32, kw: i32, ph: i32, pw: i32, y: i32, x: i32, includePad: bool, divisor: f64): f64 {
  if (divisor != 0) return divisor
  return includePad
    ? <f64>((min(y + kh, h + ph) - y) * (min(x + kw, w + pw) - x))
    : <f64>((min(y + kh, h) - max(y, 0)) * (min(x + kw, w) - max(x, 0)))
}

/** Means, summed in double in order and rounded once. A mean of nothing but zeros is 0. */
export function avg_pool_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, includePad: bool, divisor: f64, ow: i32, oy0: i32, oy1: i32, x: usize, out: usize,
): void {
  const from = firstWhole(pw, sw, ow)
  const to = sw <= 2 ? endWhole(w, pw, kw, sw, ow) : 0
  const zero = f64x2.splat(0)
  for (let oy = oy0; oy < oy1; oy++) {
    const y0 = oy * sh - ph
    const top = max(y0, 0)
    const bottom = min(y0 + kh, h)
    let ox = 0
    while (ox < ow) {
      const x0 = ox * sw - pw
      const by = divisorOf(h, w, kh, kw, ph, pw, y0, x0, includePad, divisor)
      if (ox >= from && ox + 4 <= to) {
        let low = zero
        let high = zero
        for (let y = top; y < bottom; y++) {
          for (let i = y * w + x0; i < y * w + x0 + kw; i++) {
            const v = every(x + (<usize>i << 2), sw)
            low = f64x2.add(low, f64x2.promote_low_f32x4(v))
            high = f64x2.add(high, upperPair(v))
          }
        }
        low = v128.and(f64x2.div(low, f64x2.splat(by)), f64x2.ne(low, zero))
        high = v128.and(f64x2.div(high, f64x2.splat(by)), f64x2.ne(high, zero))
        v128.store(out, join4(low, high))
        ox += 4
        out += 16
      } else {
        const left = max(x0, 0)
        const right = min(x0 + kw, w)
        let sum: f64 = 0
        for (let y = top; y < bottom; y++) for (let i = y * w + left; i < y * w + right; i++) sum += <f64>f32.load(x + (<usize>i << 2))
        f32.store(out, sum == 0 ? 0 : <f32>(sum / by))
        ox++
        out += 4
      }
    }
  }
}

/** Its adjoint adds the shares of a gradient [oh, ow], rows oy0 … oy1 − 1, to a plane of doubles. */
export function avg_pool_spread_f32(
  h: i32, w: i32, kh: i32, kw: i32, sh: i32, sw: i32, ph: i32, pw: i32, includePad: bool, divisor: f64, ow: i32, oy0: i32, oy1: i32, grad: usize, plane: usize,
): void {
  for (let oy = oy0; oy < oy1; oy++) {
    const y0 = oy * sh - ph
    const top = max(y0, 0)
    const bottom = min(y0 + kh, h)
    for (let ox = 0; ox < ow; ox++) {
      const x0 = ox * sw - pw
      const left = max(x0, 0)
      const right = min(x0 + kw, w)
      const share = <f64>f32.load(grad) / divisorOf(h, w, kh, kw, ph, pw, y0, x0, includePad, divisor)
      grad += 4
      for (let y = top; y < bottom; y++) {
        for (let i = y * w + left; i < y * w + right; i++) {
          const at = plane + (<usize>i << 3)
          f64.store(at, f64.load(at) + share)
        }
      }
    }
  }
}
