/** The depth of nodes: the distance of an operation from the leaves. */
import { expect, test } from '@jest/globals'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import type { Node } from '../graph/node.js'
import { add, cat, mul, tanh, unbind } from '../index.js'

const depthOf = (x: Tensor): number => (x.gradFn as Node).depth

test('DA-45 the depth of a node is one more than the largest depth of what it was computed from, of a leaf 0', () => {
  const a = ones([2], { requiresGrad: true })
  const b = ones([2], { requiresGrad: true })
  const product = mul(a, b)
  expect(depthOf(product)).toBe(1)
  expect((product.gradFn as Node).nextEdges.map((edge) => edge!.node.depth)).toEqual([0, 0])
  const deep = tanh(tanh(product))
  expect([depthOf(deep), depthOf(add(deep, a)), depthOf(cat([a, product, deep]))]).toEqual([3, 4, 4])
})

test('DA-45 it does not depend on when a node was made, nor on what needs no gradient', () => {
  const a = ones([2], { requiresGrad: true })
  const [one, two] = [tanh(a), tanh(a)]
  const late = [tanh(two), tanh(one)]
  expect(late.map(depthOf)).toEqual([2, 2])
  expect(depthOf(mul(one, tensor([1, 2])))).toBe(2)
  for (const part of unbind(late[0]!)) expect(depthOf(part)).toBe(3)
})

test('DA-45 what is written in place counts as an operation of what was written, and so does the write into its base', () => {
  const a = ones([2, 2], { requiresGrad: true })
  const x = mul(a, 2)
  x.select(0, 0).copy_(tanh(tanh(ones([2], { requiresGrad: true }))))
  expect((x.gradFn as Node).name).toBe('CopySlices')
  expect(depthOf(x)).toBe(4)
})
