/** The js backend's derivatives of activations and of softmax: a gradient times a slope of `table/scalars.ts`, in double precision. */
import type { TypedArray } from '../../values/dtype.js'
import { SLOPES } from '../table/scalars.js'
import type { GradKernel, GradOp, GradRowsKernel } from '../table/table.js'
import { fibres } from './reduce.js'

type T = TypedArray

export function gradient(op: GradOp): GradKernel<T> {
  const slope = SLOPES[op]
  return {
    flat(n, grad, go, gs, x, xo, out, oo, p0, p1) {
      // Where the slope of relu is 0 so is the gradient, whatever came (NaN, too), as PyTorch's.
      for (let i = 0; i < n; i++) {
        const s = slope(x[xo + i]!, p0, p1)
        out[oo + i] = op === 'reluBackward' && s === 0 ? 0 : grad[go + i * gs]! * s
      }
    },
  }
}

export const softmaxBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, y, yo, out, oo) {
    fibres(outer, inner, k, (at) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += grad[go + at + j * inner]! * y[yo + at + j * inner]!
      for (let j = 0; j < k; j++) out[oo + at + j * inner] = y[yo + at + j * inner]! * (grad[go + at + j * inner]! - sum)
    })
  },
}

export const logSoftmaxBackward: GradRowsKernel<T> = {
  run(outer, k, inner, grad, go, y, yo, out, oo) {
    fibres(outer, inner, k, (at) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += grad[go + at + j * inner]!
      for (let j = 0; j < k; j++) out[oo + at + j * inner] = grad[go + at + j * inner]! - Math.exp(y[yo + at + j * inner]!) * sum
    })
  },
}
