/**
 * Places of extremes and running sums of float32 [outer, k, inner], as loops that compile for Float32Array alone: a running sum has no lanes, and a place
 * costs more to find again than to keep. Neighbour: `reduce.ts`, the same for every dtype.
 */
import type { Rows } from '../table/operands.js'

/** The first of the greatest, or by `sign` −1 of the least; the first NaN wins. */
const placeOf =
  (sign: 1 | -1): Rows =>
  (x, out, outer, k, inner) => {
    const [from, to] = [x.storage.host as Float32Array, out.storage.host as Int32Array]
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        const at = x.offset + o * k * inner + i
        let best = sign * from[at]!
        let place = 0
        for (let j = 1; j < k && !Number.isNaN(best); j++) {
          const v = sign * from[at + j * inner]!
          if (v > best || Number.isNaN(v)) {
            best = v
            place = j
          }
        }
        to[out.offset + o * inner + i] = place
      }
    }
  }

export const argmaxF32 = placeOf(1)
export const argminF32 = placeOf(-1)

/** `reverse` starts at the end. */
const sums =
  (reverse: boolean): Rows =>
  (x, out, outer, k, inner) => {
    const [from, to, xo, oo] = [x.storage.host as Float32Array, out.storage.host as Float32Array, x.offset, out.offset]
    const step = reverse ? -inner : inner
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let total = 0
        for (let j = 0, at = (o * k + (reverse ? k - 1 : 0)) * inner + i; j < k; j++, at += step) {
          total += from[xo + at]!
          to[oo + at] = total
        }
      }
    }
  }

export const cumsumF32 = sums(false)
export const reverseCumsumF32 = sums(true)

export const cumprodF32: Rows = (x, out, outer, k, inner) => {
  const [from, to, xo, oo] = [x.storage.host as Float32Array, out.storage.host as Float32Array, x.offset, out.offset]
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let total = 1
      for (let j = 0, at = o * k * inner + i; j < k; j++, at += inner) {
        total *= from[xo + at]!
        to[oo + at] = total
      }
    }
  }
}
