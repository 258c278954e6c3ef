/** Refusals of the composites and of operations at indices: the code, op, expected and got in the message, and the remedy. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { type IndexSpec, ones, type Tensor, tensor, zeros } from '../index.js'
import { rawOperations as F } from './define/define.js'

const x = ones([2, 3])
const cube = ones([2, 3, 4])
const v = ones([3])
const bools = (...values: boolean[]) => tensor(values)
const at = (...values: number[]) => tensor(Int32Array.from(values))
const square = at(0, 1, 1, 0).reshape([2, 2])

/** [code, part of the message, part of the remedy (null: the message says all), the call] */
const REFUSALS: readonly (readonly [string, string, string | null, () => unknown])[] = [
  ['INDEX_OUT_OF_RANGE', 'indexSelect: expected indices from 0 to 1, got 2 at [1]', 'from the end', () => x.indexSelect(0, at(0, 2))],
  ['INDEX_OUT_OF_RANGE', 'indexSelect: expected no index, for the dimension is empty', null, () => zeros([0, 2]).indexSelect(0, at(0))],
  ['DTYPE_MISMATCH', 'indexSelect: expected int32 indices, got bool', "dtype: 'int32'", () => x.indexSelect(0, bools(true))],
  ['SHAPE_MISMATCH', 'indexSelect: expected an index [n], got [1, 1]', 'gather()', () => x.indexSelect(0, at(0).reshape([1, 1]))],
  ['DIM_OUT_OF_RANGE', 'indexSelect: expected a dimension from -2 to 1, got 2', null, () => x.indexSelect(2, at(0))],
  ['INDEX_OUT_OF_RANGE', 'gather: expected indices from 0 to 2, got -1 at [0, 1]', 'end', () => x.gather(1, at(0, -1).reshape([1, 2]))],
  ['SHAPE_MISMATCH', 'longer than in [2, 3], got [3, 1]', 'narrow()', () => x.gather(1, at(0, 0, 0).reshape([3, 1]))],
  [
    'SHAPE_MISMATCH',
    "scatter: expected a source of at least the index's shape [2, 2]",
    'narrow()',
    () => x.scatter(1, square, ones([1, 2])),
  ],
  ['DTYPE_MISMATCH', 'scatter: expected a source of float32, got int32', "to('float32')", () => x.scatter(1, square, square)],
  ['DTYPE_MISMATCH', 'scatterAdd: expected numbers, got bool', "to('int32')", () => bools(true).scatterAdd(0, at(0), bools(true))],
  ['SHAPE_MISMATCH', 'indexAdd: expected an index [n] and a source [1, 3], got [1] and [3]', 'one slice', () => x.indexAdd(0, at(0), v)],
  ['DTYPE_MISMATCH', 'mseLoss: expected a floating point tensor, got int32', "to('float32')", () => F.mseLoss(at(1), at(2))],
  ['DTYPE_MISMATCH', 'l1Loss: expected a floating point tensor, got int32', "to('float32')", () => F.l1Loss(at(1), at(2))],
  ['DTYPE_MISMATCH', 'bceWithLogits: expected a floating point tensor, got int32', "to('float32')", () => F.bceWithLogits(at(1), at(1))],
  ['DTYPE_MISMATCH', 'mish: expected a floating point tensor, got int32', "to('float32')", () => F.mish(at(1))],
  ['DTYPE_MISMATCH', 'logSigmoid: expected a floating point tensor, got int32', "to('float32')", () => F.logSigmoid(at(1))],
  ['INVALID_ARGUMENT', 'oneHot: expected numClasses ≥ 1, got 0', null, () => F.oneHot(at(0), 0)],
  ['INDEX_OUT_OF_RANGE', 'oneHot: expected indices from 0 to 1, got 2 at [0]', null, () => F.oneHot(at(2), 2)],
  ['INVALID_ARGUMENT', 'oneHot: expected numClasses for no classes', 'Pass it', () => F.oneHot(at())],

  ['SHAPE_MISMATCH', 'index: expected specs for at most 2 dimensions, got specs for 3', 'Leave some out', () => x.index(0, ':', ':')],
  ['INVALID_ARGUMENT', "index: expected at most one '...'", null, () => x.index('...', '...')],
  ['INVALID_ARGUMENT', "index: expected 'start:end' or 'start:end:step'", null, () => x.index('1.5:')],
  ['INVALID_ARGUMENT', "got '1-2'", null, () => x.index('1-2' as IndexSpec<Tensor>)],
  ['INVALID_ARGUMENT', 'slice: expected an integer step ≥ 1, got -1', 'flip()', () => x.index('::-1')],
  ['INDEX_OUT_OF_RANGE', 'select: expected an index from -2 to 1, got 2', '2 elements', () => x.index(2)],
  ['INDEX_OUT_OF_RANGE', 'index: expected indices from -3 to 2, got 3 at [1]', null, () => x.index(':', at(0, 3))],
  [
    'SHAPE_MISMATCH',
    'a mask of the extents [2] of the dimensions that it masks, got [3]',
    'masks',
    () => x.index(bools(true, false, true)),
  ],
  ['SHAPE_MISMATCH', 'index: expected shapes that broadcast', null, () => x.index(at(0, 1), at(0, 1, 2))],
  ['INVALID_ARGUMENT', "'...', null or tensors, got object", null, () => x.index([1] as unknown as number)],
  ['DTYPE_MISMATCH', 'index: expected int32 indices, or whole numbers, got float32 with 0.5 at [0]', null, () => x.index(tensor([0.5]))],
  ['INDEX_OUT_OF_RANGE', 'take: expected indices from -6 to 5, got 6', null, () => x.take(at(6))],
  ['SHAPE_MISMATCH', 'takeAlongDim: expected indices with the 2 dimensions of the tensor', 'unsqueeze()', () => x.takeAlongDim(at(0), 1)],
  ['DTYPE_MISMATCH', 'maskedFill: expected a bool tensor as the mask, got float32', 'ne(mask, 0)', () => x.maskedFill(x, 0)],
  ['SHAPE_MISMATCH', 'a number, a boolean or a 0-d tensor as the value, got [1]', 'where()', () => x.maskedFill(x.gt(0), ones([1]))],
  ['INVALID_ARGUMENT', 'maskedFill: expected an integer for an int32', "to('float32')", () => at(1).maskedFill(bools(true), 0.5)],
  ['INVALID_ARGUMENT', 'triu: expected an integer diagonal, got 1.5', 'main one', () => x.triu(1.5)],
  ['SHAPE_MISMATCH', 'tril: expected at least two dimensions, got [3]', 'reshape()', () => v.tril()],

  ['SHAPE_MISMATCH', 'diagonal: expected at least two dimensions, got [3]', 'diagEmbed()', () => v.diagonal()],
  ['INVALID_ARGUMENT', 'diagonal: expected two different dimensions, got 1 and -1', null, () => x.diagonal(0, 1, -1)],
  ['SHAPE_MISMATCH', 'diag: expected a vector or a matrix, got [2, 3, 4]', 'diagonal()', () => cube.diag()],
  ['INVALID_ARGUMENT', 'movedim: expected as many sources as destinations, got 1 and 2', null, () => cube.movedim(0, [0, 1])],
  ['INVALID_ARGUMENT', 'movedim: expected each dimension once, got [0, 0]', null, () => cube.movedim([0, -3], [0, 1])],
  ['INVALID_ARGUMENT', 'tensorSplit: expected a number of parts ≥ 1, or indices, got 0', null, () => x.tensorSplit(0)],
  ['SHAPE_MISMATCH', 'unflatten: expected a shape of 3 elements, got [2, 2]', 'product', () => x.unflatten(1, [2, 2])],
  ['INVALID_ARGUMENT', 'repeat: expected counts ≥ 0 for at least the 2 dimensions, got [2]', 'tile()', () => x.repeat([2])],
  ['SHAPE_MISMATCH', 'repeatInterleave: expected counts [3] or [], got [2]', 'one count', () => v.repeatInterleave(at(1, 2))],
  ['INVALID_ARGUMENT', 'roll: expected a shift for each dimension, got 2 for 1', null, () => x.roll([1, 2], 0)],
  ['INVALID_ARGUMENT', 'constantPad: expected pairs of integers for at most 2 dimensions', null, () => F.pad(x, [1])],
  ['SHAPE_MISMATCH', 'constantPad: expected to cut no more than there is', 'Cut less', () => F.pad(x, [-2, -2])],
  ['INVALID_ARGUMENT', "pads from 0 to 2 for mode 'reflect' and the 3 elements", null, () => F.pad(x, [3, 0], { mode: 'reflect' })],
  ['INVALID_ARGUMENT', "pad: expected the mode 'constant'", null, () => F.pad(x, [1, 1], { mode: 'mirror' as 'reflect' })],
  ['SHAPE_MISMATCH', 'meshgrid: expected vectors, got [2, 3]', 'reshape([-1])', () => F.meshgrid([x])],

  ['SHAPE_MISMATCH', 'dot: expected [k] and [k], got [2, 3] and [3]', 'matmul()', () => x.dot(v)],
  ['SHAPE_MISMATCH', 'addmm: expected something to add that broadcasts to [2, 2], got [3]', 'add()', () => v.addmm(x, x.T)],
  ['INVALID_ARGUMENT', 'tensordot: expected a number of dimensions from 0 to 1', null, () => F.tensordot(x, v, 2)],
  ['SHAPE_MISMATCH', 'tensordot: expected equal extents', 'belong together', () => F.tensordot(x, v, [[0], [0]])],
  ['INVALID_ARGUMENT', 'einsum: expected subscripts for each of the 1 operands, got 2', "'ij,jk->ik'", () => F.einsum('ij,jk', [x])],
  [
    'SHAPE_MISMATCH',
    "einsum: expected a tensor of 3 dimensions for 'ijk', got operand 0 of shape [2, 3]",
    "'...'",
    () => F.einsum('ijk', [x]),
  ],
  ['SHAPE_MISMATCH', "einsum: expected one extent for 'j' (or 1), got 3 and, in operand 1", 'same letter', () => F.einsum('ij,jk', [x, x])],
  ['SHAPE_MISMATCH', "einsum: expected equal extents of the dimensions named 'i'", 'diagonal', () => F.einsum('ii', [ones([1, 3])])],
  ['INVALID_ARGUMENT', "einsum: expected letters of the operands after the arrow, got 'k'", null, () => F.einsum('ij->k', [x])],
  ['INVALID_ARGUMENT', "einsum: expected each letter once after the arrow, got 'i' twice", null, () => F.einsum('ij->ii', [x])],
  ['INVALID_ARGUMENT', "einsum: expected letters, ',', '->' and '...', got '1' in 'i1'", null, () => F.einsum('i1', [x])],
  ['INVALID_ARGUMENT', "einsum: expected at most one '->'", null, () => F.einsum('i->j->k', [x])],
]

test.each(REFUSALS)('%s: %s', (code, message, remedy, call) => {
  let caught: unknown
  try {
    call()
  } catch (error) {
    caught = error
  }
  if (!isPostgradError(caught)) throw new Error(`expected ${code}, got ${String(caught)}`)
  expect(caught.code).toBe(code)
  expect(caught.message).toContain(message)
  expect(caught.message).toMatch(/^\w+: /)
  if (remedy !== null) expect(caught.remedy).toContain(remedy)
})

test('an error at an index says where it stands and how far it might go', () => {
  expect(() => x.gather(1, at(0, 1, 5, 0).reshape([2, 2]))).toThrow(
    expect.objectContaining({ values: { index: 5, at: [1, 0], extent: 3 } }) as unknown as Error,
  )
})

test('what makes no change gives a tensor of its own all the same', () => {
  for (const same of [x.repeat([1, 1]), x.roll(0, 0), x.roll(0), x.flip([]), F.pad(x, [0, 0]), F.pad(x, [0, 0], { mode: 'reflect' })]) {
    expect(same.toArray()).toEqual(x.toArray())
    expect(same.storage).not.toBe(x.storage)
  }
})

test('views share their storage: slices, diagonals, brackets without tensors', () => {
  const views = [cube.slice(1, 0, 3, 2), cube.diagonal(), cube.index(0, '1:', null, '::2'), cube.movedim(0, 2), cube.mT]
  for (const view of [...views, ...cube.tensorSplit(2, 1)]) expect(view.storage).toBe(cube.storage)
  expect(cube.index(at(0)).storage).not.toBe(cube.storage)
})

test('of several writes to one place the last wins; sums take all of them', () => {
  const index = at(1, 1, 1)
  const source = tensor([1, 2, 4])
  expect(zeros([2]).scatter(0, index, source).toArray()).toEqual([0, 4])
  expect(zeros([2]).scatterAdd(0, index, source).toArray()).toEqual([0, 7])
  expect(zeros([2]).indexPut_([index], source).toArray()).toEqual([0, 4])
  expect(zeros([2]).indexPut_([index], source, true).toArray()).toEqual([0, 7])
})

test('0 · x is nothing in addmm: NaN does not come through', () => {
  const sum = tensor([Number.NaN, 1]).addmm(ones([2, 2]), ones([2, 2]), { beta: 0 })
  expect(sum.toArray()).toEqual([
    [2, 2],
    [2, 2],
  ])
})
