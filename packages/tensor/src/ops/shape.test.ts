import { expect, test } from '@jest/globals'
import { arange, tensor } from '../index.js'

test('flatten folds a range of dimensions, and makes a vector of a scalar', () => {
  const x = arange(0, 24).reshape([2, 3, 4])
  expect(x.flatten().shape).toEqual([24])
  expect(x.flatten(1).shape).toEqual([2, 12])
  expect(x.flatten(0, 1).shape).toEqual([6, 4])
  expect(tensor(3).flatten().shape).toEqual([1])
  // As in PyTorch, where no dimension is folded it is the tensor itself.
  expect(x.flatten(1, 1)).toBe(x)
  expect(() => x.flatten(2, 1)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('split, chunk and unbind give views of all elements in order', () => {
  const x = arange(0, 10).reshape([5, 2])
  expect(x.split(2).map((t) => t.shape)).toEqual([
    [2, 2],
    [2, 2],
    [1, 2],
  ])
  expect(x.split([1, 4]).map((t) => t.toArray())).toEqual([
    [[0, 1]],
    [
      [2, 3],
      [4, 5],
      [6, 7],
      [8, 9],
    ],
  ])
  expect(x.chunk(3).map((t) => t.shape[0])).toEqual([2, 2, 1])
  expect(x.unbind(1).map((t) => t.toArray())).toEqual([
    [0, 2, 4, 6, 8],
    [1, 3, 5, 7, 9],
  ])
  expect(x.split(2)[1]!.storage).toBe(x.storage)
  expect(() => x.split([1, 1])).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  expect(() => x.split(0)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(() => x.chunk(0)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})
