/** Every row of the table of neural networks' derivatives against finite differences in float64, first and second; a missing case does not compile. */
import { describe, expect, test } from '@jest/globals'
import type { Tensor } from '@postgrad/tensor'
import { type Case, c, inputs } from '../cases.fixture.js'
import * as F from '../index.js'
import { operations } from '../internal.js'
import type { NeuralTable } from './derivatives.js'

type AnyCase = Case<Tensor | readonly Tensor[]>

const GEOMETRY = {
  ...{ n: 2, c: 4, h: 3, w: 4, o: 4, kh: 2, kw: 3, oh: 3, ow: 2 },
  ...{ strideH: 1, strideW: 2, padH: 1, padW: 1, dilH: 2, dilW: 1, groups: 2 },
}

const CASES: Readonly<Record<keyof NeuralTable, readonly AnyCase[]>> = {
  convolution: [
    c('2,4,3,4; 4,2,2,3; 4', (x, w, b) => operations.convolution(x, w, b, GEOMETRY)),
    c('2,4,3,4; 4,2,2,3', (x, w) => operations.convolution(x, w, null, GEOMETRY)),
  ],
  convolutionInput: [c('2,4,3,2; 4,2,2,3', (g, w) => operations.convolutionInput(g, w, GEOMETRY))],
  convolutionWeight: [c('2,4,3,4; 2,4,3,2', (x, g) => operations.convolutionWeight(x, g, GEOMETRY))],
  linear: [
    c('2,3; 2,3; 2', operations.linear),
    c('3; 2,3; 2', operations.linear),
    c('2,2,3; 2,3', (x, w) => operations.linear(x, w)),
    c('3,2; 3,2; 2', (x, w, b) => operations.linear(x.T, w.T, b)),
    c('2,2,3; 2,3', (x, w) => operations.linear(x.permute([1, 0, 2]), w, null)),
  ],
}

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  test.each(cases.map((each, i) => [i, each] as const))('case %d', (_i, each) => {
    expect(F.gradcheck(each.fn, inputs(each))).toBe(true)
    expect(F.gradgradcheck(each.fn, inputs(each))).toBe(true)
  })
})

test('only what a gradient reads is saved, and reading it twice needs retainGraph', () => {
  const [x, w, b] = inputs(c('2,3; 2,3; 2', operations.linear))
  const loss = F.linear(x!, w!.detach(), b!).sum()
  // The weight needs no gradient, so x is not saved and may be written to.
  F.noGrad(() => x!.fill_(9))
  expect(F.grad(loss, [x!])[0]!.shape).toEqual([2, 3])
  expect(() => F.grad(loss, [x!])).toThrow(expect.objectContaining({ code: 'GRAPH_FREED' }))
})

test('linear says what does not fit', () => {
  const [x, w] = inputs(c('2,3; 2,4', operations.linear))
  expect(() => F.linear(x!, w!)).toThrow(expect.objectContaining({ code: 'SHAPE_MISMATCH' }))
  expect(() => F.linear(x!, x!, w!)).toThrow(/bias \[2\]/)
  expect(() => F.linear(x!, x!.to('float32'))).toThrow(expect.objectContaining({ code: 'DTYPE_MISMATCH' }))
})
