/** Probabilities of the js backend: softmax, its logarithm and their derivatives, in double precision, and the loss that reads one class for each row. */
import type { TypedArray } from '../../values/dtype.js'
import type { GradRowsKernel, NllBackwardKernel, NllKernel, ScanKernel } from '../table/table.js'
import { REAL_LOSS, REAL_MEAN, real } from './cells.js'
import { fibres, firstBest, greater } from './reduce.js'

type T = TypedArray

/** exp(x − max) / Σ exp(x − max), or its logarithm x − max − log Σ exp(x − max). */
const softmax = (logarithm: boolean): ScanKernel<T> => ({
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

const softmaxBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, y, yo, out, oo) {
    fibres(outer, inner, k, (at) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += grad[go + at + j * inner]! * y[yo + at + j * inner]!
      for (let j = 0; j < k; j++) out[oo + at + j * inner] = y[yo + at + j * inner]! * (grad[go + at + j * inner]! - sum)
    })
  },
}

const logSoftmaxBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, y, yo, out, oo) {
    fibres(outer, inner, k, (at) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += grad[go + at + j * inner]!
      for (let j = 0; j < k; j++) out[oo + at + j * inner] = grad[go + at + j * inner]! - Math.exp(y[yo + at + j * inner]!) * sum
    })
  },
}

const nll: NllKernel<T> = {
  run(n, classes, x, xo, target, to, out, oo) {
    for (let i = 0; i < n; i++) out[oo + i] = -x[xo + i * classes + target[to + i]!]!
  },
}

const nllBackward: NllBackwardKernel<T> = {
  run(n, classes, grad, go, gradStep, target, to, out, oo) {
    out.fill(0, oo, oo + n * classes)
    for (let i = 0; i < n; i++) out[oo + i * classes + target[to + i]!] = -grad[go + i * gradStep]!
  },
}

export const cells = {
  softmax: real(softmax(false), REAL_LOSS, REAL_LOSS),
  logSoftmax: real(softmax(true), REAL_LOSS, REAL_LOSS),
  softmaxBackward: real(softmaxBackward, REAL_MEAN, REAL_MEAN),
  logSoftmaxBackward: real(logSoftmaxBackward, REAL_MEAN, REAL_MEAN),
  nll: real(nll, REAL_LOSS, REAL_LOSS),
  nllBackward: real(nllBackward, REAL_LOSS, REAL_LOSS),
}
