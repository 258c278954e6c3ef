/** The reference's derivatives of activations and of softmax: the slopes as functions of numbers, in double precision. `backend.ts` has the table. */
import type { TypedArray } from '../../values/dtype.js'
import { erfc } from '../table/erf.js'
import type { GradKernel, GradOp, GradRowsKernel } from '../table/table.js'
import { fibres } from './reduce.js'

type T = TypedArray
type Slope = (x: number, p0: number, p1: number) => number

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))
const SCALE = Math.sqrt(2 / Math.PI)

const SLOPES: Readonly<Record<GradOp, Slope>> = {
  reluBackward: (y) => (y <= 0 ? 0 : 1),
  tanhBackward: (y) => 1 - y * y,
  sigmoidBackward: (y) => y * (1 - y),
  leakyReluBackward: (x, slope) => (x > 0 ? 1 : slope),
  eluBackward: (x, alpha) => (x <= 0 ? alpha * Math.exp(x) : 1),
  siluBackward: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
  softplusBackward: (x, beta, threshold) => (x * beta > threshold ? 1 : sigmoid(x * beta)),
  geluBackward: (x) => 0.5 * erfc(-x * Math.SQRT1_2) + (x * Math.exp(-0.5 * x * x)) / Math.sqrt(2 * Math.PI),
  geluTanhBackward: (x) => {
    if (Math.abs(x) > 20) return x > 0 ? 1 : 0 // in float32 the cube would overflow
    const s = sigmoid(2 * SCALE * (x + 0.044715 * x ** 3))
    return s + 2 * x * s * (1 - s) * SCALE * (1 + 3 * 0.044715 * x * x)
  },
}

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
