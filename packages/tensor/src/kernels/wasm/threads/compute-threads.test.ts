/** The setting, and how threads share what the machine has. */
import { afterEach, expect, test } from '@jest/globals'
import { Heap } from '../../../heap/heap.js'
import { RESERVED_BYTES_MIN } from '../../../heap/shared-memory.js'
import { threadHeap } from '../../../heap/thread-heap.js'
import { memoryScope, rand } from '../../../index.js'
import { conv2d } from '../../../operations.js'
import { COMPUTE_THREADS_MAX, getComputeThreads, setComputeThreads, withThreadLimits } from './compute-threads.js'

afterEach(() => setComputeThreads(1))

test('it is 1, and then what was set', () => {
  expect(getComputeThreads()).toBe(1)
  setComputeThreads(COMPUTE_THREADS_MAX)
  expect(getComputeThreads()).toBe(COMPUTE_THREADS_MAX)
})

test.each([0, -1, 1.5, 10_000, Number.NaN, '2', undefined])('%p threads are refused, and nothing changes', (count) => {
  setComputeThreads(2)
  expect(() => setComputeThreads(count as number)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      op: 'setComputeThreads',
      message: expect.stringContaining(`a whole number of threads from 1 to 256, got ${count}`),
    }),
  )
  expect(getComputeThreads()).toBe(2)
})

test('many threads take no scratch for copies of images that are too large for all of them', () => {
  const restore = withThreadLimits({ cores: 64, sharedWork: 1 })
  const heap = threadHeap()
  const before = heap.heldBytes
  try {
    setComputeThreads(64)
    memoryScope(() => conv2d(rand([2, 3, 700, 700]), rand([1, 3, 3, 3]), null, { padding: 1 }))
    // One copy has 6 MB.
    expect(heap.heldBytes - before).toBeLessThan(100 * 2 ** 20)
  } finally {
    restore()
  }
})

test('all threads together have as many helpers as they may; those of a dead one are free again', () => {
  const heap = Heap.create({ reservedBytes: RESERVED_BYTES_MIN })
  const handles = [heap.handle()!, heap.handle()!]
  const [one, other] = handles.map((handle) => Heap.attach(handle)) as [Heap, Heap]
  expect([one.claimHelpers(2, 3), other.claimHelpers(2, 3), heap.claimHelpers(1, 3)]).toEqual([2, 1, 0])
  // To ask again is not a second claim.
  expect([one.claimHelpers(2, 3), other.claimHelpers(2, 3)]).toEqual([2, 1])
  expect(heap.reclaim(handles[0]!)).toBe(true)
  expect([other.claimHelpers(2, 3), heap.claimHelpers(1, 3)]).toEqual([2, 1])
  expect([other.claimHelpers(0, 3), heap.claimHelpers(4, 3)]).toEqual([0, 3])
  // A thread keeps the helpers that it has.
  expect([heap.claimHelpers(4, 0), heap.claimHelpers(2, 0), other.claimHelpers(1, 0)]).toEqual([3, 2, 0])
})
