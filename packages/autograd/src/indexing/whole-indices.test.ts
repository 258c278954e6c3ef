/** Rule INDEX of tensor's KERNELS.md: whole numbers in float32 and float64 are indices; every operation that takes indices, with its gradients. */
import { describe, expect, test } from '@jest/globals'
import { arange, type DType, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import * as F from '../index.js'

/** From a table [4, 3] that requires grad, and numbers as indices of a dtype. */
type Use = (x: Tensor, at: (values: readonly number[], shape?: readonly number[]) => Tensor) => Tensor

const USES: Readonly<Record<string, Use>> = {
  indexSelect: (x, at) => F.indexSelect(x, 0, at([3, 0, 3])),
  gather: (x, at) => F.gather(x, 1, at([2, 0], [2, 1])),
  scatter: (x, at) => F.scatter(x, 1, at([2, 0], [2, 1]), ones([2, 1])),
  scatterAdd: (x, at) => F.scatterAdd(x, 1, at([2, 0], [2, 1]), x),
  indexAdd: (x, at) => F.indexAdd(x, 0, at([1, 1, 0, 2]), x),
  indexFill: (x, at) => F.indexFill(x, 0, at([1, 2]), 7),
  index: (x, at) => F.index(x, [at([-1, 0]), at([2, 1])]),
  'index by a number': (x, at) => F.index(x, [at([2], [])]),
  indexPut: (x, at) => F.indexPut(x, [at([0, 3])], ones([3])),
  take: (x, at) => F.take(x, at([11, -1])),
  takeAlongDim: (x, at) => F.takeAlongDim(x, at([2, 1, 0, 0], [4, 1]), 1),
  embedding: (x, at) => F.embedding(x, at([3, 0, 3])),
  'embedding with a padding': (x, at) => F.embedding(x, at([3, 0, 3]), { paddingIdx: 0 }),
  'embeddingBag with offsets': (x, at) => F.embeddingBag(x, at([3, 0, 1]), { offsets: at([0, 2]) }),
  'embeddingBag of maxima': (x, at) => F.embeddingBag(x, at([3, 0, 1, 1], [2, 2]), { mode: 'max', paddingIdx: 1 }),
  repeatInterleave: (x, at) => F.repeatInterleave(x, at([2, 0, 1, 1]), 0),
  nllLoss: (x, at) => F.nllLoss(F.logSoftmax(x, 1), at([0, 2, 1, 1])),
  crossEntropy: (x, at) => F.crossEntropy(x, at([0, 2, 1, 1])),
  'crossEntropy of one row': (x, at) => F.crossEntropy(F.select(x, 0, 1), at([2], [])),
  'crossEntropy that ignores': (x, at) => F.crossEntropy(x, at([0, -100, 1, 1])),
  'crossEntropy with weights and smoothing': (x, at) =>
    F.crossEntropy(x, at([0, 2, 0, 1]), { weight: tensor([1, 2, 3]), labelSmoothing: 0.1, ignoreIndex: 0, reduction: 'none' }),
  'crossEntropy of pixels': (x, at) => F.crossEntropy(x.reshape([2, 3, 2]), at([0, 2, 1, 1], [2, 2])),
}

function outcome(use: Use, dtype: DType): number[][] {
  const x = tensor([
    [0.3, -1.2, 0.7],
    [1.1, 0.4, -0.2],
    [-0.5, 0.9, 1.6],
    [0.8, 0.1, -0.3],
  ]).requiresGrad_()
  const result = use(x, (values, shape = [values.length]) => tensor([...values], { dtype }).reshape(shape))
  result.sum().backward()
  return [[...result.dataSync()], [...x.grad!.dataSync()]]
}

describe('INDEX: whole numbers in a floating dtype are indices', () => {
  test.each(Object.entries(USES))('%s: the same bits as with int32, backward as well', (_, use) => {
    const expected = outcome(use, 'int32')
    expect(outcome(use, 'float32')).toEqual(expected)
    expect(outcome(use, 'float64')).toEqual(expected)
  })

  test.each(Object.entries(USES))('%s: half a number, NaN, bool and what requires grad are refused', (_, use) => {
    const made = (change: (x: Tensor) => Tensor) => () =>
      use(ones([4, 3]).requiresGrad_(), (values, shape = [values.length]) => change(tensor([...values]).reshape(shape)))
    expect(made((x) => x.add(0.5))).toThrow(
      expect.objectContaining({ code: 'DTYPE_MISMATCH', message: expect.stringContaining('whole numbers') }),
    )
    expect(made((x) => x.mul(Number.NaN))).toThrow(expect.objectContaining({ code: 'DTYPE_MISMATCH' }))
    expect(made((x) => x.clone().requiresGrad_())).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('detach()') }),
    )
  })

  test('oneHot too', () => {
    expect(F.oneHot(tensor([1, 0])).toArray()).toEqual(F.oneHot(tensor([1, 0], { dtype: 'int32' })).toArray())
    expect(() => F.oneHot(tensor([0.5]))).toThrow(expect.objectContaining({ code: 'DTYPE_MISMATCH', op: 'oneHot' }))
  })

  test('the place of what is no whole number, and numbers that float32 may have rounded, are named', () => {
    const x = ones([2, 3])
    expect(() => x.indexSelect(0, tensor([0, 0.5]))).toThrow(
      'indexSelect: expected int32 indices, or whole numbers, got float32 with 0.5 at [1]',
    )
    expect(() => x.indexSelect(0, tensor([2 ** 25]))).toThrow(
      expect.objectContaining({ code: 'DTYPE_MISMATCH', remedy: expect.stringContaining("{ dtype: 'int32' }") }),
    )
    expect(() => x.indexSelect(0, arange(3))).toThrow(expect.objectContaining({ code: 'INDEX_OUT_OF_RANGE' }))
  })
})

describe('INDEX: a floating target of crossEntropy', () => {
  const logits = tensor([
    [1, 2, 3],
    [3, 1, 0],
  ])

  test('of the shape of the logits is probabilities, with a dimension less classes', () => {
    const probabilities = F.oneHot(tensor([2, 0]), 3).to('float32')
    expect(F.crossEntropy(logits, tensor([2, 0])).itemSync()).toBeCloseTo(F.crossEntropy(logits, probabilities).itemSync(), 6)
  })

  test('of another shape is refused with both that fit', () => {
    expect(() => F.crossEntropy(logits, tensor([[2], [0]]))).toThrow(
      expect.objectContaining({
        code: 'SHAPE_MISMATCH',
        message: expect.stringContaining("classes of shape [2], or probabilities of the logits' shape [2, 3]"),
        remedy: expect.stringContaining('squeeze(1)'),
      }),
    )
    expect(() => F.crossEntropy(logits, tensor([[2], [0]], { dtype: 'int32' }))).toThrow(
      expect.objectContaining({ code: 'SHAPE_MISMATCH', remedy: expect.stringContaining('squeeze(1)') }),
    )
    expect(() => F.crossEntropy(logits, tensor([0, 1, 2]))).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  })
})

test.each<[string, Parameters<typeof F.crossEntropy>[2]]>([
  ['alone', undefined],
  ['with smoothing', { labelSmoothing: 0.1 }],
  ['with weights', { weight: tensor([1, 2, 3]) }],
  ['with classes to ignore', { ignoreIndex: 0 }],
])('a class out of range is an error of crossEntropy itself, %s', (_, options) => {
  for (const classes of [tensor([0, 3]), tensor([0, 3], { dtype: 'int32' })]) {
    expect(() => F.crossEntropy(zeros([2, 3]), classes, options)).toThrow(
      expect.objectContaining({
        code: 'INDEX_OUT_OF_RANGE',
        op: 'crossEntropy',
        message: expect.stringContaining('from 0 to 2, got 3 at [1]'),
      }),
    )
  }
})
