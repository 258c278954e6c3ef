/** Gradients as sparse rows: embeddings make them, they add up, and operations that do not support them refuse them. */
import { expect, test } from '@jest/globals'
import { coalesce, ones, SparseTensor, type Tensor, tensor, toDense } from '@postgrad/tensor'
import * as F from '../index.js'

const ints = (...values: number[]) => tensor(Int32Array.from(values))
const table = () =>
  tensor(Float64Array.from({ length: 8 }, (_, i) => i))
    .reshape([4, 2])
    .detach()
    .requiresGrad_()
const lossOf = (w: Tensor, sparse: boolean, ...at: number[]) =>
  F.embedding(w, ints(...at), { sparse })
    .pow(2)
    .sum()

test('an embedding gives sparse rows, which are the dense gradient', () => {
  const [w, dense] = [table(), table()]
  lossOf(w, true, 1, 3, 1).backward()
  lossOf(dense, false, 1, 3, 1).backward()
  const grad = w.grad as SparseTensor
  expect([grad.isSparse, grad.shape, grad.nnz, grad.isCoalesced]).toEqual([true, [4, 2], 3, false])
  expect(toDense(grad).toArray()).toEqual(dense.grad!.toArray())
  const joined = coalesce(grad)
  expect([joined.indices().toArray(), joined.isCoalesced]).toEqual([[1, 3], true])
  expect(toDense(joined).toArray()).toEqual(dense.grad!.toArray())
  expect(toDense(dense.grad!)).toBe(dense.grad)
})

test('sparse and sparse, sparse and dense add up, within a pass and over passes', () => {
  const sum = (first: boolean, second: boolean) => {
    const w = table()
    lossOf(w, first, 1, 3)
      .add(lossOf(w, second, 3))
      .backward()
    lossOf(w, first, 0).backward()
    return w.grad!
  }
  const expected = sum(false, false)
  expect(sum(true, true).isSparse).toBe(true)
  for (const [a, b] of [
    [true, true],
    [true, false],
    [false, true],
  ] as const) {
    const grad = sum(a, b)
    if (!(a && b)) expect(grad.isSparse).toBe(false)
    expect(toDense(grad).toArray()).toEqual(expected.toArray())
  }
})

test('what the padding index names is left out; under createGraph the gradient is dense', () => {
  const w = table()
  const [grad] = F.grad(F.embedding(w, ints(2, 1, 2), { sparse: true, paddingIdx: 2 }).sum(), [w])
  expect((grad as SparseTensor).indices().toArray()).toEqual([1])
  const [second] = F.grad(lossOf(w, true, 1, 1), [w], { createGraph: true })
  expect([second!.isSparse, second!.requiresGrad]).toEqual([false, true])
})

test('elements that it does not have are refused, with the remedy', () => {
  const w = table()
  lossOf(w, true, 1).backward()
  const refusal = expect.objectContaining({ code: 'SPARSE_TENSOR', remedy: expect.stringContaining('toDense()') }) as unknown as Error
  expect(() => w.grad!.add(1)).toThrow(refusal)
  expect(() => w.grad!.toArray()).toThrow(refusal)
  expect(() => ones([4, 2], { dtype: 'float64' }).add_(w.grad!)).toThrow(refusal)
  expect(String(w.grad)).toContain('sparse')
  expect(() => new SparseTensor(ints(0, 1), ones([3, 2]), [4, 2])).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  expect(() => new SparseTensor(ints(4), ones([1, 2]), [4, 2])).toThrow(expect.objectContaining({ code: 'INDEX_OUT_OF_RANGE' }))
})

test('bags of rows give sparse gradients, too, and say what does not fit', () => {
  const w = table()
  F.embeddingBag(w, ints(1, 3, 3), { offsets: ints(0, 1), sparse: true })
    .sum()
    .backward()
  expect(toDense(w.grad!).toArray()).toEqual([
    [0, 0],
    [1, 1],
    [0, 0],
    [1, 1],
  ])
  const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error
  expect(() => F.embeddingBag(w, ints(1, 3), { offsets: ints(0, 9) })).toThrow(refused('INVALID_ARGUMENT'))
  expect(() => F.embeddingBag(w, ints(1, 3))).toThrow(refused('SHAPE_MISMATCH'))
  expect(() => F.embedding(w, ints(1), { paddingIdx: 4 })).toThrow(refused('INVALID_ARGUMENT'))
})
