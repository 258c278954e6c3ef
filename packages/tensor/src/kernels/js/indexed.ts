/** Movement by indices and sums at indices of the js backend, for each dtype. Neighbour: `movement.ts`, copies and fills. */
import type { TypedArray } from '../../values/dtype.js'
import type { ArrayKernelTable, IndexKernel, IndexOp } from '../table/table.js'
import { each, REAL_OR_INT } from './cells.js'
import { BULK_FROM } from './movement.js'

/** A row of `inner` elements at a time. */
function indexSelect<A extends TypedArray>(): IndexKernel<A> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      for (let o = 0; o < outer; o++) {
        const from = xo + o * rows * inner
        const to = oo + o * n * inner
        if (inner === 1) for (let i = 0; i < n; i++) out[to + i] = x[from + index[io + i]!]!
        else for (let i = 0; i < n; i++) copyRow(inner, x, from + index[io + i]! * inner, out, to + i * inner)
      }
    },
  }
}

function copyRow<A extends TypedArray>(n: number, x: A, from: number, out: A, to: number): void {
  if (n >= BULK_FROM) out.set(x.subarray(from, from + n), to)
  else for (let j = 0; j < n; j++) out[to + j] = x[from + j]!
}

function gather<A extends TypedArray>(): IndexKernel<A> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      let at = 0
      for (let o = 0; o < outer; o++) {
        const from = xo + o * rows * inner
        for (let i = 0; i < n; i++) for (let j = 0; j < inner; j++, at++) out[oo + at] = x[from + index[io + at]! * inner + j]!
      }
    },
  }
}

function scatter<A extends TypedArray>(): IndexKernel<A> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      let at = 0
      for (let o = 0; o < outer; o++) {
        const to = oo + o * rows * inner
        for (let i = 0; i < n; i++) for (let j = 0; j < inner; j++, at++) out[to + index[io + at]! * inner + j] = x[xo + at]!
      }
    },
  }
}

function indexAdd<A extends TypedArray>(): IndexKernel<A> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      let from = xo
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < n; i++) {
          const to = oo + (o * rows + index[io + i]!) * inner
          for (let j = 0; j < inner; j++) out[to + j] = out[to + j]! + x[from + j]!
          from += inner
        }
      }
    },
  }
}

function scatterAdd<A extends TypedArray>(): IndexKernel<A> {
  return {
    run(outer, rows, n, inner, x, xo, index, io, out, oo) {
      let at = 0
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < inner; j++, at++) {
            const to = oo + (o * rows + index[io + at]!) * inner + j
            out[to] = out[to]! + x[xo + at]!
          }
        }
      }
    },
  }
}

/** Nothing is computed. */
export const moves = {
  indexSelect: each(indexSelect),
  gather: each(gather),
  scatter: each(scatter),
} as Pick<ArrayKernelTable, 'indexSelect' | 'gather' | 'scatter'>

export const cells = {
  ...moves,
  indexAdd: { ...each(indexAdd), bool: REAL_OR_INT },
  scatterAdd: { ...each(scatterAdd), bool: REAL_OR_INT },
} as Pick<ArrayKernelTable, IndexOp>
