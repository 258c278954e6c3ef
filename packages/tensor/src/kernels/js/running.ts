/**
 * Places of extremes and running sums of float32 [outer, k, inner], as loops that compile for Float32Array alone: a running sum has no lanes, and a place
 * costs more to find again than to keep. Neighbour: `reduce.ts`, the same for every dtype.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { ReduceKernel, ScanKernel } from '../table/table.js'

type F32 = ArrayOf['float32']

/** The first of the greatest; the first NaN wins. */
export const argmaxF32: ReduceKernel<F32, Int32Array> = {
  run(outer, k, inner, x, xo, out, oo) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        const at = xo + o * k * inner + i
        let best = x[at]!
        let place = 0
        for (let j = 1; j < k && !Number.isNaN(best); j++) {
          const v = x[at + j * inner]!
          if (v > best || Number.isNaN(v)) {
            best = v
            place = j
          }
        }
        out[oo + o * inner + i] = place
      }
    }
  },
}

export const argminF32: ReduceKernel<F32, Int32Array> = {
  run(outer, k, inner, x, xo, out, oo) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        const at = xo + o * k * inner + i
        let best = x[at]!
        let place = 0
        for (let j = 1; j < k && !Number.isNaN(best); j++) {
          const v = x[at + j * inner]!
          if (v < best || Number.isNaN(v)) {
            best = v
            place = j
          }
        }
        out[oo + o * inner + i] = place
      }
    }
  },
}

export const cumsumF32: ScanKernel<F32> = {
  run(outer, k, inner, x, xo, out, oo) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let total = 0
        for (let j = 0, at = o * k * inner + i; j < k; j++, at += inner) {
          total += x[xo + at]!
          out[oo + at] = total
        }
      }
    }
  },
}

export const reverseCumsumF32: ScanKernel<F32> = {
  run(outer, k, inner, x, xo, out, oo) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let total = 0
        for (let j = k - 1, at = (o * k + k - 1) * inner + i; j >= 0; j--, at -= inner) {
          total += x[xo + at]!
          out[oo + at] = total
        }
      }
    }
  },
}

export const cumprodF32: ScanKernel<F32> = {
  run(outer, k, inner, x, xo, out, oo) {
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let total = 1
        for (let j = 0, at = o * k * inner + i; j < k; j++, at += inner) {
          total *= x[xo + at]!
          out[oo + at] = total
        }
      }
    }
  },
}
