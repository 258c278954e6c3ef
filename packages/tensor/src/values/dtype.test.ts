import { expect, test } from '@jest/globals'
import { allocate, BYTES_PER_ELEMENT, DTYPES } from '../internal.js'

test.each(DTYPES)('%s arrays of any length are zeros, lie apart from each other, and large ones have a buffer of their own', (dtype) => {
  const lengths = [0, 1, 15, 16, 17, 33, 100, 511, 512, 513, 2048, 2049, 5000]
  // Twice: slabs are full in between.
  const arrays = [...lengths, ...lengths].map((length) => allocate(dtype, length))
  for (const [i, array] of arrays.entries()) {
    expect(array).toHaveLength(lengths[i % lengths.length]!)
    expect(array.every((x) => x === 0)).toBe(true)
    array.fill(1 + i)
  }
  for (const [i, array] of arrays.entries()) expect(array.every((x) => x === 1 + i)).toBe(true)
  expect(allocate(dtype, 8200 / BYTES_PER_ELEMENT[dtype]).buffer.byteLength).toBe(8200)
  // An array that is kept keeps no more than 32 times its size, from 512 bytes on.
  const slabOf = (bytes: number) => allocate(dtype, bytes / BYTES_PER_ELEMENT[dtype]).buffer.byteLength
  expect([512, 2048, 2056, 8192].map(slabOf)).toEqual([16_384, 16_384, 16_384, 16_384])
})
