/** Converts dense runs between dtypes, for `wasm/convert.ts`. The host converts to int32. */

/** Four elements from `x`, as four 32-bit numbers of type B. */
@inline function load4<A, B>(x: usize): v128 {
  if (sizeof<A>() == 1) {
    const wide = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(x)))
    return isFloat<B>() ? f32x4.convert_i32x4_s(wide) : wide
  }
  return f32x4.convert_i32x4_s(v128.load(x))
}

/** bool and int32 to four bytes each, int32 to float32. @exports convert: u8_f32 u8_i32 i32_f32 */
@inline function widen<A, B>(n: i32, x: usize, out: usize): void {
  let i = 0
  for (; i < (n & ~3); i += 4) v128.store(out + (<usize>i << 2), load4<A, B>(x + <usize>i * sizeof<A>()))
  for (; i < n; i++) store<B>(out + (<usize>i << 2), <B>load<A>(x + <usize>i * sizeof<A>()))
}

/** To float64 and back, one by one: the stores are the limit. @exports convert: u8_f64 i32_f64 f32_f64 f64_f32 */
@inline function convertEach<A, B>(n: i32, x: usize, out: usize): void {
  for (let i = 0; i < n; i++) store<B>(out + <usize>i * sizeof<B>(), <B>load<A>(x + <usize>i * sizeof<A>()))
}

/** 1 where x is not 0; NaN is not. @exports convert: f32_u8 f64_u8 i32_u8 */
@inline function truth<A, B>(n: i32, x: usize, out: usize): void {
  for (let i = 0; i < n; i++) store<B>(out + i, load<A>(x + <usize>i * sizeof<A>()) != 0 ? 1 : 0)
}

