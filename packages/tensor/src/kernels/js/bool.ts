/**
 * Loops over bool, whose elements are 0 or 1: each compiles for bytes alone, and ends where its answer is decided. Neighbour: `rows.ts`, the same for
 * numbers.
 */
import type { ReduceKernel } from '../table/table.js'
import { binaryRows } from './elementwise.js'

type Bools = Uint8Array

/** `maximum`, `add`, `bitwiseOr`. */
export const orKernel = binaryRows<Bools, Bools>((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! | b[bo + i * bs]!
})

/** `minimum`, `mul`, `bitwiseAnd`. */
export const andKernel = binaryRows<Bools, Bools>((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! & b[bo + i * bs]!
})

/** `ne`, `bitwiseXor`. */
export const differKernel = binaryRows<Bools, Bools>((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! ^ b[bo + i * bs]!
})

/** `eq`. */
export const equalKernel = binaryRows<Bools, Bools>((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! ^ b[bo + i * bs]! ^ 1
})

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
