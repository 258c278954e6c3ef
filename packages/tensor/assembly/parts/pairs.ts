/** float32 as pairs of doubles, for kernels that compute in double. */

/** Two from `p`. */
@inline export function pair(p: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(p))
}

/** Two elements of float32 or float64 from `p`. */
@inline export function doubles<T>(p: usize): v128 {
  return sizeof<T>() == 8 ? v128.load(p) : pair(p)
}

/** The last two of four; the first two are `f64x2.promote_low_f32x4(x)`. */
@inline export function upperPair(x: v128): v128 {
  return f64x2.promote_low_f32x4(v128.shuffle<f32>(x, x, 2, 3, 2, 3))
}

/** Two pairs rounded to float32. */
@inline export function join4(low: v128, high: v128): v128 {
  return v128.shuffle<f32>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 1, 4, 5)
}

/** A sum's term: x, or with `squares` (x − mean)². */
@inline export function term(squares: bool, x: v128, mean: v128): v128 {
  if (!squares) return x
  const d = f64x2.sub(x, mean)
  return f64x2.mul(d, d)
}

/** Both halves of four float32 added to two doubles. */
@inline export function addHalves(sum: v128, x: v128): v128 {
  return f64x2.add(f64x2.add(sum, f64x2.promote_low_f32x4(x)), upperPair(x))
}
