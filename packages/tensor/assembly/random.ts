/**
 * Random numbers of xoroshiro128+ as pure-rand gives them, the lower 32 bits of each sum: the sequence of `Generator`. Normal numbers have the bits of
 * `values/normal.ts`. For `wasm/random.ts`.
 */
import { logOf } from './doubles'
import { join4 } from './parts/pairs'

const TWO_PI: f64 = 6.283185307179586
/** 1.5 · 2^52: adding it puts an integer into the low bits of the sum. */
const ROUNDER: f64 = 6755399441055744

/** One half of the state; pure-rand keeps its upper 32 bits first. */
@inline function half(words: usize): u64 {
  return rotl<u64>(load<u64>(words), 32)
}

@inline function keep(words: usize, s0: u64, s1: u64): void {
  store<u64>(words, rotl<u64>(s0, 32))
  store<u64>(words + 8, rotl<u64>(s1, 32))
}

/** The first half after a number, of the first half and of both xored. The second half is `mixed` turned by 37. */
@inline function next(s0: u64, mixed: u64): u64 {
  return rotl<u64>(s0, 24) ^ mixed ^ (mixed << 16)
}

/**
 * n uniform numbers in [0, 1): of float32 multiples of 2⁻²⁴, of float64 multiples of 2⁻⁵³, of 26 bits and then 27. Of int32 all 32 bits. `words` are the
 * four of the generator's state, and afterwards the state from which the sequence continues.
 * @exports uniform: f32 f64 i32
 */
@inline function uniform<T>(n: i32, words: usize, out: usize): void {
  let s0 = half(words)
  let s1 = half(words + 8)
  for (const end = out + <usize>n * sizeof<T>(); out < end; out += sizeof<T>()) {
    const sum = s0 + s1
    let mixed = s1 ^ s0
    s0 = next(s0, mixed)
    s1 = rotl<u64>(mixed, 37)
    if (isInteger<T>()) {
      i32.store(out, <i32>sum)
    } else if (sizeof<T>() == 4) {
      f32.store(out, <f32>(<i32>((<u32>sum) >>> 8)) * <f32>5.9604644775390625e-8)
    } else {
      f64.store(out, <f64>(<i64>(((sum & 0x3ffffff) << 27) | ((s0 + s1) & 0x7ffffff))) * 1.1102230246251565e-16)
      mixed = s1 ^ s0
      s0 = next(s0, mixed)
      s1 = rotl<u64>(mixed, 37)
    }
  }
  keep(words, s0, s1)
}

@inline function splat(x: f64): v128 {
  return f64x2.splat(x)
}

/** a · x + b */
@inline function madd(a: v128, x: v128, b: f64): v128 {
  return f64x2.add(f64x2.mul(a, x), splat(b))
}

/** sin r for |r| ≤ pi / 4. FreeBSD msun, `k_sin.c`; the next `k_cos.c`. */
@inline function sine(r: v128): v128 {
  const z = f64x2.mul(r, r)
  let p = madd(splat(1.58969099521155010221e-10), z, -2.50507602534068634195e-8)
  p = madd(p, z, 2.75573137070700676789e-6)
  p = madd(p, z, -1.98412698298579493134e-4)
  p = madd(p, z, 8.33333333332248946124e-3)
  p = madd(p, z, -1.66666666666666324348e-1)
  return f64x2.add(r, f64x2.mul(f64x2.mul(z, r), p))
}

@inline function cosine(r: v128): v128 {
  const z = f64x2.mul(r, r)
  let p = madd(splat(-1.13596475577881948265e-11), z, 2.08757232129817482790e-9)
  p = madd(p, z, -2.75573143513906633035e-7)
  p = madd(p, z, 2.48015872894767294178e-5)
  p = madd(p, z, -1.38888888888741095749e-3)
  p = madd(p, z, 4.16666666666666019037e-2)
  return f64x2.sub(splat(1), f64x2.sub(f64x2.mul(z, splat(0.5)), f64x2.mul(f64x2.mul(z, z), p)))
}

/** Box and Muller: of two pairs of uniform numbers (u, v) the two pairs of normal numbers √(-2 ln(1 − u)) · (cos 2πv, sin 2πv). */
@inline function storeNormal<T>(pair0: v128, pair1: v128, out: usize, both: bool): void {
  const u = v128.shuffle<f64>(pair0, pair1, 0, 2)
  const v = v128.shuffle<f64>(pair0, pair1, 1, 3)
  const radius = f64x2.sqrt(f64x2.mul(splat(-2), logOf(f64x2.sub(splat(1), u), splat(0))))
  // The quarter of the circle that is nearest, and the angle from there.
  const quarter = f64x2.floor(madd(v, splat(4), 0.5))
  const angle = f64x2.mul(f64x2.sub(v, f64x2.mul(quarter, splat(0.25))), splat(TWO_PI))
  const s = f64x2.mul(radius, sine(angle))
  const c = f64x2.mul(radius, cosine(angle))
  // Quarters: (c, s), (-s, c), (-c, -s), (s, -c).
  const bits = f64x2.add(quarter, splat(ROUNDER))
  const odd = i64x2.shl(bits, 63)
  const isOdd = i64x2.lt_s(odd, i64x2.splat(0))
  const minus = v128.and(i64x2.shl(bits, 62), splat(-0.0))
  const x = v128.xor(v128.bitselect(s, c, isOdd), v128.xor(minus, odd))
  const y = v128.xor(v128.bitselect(c, s, isOdd), minus)
  const low = v128.shuffle<f64>(x, y, 0, 2)
  const high = v128.shuffle<f64>(x, y, 1, 3)
  if (sizeof<T>() == 8) {
    v128.store(out, low)
    if (both) v128.store(out + 16, high)
  } else if (both) v128.store(out, join4(low, high))
  else v128.store64_lane(out, f32x4.demote_f64x2_zero(low), 0)
}

/**
 * The n uniform numbers at x, of float64, as normal ones; n is even.
 * @exports normal: f32 f64
 */
@inline function normal<T>(n: i32, x: usize, out: usize): void {
  for (const end = x + (<usize>(n & ~3) << 3); x < end; x += 32, out += 4 * sizeof<T>()) {
    storeNormal<T>(v128.load(x), v128.load(x + 16), out, true)
  }
  if (n & 2) storeNormal<T>(v128.load(x), v128.load(x), out, false)
}
