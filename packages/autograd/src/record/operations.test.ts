/** All operations become recorded ones, also those that are defined after autograd is loaded. */
import { expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { composite, inPlace, primitive } from '@postgrad/tensor/internal'
import * as F from '../index.js'

const leaf = () => tensor([1, 2, -3], { requiresGrad: true })

test('an operation that comes after autograd is recorded by its row', () => {
  const tripled: (x: Tensor) => Tensor = primitive('tripled', {
    args: ['tensor'],
    raw: (x) => x.detach().mul(3),
    grad: { reads: [], grad: (g, _, ops) => ops.mul(g, 3) },
  })
  const a = leaf()
  const y = tripled(a)
  expect([y.gradFn!.name, tripled.name]).toEqual(['TripledBackward', 'tripled'])
  expect(F.grad(y.sum(), [a])[0]!.toArray()).toEqual([3, 3, 3])
  expect(() => tripled(3 as unknown as Tensor)).toThrow('tripled: expected (tensor), got (3)')
  // It is a method as well.
  expect((a as unknown as { tripled(): Tensor }).tripled().toArray()).toEqual([3, 6, -9])
})

test('a composite that comes after autograd records what it is made of', () => {
  const shifted: (x: Tensor, by: number) => Tensor = composite('shifted', {
    args: ['tensor', 'number'],
    of: (ops) => (x, by) => ops.mul(ops.add(x, by), x),
  })
  const a = leaf()
  expect(F.grad(shifted(a, 1).sum(), [a])[0]!.toArray()).toEqual([3, 5, -5])
})

test('an in-place operation that comes after autograd records its value', () => {
  const squared_: (x: Tensor) => Tensor = inPlace('squared_', {
    args: ['tensor'],
    raw: (x) => x.mul_(x),
    value: (ops) => (x) => ops.mul(x, x),
  })
  const a = leaf()
  const b = a.clone()
  expect(squared_(b)).toBe(b)
  expect(b.toArray()).toEqual([1, 4, 9])
  expect(F.grad(b.sum(), [a])[0]!.toArray()).toEqual([2, 4, -6])
})
