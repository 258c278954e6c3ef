/**
 * Layer normalisation of float32 rows, in double precision two elements at a time, for `wasm/norm.ts`. Order of summation (KERNELS.md): element i
 * goes to sum i mod 4 while whole groups of 4 last, the rest to sum 0; then (s0 + s1) + (s2 + s3). Weight and bias may be 0: none.
 */
import { pair, term } from './pairs'

/** Two doubles as float32, stored at `p`. */
@inline function storePair(p: usize, x: v128): void {
  v128.store64_lane(p, f32x4.demote_f64x2_zero(x), 0)
}

@inline function join(s01: v128, s23: v128, rest: f64): f64 {
  const s0 = f64x2.extract_lane(s01, 0) + rest
  return s0 + f64x2.extract_lane(s01, 1) + (f64x2.extract_lane(s23, 0) + f64x2.extract_lane(s23, 1))
}

/** The mean of d values x, or with `squares` of (x − mean)². */
@inline function meanOf(squares: bool, d: i32, x: usize, mean: f64): f64 {
  const m = f64x2.splat(mean)
  let a = f64x2.splat(0)
  let b = f64x2.splat(0)
  const end = x + (<usize>d << 2)
  const endOfGroups = x + (<usize>(d & ~3) << 2)
  for (; x < endOfGroups; x += 16) {
    a = f64x2.add(a, term(squares, pair(x), m))
    b = f64x2.add(b, term(squares, pair(x + 8), m))
  }
  let rest: f64 = 0
  for (; x < end; x += 4) rest += f64x2.extract_lane(term(squares, f64x2.splat(<f64>f32.load(x)), m), 0)
  return join(a, b, rest) / <f64>d
}

/** out, mean and rstd of each row. */
export function layer_norm_f32(rows: i32, d: i32, eps: f64, x: usize, weight: usize, bias: usize, out: usize, mean: usize, rstd: usize): void {
  const pairs = <usize>(d & ~1) << 2
  const all = <usize>d << 2
  for (let row = 0; row < rows; row++) {
    const m = meanOf(false, d, x, 0)
    const mm = f64x2.splat(m)
    const r = 1 / Math.sqrt(meanOf(true, d, x, m) + eps)
    const rr = f64x2.splat(r)
    for (let i: usize = 0; i < pairs; i += 8) {
      let y = f64x2.mul(f64x2.sub(pair(x + i), mm), rr)
      if (weight != 0) y = f64x2.mul(y, pair(weight + i))
      if (bias != 0) y = f64x2.add(y, pair(bias + i))
      storePair(out + i, y)
    }
    if (pairs < all) {
      let y = (<f64>f32.load(x + pairs) - m) * r
      if (weight != 0) y *= <f64>f32.load(weight + pairs)
      if (bias != 0) y += <f64>f32.load(bias + pairs)
      f32.store(out + pairs, <f32>y)
    }
    f32.store(mean, <f32>m)
    f32.store(rstd, <f32>r)
    x += all
    out += all
    mean += 4
    rstd += 4
  }
}

/** The gradient of x; adds to `forWeight` and `forBias`, [d] doubles, those of weight and bias. */
export function layer_norm_backward_f32(
  rows: i32, d: i32, grad: usize, x: usize, mean: usize, rstd: usize, weight: usize, out: usize, forWeight: usize, forBias: usize,
): void {
  const groups = <usize>(d & ~3) << 2
  const pairs = <usize>(d & ~1) << 2
  const all = <usize>d << 2
  for (let row = 0; row < rows; row++) {
    const m = <f64>f32.load(mean)
    const r = <f64>f32.load(rstd)
    const mm = f64x2.splat(m)
    const rr = f64x2.splat(r)
    let a0 = f64x2.splat(0)
    let a1 = f64x2.splat(0)
    let b0 = f64x2.splat(0)
    let b1 = f64x2.splat(0)
    for (let i: usize = 0; i < groups; i += 16) {
      let g0 = pair(grad + i)
      let g1 = pair(grad + i + 8)
      if (weight != 0) {
        g0 = f64x2.mul(g0, pair(weight + i))
        g1 = f64x2.mul(g1, pair(weight + i + 8))
      }
      a0 = f64x2.add(a0, g0)
      a1 = f64x2.add(a1, g1)
      b0 = f64x2.add(b0, f64x2.mul(g0, f64x2.sub(pair(x + i), mm)))
      b1 = f64x2.add(b1, f64x2.mul(g1, f64x2.sub(pair(x + i + 8), mm)))
    }
    let restA: f64 = 0
    let restB: f64 = 0
    for (let i = groups; i < all; i += 4) {
      let g = <f64>f32.load(grad + i)
      if (weight != 0) g *= <f64>f32.load(weight + i)
      restA += g
      restB += g * (<f64>f32.load(x + i) - m)
    }
    const first = join(a0, a1, restA) / <f64>d
    const slope = (join(b0, b1, restB) * r * r) / <f64>d
    const ff = f64x2.splat(first)
    const ss = f64x2.splat(slope)
    for (let i: usize = 0; i < pairs; i += 8) {
      const g = pair(grad + i)
      const centred = f64x2.sub(pair(x + i), mm)
      const gw = weight != 0 ? f64x2.mul(g, pair(weight + i)) : g
      storePair(out + i, f64x2.mul(rr, f64x2.sub(f64x2.sub(gw, ff), f64x2.mul(centred, ss))))
      const w = forWeight + (i << 1)
      const b = forBias + (i << 1)
      v128.store(w, f64x2.add(v128.load(w), f64x2.mul(f64x2.mul(g, centred), rr)))
      v128.store(b, f64x2.add(v128.load(b), g))
    }
    if (pairs < all) {
      const g = <f64>f32.load(grad + pairs)
      const centred = <f64>f32.load(x + pairs) - m
      const gw = weight != 0 ? g * <f64>f32.load(weight + pairs) : g
      f32.store(out + pairs, <f32>(r * (gw - first - centred * slope)))
      const w = forWeight + (pairs << 1)
      const b = forBias + (pairs << 1)
      f64.store(w, f64.load(w) + g * centred * r)
      f64.store(b, f64.load(b) + g)
    }
    grad += all
    x += all
    out += all
    mean += 4
    rstd += 4
  }
}
