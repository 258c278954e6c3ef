/** Converts dense runs between dtypes, for `wasm/convert.ts`. The host converts to int32. */
import { join4 } from './parts/pairs'

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

/** Two numbers of float64. */
@inline function doubles2<A>(x: usize): v128 {
  if (sizeof<A>() == 1) {
    return f64x2.convert_low_i32x4_s(i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(i32x4.splat(load<u16>(x)))))
  }
  const v = v128.load64_zero(x)
  return isFloat<A>() ? f64x2.promote_low_f32x4(v) : f64x2.convert_low_i32x4_s(v)
}

/** @exports convert: u8_f64 i32_f64 f32_f64 */
@inline function toDoubles<A, B>(n: i32, x: usize, out: usize): void {
  let i = 0
  for (; i < (n & ~3); i += 4) {
    const from = x + <usize>i * sizeof<A>()
    const to = out + (<usize>i << 3)
    v128.store(to, doubles2<A>(from))
    v128.store(to, doubles2<A>(from + 2 * sizeof<A>()), 16)
  }
  for (; i < n; i++) store<B>(out + (<usize>i << 3), <B>load<A>(x + <usize>i * sizeof<A>()))
}

/** out may be x. @exports convert: f64_f32 */
@inline function toSingles<A, B>(n: i32, x: usize, out: usize): void {
  let i = 0
  for (; i < (n & ~3); i += 4) {
    const from = x + (<usize>i << 3)
    v128.store(out + (<usize>i << 2), join4(v128.load(from), v128.load(from, 16)))
  }
  for (; i < n; i++) store<B>(out + (<usize>i << 2), <B>load<A>(x + (<usize>i << 3)))
}

/** Four 32-bit numbers as masks: all ones where one is not 0. */
@inline function isNot0<A>(x: usize): v128 {
  const v = v128.load(x)
  return isFloat<A>() ? f32x4.ne(v, f32x4.splat(0)) : i32x4.ne(v, i32x4.splat(0))
}

/** 1 where x is not 0; NaN is not. @exports convert: f32_u8 f64_u8 i32_u8 */
@inline function truth<A, B>(n: i32, x: usize, out: usize): void {
  let i = 0
  if (sizeof<A>() == 4) {
    for (; i < (n & ~15); i += 16) {
      const from = x + (<usize>i << 2)
      const low = i16x8.narrow_i32x4_s(isNot0<A>(from), isNot0<A>(from + 16))
      const high = i16x8.narrow_i32x4_s(isNot0<A>(from + 32), isNot0<A>(from + 48))
      v128.store(out + i, v128.and(i8x16.narrow_i16x8_s(low, high), i8x16.splat(1)))
    }
  }
  for (; i < n; i++) store<B>(out + i, load<A>(x + <usize>i * sizeof<A>()) != 0 ? 1 : 0)
}
