/** Which numbers and booleans a dtype takes. PyTorch 1.13 gave each line: where it raises, the number is refused; where it converts, KERNELS.md has the result. */
import { describe, expect, test } from '@jest/globals'
import { arange, full, fullLike, linspace, logspace, tensor, zeros } from '../index.js'
import { rawOperations as F } from '../ops/define/define.js'

const int32 = { dtype: 'int32' } as const
const [MIN, MAX] = [-(2 ** 31), 2 ** 31 - 1]
const at = (...values: number[]) => tensor(Int32Array.from(values))
const ints = () => zeros([2], int32)
const code = (expected: string) => expect.objectContaining({ code: expected })

/** The ways by which a number becomes elements of an int32. */
const WAYS: readonly (readonly [name: string, (value: number) => unknown])[] = [
  ['tensor', (v) => tensor(v, int32)],
  ['tensor', (v) => tensor([[1], [v]], int32)],
  ['tensor', (v) => tensor({ ...ints().toJSON(), data: [0, v] } as never)],
  ['full', (v) => full([2], v, int32)],
  ['fullLike', (v) => fullLike(ints(), v)],
  ['linspace', (v) => linspace(0, v, 2, int32)],
  ['linspace', (v) => linspace(v, 0, 2, int32)],
  ['fill_', (v) => ints().fill_(v)],
  ['indexPut', (v) => ints().indexPut([0], v)],
  ['indexPut', (v) => ints().indexPut([0], v, true)],
  ['indexPut_', (v) => ints().indexPut_([0], v)],
  ['indexPut_', (v) => ints().indexPut_(['1:'], v)],
  ['maskedFill', (v) => ints().maskedFill(tensor([true, false]), v)],
  ['maskedFill', (v) => ints().maskedFill_(tensor([true, false]), v)],
  ['maskedFill', (v) => ints().maskedFill(tensor([true, false]), tensor(v, { dtype: 'float64' }))],
  ['indexFill', (v) => ints().indexFill(0, at(1), v)],
  ['indexFill', (v) => ints().indexFill_(0, at(1), tensor(v, { dtype: 'float64' }))],
  ['indexFill', (v) => ints().indexFill_(0, at(1), v)],
  ['scatter', (v) => ints().scatter(0, at(0), v)],
  ['scatter', (v) => ints().scatter_(0, at(0), v)],
  ['pad', (v) => F.pad(ints(), [1, 0], { value: v })],
]

describe('a number that int32 cannot hold', () => {
  test.each([2 ** 40, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, MAX + 1, MIN - 1, MAX + 0.5, MIN - 0.5, 1e300])(
    '%s is refused wherever PyTorch raises, by each operation’s own check',
    (value) => {
      for (const [, way] of WAYS) expect(() => way(value)).toThrow(code('INVALID_ARGUMENT'))
      expect(() => ints().indexPut_([at(0)], value)).toThrow(code('INVALID_ARGUMENT'))
    },
  )

  test('is named with the operation, the number and the way out', () => {
    expect(() => tensor([2 ** 40], int32)).toThrow(
      'tensor: expected a number that int32 can hold, got 1099511627776. Pass one within 32 bits',
    )
    expect(() => ints().indexPut_([0], 2 ** 40)).toThrow('indexPut_: expected a number that int32 can hold')
  })

  test('is the power in logspace, and not the exponent', () => {
    expect(() => logspace(0, 40, 2, { base: 2, ...int32 })).toThrow(code('INVALID_ARGUMENT'))
    expect(() => logspace(31, 0, 2, { base: 2, ...int32 })).toThrow(code('INVALID_ARGUMENT'))
    expect(logspace(-(2 ** 40), 30, 2, { base: 2, ...int32 }).toArray()).toEqual([0, 2 ** 30])
  })

  test('at the ends it holds; a fraction within them loses its digits', () => {
    for (const value of [MIN, MAX]) for (const [, way] of WAYS) way(value)
    expect(tensor([MIN, MAX, 1.7, -1.7], int32).toArray()).toEqual([MIN, MAX, 1, -1])
    expect(full([1], 1.7, int32).toArray()).toEqual([1])
  })

  test('wraps around in conversions of tensors, which PyTorch does not refuse either, and in arange', () => {
    const doubles = tensor(Float64Array.of(2 ** 40 + 3, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31))
    const wrapped = [3, 0, 0, MIN]
    expect(doubles.to('int32').toArray()).toEqual(wrapped)
    expect(zeros([4], int32).copy_(doubles).toArray()).toEqual(wrapped)
    expect(tensor(Float64Array.of(2 ** 40 + 3, Number.NaN), int32).toArray()).toEqual([3, 0])
    expect(arange(2 ** 31 - 1, 2 ** 31 + 1, 1, int32).toArray()).toEqual([MAX, MIN])
  })
})

describe('true and false', () => {
  test('fill tensors of each dtype, as 1 and 0', () => {
    const bools = () => tensor([false, false])
    expect(bools().fill_(true).toArray()).toEqual([true, true])
    expect(zeros([2]).fill_(true).toArray()).toEqual([1, 1])
    expect(ints().fill_(true).toArray()).toEqual([1, 1])
    expect([full([1], true).dtype, full([1], true).toArray(), full([1], true, int32).toArray()]).toEqual(['bool', [true], [1]])
    expect([fullLike(zeros([1]), true).toArray(), fullLike(bools(), true).toArray()]).toEqual([[1], [true, true]])
    const first = [true, false]
    expect(bools().maskedFill(tensor(first), true).toArray()).toEqual(first)
    expect(bools().maskedFill_(tensor(first), true).toArray()).toEqual(first)
    expect(bools().indexFill(0, at(0), true).toArray()).toEqual(first)
    expect(bools().indexFill_(0, at(0), true).toArray()).toEqual(first)
    expect(bools().indexPut([0], true).toArray()).toEqual(first)
    expect(bools().indexPut_([0], true).toArray()).toEqual(first)
    expect(
      bools()
        .indexPut_([at(0)], true)
        .toArray(),
    ).toEqual(first)
    expect(bools().scatter(0, at(0), true).toArray()).toEqual(first)
    expect(ints().indexPut_([0], true).toArray()).toEqual([1, 0])
    expect(() => zeros([2]).fill_('1' as never)).toThrow(code('INVALID_ARGUMENT'))
    expect(() => full([2], null as never)).toThrow(code('INVALID_ARGUMENT'))
  })
})
