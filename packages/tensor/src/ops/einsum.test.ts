/** `parts/einsum.ts` remembers equations, and no result shows it. Other tests compare the values with PyTorch's. */
import { expect, test } from '@jest/globals'
import { ones, type Tensor, tensor } from '../index.js'
import { einsum } from './all.js'

test('an equation that was read for operands of other dimensions is read again', () => {
  const shapes = [[3], [2, 3], [4, 2, 3], [3]]
  for (const shape of shapes) {
    const x = ones(shape)
    expect(einsum('...i->...', x).toArray()).toEqual(x.sum(-1).toArray())
    expect(einsum('...i,...i', x, x).toArray()).toEqual(x.sum(-1).toArray())
  }
})

test('an equation that was read before is refused for operands that do not fit it', () => {
  const x = tensor([[1, 2]])
  expect(einsum('ij->ji', x).toArray()).toEqual([[1], [2]])
  for (const wrong of [[ones([2])], [ones([2, 2, 2])], [x, x], [], [null as unknown as Tensor], [{ ndim: 2 } as Tensor]])
    expect(() => einsum('ij->ji', ...wrong)).toThrow(/^einsum: expected /)
  expect(einsum('ij->ji', x).toArray()).toEqual([[1], [2]])
})
