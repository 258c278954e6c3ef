/**
 * The most that 128-bit SIMD can multiply and add on one core of this machine: eight independent accumulators, operands in the first-level
 * cache, nothing stored. Rows of products use it as limit.
 */

// @ts-ignore: decorator
@inline function step(accumulator: v128, x: v128, y: v128): v128 {
  return f32x4.add(accumulator, f32x4.mul(x, y))
}

/** n rounds of 64 multiplications and additions of floats; `at` points to 2 KiB of small numbers. */
export function peak(n: i32, at: usize): f32 {
  const x0 = v128.load(at)
  const x1 = v128.load(at, 16)
  const x2 = v128.load(at, 32)
  const x3 = v128.load(at, 48)
  let a0 = x0
  let a1 = x0
  let a2 = x0
  let a3 = x0
  let a4 = x0
  let a5 = x0
  let a6 = x0
  let a7 = x0
  for (let i = 0; i < n; i++) {
    // Loaded anew in each round, or the compiler would take the products out of the loop.
    const from = at + ((i & 63) << 5)
    const y0 = v128.load(from)
    const y1 = v128.load(from, 16)
    a0 = step(a0, x0, y0)
    a1 = step(a1, x1, y0)
    a2 = step(a2, x2, y0)
    a3 = step(a3, x3, y0)
    a4 = step(a4, x0, y1)
    a5 = step(a5, x1, y1)
    a6 = step(a6, x2, y1)
    a7 = step(a7, x3, y1)
  }
  const sum = f32x4.add(f32x4.add(f32x4.add(a0, a1), f32x4.add(a2, a3)), f32x4.add(f32x4.add(a4, a5), f32x4.add(a6, a7)))
  return f32x4.extract_lane(sum, 0)
}
