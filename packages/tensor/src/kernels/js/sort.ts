/** Sorting rows by index with the engine's sort. */
import type { TypedArray } from '../../values/dtype.js'
import type { ArgsortKernel, ArrayKernelTable } from '../table/table.js'
import { each } from './cells.js'

/** NaN is the greatest, as in PyTorch. */
function ascending(a: number, b: number): number {
  if (a < b) return -1
  if (a > b) return 1
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
}

function argsort<A extends TypedArray>(): ArgsortKernel<A> {
  return {
    run(outer, k, inner, x, xo, out, oo, descending) {
      const order = new Int32Array(k)
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          const from = o * k * inner + i
          for (let j = 0; j < k; j++) order[j] = j
          const at = xo + from
          // Equals keep their order in both directions: the sort is stable.
          if (descending) order.sort((p, q) => ascending(x[at + q * inner]!, x[at + p * inner]!))
          else order.sort((p, q) => ascending(x[at + p * inner]!, x[at + q * inner]!))
          for (let j = 0; j < k; j++) out[oo + from + j * inner] = order[j]!
        }
      }
    },
  }
}

export const cells = { argsort: each(argsort) } as Pick<ArrayKernelTable, 'argsort'>
