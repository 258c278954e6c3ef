/**
 * A tile of a product in registers, four rows of 32 bytes each: 4 × 8 in float32, 4 × 4 in float64. For `matmul.ts` and `direct.ts`. Pointers and steps count bytes.
 *
 * Note on speed: the micro-kernel is inlined and its k loop is not unrolled; unrolled it runs at two thirds of the speed, called at four fifths.
 */

/** Bytes of a tile's row, and of a panel's. */
export const WIDTH: usize = 32

/**
 * tile (+)= a [4, rows · k] · b [rows · k, WIDTH]: four pointers of a with `aStep` to the next column and `aJump` more after each k of them, b with `bStep` to its
 * next row.
 */
@inline export function micro<T>(
  rows: i32,
  k: i32,
  a0: usize,
  a1: usize,
  a2: usize,
  a3: usize,
  aStep: usize,
  aJump: usize,
  b: usize,
  bStep: usize,
  out: usize,
  outRow: usize,
  first: bool,
): void {
  const o1 = out + outRow
  const o2 = o1 + outRow
  const o3 = o2 + outRow
  let c00 = v128.splat<T>(0)
  let c01 = v128.splat<T>(0)
  let c10 = v128.splat<T>(0)
  let c11 = v128.splat<T>(0)
  let c20 = v128.splat<T>(0)
  let c21 = v128.splat<T>(0)
  let c30 = v128.splat<T>(0)
  let c31 = v128.splat<T>(0)
  if (!first) {
    c00 = v128.load(out)
    c01 = v128.load(out, 16)
    c10 = v128.load(o1)
    c11 = v128.load(o1, 16)
    c20 = v128.load(o2)
    c21 = v128.load(o2, 16)
    c30 = v128.load(o3)
    c31 = v128.load(o3, 16)
  }
  for (let row = 0; row < rows; row++) {
    for (let p = 0; p < k; p++) {
      const b0 = v128.load(b)
      const b1 = v128.load(b, 16)
      const x0 = v128.load_splat<T>(a0)
      c00 = v128.add<T>(c00, v128.mul<T>(x0, b0))
      c01 = v128.add<T>(c01, v128.mul<T>(x0, b1))
      const x1 = v128.load_splat<T>(a1)
      c10 = v128.add<T>(c10, v128.mul<T>(x1, b0))
      c11 = v128.add<T>(c11, v128.mul<T>(x1, b1))
      const x2 = v128.load_splat<T>(a2)
      c20 = v128.add<T>(c20, v128.mul<T>(x2, b0))
      c21 = v128.add<T>(c21, v128.mul<T>(x2, b1))
      const x3 = v128.load_splat<T>(a3)
      c30 = v128.add<T>(c30, v128.mul<T>(x3, b0))
      c31 = v128.add<T>(c31, v128.mul<T>(x3, b1))
      a0 += aStep
      a1 += aStep
      a2 += aStep
      a3 += aStep
      b += bStep
    }
    a0 += aJump
    a1 += aJump
    a2 += aJump
    a3 += aJump
  }
  v128.store(out, c00)
  v128.store(out, c01, 16)
  v128.store(o1, c10)
  v128.store(o1, c11, 16)
  v128.store(o2, c20)
  v128.store(o2, c21, 16)
  v128.store(o3, c30)
  v128.store(o3, c31, 16)
}

/** At most WIDTH bytes, a multiple of four. */
@inline export function copyRow(to: usize, from: usize, bytes: usize): void {
  let i: usize = 0
  for (; i + 16 <= bytes; i += 16) v128.store(to + i, v128.load(from + i))
  for (; i < bytes; i += 4) store<u32>(to + i, load<u32>(from + i))
}
