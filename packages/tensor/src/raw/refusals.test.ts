/** Refusals of reductions, activations, arithmetic and orders: the code, and op, expected and got in the message. */
import { expect, test } from '@jest/globals'
import * as T from '../index.js'
import { rawOperations as ops } from '../ops/define/define.js'

const x = T.tensor([
  [1, 2],
  [3, 4],
])
const ints = T.tensor(Int32Array.of(1, 2))
const bools = T.tensor([true, false])
const empty = T.zeros([0, 2])

const REFUSALS: readonly (readonly [label: string, code: string, says: string, call: () => unknown])[] = [
  ['gelu of integers', 'DTYPE_MISMATCH', 'gelu', () => ops.gelu(ints)],
  ['gelu approximated otherwise', 'INVALID_ARGUMENT', "'tanh'", () => ops.gelu(x, { approximate: 'erf' as 'tanh' })],
  ['softplus with a beta that is no number', 'INVALID_ARGUMENT', 'beta', () => ops.softplus(x, { beta: '1' as unknown as number })],
  ['leakyRelu of bool', 'DTYPE_MISMATCH', 'leakyRelu', () => ops.leakyRelu(bools)],
  ['floor of bool', 'DTYPE_MISMATCH', 'floor', () => ops.floor(bools)],
  ['remainder of bools', 'DTYPE_MISMATCH', 'remainder', () => ops.remainder(bools, bools)],
  ['pow of bools', 'DTYPE_MISMATCH', 'pow', () => ops.pow(bools, bools)],
  ['a negative power of integers', 'INVALID_ARGUMENT', 'exponent', () => ops.pow(ints, -1)],
  ['shapes that do not broadcast', 'SHAPE_MISMATCH', 'atan2', () => ops.atan2(x, T.ones([3]))],
  ['bits of real numbers', 'DTYPE_MISMATCH', 'bitwiseAnd', () => ops.bitwiseAnd(x, ints)],
  ['bits of a fraction', 'INVALID_ARGUMENT', 'integer', () => ops.bitwiseOr(ints, 0.5)],
  ['bitwiseNot of real numbers', 'DTYPE_MISMATCH', 'bitwiseNot', () => ops.bitwiseNot(x)],
  ['an unknown roundingMode', 'INVALID_ARGUMENT', 'roundingMode', () => ops.div(x, 2, { roundingMode: 'up' as 'floor' })],
  ['variance of integers', 'DTYPE_MISMATCH', 'var', () => ops.var(ints)],
  [
    'variance with a correction that is no number',
    'INVALID_ARGUMENT',
    'correction',
    () => ops.var(x, 0, false, { correction: true as unknown as number }),
  ],
  ['norm of integers', 'DTYPE_MISMATCH', 'norm', () => ops.norm(ints)],
  ["norm with PyTorch's 'fro'", 'INVALID_ARGUMENT', 'norm', () => ops.norm(x, 'fro' as unknown as number)],
  ['logSumExp of bool', 'DTYPE_MISMATCH', 'logSumExp', () => ops.logSumExp(bools)],
  ['minimum of nothing', 'REDUCE_EMPTY', 'amin', () => ops.amin(empty, 0)],
  ['the place of a minimum of nothing', 'REDUCE_EMPTY', 'argmin', () => ops.argmin(empty)],
  ['max of nothing', 'REDUCE_EMPTY', 'argmax', () => ops.max(empty, 0)],
  ['a dimension twice', 'INVALID_ARGUMENT', 'each dimension once', () => ops.norm(x, 2, [0, -2])],
  ['cumsum along a dimension that is not there', 'DIM_OUT_OF_RANGE', 'cumsum', () => ops.cumsum(x, 2)],
  ['sum as bool', 'DTYPE_MISMATCH', 'sum', () => ops.sum(x, 0, false, { dtype: 'bool' as 'int32' })],
  ['mean as integers', 'DTYPE_MISMATCH', 'mean', () => ops.mean(x, 0, false, { dtype: 'int32' })],
  ['argsort along a dimension that is not there', 'DIM_OUT_OF_RANGE', 'argsort', () => ops.argsort(x, 2)],
  ['topk of more than there are', 'INVALID_ARGUMENT', 'k from 0 to 2', () => ops.topk(x, 3)],
]

test.each(REFUSALS)('%s', (_, code, says, call) => {
  expect(call).toThrow(expect.objectContaining({ code, message: expect.stringContaining(says) }) as unknown as Error)
})

test('sum and mean convert first where a dtype is given', () => {
  expect([ops.sum(ints, undefined, false, { dtype: 'float64' }).dtype, ops.mean(ints, 0, true, { dtype: 'float32' }).toArray()]).toEqual([
    'float64',
    [1.5],
  ])
  expect(ops.sum(T.tensor([1.5, 1.5]), 0, false, { dtype: 'int32' }).itemSync()).toBe(2)
})
