/**
 * Moves elements by their bits: strided blocks, for `wasm/calls/strided.ts`; one element repeated, triangles and reversed rows, for `wasm/convert.ts`. Strides count
 * bytes.
 */
import { turn4 } from '../parts/turn'

/** Elements of a side of a block: what is read of a cache line is used before the line is lost. */
const BLOCK: i32 = 16

/** Copies `bytes` bytes of elements of type T. */
@inline export function copyRun<T>(x: usize, out: usize, bytes: usize): void {
  if (bytes > 512) {
    memory.copy(out, x, bytes)
    return
  }
  let i: usize = 0
  for (; i < (bytes & ~63); i += 64) {
    v128.store(out + i, v128.load(x + i))
    v128.store(out + i, v128.load(x + i, 16), 16)
    v128.store(out + i, v128.load(x + i, 32), 32)
    v128.store(out + i, v128.load(x + i, 48), 48)
  }
  for (; i < (bytes & ~15); i += 16) v128.store(out + i, v128.load(x + i))
  for (; i < bytes; i += sizeof<T>()) store<T>(out + i, load<T>(x + i))
}

/** out[r, c] = x[r, c], any strides. @exports move: 8 32 64 */
@inline function move<T>(rows: i32, cols: i32, x: usize, xRow: i32, xCol: i32, out: usize, outRow: i32, outCol: i32): void {
  if (xCol == <i32>sizeof<T>() && outCol == <i32>sizeof<T>()) {
    for (let r = 0; r < rows; r++) {
      copyRun<T>(x, out, <usize>cols * sizeof<T>())
      x += xRow
      out += outRow
    }
    return
  }
  if (xCol == 0 && outCol == <i32>sizeof<T>()) {
    for (let r = 0; r < rows && cols > 0; r++) {
      store<T>(out, load<T>(x))
      repeat<T>(cols, out)
      x += xRow
      out += outRow
    }
    return
  }
  for (let r0 = 0; r0 < rows; r0 += BLOCK) {
    const r1 = min(r0 + BLOCK, rows)
    for (let c0 = 0; c0 < cols; c0 += BLOCK) {
      const c1 = min(c0 + BLOCK, cols)
      if (sizeof<T>() == 4 && xRow == 4 && outCol == 4 && r1 - r0 == BLOCK && c1 - c0 == BLOCK) {
        for (let r = r0; r < r1; r += 4) {
          for (let c = c0; c < c1; c += 4) turn4(x + (r << 2) + c * xCol, xCol, out + r * outRow + (c << 2), outRow)
        }
      } else {
        for (let r = r0; r < r1; r++) {
          let from = x + r * xRow + c0 * xCol
          let to = out + r * outRow + c0 * outCol
          for (let c = c0; c < c1; c++) {
            store<T>(to, load<T>(from))
            from += xCol
            to += outCol
          }
        }
      }
    }
  }
}

/**
 * out = x [rows, columns], 0 above diagonal number `diagonal`, or below it with `upper`. For rows from `first` on, where x and out begin.
 * @exports triangle: 8 32 64
 */
@inline function triangle<T>(first: i32, rows: i32, columns: i32, diagonal: i32, upper: bool, x: usize, out: usize): void {
  const all = <usize>columns * sizeof<T>()
  for (let row = first; row < first + rows; row++) {
    // The first element on the other side.
    const at = <usize>max(0, min(columns, row + diagonal + (upper ? 0 : 1))) * sizeof<T>()
    if (upper) {
      memory.fill(out, 0, at)
      copyRun<T>(x + at, out + at, all - at)
    } else {
      copyRun<T>(x, out, at)
      memory.fill(out + at, 0, all - at)
    }
    x += all
    out += all
  }
}

/** Gives all of n elements the bits of the first. @exports repeat: 8 32 64 */
@inline function repeat<T>(n: i32, out: usize): void {
  const first = load<T>(out)
  const all = <usize>n * sizeof<T>()
  // A call of memory.fill costs as much as some 64 bytes in vectors.
  if (all > 64 && (sizeof<T>() == 1 || first == 0)) memory.fill(out, <u8>first, all)
  else {
    const each = v128.splat<T>(first)
    let i: usize = 0
    for (; i < (all & ~15); i += 16) v128.store(out + i, each)
    for (; i < all; i += sizeof<T>()) store<T>(out + i, first)
  }
}

/** The elements of a vector in reverse. */
@inline function reversed<T>(v: v128): v128 {
  if (sizeof<T>() == 8) return v128.shuffle<i64>(v, v, 1, 0)
  if (sizeof<T>() == 4) return v128.shuffle<i32>(v, v, 3, 2, 1, 0)
  return v128.shuffle<i8>(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
}

/** out [k, inner] = rows k − 1 … 0 of x, of which `x` is the end. @exports flip: 8 32 64 */
@inline function flip<T>(k: i32, inner: i32, x: usize, out: usize): void {
  const row = <usize>inner * sizeof<T>()
  let i: usize = 0
  if (inner == 1) {
    const all = <usize>k * sizeof<T>()
    for (; i < (all & ~15); i += 16) v128.store(out + i, reversed<T>(v128.load(x - i - 16)))
    for (; i < all; i += sizeof<T>()) store<T>(out + i, load<T>(x - i - sizeof<T>()))
  } else for (; i < <usize>k; i++) copyRun<T>(x - (i + 1) * row, out + i * row, row)
}
