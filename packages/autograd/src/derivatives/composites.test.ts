/**
 * Composites of element-wise and reducing operations against finite differences, first and second derivative: they have no row, so
 * `derivatives.test.ts` does not test them. Also derivatives with a kernel: the composition that replaces one under createGraph computes the
 * same.
 */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { rawOperations } from '@postgrad/tensor/internal'
import { derivative } from '@postgrad/tensor/suite'
import * as F from '../index.js'
import { operations } from '../internal.js'

/** Irregular values in (−2, 2), none twice, none near a kink: multiples of the golden section. */
function irregular(shape: readonly number[], from = 0): Tensor {
  const size = shape.reduce((n, extent) => n * extent, 1)
  const values = Float64Array.from({ length: size }, (_, i) => ((((i + 1 + from) * 0.6180339887498949) % 1) - 0.5) * 4)
  return tensor(values).reshape(shape)
}

type Case = (a: Tensor, b: Tensor, c: Tensor) => Tensor | readonly Tensor[]

const COMPOSITES: Readonly<Record<string, Case>> = {
  hardtanh: (a) => F.hardtanh(a, -0.9, 1.1),
  relu6: (a) => F.relu6(a.mul(4)),
  logSigmoid: (a) => F.logSigmoid(a),
  mish: (a) => F.mish(a),
  softsign: (a) => F.softsign(a),
  tanhshrink: (a) => F.tanhshrink(a),
  nanToNum: (a) => F.nanToNum(F.where(tensor([false, true, false]), Number.NaN, a.mul(a)), { nan: 3 }),
  lerp: (a, b, c) => F.lerp(a, b, c),
  'lerp by a number': (a, b) => F.lerp(a, b, 0.7),
  addcmul: (a, b, c) => F.addcmul(a, b, c, { value: 0.3 }),
  addcdiv: (a, b, c) => F.addcdiv(a, b, c.abs().add(0.5), { value: -2 }),
  cdist: (a, b) => F.cdist(a, b),
  'cdist with p 3': (a, b) => F.cdist(a, b, 3),
  varMean: (a) => F.varMean(a, 1, true),
  'max of all': (a) => F.max(a),
  'max along a dimension': (a) => F.max(a.mul(a), 1).values,
  'min along a dimension': (a) => F.min(a.mul(a), 0, true).values,
  sort: (a) => F.sort(a.mul(a), 1, { descending: true }).values,
  topk: (a) => F.topk(a.mul(a), 2, 0).values,
  'div rounded': (a, b) => F.div(a, b.abs().add(0.5), { roundingMode: 'floor' }).add(a.mul(b)),
}

test.each(Object.entries(COMPOSITES))('%s', (_, fn) => {
  const inputs = [irregular([2, 3]), irregular([2, 3], 10), irregular([2, 3], 20)].map((x) => x.requiresGrad_()) as [Tensor, Tensor, Tensor]
  // The second and third count even where the composite does not read them.
  const whole = (a: Tensor, b: Tensor, c: Tensor) => [fn(a, b, c)].flat().map((y) => y.add(b.mul(c).sum().mul(0.1)))
  expect(F.gradcheck(whole, inputs)).toBe(true)
  expect(F.gradgradcheck(whole, inputs)).toBe(true)
})

describe('a composed derivative is what its kernel computes', () => {
  const [g, x] = [irregular([3, 4]), irregular([3, 4], 30)]
  const probabilities = rawOperations.softmax(x, 1)
  const zeros = rawOperations.mul(x, tensor([1, 0, 1, 1], { dtype: 'float64' }))
  const CALLS: Readonly<Record<string, (ops: typeof operations) => Tensor>> = {
    reluBackward: (ops) => derivative('relu', ops)(g, x),
    tanhBackward: (ops) => derivative('tanh', ops)(g, x),
    sigmoidBackward: (ops) => derivative('sigmoid', ops)(g, x),
    leakyReluBackward: (ops) => derivative('leakyRelu', ops)(g, x, 0.2),
    eluBackward: (ops) => derivative('elu', ops)(g, x, 0.7),
    siluBackward: (ops) => derivative('silu', ops)(g, x),
    geluBackward: (ops) => derivative('gelu', ops)(g, x),
    'geluBackward, tanh': (ops) => derivative('gelu', ops)(g, x, { approximate: 'tanh' }),
    softplusBackward: (ops) => derivative('softplus', ops)(g, x, { beta: 2, threshold: 1 }),
    softmaxBackward: (ops) => derivative('softmax', ops)(g, probabilities, 1),
    'softmaxBackward, another dimension': (ops) => derivative('softmax', ops)(g, probabilities, 0),
    logSoftmaxBackward: (ops) => derivative('logSoftmax', ops)(g, rawOperations.log(probabilities), 1),
    prodBackward: (ops) => derivative('prod', ops)(g.select(1, 0), zeros, 1),
    'prodBackward of all': (ops) => derivative('prod', ops)(g.select(1, 0).select(0, 0), x),
    cumprodBackward: (ops) => derivative('cumprod', ops)(g, zeros, 1),
    'cumprodBackward, another dimension': (ops) => derivative('cumprod', ops)(g, zeros, 0),
  }
  test.each(Object.entries(CALLS))('%s', (_, call) => {
    const [composed, fused] = [call(operations), call(rawOperations)]
    expect(composed.shape).toEqual(fused.shape)
    expect(F.allclose(composed, fused, { rtol: 1e-12, atol: 1e-14 })).toBe(true)
  })
})
