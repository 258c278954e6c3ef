/** The order of tensors by their bits. */
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Tensor, tensor } from '../index.js'
import { compareValues } from './compare-values.js'
import { SparseTensor } from './sparse-tensor.js'

const f32 = (...values: number[]): Tensor => tensor(Float32Array.from(values))
const f64 = (...values: number[]): Tensor => tensor(Float64Array.from(values))

/** A NaN of these bits. */
function nan(bits: number): Tensor {
  const array = new Float32Array(1)
  new Uint32Array(array.buffer)[0] = bits
  return tensor(array)
}

test('DA-46 the first elements that differ decide, in logical order', () => {
  expect(compareValues(f32(1, 2, 3), f32(1, 2, 3))).toBe(0)
  expect(compareValues(f32(1, 5, 0), f32(1, 4, 9))).toBeGreaterThan(0)
  expect(compareValues(f64(-1), f64(Number.NEGATIVE_INFINITY))).toBeGreaterThan(0)
  // Rows [1, 3] and [2, 4]; [1, 2] and [3, 4].
  const x = tensor([1, 2, 3, 4]).reshape([2, 2])
  expect(compareValues(x.transpose(0, 1), x)).toBeGreaterThan(0)
  expect(compareValues(x.transpose(0, 1), x.transpose(0, 1).contiguous())).toBe(0)
  expect(compareValues(x.narrow(1, 1, 1), x.narrow(1, 0, 1))).toBeGreaterThan(0)
  expect(compareValues(f32(7).expand([3]), f32(7, 7, 7))).toBe(0)
  expect(compareValues(f32(), f32())).toBe(0)
})

test('DA-46 -0 comes before 0, NaNs come last, by their bits', () => {
  for (const make of [f32, f64]) {
    expect(compareValues(make(-0), make(0))).toBeLessThan(0)
    expect(compareValues(make(0), make(-0))).toBeGreaterThan(0)
    expect(compareValues(make(-0), make(-0))).toBe(0)
    expect(compareValues(make(Number.NaN), make(Number.POSITIVE_INFINITY))).toBeGreaterThan(0)
    expect(compareValues(make(Number.POSITIVE_INFINITY), make(Number.NaN))).toBeLessThan(0)
    expect(compareValues(make(Number.NaN, 1), make(Number.NaN, 2))).toBeLessThan(0)
  }
  expect(compareValues(nan(0x7fc00001), nan(0x7fc00002))).toBeLessThan(0)
  expect(compareValues(nan(0x7fc00002), nan(0x7fc00001))).toBeGreaterThan(0)
})

test('DA-46 sparse rows go by indices, then by values, and before what is dense', () => {
  const rows = (indices: number[], values: number[]) =>
    new SparseTensor(tensor(Int32Array.from(indices)), f32(...values).reshape([indices.length, 1]), [4, 1])
  expect(compareValues(rows([1, 2], [9, 9]), rows([1, 3], [1, 1]))).toBeLessThan(0)
  expect(compareValues(rows([1, 2], [9, 9]), rows([1, 2], [9, 8]))).toBeGreaterThan(0)
  expect(compareValues(rows([1], [1]), rows([1, 2], [1, 1]))).toBeLessThan(0)
  expect(compareValues(rows([1], [1]), rows([1], [1]))).toBe(0)
  const dense = f32(0, 0, 0, 0).reshape([4, 1])
  expect(compareValues(rows([0], [5]), dense)).toBeLessThan(0)
  expect(compareValues(dense, rows([0], [5]))).toBeGreaterThan(0)
})

test('DA-46 it is a total order', () => {
  const values = fc.array(fc.oneof(fc.float(), fc.constantFrom(0, -0, Number.NaN)), { minLength: 2, maxLength: 2 })
  fc.assert(
    fc.property(values, values, values, (a, b, c) => {
      const [x, y, z] = [f32(...a), f32(...b), f32(...c)]
      expect(Math.sign(compareValues(x, y))).toBe(-Math.sign(compareValues(y, x)) + 0)
      expect(compareValues(x, y) === 0).toBe(a.every((value, i) => Object.is(value, b[i])))
      if (compareValues(x, y) <= 0 && compareValues(y, z) <= 0) expect(compareValues(x, z)).toBeLessThanOrEqual(0)
    }),
  )
})
