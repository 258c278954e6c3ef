/** A small convolutional network trained for ten steps, as PyTorch trains it (`scripts/golden/cnn.py`), and its parts' own state. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { Generator, ones, randn, type Tensor, tensor, zeros } from '@postgrad/tensor'
import * as F from '../index.js'

interface Values {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}
const golden = JSON.parse(readFileSync(new URL('../../golden/cnn.json', import.meta.url), 'utf8')) as {
  readonly start: Readonly<Record<'w1' | 'b1' | 'gain' | 'shift' | 'w2' | 'b2' | 'w3' | 'b3', Values>>
  readonly x: Values
  readonly target: readonly number[]
  readonly losses: readonly number[]
  readonly mean: Values
  readonly variance: Values
  readonly scores: Values
}
const make = ({ shape, values }: Values, dtype: 'float32' | 'float64') =>
  tensor(Float64Array.from(values)).to(dtype).reshape(shape).detach()

function expectClose(got: Tensor, want: readonly number[], tolerance: number): void {
  got.dataSync().forEach((value, i) => {
    expect(Math.abs(value - want[i]!)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(want[i]!)))
  })
}

test.each([
  ['float64', 1e-11],
  ['float32', 2e-4],
] as const)('ten steps in %s', (dtype, tolerance) => {
  const p = Object.fromEntries(Object.entries(golden.start).map(([name, values]) => [name, make(values, dtype).requiresGrad_()]))
  const velocities = new Map(Object.values(p).map((one) => [one, zeros(one.shape, { dtype })]))
  const [mean, variance] = [zeros([3], { dtype }), ones([3], { dtype })]
  const [x, target] = [make(golden.x, dtype), tensor(Int32Array.from(golden.target))]
  const forward = (training: boolean): Tensor => {
    const first = F.batchNorm(F.conv2d(x, p.w1!, p.b1, { padding: 1 }), mean, variance, p.gain, p.shift, { training })
    const second = F.conv2d(F.maxPool2d(first.relu(), 2), p.w2!, p.b2, { padding: 'same' })
    return F.linear(F.avgPool2d(second.relu(), 2).flatten(1), p.w3!, p.b3)
  }
  for (const want of golden.losses) {
    const loss = F.crossEntropy(forward(true), target)
    loss.backward()
    F.noGrad(() => {
      for (const [one, velocity] of velocities) {
        velocity.mul_(0.9).add_(one.grad!)
        one.add_(velocity, -0.2)
        one.grad = null
      }
    })
    expectClose(loss, [want], tolerance)
  }
  expectClose(mean, golden.mean.values, tolerance)
  expectClose(variance, golden.variance.values, tolerance)
  expectClose(forward(false), golden.scores.values, 10 * tolerance)
})

test('running statistics are changed in training alone, and are no part of the graph', () => {
  const [mean, variance] = [zeros([2]), ones([2])]
  const x = tensor([1, 2, 3, 6], { requiresGrad: true }).reshape([2, 2])
  F.batchNorm(x, mean, variance)
  expect([mean.toArray(), variance.toArray()]).toEqual([
    [0, 0],
    [1, 1],
  ])
  F.batchNorm(x, mean, variance, null, null, { training: true, momentum: 0.5 })
  // The mean of 1, 3 and of 2, 6; the unbiased variances 2 and 8.
  expect([mean.toArray(), variance.toArray()]).toEqual([
    [1, 2],
    [1.5, 4.5],
  ])
  expect([mean.requiresGrad, variance.requiresGrad]).toEqual([false, false])
  const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error
  expect(() => F.batchNorm(x.narrow(0, 0, 1), mean, variance, null, null, { training: true })).toThrow(refused('SHAPE_MISMATCH'))
  expect(() => F.batchNorm(x)).toThrow(refused('INVALID_ARGUMENT'))
})

test('dropout draws from its generator and scales what it keeps', () => {
  const draw = (seed: number) => F.dropout(ones([1000]), 0.25, { generator: new Generator(seed) })
  const values = [...draw(3).dataSync()]
  expect(new Set(values)).toEqual(new Set([0, Math.fround(1 / 0.75)]))
  expect(values.filter((v) => v === 0).length).toBeGreaterThan(180)
  expect(values.filter((v) => v === 0).length).toBeLessThan(320)
  expect([...draw(3).dataSync()]).toEqual(values)
  expect([...draw(4).dataSync()]).not.toEqual(values)
  expect(() => F.dropout(ones([2]), 1.5)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('what does not fit is said in the words of the layer', () => {
  const refused = (code: string, text: string) =>
    expect.objectContaining({ code, message: expect.stringContaining(text) }) as unknown as Error
  const x = ones([1, 4, 5, 5])
  expect(() => F.conv2d(x, ones([2, 3, 3, 3]))).toThrow(refused('SHAPE_MISMATCH', '[O, 4, kH, kW]'))
  expect(() => F.conv2d(x, ones([2, 2, 3, 3]), null, { groups: 3 })).toThrow(refused('INVALID_ARGUMENT', 'groups'))
  expect(() => F.conv2d(x, ones([2, 4, 6, 6]))).toThrow(refused('SHAPE_MISMATCH', '6 × 6'))
  expect(() => F.conv2d(x, ones([2, 4, 3, 3]), ones([3]))).toThrow(refused('SHAPE_MISMATCH', 'bias [2]'))
  expect(() => F.conv2d(x, ones([2, 4, 3, 3]), null, { padding: 'same', stride: 2 })).toThrow(refused('INVALID_ARGUMENT', "padding 'same'"))
  expect(() => F.conv1d(x, ones([2, 4, 3]))).toThrow(refused('SHAPE_MISMATCH', '[N, C, L]'))
  expect(() => F.convTranspose2d(x, ones([4, 2, 3, 3]), null, { outputPadding: 1 })).toThrow(refused('INVALID_ARGUMENT', 'outputPadding'))
  expect(() => F.maxPool2d(x, 2, { padding: 2 })).toThrow(refused('INVALID_ARGUMENT', 'half the kernel'))
  expect(() => F.avgPool2d(x, 7)).toThrow(refused('SHAPE_MISMATCH', '7 × 7'))
  expect(() => F.layerNorm(x, [4])).toThrow(refused('SHAPE_MISMATCH', '[…, 4]'))
  expect(() => F.groupNorm(x, 3)).toThrow(refused('INVALID_ARGUMENT', '3 groups'))
  expect(() => F.mseLoss(x, ones([4]))).toThrow(refused('SHAPE_MISMATCH', "input's shape"))
  expect(() => F.crossEntropy(ones([2, 3]), tensor(Int32Array.of(0, 3)))).toThrow(refused('INDEX_OUT_OF_RANGE', '3'))
  expect(() => F.crossEntropy(ones([2, 3]), tensor(Int32Array.of(0)))).toThrow(refused('SHAPE_MISMATCH', '[N, C]'))
})

test('CONV a gradient that repeats one element, as that of a sum, gives what its dense copy gives, also when it is differentiated again', () => {
  const random = new Generator(35)
  const leaf = (shape: readonly number[]): Tensor => randn(shape, { generator: random, requiresGrad: true })
  const leaves = [leaf([3, 4, 10, 10]), leaf([6, 2, 3, 3]), leaf([6])] as const
  const [x, weight, bias] = leaves
  const y = F.conv2d(x, weight, bias, { padding: 1, stride: 2, groups: 2 })
  const single = tensor(0.75, { requiresGrad: true })
  const results = [single.expand(y.shape), single.expand(y.shape).contiguous()].map((gradOutput) => {
    const first = F.grad(y, leaves, { gradOutputs: [gradOutput], createGraph: true }) as Tensor[]
    const loss = first.reduce((total, g) => total.add(g.square().sum()), zeros([]))
    return [...first, ...(F.grad(loss, [x, weight, single]) as Tensor[])].map((g) => [...g.dataSync()])
  })
  expect(results[0]).toEqual(results[1])
  // Each channel has 3 · 5 · 5 places.
  expect(results[0]![2]).toEqual(Array.from({ length: 6 }, () => 75 * 0.75))
})
