/** Every row of the table of neural networks' derivatives against finite differences in float64, first and second; a missing case does not compile. */
import { describe, expect, test } from '@jest/globals'
import { onesLike, type Tensor, tensor } from '@postgrad/tensor'
import { entries } from '@postgrad/tensor/internal'
import { type Case, c, inputs } from '../derivatives/cases.fixture.js'
import * as F from '../index.js'
import { operations } from '../internal.js'

type AnyCase = Case<Tensor | readonly Tensor[]>

const GEOMETRY = {
  ...{ n: 2, c: 4, h: 3, w: 4, o: 4, kh: 2, kw: 3, oh: 3, ow: 2 },
  ...{ strideH: 1, strideW: 2, padH: 1, padW: 1, dilH: 2, dilW: 1, groups: 2 },
}

const WINDOW = { planes: 2, h: 4, w: 5, kh: 2, kw: 3, oh: 3, ow: 3, strideH: 2, strideW: 2, padH: 1, padW: 1, dilH: 1, dilW: 1 }
const IMAGES = tensor(Float64Array.from({ length: 12 }, (_, i) => Math.sin(i))).reshape([2, 2, 3])
const INDICES = tensor(Int32Array.of(1, 3, 1, 0)).reshape([2, 2])
const WIDE = { dilW: 2, ow: 2 }

/** Their cases are in `../indexing/` and, of `to`, in `../record/devices.test.ts`. */
const ELSEWHERE = ['indexSelect', 'gather', 'indexAdd', 'scatterAdd', 'scatter', 'constantPad', 'to']

test('each operation with a row of several tensors has cases', () => {
  const nodes = entries.flatMap(({ how }) => (how.kind === 'primitive' && how.row !== null && 'grads' in how.row ? [how.node] : []))
  expect(nodes.filter((node) => !Object.hasOwn(CASES, node) && !ELSEWHERE.includes(node))).toEqual([])
})

const CASES: Readonly<Record<string, readonly AnyCase[]>> = {
  convolution: [
    c('2,4,3,4; 4,2,2,3; 4', (x, w, b) => operations.convolution(x, w, b, GEOMETRY)),
    c('2,4,3,4; 4,2,2,3', (x, w) => operations.convolution(x, w, null, GEOMETRY)),
  ],
  convolutionInput: [c('2,4,3,2; 4,2,2,3', (g, w) => operations.convolutionInput(g, w, GEOMETRY))],
  convolutionWeight: [c('2,4,3,4; 2,4,3,2', (x, g) => operations.convolutionWeight(x, g, GEOMETRY))],
  maxPoolPlanes: [
    c('2,4,5', (x) => operations.maxPoolPlanes(x, { ...WINDOW, ...WIDE })[0]),
    c('1,2,5,4', (x) => F.maxPool2d(x, 2, { stride: 1 })),
  ],
  avgPoolPlanes: [c('2,4,5', (x) => operations.avgPoolPlanes(x, { ...WINDOW, includePad: 0, divisor: 0 }))],
  avgPoolSpread: [c('2,3,3', (g) => operations.avgPoolSpread(g, { ...WINDOW, includePad: 1, divisor: 0 }))],
  binaryCrossEntropy: [c('2,3; 2,3', operations.binaryCrossEntropy, (x) => Math.abs(x) * 0.3 + 0.1)],
  attention: [
    c('3,2; 4,2; 4,3', (q, k, v) => operations.attention(q, k, v, null, 0.7, false)),
    c('2,1,3,2; 2,3,2; 1,3,1', (q, k, v) => operations.attention(q, k, v, null, 0.7, true)),
    c('2,3; 2,3; 2,2', (q, k, v) =>
      operations.attention(
        q,
        k,
        v,
        tensor([
          [true, false],
          [true, true],
        ]),
        1,
        false,
      ),
    ),
    c('2,3; 2,3; 2,2', (q, k, v) =>
      operations.attention(
        q,
        k,
        v,
        tensor(
          [
            [0, 1],
            [2, 3],
          ],
          { dtype: 'float64' },
        ),
        1,
        false,
      ),
    ),
  ],
  layerNormRows: [
    c('3,4; 4; 4', (x, w, b) => operations.layerNormRows(x, w, b, 0.1)[0]),
    c('3,4', (x) => operations.layerNormRows(x, null, null, 0.1)[0]),
    c('2,4; 4', (x, w) => F.layerNorm(x.T, 2, null, null).matmul(x).mul(w)),
  ],
  batchNormTraining: [
    c('3,2,2; 2; 2', (x, w, b) => operations.batchNormTraining(x, w, b, 0.1)[0]),
    c('4,2', (x) => operations.batchNormTraining(x, null, null, 0.1)[0]),
    c('2', (b) => operations.batchNormTraining(IMAGES, null, b, 0.1)[0]),
  ],
  embeddingRows: [
    // Row 2 does not occur: at the padding row the gradient is 0 by decree, and no derivative.
    c('4,2', (w) => operations.embeddingRows(w, INDICES, 2, false)),
    c('4,2', (w) => operations.embeddingRows(w, INDICES, -1, false)),
  ],
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

/** PyTorch 1.13 writes their gradients outside of its memory, or to an element that they do not see. */
test.each([
  ['beyond the plane', [1, 1, 1, 2], { padding: [0, 1], dilation: [1, 3] }, 1],
  ['at another element', [1, 1, 2, 1], { padding: [0, 1], dilation: [1, 2] }, 2],
] as const)('windows of nothing but padding have no gradient, with their place %s', (_, shape, options, windows) => {
  const x = tensor([1, 2]).reshape(shape).requiresGrad_()
  const y = F.maxPool2d(x, [1, 2], { stride: 1, ...options })
  expect(Array.from(y.dataSync())).toEqual(new Array(windows).fill(-Infinity))
  expect(Array.from(F.grad(y, [x], { gradOutputs: [onesLike(y)] })[0]!.dataSync())).toEqual([0, 0])
})
