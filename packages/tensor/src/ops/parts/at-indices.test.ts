/** In-place writes at indices: the values of the form that makes a copy, also where tensors share their elements, and nothing where they fail. */
import { expect, test } from '@jest/globals'
import { tensor } from '../../index.js'
import type { Tensor } from '../../tensor/tensor.js'

const index = tensor([1, 1, 0], { dtype: 'int32' })
const list = (x: Tensor) => [...x.contiguous().dataSync()]

test.each([
  ['scatterAdd', (x: Tensor, src: Tensor) => x.scatterAdd(0, index, src), (x: Tensor, src: Tensor) => x.scatterAdd_(0, index, src)],
  ['indexAdd', (x: Tensor, src: Tensor) => x.indexAdd(0, index, src), (x: Tensor, src: Tensor) => x.indexAdd_(0, index, src)],
  ['scatter', (x: Tensor, src: Tensor) => x.scatter(0, index, src), (x: Tensor, src: Tensor) => x.scatter_(0, index, src)],
] as const)('%s: apart, of itself, of a view of itself, and with gaps', (_, copy, write) => {
  const x = () => tensor([1, 2, 4])
  const apart = x()
  expect(write(apart, tensor([10, 20, 30]))).toBe(apart)
  expect(list(apart)).toEqual(list(copy(x(), tensor([10, 20, 30]))))
  const itself = x()
  write(itself, itself)
  expect(list(itself)).toEqual(list(copy(x(), x())))
  const whole = tensor([1, 2, 4, 8])
  write(whole.narrow(0, 0, 3), whole.narrow(0, 1, 3))
  expect(list(whole)).toEqual([...list(copy(x(), tensor([2, 4, 8]))), 8])
  const wide = tensor([
    [1, -1],
    [2, -2],
    [4, -4],
  ])
  write(wide.select(1, 0), tensor([10, 20, 30]))
  expect(list(wide.select(1, 0))).toEqual(list(copy(x(), tensor([10, 20, 30]))))
  expect(list(wide.select(1, 1))).toEqual([-1, -2, -4])
})

test('an index that lies in what is written', () => {
  const x = tensor([1, 0, 2], { dtype: 'int32' })
  x.scatterAdd_(0, x, tensor([5, 6, 7], { dtype: 'int32' }))
  expect(list(x)).toEqual([7, 5, 9])
})

test('part of x, a number, and an index out of range, which writes nothing', () => {
  const x = tensor([
    [1, 2],
    [3, 4],
  ])
  const { version } = x.storage
  x.scatterAdd_(1, tensor([[1]], { dtype: 'int32' }), tensor([[10]]))
  expect(list(x)).toEqual([1, 12, 3, 4])
  expect(x.storage.version).toBe(version + 1)
  x.scatter_(0, tensor([[1, 0]], { dtype: 'int32' }), 9)
  expect(list(x)).toEqual([1, 9, 9, 4])
  const wrong = tensor([0, 2], { dtype: 'int32' })
  expect(() => x.indexAdd_(0, wrong, tensor([[1, 1], [1, 1]]))).toThrow(expect.objectContaining({ code: 'INDEX_OUT_OF_RANGE' })) // biome-ignore format: one line
  expect(list(x)).toEqual([1, 9, 9, 4])
})
