/** Conversions of dense runs between dtypes. Those to int32 are the host's. Above: `wasm/convert.ts`. */

/** Four elements from `x`, as four 32-bit numbers of type B. */
// @ts-ignore: decorator
@inline function load4<A, B>(x: usize): v128 {
  if (sizeof<A>() == 1) {
    const wide = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(x)))
    return isFloat<B>() ? f32x4.convert_i32x4_s(wide) : wide
  }
  return f32x4.convert_i32x4_s(v128.load(x))
}

/** bool and int32 to four bytes each, int32 to float32. */
// @ts-ignore: decorator
@inline function widen<A, B>(n: i32, x: usize, out: usize): void {
  let i = 0
  for (; i < (n & ~3); i += 4) v128.store(out + (<usize>i << 2), load4<A, B>(x + <usize>i * sizeof<A>()))
  for (; i < n; i++) store<B>(out + (<usize>i << 2), <B>load<A>(x + <usize>i * sizeof<A>()))
}

/** Any to float64, one by one: the stores are the limit. */
// @ts-ignore: decorator
@inline function toF64<A>(n: i32, x: usize, out: usize): void {
  for (let i = 0; i < n; i++) f64.store(out + (<usize>i << 3), <f64>load<A>(x + <usize>i * sizeof<A>()))
}

/** 1 where x is not 0; NaN is not. */
// @ts-ignore: decorator
@inline function truth<A>(n: i32, x: usize, out: usize): void {
  for (let i = 0; i < n; i++) store<u8>(out + i, load<A>(x + <usize>i * sizeof<A>()) != 0 ? 1 : 0)
}

export function convert_u8_f32(n: i32, x: usize, out: usize): void {
  widen<u8, f32>(n, x, out)
}
export function convert_u8_i32(n: i32, x: usize, out: usize): void {
  widen<u8, i32>(n, x, out)
}
export function convert_i32_f32(n: i32, x: usize, out: usize): void {
  widen<i32, f32>(n, x, out)
}
export function convert_u8_f64(n: i32, x: usize, out: usize): void {
  toF64<u8>(n, x, out)
}
export function convert_i32_f64(n: i32, x: usize, out: usize): void {
  toF64<i32>(n, x, out)
}
export function convert_f32_f64(n: i32, x: usize, out: usize): void {
  toF64<f32>(n, x, out)
}
export function convert_f64_f32(n: i32, x: usize, out: usize): void {
  for (let i = 0; i < n; i++) f32.store(out + (<usize>i << 2), <f32>f64.load(x + (<usize>i << 3)))
}
export function convert_f32_u8(n: i32, x: usize, out: usize): void {
  truth<f32>(n, x, out)
}
export function convert_f64_u8(n: i32, x: usize, out: usize): void {
  truth<f64>(n, x, out)
}
export function convert_i32_u8(n: i32, x: usize, out: usize): void {
  truth<i32>(n, x, out)
}
