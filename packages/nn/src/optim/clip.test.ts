/** Clipping, and parameters as a vector. Expected values are PyTorch's rules worked out by hand. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor, zeros } from '@postgrad/tensor'
import { clipGradNorm_, clipGradValue_, parametersToVector, vectorToParameters } from '../index.js'

const values = (t: Tensor) => Array.from(t.dataSync())
const withGrad = (...v: number[]) => {
  const p = zeros([v.length], { requiresGrad: true })
  p.grad = tensor(v)
  return p
}

describe('clipGradNorm_', () => {
  test.each([
    [1, 9],
    [2, Math.sqrt(29)],
    [3, (8 + 64 + 27) ** (1 / 3)],
    [Number.POSITIVE_INFINITY, 4],
  ])('norm type %s', (normType, expected) => {
    const [a, b, empty] = [withGrad(-2, 4), withGrad(3), withGrad()]
    expect(clipGradNorm_([a, b, empty], 1, { normType }).itemSync()).toBeCloseTo(expected, 5)
    const scaled = [...values(a.grad!), ...values(b.grad!)]
    for (const [i, v] of [-2, 4, 3].entries()) expect(scaled[i]).toBeCloseTo(v / expected, 5)
  })

  test('errorIfNonfinite throws before anything is scaled; without it the norm is what it is', () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const [a, b] = [withGrad(8), withGrad(bad)]
      const clip = () => clipGradNorm_([a, b], 1, { errorIfNonfinite: true })
      expect(clip).toThrow(expect.objectContaining({ code: 'GRAD_NOT_FINITE' }))
      expect(values(a.grad!)).toEqual([8])
      expect(clipGradNorm_([a, b], 1).itemSync()).toBe(bad)
    }
  })

  test('refuses a norm type that is none', () => {
    for (const normType of [0, -1, Number.NaN]) {
      expect(() => clipGradNorm_([withGrad(1)], 1, { normType })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    }
  })

  test('one tensor is a list of one; what is no list is refused, and not taken for an empty one', () => {
    const a = withGrad(3, 4)
    expect(clipGradNorm_(a, 1).itemSync()).toBe(5)
    expect(values(a.grad!)[1]).toBeCloseTo(0.8, 5)
    const uncalled = (() => [a]) as unknown as Tensor[]
    expect(() => clipGradNorm_(uncalled, 1)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    expect(() => clipGradValue_(uncalled, 1)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  test('refuses a bound that is none: the gradients would be NaN, or turned around', () => {
    const a = withGrad(3, 4)
    for (const bound of [Number.NaN, -1]) {
      expect(() => clipGradNorm_([a], bound)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    }
    expect(values(a.grad!)).toEqual([3, 4])
  })

  test('nothing but gradients without elements: 0', () => {
    for (const normType of [1, 2, Number.POSITIVE_INFINITY]) expect(clipGradNorm_([withGrad()], 1, { normType }).itemSync()).toBe(0)
  })
})

test('clipGradValue_ clamps in place, of .grad or of a map', () => {
  const a = withGrad(-3, 0.5, 7, Number.NaN)
  const before = a.grad!.storage
  clipGradValue_([a, zeros([1], { requiresGrad: true })], 2)
  expect([values(a.grad!), a.grad!.storage === before]).toEqual([[-2, 0.5, 2, Number.NaN], true])
  const grads = new Map([[a, tensor([9, -9, 0, 1])]])
  clipGradValue_([a], 1, { grads })
  expect([values(grads.get(a)!), values(a.grad!)]).toEqual([
    [1, -1, 0, 1],
    [-2, 0.5, 2, Number.NaN],
  ])
  expect(() => clipGradValue_([a], -1)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

describe('parameters as a vector', () => {
  const parameters = () => [tensor([[1, 2]], { requiresGrad: true }), tensor(3, { requiresGrad: true }), tensor([4, 5])]

  test('there and back, by value', () => {
    const vector = parametersToVector(parameters())
    expect(values(vector)).toEqual([1, 2, 3, 4, 5])
    const others = parameters().map((p) => tensor(p.mul(0).toArray(), { requiresGrad: true }))
    vectorToParameters(vector, others)
    expect(others.map(values)).toEqual([[1, 2], [3], [4, 5]])
    expect(others.every((p) => p.isLeaf && p.storage !== vector.storage)).toBe(true)
  })

  test('is recorded: gradients go through it', () => {
    const [a, b, c] = parameters()
    parametersToVector([a!, b!, c!])
      .mul(tensor([1, 2, 3, 4, 5]))
      .sum()
      .backward()
    expect([a!.grad!.toArray(), b!.grad!.itemSync()]).toEqual([[[1, 2]], 3])
  })

  test('a vector of another length changes nothing', () => {
    const all = parameters()
    for (const bad of [zeros([4]), zeros([6]), zeros([1, 5])]) {
      expect(() => vectorToParameters(bad, all)).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
    }
    expect(all.map(values)).toEqual([[1, 2], [3], [4, 5]])
    expect(() => parametersToVector([])).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })
})
