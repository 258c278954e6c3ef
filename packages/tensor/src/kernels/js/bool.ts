/** Reductions of bool, whose elements are 0 or 1: they compile for bytes alone, and end where their answer is decided. */
import type { Rows } from '../table/operands.js'

/** `amax` (any) and `amin` (all): `decisive` ends a row at once. */
function quantifier(decisive: 0 | 1): Rows {
  return (x, out, outer, k, inner) => {
    const [bytes, to] = [x.storage.host as Uint8Array, out.storage.host as Uint8Array]
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let at = x.offset + o * k * inner + i
        const end = at + k * inner
        while (at < end && bytes[at] !== decisive) at += inner
        to[out.offset + o * inner + i] = at < end ? decisive : decisive ^ 1
      }
    }
  }
}

export const anyKernel = quantifier(1)
export const allKernel = quantifier(0)
