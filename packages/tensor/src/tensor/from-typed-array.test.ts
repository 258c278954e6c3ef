/** Tensors over arrays that the user has: copied by `tensor`, shared by `fromTypedArray`. */
import { expect, test } from '@jest/globals'
import { fromTypedArray, tensor } from '../index.js'

test('tensor copies and keeps the type, whatever it is; dtype converts', () => {
  for (const [array, dtype] of [
    [Float32Array.of(1, 0.5), 'float32'],
    [Float64Array.of(1, 0.1), 'float64'],
    [Int32Array.of(3, -4), 'int32'],
    [Uint8Array.of(1, 0), 'bool'],
  ] as const) {
    const x = tensor(array)
    expect([x.dtype, [...x.dataSync()]]).toEqual([dtype, [...array]])
    array[0] = 0
    expect(x.dataSync()[0]).not.toBe(0)
  }
  expect([...tensor(Uint8Array.of(7, 0)).dataSync()]).toEqual([1, 0])
  expect([...tensor(Float32Array.of(1.5, -2.5), { dtype: 'int32' }).dataSync()]).toEqual([1, -2])
})

test('fromTypedArray shares: each sees what is written to the other', () => {
  const array = Float32Array.of(1, 2, 3, 4, 5, 6)
  const x = fromTypedArray(array, [2, -1])
  array[0] = 10
  x.index(1).fill_(0)
  expect(x.toArray()).toEqual([
    [10, 2, 3],
    [0, 0, 0],
  ])
  expect([...array]).toEqual([10, 2, 3, 0, 0, 0])
  expect(fromTypedArray(Int32Array.of(1, 2)).shape).toEqual([2])
  expect(fromTypedArray(array.subarray(1, 3)).toArray()).toEqual([2, 3])
})

test('fromTypedArray refuses what is no such array, other sizes, and bytes that are no truth values', () => {
  const refusal = (code: string, message: string) =>
    expect.objectContaining({ code, message: expect.stringContaining(message) as unknown as string }) as unknown as Error
  expect(() => fromTypedArray([1, 2] as unknown as Float32Array)).toThrow(refusal('INVALID_ARGUMENT', 'got an array of 1, 2'))
  expect(() => fromTypedArray(Float32Array.of(1, 2), [3])).toThrow(
    refusal('SHAPE_MISMATCH', 'fromTypedArray: expected a shape of 2 elements'),
  )
  expect(() => fromTypedArray(Uint8Array.of(2))).toThrow(refusal('INVALID_ARGUMENT', 'a Uint8Array of 0 and 1'))
})

test('bytes that have gone to another thread are refused, with what to do', () => {
  const gone = new Float32Array(2)
  structuredClone(gone.buffer, { transfer: [gone.buffer] })
  for (const make of [tensor, fromTypedArray])
    expect(() => make(gone)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('Pass a copy') }))
})
