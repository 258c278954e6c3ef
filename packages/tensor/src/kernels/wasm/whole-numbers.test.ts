/**
 * Loops over int32 and bool, which share the definitions of `elementwise/` with the oracle: against formulas of their own, in whole numbers without
 * end that are cut to 32 bits as PyTorch cuts them.
 */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '../../index.js'
import { rawOperations as operations } from '../../ops/define/define.js'
import { Generator } from '../../values/generator.js'

const SEED = 20261123
const random = new Generator(SEED)
const ROWS = 7
const COLUMNS = 9
const wrap = (value: bigint): number => Number(BigInt.asIntN(32, value))
const whole = (from: number, below: number): number[] => Array.from({ length: ROWS * COLUMNS }, () => random.integer(from, below))
const int32 = (values: readonly number[]): Tensor => tensor([...values], { dtype: 'int32' }).reshape([ROWS, COLUMNS])
const bool = (values: readonly number[]): Tensor => tensor([...values], { dtype: 'bool' }).reshape([ROWS, COLUMNS])
const flat = (x: Tensor): number[] => [...x.dataSync()].map(Number)
const rowsOf = (values: readonly number[]): number[][] =>
  Array.from({ length: ROWS }, (_, i) => values.slice(i * COLUMNS, (i + 1) * COLUMNS))
const mod = (a: number, b: number): number => a - Math.floor(a / b) * b

describe(`int32 and bool (seed ${SEED})`, () => {
  const a = whole(-1000, 1000)
  const b = whole(-9, 10).map((value) => (value === 0 ? 4 : value))
  const [p, q, r] = [whole(0, 2), whole(0, 2), whole(0, 2)]
  const pairs = (fn: (x: number, y: number) => number, x = a, y = b): number[] => x.map((value, i) => fn(value, y[i]!))

  test.each<[string, () => Tensor, () => number[]]>([
    ['remainder', () => operations.remainder(int32(a), int32(b)), () => pairs(mod)],
    ['fmod', () => operations.fmod(int32(a), int32(b)), () => pairs((x, y) => x - Math.trunc(x / y) * y)],
    ['floorDivide', () => operations.floorDivide(int32(a), int32(b)), () => pairs((x, y) => Math.floor(x / y))],
    ['pow', () => operations.pow(int32(a), 5), () => a.map((x) => wrap(BigInt(x) ** 5n))],
    [
      'pow of tensors',
      () => operations.pow(int32(a), int32(b.map(Math.abs))),
      () => pairs((x, y) => wrap(BigInt(x) ** BigInt(Math.abs(y)))),
    ],
    ['bitwiseAnd', () => operations.bitwiseAnd(int32(a), int32(b)), () => pairs((x, y) => x & y)],
    ['bitwiseOr', () => operations.bitwiseOr(int32(a), int32(b)), () => pairs((x, y) => x | y)],
    ['bitwiseXor', () => operations.bitwiseXor(int32(a), int32(b)), () => pairs((x, y) => x ^ y)],
    ['add_ with alpha', () => operations.add_(int32(a), int32(b), 3), () => pairs((x, y) => x + 3 * y)],
    ['lt of bool', () => operations.lt(bool(p), bool(q)), () => pairs((x, y) => Number(x < y), p, q)],
    ['le of bool', () => operations.le(bool(p), bool(q)), () => pairs((x, y) => Number(x <= y), p, q)],
    ['gt of bool', () => operations.gt(bool(p), bool(q)), () => pairs((x, y) => Number(x > y), p, q)],
    ['ge of bool', () => operations.ge(bool(p), bool(q)), () => pairs((x, y) => Number(x >= y), p, q)],
    ['where of bool', () => operations.where(bool(r), bool(p), bool(q)), () => r.map((take, i) => (take === 1 ? p[i]! : q[i]!))],
    ['sign of bool', () => operations.sign(bool(p)), () => p],
    ['prod', () => operations.prod(int32(a), 1), () => rowsOf(a).map((row) => wrap(row.reduce((x, y) => x * BigInt(y), 1n)))],
    ['amax', () => operations.amax(int32(a), 1), () => rowsOf(a).map((row) => Math.max(...row))],
    ['amin', () => operations.amin(int32(a), 1), () => rowsOf(a).map((row) => Math.min(...row))],
    ['argmax', () => operations.argmax(int32(a), 1), () => rowsOf(a).map((row) => row.indexOf(Math.max(...row)))],
    ['argmin', () => operations.argmin(int32(a), 1), () => rowsOf(a).map((row) => row.indexOf(Math.min(...row)))],
    [
      'cumsum',
      () => operations.cumsum(int32(a), 1),
      () => rowsOf(a).flatMap((row) => row.map((_, i) => row.slice(0, i + 1).reduce((x, y) => x + y, 0))),
    ],
    [
      'cumprod',
      () => operations.cumprod(int32(a), 1),
      () => rowsOf(a).flatMap((row) => row.map((_, i) => wrap(row.slice(0, i + 1).reduce((x, y) => x * BigInt(y), 1n)))),
    ],
    [
      'reverseCumsum',
      () => operations.reverseCumsum(int32(a), 1),
      () => rowsOf(a).flatMap((row) => row.map((_, i) => row.slice(i).reduce((x, y) => x + y, 0))),
    ],
    ['argmax of bool', () => operations.argmax(bool(p), 1), () => rowsOf(p).map((row) => row.indexOf(Math.max(...row)))],
    ['argmin of bool', () => operations.argmin(bool(p), 1), () => rowsOf(p).map((row) => row.indexOf(Math.min(...row)))],
  ])('%s', (_, ours, expected) => {
    expect(flat(ours())).toEqual(expected())
  })
})
