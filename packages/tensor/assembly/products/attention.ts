/** Masks of attention's scores, for `wasm/products/attention.ts`; the products and the softmax are those of `matmul.ts` and `rows.ts`. */

/**
 * Masks dense scores [rows, n] in place. `kind` 0: by nothing, 1: `none` where the byte of `mask` is 0, 2: adds `mask`, whose rows are `maskRow` bytes apart. Then
 * `none` from `seen` on if that is not 0, one key more in each row: row r sees the first `seen` + r keys alone. `none` is -∞ for scores, 0 for their gradients.
 */
export function mask_scores_f32(rows: i32, n: i32, scores: usize, kind: i32, mask: usize, maskRow: usize, seen: i32, none: f32): void {
  const nones = f32x4.splat(none)
  const all = <usize>n << 2
  const whole = <usize>(n & ~3) << 2
  for (let r = 0; r < rows; r++) {
    let i: usize = 0
    if (kind == 1) {
      for (; i < whole; i += 16) {
        const bytes = i16x8.extend_low_i8x16_u(v128.load32_zero(mask + (i >> 2)))
        const off = i32x4.eq(i32x4.extend_low_i16x8_u(bytes), i32x4.splat(0))
        v128.store(scores + i, v128.bitselect(nones, v128.load(scores + i), off))
      }
      for (; i < all; i += 4) if (load<u8>(mask + (i >> 2)) == 0) f32.store(scores + i, none)
    } else if (kind == 2) {
      for (; i < whole; i += 16) v128.store(scores + i, f32x4.add(v128.load(scores + i), v128.load(mask + i)))
      for (; i < all; i += 4) f32.store(scores + i, f32.load(scores + i) + f32.load(mask + i))
    }
    if (seen > 0) {
      i = <usize>min(seen + r, n) << 2
      for (; i < all && (i & 15) != 0; i += 4) f32.store(scores + i, none)
      for (; i < whole; i += 16) v128.store(scores + i, nones)
      for (; i < all; i += 4) f32.store(scores + i, none)
    }
    scores += all
    mask += maskRow
  }
}
