/** Probabilities of the js backend: softmax, its logarithm and their derivatives, in double precision, and the loss that reads one class for each row. */
import type { TypedArray } from '../../values/dtype.js'
import type { ClassLoss, ClassLossBackward, GradRows, Nll, NllBackward, Rows } from '../table/operands.js'
import { REAL_LOSS, REAL_MEAN, real } from './cells.js'
import { fibres, firstBest, greater } from './reduce.js'

/** exp(x − max) / Σ exp(x − max), or its logarithm x − max − log Σ exp(x − max). */
const softmax =
  (logarithm: boolean): Rows =>
  (x, out, outer, k, inner) => {
    if (k === 0) return
    const [xs, to] = [x.storage.host!, out.storage.host!]
    fibres(outer, k, inner, (at) => {
      const from = x.offset + at
      const max = xs[from + firstBest(greater, xs, from, k, inner) * inner]!
      let total = 0
      for (let j = 0; j < k; j++) total += Math.exp(xs[from + j * inner]! - max)
      for (let j = 0; j < k; j++) {
        const shifted = xs[from + j * inner]! - max
        to[out.offset + at + j * inner] = logarithm ? shifted - Math.log(total) : Math.exp(shifted) / total
      }
    })
  }

/** `sum` is that of what `term` gives of each gradient and result along the row, from which `of` makes the gradient of an argument. */
const softmaxGradient =
  (term: (g: number, y: number) => number, of: (g: number, y: number, sum: number) => number): GradRows =>
  (grad, y, out, outer, k, inner) => {
    const [g, ys, to] = [grad.storage.host!, y.storage.host!, out.storage.host!]
    fibres(outer, k, inner, (at) => {
      let sum = 0
      for (let j = 0; j < k; j++) sum += term(g[grad.offset + at + j * inner]!, ys[y.offset + at + j * inner]!)
      for (let j = 0; j < k; j++) {
        const here = at + j * inner
        to[out.offset + here] = of(g[grad.offset + here]!, ys[y.offset + here]!, sum)
      }
    })
  }

const softmaxBackward = softmaxGradient(
  (g, y) => g * y,
  (g, y, sum) => y * (g - sum),
)
const logSoftmaxBackward = softmaxGradient(
  (g) => g,
  (g, y, sum) => g - Math.exp(y) * sum,
)

const nll: Nll = (x, target, out) => {
  const [from, at, to] = [x.storage.host!, target.storage.host!, out.storage.host!]
  const classes = x.shape[1]!
  for (let i = 0; i < target.numel; i++) to[out.offset + i] = -from[x.offset + i * classes + at[target.offset + i]!]!
}

const nllBackward: NllBackward = (grad, target, out) => {
  const [g, at, to] = [grad.storage.host!, target.storage.host!, out.storage.host!]
  const [n, classes] = out.shape as readonly [number, number]
  const step = grad.numel === 1 ? 0 : 1
  to.fill(0, out.offset, out.offset + out.numel)
  for (let i = 0; i < n; i++) to[out.offset + i * classes + at[target.offset + i]!] = -g[grad.offset + i * step]!
}

/** The greatest of a row, and the sum of exponentials of the distances from it. */
function momentsOf(x: TypedArray, from: number, k: number): readonly [max: number, total: number] {
  const max = x[from + firstBest(greater, x, from, k, 1)]!
  let total = 0
  for (let j = from; j < from + k; j++) total += Math.exp(x[j]! - max)
  return [max, total]
}

const classLoss: ClassLoss = (x, target, out) => {
  const [from, at, to] = [x.storage.host!, target.storage.host!, out.storage.host!]
  const classes = x.shape[1]!
  for (let i = 0; i < target.numel; i++) {
    const row = x.offset + i * classes
    const [max, total] = momentsOf(from, row, classes)
    to[out.offset + i] = -(from[row + at[target.offset + i]!]! - max - Math.log(total))
  }
}

const classLossBackward: ClassLossBackward = (grad, x, target, out) => {
  const [g, from, at, to] = [grad.storage.host!, x.storage.host!, target.storage.host!, out.storage.host!]
  const [n, classes] = out.shape as readonly [number, number]
  const step = grad.numel === 1 ? 0 : 1
  for (let i = 0; i < n; i++) {
    const row = x.offset + i * classes
    const [max, total] = momentsOf(from, row, classes)
    const slope = g[grad.offset + i * step]!
    const right = at[target.offset + i]!
    for (let j = 0; j < classes; j++) {
      to[out.offset + i * classes + j] = slope * (Math.exp(from[row + j]! - max) / total) - (j === right ? slope : 0)
    }
  }
}

export const cells = {
  softmax: real(softmax(false), REAL_LOSS, REAL_LOSS),
  logSoftmax: real(softmax(true), REAL_LOSS, REAL_LOSS),
  softmaxBackward: real(softmaxBackward, REAL_MEAN, REAL_MEAN),
  logSoftmaxBackward: real(logSoftmaxBackward, REAL_MEAN, REAL_MEAN),
  nll: real(nll, REAL_LOSS, REAL_LOSS),
  nllBackward: real(nllBackward, REAL_LOSS, REAL_LOSS),
  classLoss: real(classLoss, REAL_LOSS, REAL_LOSS),
  classLossBackward: real(classLossBackward, REAL_LOSS, REAL_LOSS),
}
