/** Copies strided blocks, by bits, for `wasm/strided.ts`. Strides count bytes. */
import { turn4 } from './turn'

/** Elements of a side of a block: what is read of a cache line is used before the line is lost. */
const BLOCK: i32 = 16

/** out[r, c] = x[r, c], any strides. @exports move: 8 32 64 */
@inline function move<T>(rows: i32, cols: i32, x: usize, xRow: i32, xCol: i32, out: usize, outRow: i32, outCol: i32): void {
  if (xCol == <i32>sizeof<T>() && outCol == <i32>sizeof<T>()) {
    const all = <usize>cols * sizeof<T>()
    const whole = all & ~15
    for (let r = 0; r < rows; r++) {
      let i: usize = 0
      if (all > 512) memory.copy(out, x, all)
      else {
        for (; i < whole; i += 16) v128.store(out + i, v128.load(x + i))
        for (; i < all; i += sizeof<T>()) store<T>(out + i, load<T>(x + i))
      }
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
