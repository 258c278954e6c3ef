/** The derivatives of operations at indices against finite differences in float64, first and second. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { gpujsDevice } from '@postgrad/tensor/suite'
import { type Case, c, inputs, ints } from '../derivatives/cases.fixture.js'
import * as F from '../index.js'
import { operations } from '../internal.js'

type AnyCase = Case<Tensor | readonly Tensor[]>

const CASES: Readonly<Record<string, readonly AnyCase[]>> = {
  indexSelect: [
    c('3,2', (x) => F.indexSelect(x, 0, ints([2, 0, 2]))),
    c('2,3', (x) => F.indexSelect(x.T, -1, ints([1]))),
    c('2,3,2', (x) => F.indexSelect(x, 1, ints([1, 1, 0]))),
    c('scalar', (x) => F.indexSelect(x, 0, ints([0]))),
  ],
  gather: [
    c('2,3', (x) => F.gather(x, 1, ints([2, 0, 0, 1], [2, 2]))),
    c('3,2', (x) => F.gather(x, 0, ints([2, 0], [2, 1]))),
    c('2,2', (x) => F.gather(x.T, 0, ints([1, 0, 1, 1], [2, 2]))),
    c('scalar', (x) => F.gather(x, 0, ints([0], []))),
  ],
  indexAdd: [
    c('3,2; 2,2', (x, y) => F.indexAdd(x, 0, ints([2, 2]), y)),
    c('2,3; 2,4', (x, y) => F.indexAdd(x, 1, ints([0, 2, 2, 1]), y)),
    c('2; 1', (x, y) => F.indexAdd(x, 0, ints([1]), y)),
  ],
  scatterAdd: [
    c('3,2; 2,2', (x, y) => F.scatterAdd(x, 0, ints([2, 0, 2, 1], [2, 2]), y)),
    c('2,3; 2,4', (x, y) => F.scatterAdd(x, 1, ints([0, 2, 2, 1], [1, 4]), y)),
    c('2,2; 3,3', (x, y) => F.scatterAdd(x.T, 0, ints([1, 1], [1, 2]), y)),
  ],
  scatter: [
    c('3,2; 2,2', (x, y) => F.scatter(x, 0, ints([2, 0, 1, 1], [2, 2]), y)),
    c('2,3; 2,3', (x, y) => F.scatter(x, 1, ints([0, 2], [1, 2]), y)),
    c('2,3', (x) => F.scatter(x, 1, ints([0, 2], [2, 1]), 0.5)),
    // Several writes to one place: the gradient is the last one's.
    c('3,2; 3,2', (x, y) => F.scatter(x, 0, ints([2, 0, 2, 1, 2, 1], [3, 2]), y)),
    c('2,3; 2,4', (x, y) => F.scatter(x, -1, ints([0, 2, 0, 2, 2], [1, 5]).narrow(1, 0, 4), y.mul(y))),
    c('2,2; 3,3', (x, y) => F.scatter(x.T, 1, ints([1, 1, 1, 0, 0, 1], [2, 3]), y)),
    c('2; 2', (x, y) => F.scatter(x, 0, tensor([1, 1]), y)),
    c('scalar; scalar', (x, y) => F.scatter(x, 0, ints([0], []), y)),
  ],
  constantPad: [
    c('2,3', (x) => F.pad(x, [1, 2])),
    c('2,3', (x) => F.pad(x, [0, -1, 2, 0], { value: 3 })),
    c('2,3', (x) => F.pad(x.T, [-1, 1, -1, -1])),
  ],
}

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  test.each(cases.map((each, i) => [i, each] as const))('case %d', (_i, each) => {
    expect(F.gradcheck(each.fn, inputs(each))).toBe(true)
    expect(F.gradgradcheck(each.fn, inputs(each))).toBe(true)
  })
})

describe('composites are differentiable twice', () => {
  const mask = tensor([true, false, true])
  test.each<[string, AnyCase]>([
    ['index', c('3,4', (x) => x.index(ints([2, 0, 2]), '1::2').mul(2))],
    ['index, apart', c('2,3,2', (x) => x.index(ints([1, 0]), ':', ints([1, 1])))],
    ['index by mask', c('2,3', (x) => x.index('...', mask))],
    ['indexPut', c('2,3; 2', (x, v) => x.indexPut(['1:', ints([2, 0])], v))],
    ['indexPut, several values for one place', c('2,3; 4', (x, v) => x.indexPut(['1:', ints([2, 0, 2, 2])], v.mul(v)))],
    ['indexPut, pairs of indices', c('3,3; 3', (x, v) => x.indexPut([ints([2, 0, 2]), ints([1, 1, 1])], v))],
    ['indexPut, one value for all', c('3; scalar', (x, v) => x.indexPut([ints([1, 1, 0])], v))],
    ['indexPut_', c('3; 3', (x, v) => x.mul(1).indexPut_([ints([1, 1, 0])], v))],
    [
      'scatter_ into a view',
      c('2,3; 3', (x, v) =>
        x
          .mul(2)
          .select(0, 1)
          .scatter_(0, ints([1, 1, 0]), v)
          .mul(x),
      ),
    ],
    ['scatterAdd_', c('3; 3', (x, v) => x.mul(1).scatterAdd_(0, ints([1, 1, 0]), v.mul(v)))],
    ['indexAdd_', c('3; 3', (x, v) => x.mul(1).indexAdd_(0, ints([1, 1, 0]), v.mul(v)))],
    ['indexFill, a place twice', c('3,2; scalar', (x, v) => x.indexFill(0, ints([1, 1]), v.mul(v)))],
    ['indexFill_', c('3; scalar', (x, v) => x.mul(1).indexFill_(0, ints([1, 1]), v))],
    ['indexPut, adding', c('3; 3', (x, v) => x.indexPut([ints([1, 1, 0])], v, true))],
    ['maskedFill', c('2,3; scalar', (x, v) => x.maskedFill(mask, v))],
    ['maskedSelect', c('2,3', (x) => x.maskedSelect(mask).mul(x.sum()))],
    ['take', c('2,3', (x) => x.take(ints([-1, 0, 0])))],
    ['takeAlongDim', c('2,3', (x) => x.takeAlongDim(ints([1, 0, 1]).reshape([1, 3]), 0))],
    ['indexFill', c('3,2; scalar', (x, v) => x.indexFill(0, ints([1]), v))],
    ['diagEmbed', c('2,2', (x) => x.diagEmbed(1, 0, 2))],
    ['repeat', c('2,2', (x) => x.repeat([2, 1, 3]).mul(x.sum()))],
    ['repeatInterleave', c('2,2', (x) => x.repeatInterleave(ints([2, 0]), 1))],
    ['roll', c('2,3', (x) => x.roll([1, -1], [0, 1]).mul(x))],
    ['pad, reflect', c('2,3', (x) => F.pad(x, [2, 1], { mode: 'reflect' }))],
    ['einsum', c('2,3; 3,2; 2', (a, b, d) => F.einsum('ij,jk,k->i', a, b, d))],
    ['einsum, diagonal', c('2,2,3; 3', (a, b) => F.einsum('iij,j->ij', [a, b]))],
    [
      'tensordot',
      c('2,3; 3,2', (a, b) =>
        F.tensordot(a, b, [
          [0, 1],
          [1, 0],
        ]),
      ),
    ],
    ['addmm', c('2; 2,3; 3,2', (x, a, b) => x.addmm(a, b, { beta: 0.5, alpha: 2 }))],
    ['cosineSimilarity', c('2,3; 2,3', (a, b) => F.cosineSimilarity(a, b))],
    ['pairwiseDistance', c('2,3; 3', (a, b) => F.pairwiseDistance(a, b))],
  ])('%s', (_, each) => {
    expect(F.gradcheck(each.fn, inputs(each))).toBe(true)
    expect(F.gradgradcheck(each.fn, inputs(each))).toBe(true)
  })
})

test('of several values for one place the last one has the gradient, the others 0', () => {
  const at = ints([0, 0, 1])
  const gradient = (write: (x: Tensor, v: Tensor) => Tensor) => {
    const v = tensor([5, 6, 7], { requiresGrad: true })
    const y = write(tensor([1, 2, 3], { requiresGrad: true }).mul(1), v)
    expect(y.toArray()).toEqual([6, 7, 3])
    y.mul(tensor([1, 2, 3]))
      .sum()
      .backward()
    return v.grad!.toArray()
  }
  for (const write of [
    (x: Tensor, v: Tensor) => x.scatter(0, at, v),
    (x: Tensor, v: Tensor) => x.scatter_(0, at, v),
    (x: Tensor, v: Tensor) => x.indexPut([at], v),
    (x: Tensor, v: Tensor) => x.indexPut_([at], v),
  ]) {
    expect(gradient(write)).toEqual([0, 1, 2])
    expect(withDevice(gpujsDevice(), () => gradient(write))).toEqual([0, 1, 2])
  }
})

test('a write at indices that is recorded reaches its values and spares what was overwritten', () => {
  const x = tensor([1, 2, 3], { requiresGrad: true })
  const v = tensor([5, 6], { requiresGrad: true })
  const y = x.mul(2)
  y.indexPut_(['1:'], v).maskedFill_(y.gt(5.5), 0)
  expect(y.toArray()).toEqual([2, 5, 0])
  y.mul(tensor([1, 10, 100]))
    .sum()
    .backward()
  expect([x.grad!.toArray(), v.grad!.toArray()]).toEqual([
    [2, 0, 0],
    [10, 0],
  ])
  expect(operations.index(x, ['...'])).toBe(x)
})
