/**
 * Loops over bool, whose elements are 0 or 1, for backends whose buffers are managed arrays: each compiles for bytes alone, and what finds an answer stops.
 * Beside: `rows.ts`, the same for float32.
 */
import type { BinaryKernel, ReduceKernel } from '../table/table.js'
import { type Row3, walk3 } from './walk.js'

type Bools = Uint8Array

/** An operation on bits, as a kernel. */
function logical(row: Row3<Bools, Bools, Bools>): BinaryKernel<Bools, Bools> {
  return {
    flat: (n, a, ao, as, b, bo, bs, out, oo) => row(n, a, ao, as, b, bo, bs, out, oo, 1),
    strided: (shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides) =>
      walk3(row, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides),
  }
}

/** `maximum`, `add`, `bitwiseOr`. */
export const orKernel = logical((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! | b[bo + i * bs]!
})

/** `minimum`, `mul`, `bitwiseAnd`. */
export const andKernel = logical((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! & b[bo + i * bs]!
})

/** `ne`, `bitwiseXor`. */
export const differKernel = logical((n, a, ao, as, b, bo, bs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = a[ao + i * as]! ^ b[bo + i * bs]!
})

/** `eq`. */
export const equalKernel = logical((n, a, ao, as, b, bo, bs, out, oo, os) => {
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
