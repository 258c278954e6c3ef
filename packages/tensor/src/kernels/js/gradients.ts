/** The js backend's derivatives of activations and of softmax: a gradient times a slope, in double precision. */
import type { TypedArray } from '../../values/dtype.js'
import type { GradDefinition } from '../elementwise/definition.js'
import type { GradKernel, GradRowsKernel } from '../table/table.js'
import { REAL_MEAN, real } from './cells.js'
import { fibres } from './reduce.js'

type T = TypedArray

export function gradient({ slope, gated = false }: GradDefinition): GradKernel<T> {
  return {
    flat(n, grad, go, gs, x, xo, out, oo, p0, p1) {
      for (let i = 0; i < n; i++) {
        const s = slope(x[xo + i]!, p0, p1)
        out[oo + i] = gated && s === 0 ? 0 : grad[go + i * gs]! * s
      }
    },
  }
}

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

export const cells = {
  softmaxBackward: real(softmaxBackward, REAL_MEAN, REAL_MEAN),
  logSoftmaxBackward: real(logSoftmaxBackward, REAL_MEAN, REAL_MEAN),
}
