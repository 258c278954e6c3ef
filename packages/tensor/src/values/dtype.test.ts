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
  expect(allocate(dtype, 4096 / BYTES_PER_ELEMENT[dtype]).buffer.byteLength).toBe(4096)
})
