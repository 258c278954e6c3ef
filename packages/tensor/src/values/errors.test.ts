/** Every refusal of an operation: its code, op, expected and got in its message, and its remedy. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { arange, type DType, full, Generator, manualSeed, ones, rand, randint, type Tensor, tensor, zeros } from '../index.js'
import { rawOperations as operations, raw, sumToShape } from '../internal.js'
import { nllLossBackward } from '../ops/parts/classes.js'

const x = ones([2, 3])
const ints = ones([2, 3], { dtype: 'int32' })
const bools = ones([2, 3], { dtype: 'bool' })
const indices = (...v: number[]) => tensor(new Int32Array(v))

/** [what, code, part of the message, part of the remedy (null: the message says all), the call] */
const REFUSALS: readonly (readonly [string, string, string, string | null, () => unknown])[] = [
  ['add of shapes that do not broadcast', 'SHAPE_MISMATCH', 'add: expected shapes that broadcast', 'unsqueeze()', () => x.add(ones([2]))],
  ['add of no tensor', 'INVALID_ARGUMENT', 'add: expected at least one tensor', 'tensor(value)', () => raw.add(1, 2)],
  ['add of a string', 'INVALID_ARGUMENT', "of float32, '1')", null, () => x.add('1' as unknown as number)],
  [
    'add of null',
    'INVALID_ARGUMENT',
    'add: expected (tensor or number, tensor or number), got (tensor [2, 3] of float32, null)',
    null,
    () => x.add(null as unknown as number),
  ],
  ['null minus', 'INVALID_ARGUMENT', 'sub: expected a tensor or a number, got null', null, () => raw.sub(null as unknown as number, x)],
  ['sub of bool', 'DTYPE_MISMATCH', 'sub: expected numbers, got bool', 'ne(a, b)', () => bools.sub(1)],
  ['neg of bool', 'DTYPE_MISMATCH', 'neg: expected numbers, got bool', "to('int32')", () => bools.neg()],
  ['clamp without bounds', 'INVALID_ARGUMENT', 'at least one of min and max', null, () => x.clamp()],
  ['negative power of integers', 'INVALID_ARGUMENT', 'pow: expected an exponent ≥ 0', "to('float32')", () => ints.pow(-1)],
  ['pow of a string', 'INVALID_ARGUMENT', 'tensor or number', null, () => x.pow('2' as unknown as number)],
  ['where on numbers', 'DTYPE_MISMATCH', 'a bool tensor as the condition, got float32', 'ne(cond, 0)', () => x.where(1, 0)],
  [
    'where of null',
    'INVALID_ARGUMENT',
    'where: expected (tensor, tensor or number, tensor or number)',
    null,
    () => bools.where(null as unknown as number, 1),
  ],
  ['where of strings', 'INVALID_ARGUMENT', "'1', '2')", null, () => bools.where('1' as unknown as number, '2' as unknown as number)],
  ['to an unknown dtype', 'DTYPE_MISMATCH', 'got int64', 'one of these names', () => x.to('int64' as DType)],

  [
    'view of a transposed tensor',
    'VIEW_NOT_CONTIGUOUS',
    'view: expected strides under which [6] needs no copy',
    'reshape()',
    () => x.T.view([6]),
  ],
  ['view of another size', 'SHAPE_MISMATCH', 'view: expected a shape of 6 elements, got [4]', 'product', () => x.view([4])],
  ['reshape with two -1', 'INVALID_ARGUMENT', 'at most one -1', null, () => x.reshape([-1, -1])],
  ['reshape of nothing with -1', 'INVALID_ARGUMENT', 'without -1 if an extent is 0', 'Write the extent', () => zeros([0]).reshape([0, -1])],
  [
    'reshape without an array',
    'INVALID_ARGUMENT',
    'reshape: expected (tensor, number[])',
    'Write [2, 3]',
    () => x.reshape(6 as unknown as number[]),
  ],
  [
    'transpose out of range',
    'DIM_OUT_OF_RANGE',
    'transpose: expected a dimension from -2 to 1, got 2',
    '2 dimensions',
    () => x.transpose(0, 2),
  ],
  ['permute of too few', 'INVALID_ARGUMENT', 'each of the 2 dimensions once', null, () => x.permute([0])],
  ['permute twice the same', 'INVALID_ARGUMENT', 'got [0, -2]', null, () => x.permute([0, -2])],
  [
    'expand of an extent that is not 1',
    'SHAPE_MISMATCH',
    'expand: expected a shape to which [2, 3] broadcasts',
    'extents of 1',
    () => x.expand([4, 3]),
  ],
  ['expand to fewer dimensions', 'SHAPE_MISMATCH', 'at least 2 dimensions', '-1 keeps one', () => x.expand([3])],
  ['expand with a new -1', 'INVALID_ARGUMENT', 'no -1 for a new leading dimension', 'Write its extent', () => x.expand([-1, 2, 3])],
  ['narrow beyond the end', 'INDEX_OUT_OF_RANGE', 'narrow: expected a length from 0 to 1', '3 elements', () => x.narrow(1, 2, 2)],
  ['narrow from beyond', 'INDEX_OUT_OF_RANGE', 'a start from -3 to 3, got 4', '3 elements', () => x.narrow(1, 4, 0)],
  ['narrow of 0-d', 'SHAPE_MISMATCH', 'at least one dimension', 'reshape([1])', () => ones([]).narrow(0, 0, 1)],
  ['select beyond the end', 'INDEX_OUT_OF_RANGE', 'select: expected an index from -2 to 1, got 2', '2 elements', () => x.select(0, 2)],
  ['squeeze out of range', 'DIM_OUT_OF_RANGE', 'squeeze', '2 dimensions', () => x.squeeze(-3)],
  ['unsqueeze out of range', 'DIM_OUT_OF_RANGE', 'a dimension from -3 to 2', 'The result has 3 dimensions', () => x.unsqueeze(3)],
  ['stack out of range', 'DIM_OUT_OF_RANGE', 'a dimension from -3 to 2', 'The result has 3 dimensions', () => operations.stack([x, x], 3)],
  ['diagEmbed out of range', 'DIM_OUT_OF_RANGE', 'a dimension from -3 to 2', 'The result has 3 dimensions', () => x.diagEmbed(0, 3)],

  ['sum out of range', 'DIM_OUT_OF_RANGE', 'sum: expected a dimension', 'negative ones count from the end', () => x.sum(2)],
  ['sum twice over one dimension', 'INVALID_ARGUMENT', 'each dimension once', 'repeated', () => x.sum([0, -2])],
  ['mean of integers', 'DTYPE_MISMATCH', 'mean: expected a floating point tensor, got int32', "to('float32')", () => ints.mean()],
  ['amax of nothing', 'REDUCE_EMPTY', 'amax: expected at least one element', 'not empty', () => zeros([0]).amax()],
  ['argmax over nothing', 'REDUCE_EMPTY', 'got shape [2, 0]', 'not empty', () => zeros([2, 0]).argmax(1)],
  ['softmax of integers', 'DTYPE_MISMATCH', 'softmax', "to('float32')", () => ints.softmax(0)],
  ['sumToShape of a shape that does not fit', 'SHAPE_MISMATCH', 'sumToShape', 'before broadcasting', () => sumToShape(x, [2])],

  ['matmul of inner extents that differ', 'SHAPE_MISMATCH', 'matmul: expected the last extent of a', 'matmul(a, b.T)', () => x.matmul(x)],
  ['matmul of 0-d', 'SHAPE_MISMATCH', 'at least one dimension', 'Use mul', () => x.matmul(ones([]))],
  [
    'zeros with an unknown option',
    'INVALID_ARGUMENT',
    'got requires_grad',
    'requiresGrad',
    () => zeros([1], { requires_grad: true } as never),
  ],
  [
    'zeros with a dtype for options',
    'INVALID_ARGUMENT',
    "an object with options (dtype, device, requiresGrad), got 'float64'",
    '{',
    () => zeros([1], 'float64' as never),
  ],
  [
    'arange of a string',
    'INVALID_ARGUMENT',
    "arange: expected numbers: an end, or start, end and step, got '5'",
    null,
    () => arange('5' as never),
  ],
  [
    'sum with options for a dim',
    'INVALID_ARGUMENT',
    'got (tensor [2, 3] of float32, an object)',
    'without braces',
    () => x.sum({ dim: 1 } as never),
  ],
  ['one-hot integers as classes', 'SHAPE_MISMATCH', 'a target [], [N]', "to('float32')", () => operations.crossEntropy(x, ints)],
  ['matmul of bool', 'DTYPE_MISMATCH', 'matmul: expected numbers, got bool', "to('int32')", () => bools.matmul(bools.T)],
  [
    'matmul of two dtypes',
    'DTYPE_MISMATCH',
    'one dtype, got float32 and int32',
    "the second one with to('float32')",
    () => x.matmul(ints.T),
  ],
  [
    'matmul of integers first',
    'DTYPE_MISMATCH',
    'one dtype, got int32 and float32',
    "the first one with to('float32')",
    () => ints.matmul(x.T),
  ],
  [
    'matmul of both floating dtypes',
    'DTYPE_MISMATCH',
    'got float32 and float64',
    "the first one with to('float64')",
    () => x.matmul(ones([3, 1], { dtype: 'float64' })),
  ],
  [
    'zeros beyond the longest array',
    'TENSOR_TOO_LARGE',
    'zeros: expected at most',
    'broadcasting',
    () => zeros([2 ** 26, 2 ** 26], { dtype: 'float64' }),
  ],
  [
    'randn beyond it',
    'TENSOR_TOO_LARGE',
    'got 1000000000000 elements of float32, 3730 GiB (4000000000000 bytes)',
    null,
    () => rand([1e6, 1e6]),
  ],
  ['an arange beyond it', 'TENSOR_TOO_LARGE', 'arange', null, () => arange(2 ** 50)],
  ['a broadcast beyond it', 'TENSOR_TOO_LARGE', 'tensor: expected at most', null, () => ones([2 ** 22, 1]).add(ones([2 ** 22]))],
  [
    'matmul of batches that do not broadcast',
    'SHAPE_MISMATCH',
    'matmul: expected shapes that broadcast',
    null,
    () => ones([2, 1, 1]).matmul(ones([3, 1, 1])),
  ],
  ['bmm of matrices', 'SHAPE_MISMATCH', 'bmm: expected [batch, m, k]', 'matmul()', () => x.bmm(x)],

  ['cat of nothing', 'INVALID_ARGUMENT', 'cat: expected at least one tensor', null, () => raw.cat([])],
  ['cat of shapes that differ', 'SHAPE_MISMATCH', 'equal except in dimension 0', 'narrow', () => raw.cat([x, ones([2, 2])])],
  ['cat of 0-d', 'SHAPE_MISMATCH', 'cat: expected tensors with at least one dimension', 'stack()', () => raw.cat([ones([])])],
  ['stack of nothing', 'INVALID_ARGUMENT', 'stack', null, () => raw.stack([])],
  ['stack of shapes that differ', 'SHAPE_MISMATCH', 'stack: expected equal shapes', 'cat()', () => raw.stack([x, x.T])],

  [
    'embedding at bool indices',
    'DTYPE_MISMATCH',
    'int32 indices, got bool',
    "dtype: 'int32'",
    () => x.embedding(ones([1], { dtype: 'bool' })),
  ],
  [
    'embedding beyond the rows',
    'INDEX_OUT_OF_RANGE',
    'indices from 0 to 1, got 2',
    'how the indices were made',
    () => x.embedding(indices(0, 2)),
  ],
  ['embedding at a negative index', 'INDEX_OUT_OF_RANGE', 'got -1', 'do not count from the end', () => x.embedding(indices(-1))],
  ['embedding of a vector', 'SHAPE_MISMATCH', 'a weight [rows, width]', 'Reshape', () => ones([3]).embedding(indices(0))],
  [
    'embeddingBackward of another shape',
    'SHAPE_MISMATCH',
    'a gradient [1] with the width last',
    null,
    () => raw.embeddingBackward(x, indices(0), 3),
  ],
  [
    'nllLoss of a target beyond the classes',
    'INDEX_OUT_OF_RANGE',
    'nllLoss: expected indices from 0 to 2',
    null,
    () => x.nllLoss(indices(0, 3)),
  ],
  ['nllLoss of rows that differ', 'SHAPE_MISMATCH', 'scores [N, C] and a target [N]', 'reshape()', () => x.nllLoss(indices(0))],
  [
    'crossEntropy of integers',
    'DTYPE_MISMATCH',
    'crossEntropy: expected floating point scores',
    "to('float32')",
    () => ints.crossEntropy(indices(0, 1)),
  ],
  ['crossEntropy with another reduction', 'INVALID_ARGUMENT', 'got max', null, () => x.crossEntropy(indices(0, 1), 'max' as 'sum')],
  [
    'nllLossBackward of another shape',
    'SHAPE_MISMATCH',
    'nllLossBackward',
    'gradient of the loss',
    () => nllLossBackward(x, indices(0, 1), 3),
  ],

  [
    'add_ that would grow',
    'SHAPE_MISMATCH',
    'add_: expected an argument that broadcasts to [3]',
    'makes a new tensor',
    () => ones([3]).add_(x),
  ],
  [
    'add_ of floats to integers',
    'INPLACE_DTYPE',
    'add_: expected a result that int32 can hold, got float32',
    "to('float32')",
    () => ints.clone().add_(x),
  ],
  ['add_ with a fractional alpha to integers', 'INPLACE_DTYPE', 'int32 can hold', null, () => ints.clone().add_(ints, 0.5)],
  [
    'div_ of integers',
    'INPLACE_DTYPE',
    'div_',
    "Use div, which makes a new tensor, or convert this one with to('float32')",
    () => ints.clone().div_(2),
  ],
  ['mul_ of a number with a fraction', 'INPLACE_DTYPE', 'mul_', null, () => ints.clone().mul_(0.5)],
  ['sub_ of bool', 'DTYPE_MISMATCH', 'sub_: expected numbers', 'to()', () => bools.clone().sub_(bools)],
  [
    'a write to an expanded tensor',
    'INPLACE_OVERLAP',
    'add_: expected a tensor whose elements lie in different places',
    'clone()',
    () => ones([1]).expand([3]).add_(1),
  ],
  ['copy_ of another shape', 'SHAPE_MISMATCH', 'copy_', 'reshape', () => ones([3]).copy_(ones([2]))],
  [
    'fill_ with a tensor',
    'INVALID_ARGUMENT',
    'fill_: expected (tensor, number or boolean)',
    null,
    () => ones([3]).fill_(x as unknown as number),
  ],

  ['item of several', 'NOT_A_SCALAR', 'itemSync: expected a tensor of one element, got shape [2, 3]', 'data()', () => x.itemSync()],
  [
    'ragged rows',
    'TENSOR_RAGGED',
    'tensor: expected arrays of length 2 at depth 1, got an array of length 1',
    'Pad',
    () => tensor([[1, 2], [3]]),
  ],
  ['ragged depth', 'TENSOR_RAGGED', 'got a number', 'equally deep', () => tensor([[1], 2])],
  ['too deep', 'TENSOR_RAGGED', 'expected numbers at depth 1', 'equally deep', () => tensor([1, [2]])],
  ['a tensor of strings', 'INVALID_ARGUMENT', "got 'a'", null, () => tensor(['a'] as unknown as number[])],
  ['a tensor of null', 'INVALID_ARGUMENT', 'got null', null, () => tensor([null] as unknown as number[])],
  ['an array type without a dtype', 'INVALID_ARGUMENT', 'Int16Array', null, () => tensor(new Int16Array(1) as unknown as Int32Array)],
  ['a negative extent', 'INVALID_ARGUMENT', 'zeros: expected a shape of integers ≥ 0, got [-1]', null, () => zeros([-1])],
  ['a fractional extent', 'INVALID_ARGUMENT', 'full', null, () => full([1.5], 0)],
  ['a shape without brackets', 'INVALID_ARGUMENT', 'zeros', 'Write [2, 3]', () => zeros(3 as unknown as number[])],
  ['too many elements', 'INVALID_ARGUMENT', 'a safe integer', null, () => zeros([2 ** 30, 2 ** 30])],
  ['an unknown dtype', 'DTYPE_MISMATCH', 'got float16', 'one of these names', () => zeros([1], { dtype: 'float16' as DType })],
  // torch.arange(0, 3, -1), (0, -0.5, 1), (0, 2, 0.5, dtype=torch.int32); torch.full((1,), math.inf, dtype=torch.int32), fill_(2**31): PyTorch raises
  ['a range that leads away', 'INVALID_ARGUMENT', 'start 0, end 3, step -1', 'sign of the step', () => arange(0, 3, -1)],
  [
    'a range that leads away by less than a step',
    'INVALID_ARGUMENT',
    'start 0, end -0.5, step 1',
    'sign of the step',
    () => arange(0, -0.5),
  ],
  [
    'a range of integers by less than 1',
    'INVALID_ARGUMENT',
    'step 0.5',
    'an integer step, or float32',
    () => arange(0, 2, 0.5, { dtype: 'int32' }),
  ],
  [
    'an infinity for integers',
    'INVALID_ARGUMENT',
    'full: expected a number that int32 can hold',
    'float32',
    () => full([1], Infinity, { dtype: 'int32' }),
  ],
  [
    'NaN for integers',
    'INVALID_ARGUMENT',
    'fill_: expected a number that int32 can hold, got NaN',
    'float32',
    () => ints.clone().fill_(NaN),
  ],
  ['2^31 for integers', 'INVALID_ARGUMENT', 'fill_: expected a number that int32 can hold', 'float32', () => ints.clone().fill_(2 ** 31)],
  ['rand of integers', 'DTYPE_MISMATCH', 'rand: expected float32 or float64', 'randint()', () => rand([1], { dtype: 'int32' })],
  ['randint beyond 32 bits', 'INVALID_ARGUMENT', 'low … high−1 within 32 bits', "dtype: 'float64'", () => randint(0, 2 ** 33, [1])],
  ['randint of an empty range', 'INVALID_ARGUMENT', 'low < high, got 3 and 3', 'without its end', () => randint(3, 3, [1])],
  ['a fractional seed', 'INVALID_ARGUMENT', 'manualSeed: expected a safe integer, got 0.5', null, () => manualSeed(0.5)],
  [
    'a state of another generator',
    'INVALID_ARGUMENT',
    'restore: expected a state of this generator',
    'state()',
    () => new Generator().restore({ words: [1], spare: null }),
  ],
  ['a fractional seed of a generator', 'INVALID_ARGUMENT', 'a safe integer', null, () => new Generator(Number.NaN)],
]

test.each(REFUSALS)('%s: %s', (_, code, message, remedy, call) => {
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

test('item() rejects with the same error', async () => {
  await expect((x as Tensor).item()).rejects.toMatchObject({ code: 'NOT_A_SCALAR', values: { shape: [2, 3] } })
})
