/**
 * Comparisons, which give a byte per element, and `where`, which takes one. Rows as in `elementwise.ts`: `…Row` bytes apart, steps 0 or 1.
 * For `wasm/elementwise.ts`.
 */

const enum Op { eq, ne, lt, le }

@inline function compare<T>(op: Op, a: v128, b: v128): v128 {
  if (op == Op.eq) return v128.eq<T>(a, b)
  if (op == Op.ne) return v128.ne<T>(a, b)
  if (op == Op.lt) return v128.lt<T>(a, b)
  return v128.le<T>(a, b)
}

/** The mask of the four (two) elements at byte i of the row. */
@inline function maskAt<T>(op: Op, a: usize, aStep: i32, x: v128, b: usize, bStep: i32, y: v128, i: usize): v128 {
  return compare<T>(op, aStep ? v128.load(a + i) : x, bStep ? v128.load(b + i) : y)
}

/** Masks of four elements, whatever the dtype. */
@inline function mask4<T>(op: Op, a: usize, aStep: i32, x: v128, b: usize, bStep: i32, y: v128, i: usize): v128 {
  const low = maskAt<T>(op, a, aStep, x, b, bStep, y, i)
  if (sizeof<T>() == 4) return low
  const high = maskAt<T>(op, a, aStep, x, b, bStep, y, i + 16)
  return v128.shuffle<i32>(low, high, 0, 2, 4, 6)
}

/** @exports f32 f64 i32 */
@inline function compareRows<T>(
  op: Op, rows: i32, n: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize, outRow: i32,
): void {
  const four: usize = 4 * sizeof<T>()
  for (let r = 0; r < rows; r++) {
    const x = v128.splat<T>(load<T>(a))
    const y = v128.splat<T>(load<T>(b))
    let i = 0
    for (; i < (n & ~15); i += 16) {
      const at = <usize>i * sizeof<T>()
      const m0 = mask4<T>(op, a, aStep, x, b, bStep, y, at)
      const m1 = mask4<T>(op, a, aStep, x, b, bStep, y, at + four)
      const m2 = mask4<T>(op, a, aStep, x, b, bStep, y, at + 2 * four)
      const m3 = mask4<T>(op, a, aStep, x, b, bStep, y, at + 3 * four)
      const bytes = i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(m0, m1), i16x8.narrow_i32x4_s(m2, m3))
      v128.store(out + i, v128.and(bytes, i8x16.splat(1)))
    }
    for (; i < n; i++) {
      const at = <usize>i * sizeof<T>()
      const p = v128.splat<T>(load<T>(a + (aStep ? at : 0)))
      const q = v128.splat<T>(load<T>(b + (bStep ? at : 0)))
      store<u8>(out + i, <u8>(i32x4.extract_lane(compare<T>(op, p, q), 0) & 1))
    }
    a += aRow
    b += bRow
    out += outRow
  }
}

/** Four elements at byte `at` of the row. */
@inline function chooseFour<T>(chosen: v128, at: usize, a: usize, aStep: i32, x: v128, b: usize, bStep: i32, y: v128, out: usize): void {
  if (sizeof<T>() == 4) {
    v128.store(out + at, v128.bitselect(aStep ? v128.load(a + at) : x, bStep ? v128.load(b + at) : y, chosen))
    return
  }
  const low = v128.shuffle<i32>(chosen, chosen, 0, 0, 1, 1)
  const high = v128.shuffle<i32>(chosen, chosen, 2, 2, 3, 3)
  v128.store(out + at, v128.bitselect(aStep ? v128.load(a + at) : x, bStep ? v128.load(b + at) : y, low))
  v128.store(out + at, v128.bitselect(aStep ? v128.load(a + at, 16) : x, bStep ? v128.load(b + at, 16) : y, high), 16)
}

/** out = cond ? a : b by their bits, out dense. cond's step is 1. @exports where: 32 64 */
@inline function whereRows<T>(
  rows: i32, n: i32, cond: usize, condRow: i32, a: usize, aRow: i32, aStep: i32, b: usize, bRow: i32, bStep: i32, out: usize,
): void {
  const all = <usize>n * sizeof<T>()
  for (let r = 0; r < rows; r++) {
    const x = v128.splat<T>(load<T>(a))
    const y = v128.splat<T>(load<T>(b))
    let i = 0
    for (; i < (n & ~15); i += 16) {
      const at = <usize>i * sizeof<T>()
      const bytes = i8x16.gt_u(v128.load(cond + i), i8x16.splat(0))
      const low = i16x8.extend_low_i8x16_s(bytes)
      const high = i16x8.extend_high_i8x16_s(bytes)
      chooseFour<T>(i32x4.extend_low_i16x8_s(low), at, a, aStep, x, b, bStep, y, out)
      chooseFour<T>(i32x4.extend_high_i16x8_s(low), at + 4 * sizeof<T>(), a, aStep, x, b, bStep, y, out)
      chooseFour<T>(i32x4.extend_low_i16x8_s(high), at + 8 * sizeof<T>(), a, aStep, x, b, bStep, y, out)
      chooseFour<T>(i32x4.extend_high_i16x8_s(high), at + 12 * sizeof<T>(), a, aStep, x, b, bStep, y, out)
    }
    for (; i < n; i++) {
      const at = <usize>i * sizeof<T>()
      store<T>(out + at, load<u8>(cond + i) ? load<T>(a + (aStep ? at : 0)) : load<T>(b + (bStep ? at : 0)))
    }
    cond += condRow
    a += aRow
    b += bRow
    out += all
  }
}
