/**
 * Normalisation of float32 along rows, and of channels, for `wasm/rows/norm.ts`. Statistics are sums in double; results are float32. A mean has two
 * parts, `high` in float32 and `low`, the rest: x − high is exact near the mean, and x − high − low has all digits.
 */
import { addHalves, doubles } from '../parts/pairs'

@inline function lanesOf(sum: v128): f64 {
  return f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
}

/** Adds Σ (x − shift) and Σ (x − shift)² of k elements to two doubles at `sums`. With a shift near the mean the variance that follows has its digits. */
@inline function addMoments(k: i32, x: usize, shift: f64, sums: usize): void {
  const by = f64x2.splat(shift)
  let s0 = f64x2.splat(0)
  let s1 = s0
  let s2 = s0
  let s3 = s0
  let q0 = s0
  let q1 = s0
  let q2 = s0
  let q3 = s0
  const end = x + (<usize>k << 2)
  const endOfGroups = x + (<usize>(k & ~7) << 2)
  for (; x < endOfGroups; x += 32) {
    const a = f64x2.sub(doubles<f32>(x), by)
    const b = f64x2.sub(doubles<f32>(x + 8), by)
    const c = f64x2.sub(doubles<f32>(x + 16), by)
    const d = f64x2.sub(doubles<f32>(x + 24), by)
    s0 = f64x2.add(s0, a)
    s1 = f64x2.add(s1, b)
    s2 = f64x2.add(s2, c)
    s3 = f64x2.add(s3, d)
    q0 = f64x2.add(q0, f64x2.mul(a, a))
    q1 = f64x2.add(q1, f64x2.mul(b, b))
    q2 = f64x2.add(q2, f64x2.mul(c, c))
    q3 = f64x2.add(q3, f64x2.mul(d, d))
  }
  let s = lanesOf(f64x2.add(f64x2.add(s0, s1), f64x2.add(s2, s3)))
  let q = lanesOf(f64x2.add(f64x2.add(q0, q1), f64x2.add(q2, q3)))
  for (; x < end; x += 4) {
    const d = <f64>f32.load(x) - shift
    s += d
    q += d * d
  }
  f64.store(sums, f64.load(sums) + s)
  f64.store(sums, f64.load(sums, 8) + q, 8)
}

/** Adds Σ g and Σ g (x − mean) of k elements to two doubles at `sums`, each g times its weight if `weighted`. Products, and sums of two, are float32. */
@inline function addSlopes(weighted: bool, k: i32, g: usize, x: usize, mean: f32, weight: usize, sums: usize): void {
  const m = f32x4.splat(mean)
  let a = f64x2.splat(0)
  let b = a
  const groups = <usize>(k & ~7) << 2
  const all = <usize>k << 2
  let i: usize = 0
  for (; i < groups; i += 32) {
    const g0 = weighted ? f32x4.mul(v128.load(g + i), v128.load(weight + i)) : v128.load(g + i)
    const g1 = weighted ? f32x4.mul(v128.load(g + i, 16), v128.load(weight + i, 16)) : v128.load(g + i, 16)
    const t0 = f32x4.mul(g0, f32x4.sub(v128.load(x + i), m))
    const t1 = f32x4.mul(g1, f32x4.sub(v128.load(x + i, 16), m))
    a = addHalves(a, f32x4.add(g0, g1))
    b = addHalves(b, f32x4.add(t0, t1))
  }
  let first = lanesOf(a)
  let second = lanesOf(b)
  for (; i < all; i += 4) {
    const gw = weighted ? f32.load(g + i) * f32.load(weight + i) : f32.load(g + i)
    first += <f64>gw
    second += <f64>(gw * (f32.load(x + i) - mean))
  }
  f64.store(sums, f64.load(sums) + first)
  f64.store(sums, f64.load(sums, 8) + second, 8)
}

/** x, or 0 if x is infinite or NaN, so that the mean stays infinite. */
@inline function finite(x: f32): f64 {
  return x - x == 0 ? <f64>x : 0
}

/** out, mean and rstd of each row; `sums` is scratch of two doubles. */
export function layer_norm_f32(
  rows: i32, d: i32, eps: f64, x: usize, weight: usize, bias: usize, out: usize, mean: usize, rstd: usize, sums: usize,
): void {
  const whole = <usize>(d & ~3) << 2
  const all = <usize>d << 2
  for (let row = 0; row < rows; row++) {
    const shift = finite(f32.load(x))
    v128.store(sums, f64x2.splat(0))
    addMoments(d, x, shift, sums)
    const s = f64.load(sums) / <f64>d
    const m = shift + s
    const r = <f32>(1 / sqrt<f64>(max<f64>(f64.load(sums, 8) / <f64>d - s * s, 0) + eps))
    const high = <f32>m
    const low = <f32>(m - <f64>high)
    const h = f32x4.splat(high)
    const l = f32x4.splat(low)
    const rr = f32x4.splat(r)
    let i: usize = 0
    for (; i < whole; i += 16) {
      const y = f32x4.mul(f32x4.sub(f32x4.sub(v128.load(x + i), h), l), rr)
      v128.store(out + i, f32x4.add(f32x4.mul(y, v128.load(weight + i)), v128.load(bias + i)))
    }
    for (; i < all; i += 4) f32.store(out + i, (f32.load(x + i) - high - low) * r * f32.load(weight + i) + f32.load(bias + i))
    f32.store(mean, high)
    f32.store(rstd, r)
    x += all
    out += all
    mean += 4
    rstd += 4
  }
}

/** Rows whose gradients of weight and bias are added in float32, before the sums join those in double. */
const ROWS_IN_FLOAT32 = 32

/**
 * The gradient of x; adds to `forWeight` and `forBias`, [d] doubles, those of weight and bias, unless these are 0: none. `parts` is scratch of [2, d]
 * float32, `sums` of two doubles.
 */
export function layer_norm_backward_f32(
  rows: i32, d: i32, grad: usize, x: usize, mean: usize, rstd: usize, weight: usize, out: usize, forWeight: usize, forBias: usize,
  parts: usize, sums: usize,
): void {
  const whole = <usize>(d & ~3) << 2
  const all = <usize>d << 2
  for (let row = 0; row < rows; row++) {
    if (forWeight != 0 && row % ROWS_IN_FLOAT32 == 0) {
      if (row > 0) addParts(d, parts, forWeight, forBias)
      for (let i: usize = 0; i < 2 * all; i += 4) f32.store(parts + i, 0)
    }
    const m = f32.load(mean)
    const r = f32.load(rstd)
    v128.store(sums, f64x2.splat(0))
    addSlopes(true, d, grad, x, m, weight, sums)
    const first = <f32>(f64.load(sums) / <f64>d)
    const slope = <f32>((f64.load(sums, 8) * <f64>r * <f64>r) / <f64>d)
    const mm = f32x4.splat(m)
    const rr = f32x4.splat(r)
    const ff = f32x4.splat(first)
    const ss = f32x4.splat(slope)
    let i: usize = 0
    for (; i < whole; i += 16) {
      const g = v128.load(grad + i)
      const centred = f32x4.sub(v128.load(x + i), mm)
      const gw = f32x4.mul(g, v128.load(weight + i))
      v128.store(out + i, f32x4.mul(rr, f32x4.sub(f32x4.sub(gw, ff), f32x4.mul(centred, ss))))
      if (forWeight != 0) {
        const w = parts + i
        v128.store(w, f32x4.add(v128.load(w), f32x4.mul(g, f32x4.mul(centred, rr))))
        v128.store(w + all, f32x4.add(v128.load(w + all), g))
      }
    }
    for (; i < all; i += 4) {
      const g = f32.load(grad + i)
      const centred = f32.load(x + i) - m
      f32.store(out + i, r * (g * f32.load(weight + i) - first - centred * slope))
      if (forWeight != 0) {
        const w = parts + i
        f32.store(w, f32.load(w) + g * (centred * r))
        f32.store(w + all, f32.load(w + all) + g)
      }
    }
    grad += all
    x += all
    out += all
    mean += 4
    rstd += 4
  }
  if (forWeight != 0 && rows > 0) addParts(d, parts, forWeight, forBias)
}

function addParts(d: i32, parts: usize, forWeight: usize, forBias: usize): void {
  for (let i = 0; i < d; i++) {
    f64.store(forWeight, f64.load(forWeight) + <f64>f32.load(parts))
    f64.store(forBias, f64.load(forBias) + <f64>f32.load(parts + (<usize>d << 2)))
    forWeight += 8
    forBias += 8
    parts += 4
  }
}

// Channels. Row r of x [rows, k] is of channel (channel + r) mod c. Numbers of channels are arrays of float32, their sums arrays of
// two doubles for each channel. `…_columns`: each column is a channel.

/** Adds Σ (x − shift) and Σ (x − shift)² of each channel. */
export function channel_moments_f32(rows: i32, channel: i32, c: i32, k: i32, x: usize, shift: usize, sums: usize): void {
  for (let r = 0; r < rows; r++) {
    addMoments(k, x, <f64>f32.load(shift + (<usize>channel << 2)), sums + (<usize>channel << 4))
    x += <usize>k << 2
    if (++channel == c) channel = 0
  }
}

export function channel_moments_columns_f32(rows: i32, c: i32, x: usize, shift: usize, sums: usize): void {
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < c; i++) {
      const d = <f64>f32.load(x) - <f64>f32.load(shift + (<usize>i << 2))
      const at = sums + (<usize>i << 4)
      v128.store(at, f64x2.add(v128.load(at), f64x2.replace_lane(f64x2.splat(d), 1, d * d)))
      x += 4
    }
  }
}

/** Adds Σ g and Σ g (x − mean) of each channel. */
export function channel_slopes_f32(rows: i32, channel: i32, c: i32, k: i32, g: usize, x: usize, mean: usize, sums: usize): void {
  for (let r = 0; r < rows; r++) {
    addSlopes(false, k, g, x, f32.load(mean + (<usize>channel << 2)), 0, sums + (<usize>channel << 4))
    g += <usize>k << 2
    x += <usize>k << 2
    if (++channel == c) channel = 0
  }
}

export function channel_slopes_columns_f32(rows: i32, c: i32, g: usize, x: usize, mean: usize, sums: usize): void {
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < c; i++) {
      const grad = f32.load(g)
      const product = grad * (f32.load(x) - f32.load(mean + (<usize>i << 2)))
      const at = sums + (<usize>i << 4)
      v128.store(at, f64x2.add(v128.load(at), f64x2.replace_lane(f64x2.splat(<f64>grad), 1, <f64>product)))
      g += 4
      x += 4
    }
  }
}

/** A channel's number for the elements from byte i of its row on: one for all, or with `columns` one for each. */
@inline function ofChannel(columns: i32, x: usize, i: usize, all: v128): v128 {
  return columns ? v128.load(x + i) : all
}

/** out = (x − high − low) scale + bias. With `columns`, c is 1. */
export function channel_scale_f32(
  rows: i32, channel: i32, c: i32, k: i32, columns: i32, x: usize, high: usize, low: usize, scale: usize, bias: usize, out: usize,
): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const at = <usize>channel << 2
    const h = v128.load32_splat(high + at)
    const l = v128.load32_splat(low + at)
    const s = v128.load32_splat(scale + at)
    const b = v128.load32_splat(bias + at)
    let i: usize = 0
    for (; i < whole; i += 16) {
      const centred = f32x4.sub(f32x4.sub(v128.load(x + i), ofChannel(columns, high, i, h)), ofChannel(columns, low, i, l))
      v128.store(out + i, f32x4.add(f32x4.mul(centred, ofChannel(columns, scale, i, s)), ofChannel(columns, bias, i, b)))
    }
    for (; i < all; i += 4) {
      const own = columns ? i : at
      f32.store(out + i, (f32.load(x + i) - f32.load(high + own) - f32.load(low + own)) * f32.load(scale + own) + f32.load(bias + own))
    }
    x += all
    out += all
    if (++channel == c) channel = 0
  }
}

/** out = (g − first − (x − mean) slope) scale. With `columns`, c is 1. */
export function channel_backward_f32(
  rows: i32, channel: i32, c: i32, k: i32, columns: i32, g: usize, x: usize, mean: usize, first: usize, slope: usize, scale: usize, out: usize,
): void {
  const whole = <usize>(k & ~3) << 2
  const all = <usize>k << 2
  for (let r = 0; r < rows; r++) {
    const at = <usize>channel << 2
    const m = v128.load32_splat(mean + at)
    const f = v128.load32_splat(first + at)
    const p = v128.load32_splat(slope + at)
    const s = v128.load32_splat(scale + at)
    let i: usize = 0
    for (; i < whole; i += 16) {
      const centred = f32x4.sub(v128.load(x + i), ofChannel(columns, mean, i, m))
      const rest = f32x4.sub(f32x4.sub(v128.load(g + i), ofChannel(columns, first, i, f)), f32x4.mul(centred, ofChannel(columns, slope, i, p)))
      v128.store(out + i, f32x4.mul(rest, ofChannel(columns, scale, i, s)))
    }
    for (; i < all; i += 4) {
      const own = columns ? i : at
      const rest = f32.load(g + i) - f32.load(first + own) - (f32.load(x + i) - f32.load(mean + own)) * f32.load(slope + own)
      f32.store(out + i, rest * f32.load(scale + own))
    }
    g += all
    x += all
    out += all
    if (++channel == c) channel = 0
  }
}
