/** softmax and logSoftmax of the js backend, in double precision. */
import type { TypedArray } from '../../values/dtype.js'
import type { SoftmaxKernel } from '../table/table.js'
import { REAL_LOSS, real } from './cells.js'
import { fibres, firstBest, greater } from './reduce.js'

/** exp(x − max) / Σ exp(x − max), or its logarithm x − max − log Σ exp(x − max). */
const softmax = (logarithm: boolean): SoftmaxKernel<TypedArray> => ({
  run(outer, k, inner, x, xo, out, oo) {
    if (k === 0) return
    fibres(outer, inner, k, (at) => {
      const from = xo + at
      const max = x[from + firstBest(greater, x, from, k, inner) * inner]!
      let total = 0
      for (let j = 0; j < k; j++) total += Math.exp(x[from + j * inner]! - max)
      for (let j = 0; j < k; j++) {
        const shifted = x[from + j * inner]! - max
        out[oo + at + j * inner] = logarithm ? shifted - Math.log(total) : Math.exp(shifted) / total
      }
    })
  },
})

export const cells = {
  softmax: real(softmax(false), REAL_LOSS, REAL_LOSS),
  logSoftmax: real(softmax(true), REAL_LOSS, REAL_LOSS),
}
