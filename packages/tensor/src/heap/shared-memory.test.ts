/** How much of a limited address space the heap takes. */
import { expect, test } from '@jest/globals'
import { addressSpaceLeft, fittingHeapBytes, RESERVED_BYTES_MAX } from './shared-memory.js'

const KIB = 1024
const MIB = KIB * KIB
const GIB = 1024 * MIB
const LIMITS = (bytes: string): string => `Limit  Soft Limit  Hard Limit  Units\nMax address space  ${bytes}  unlimited  bytes\n`
const files = (limit: string) => (path: string) => (path.endsWith('limits') ? LIMITS(limit) : 'Name: node\nVmSize:\t 1048576 kB\n')

test('HEAP-10 what is left of the address space: of a limit, without one, where the system does not say', () => {
  expect(addressSpaceLeft(files(String(3 * GIB)))).toBe(2 * GIB)
  expect(addressSpaceLeft(files(String(GIB / 2)))).toBe(0)
  expect(addressSpaceLeft(files('unlimited'))).toBe(Number.POSITIVE_INFINITY)
  expect(
    addressSpaceLeft(() => {
      throw new Error('no such file')
    }),
  ).toBe(Number.POSITIVE_INFINITY)
})

test.each([
  [Number.POSITIVE_INFINITY, 4 * GIB],
  [40 * GIB, 4 * GIB],
  [4 * GIB, GIB / 2],
  [1.5 * GIB, 192 * MIB],
  [10 * MIB, 64 * MIB],
])('HEAP-10 where %d bytes of addresses are left, the heap takes %d: threads need the rest', (left, bytes) => {
  expect(fittingHeapBytes(RESERVED_BYTES_MAX, left)).toBe(bytes)
})
