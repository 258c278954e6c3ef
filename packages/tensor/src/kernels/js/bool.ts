/** Reductions of bool, whose elements are 0 or 1: they compile for bytes alone, and end where their answer is decided. */
import type { ReduceKernel } from '../table/table.js'

type Bools = Uint8Array

/** `amax` (any) and `amin` (all): `decisive` ends a row at once. */
function quantifier(decisive: 0 | 1): ReduceKernel<Bools, Bools> {
  return {
    run(outer, k, inner, x, xo, out, oo) {
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          let at = xo + o * k * inner + i
          const end = at + k * inner
          while (at < end && x[at] !== decisive) at += inner
          out[oo + o * inner + i] = at < end ? decisive : decisive ^ 1
        }
      }
    },
  }
}

export const anyKernel = quantifier(1)
export const allKernel = quantifier(0)
