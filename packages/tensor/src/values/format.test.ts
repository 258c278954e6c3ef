/** Printed tensors, as PyTorch 1.13 prints the same values (names of dtypes and flags are ours). */
import { expect, test } from '@jest/globals'
import { arange, type DType, full, type NestedArray, tensor, zeros } from '../index.js'
import { formatTensor } from './format.js'

const print = (data: NestedArray, dtype?: DType) => tensor(data, { dtype }).toString()

test.each<[NestedArray, DType | undefined, string]>([
  [3.5, undefined, 'tensor(3.5000)'],
  [0, undefined, 'tensor(0.)'],
  [[1, 2, 3], undefined, 'tensor([1., 2., 3.])'],
  [
    [
      [1.5, -2.25],
      [100, 0.001],
    ],
    undefined,
    'tensor([[ 1.5000e+00, -2.2500e+00],\n        [ 1.0000e+02,  1.0000e-03]])',
  ],
  [[1e-6, 1], undefined, 'tensor([1.0000e-06, 1.0000e+00])'],
  [[1e-5], undefined, 'tensor([1.0000e-05])'],
  [[1e9], undefined, 'tensor([1.0000e+09])'],
  [[1e10, 1], undefined, 'tensor([1.0000e+10, 1.0000e+00])'],
  [[123456.5, 0.25], undefined, 'tensor([1.2346e+05, 2.5000e-01])'],
  [[1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], undefined, 'tensor([1., nan, inf, -inf])'],
  [[1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], undefined, 'tensor([1.5000,    nan,    inf,   -inf])'],
  [[-0, 2], undefined, 'tensor([-0., 2.])'],
  [[], undefined, 'tensor([])'],
  [[], 'int32', 'tensor([], dtype=int32)'],
  [[true, false], undefined, 'tensor([ true, false])'],
  [true, undefined, 'tensor(true)'],
  [[[1, -20]], 'int32', 'tensor([[  1, -20]], dtype=int32)'],
  [[0, 0], 'float64', 'tensor([0., 0.], dtype=float64)'],
])('%j as %s', (data, dtype, expected) => {
  expect(print(data, dtype)).toBe(expected)
})

test('three dimensions are set apart by an empty line', () => {
  expect(zeros([2, 2, 2]).toString()).toBe('tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])')
  expect(zeros([0, 3]).toString()).toBe('tensor([], size=[0, 3])')
})

test('lines break at width 80', () => {
  expect(arange(30).div(7).toString()).toBe(
    'tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n' +
      '        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n' +
      '        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n' +
      '        3.8571, 4.0000, 4.1429])',
  )
})

test('beyond 1000 elements only the edges are shown', () => {
  expect(arange(2000).toString()).toBe('tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])')
  const row = '[0., 0., 0.,  ..., 0., 0., 0.]'
  const rows = [row, row, row, '...', row, row, row].join(',\n        ')
  expect(full([40, 50], 0).toString()).toBe(`tensor([${rows}])`)
})

test('a suffix that does not fit starts a line of its own', () => {
  const flat = Float32Array.from({ length: 18 }, (_, i) => i / 7)
  expect(formatTensor(flat, [18], 'float32', ['requiresGrad=true'])).toBe(
    'tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n' +
      '        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286],\n' +
      '       requiresGrad=true)',
  )
})

test('a tensor in an expression of the language is refused with what to write, and as a text it prints', () => {
  const [a, b] = [tensor([1, 2]), tensor([3, 4])] as unknown as [number, number]
  const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('a.add(b)') })
  for (const use of [
    () => a + b,
    () => a + 1,
    () => a * b,
    () => -a,
    () => a < b,
    // biome-ignore lint/suspicious/noDoubleEquals: the operator is what is tried
    () => (a as unknown) == 1,
    () => Number(a),
    () => Math.max(a, b),
  ]) {
    expect(use).toThrow(refused)
  }
  expect([`${a}`, String(b), [a].join()]).toEqual(['tensor([1., 2.])', 'tensor([3., 4.])', 'tensor([1., 2.])'])
  expect(a === b || (a as unknown) == null).toBe(false)
})
