/** Tests which memory a lazy copy keeps alive. Names begin with the rule of HEAP.md that they hold. */
import { expect, test } from '@jest/globals'
import { threadHeap } from '../heap/thread-heap.js'
import { full } from '../index.js'
import { lazyClone } from '../internal.js'

const ROWS = 64
const heap = threadHeap()

test('HEAP-8: a lazy copy of a small part of a block does not keep the whole block', () => {
  const before = heap.heldBytes
  const x = full([ROWS, 4096], 3)
  const row = lazyClone(x.narrow(0, 1, 1))
  x.storage.close()
  const bytes = row.numel * 4
  expect(heap.heldBytes - before).toBeLessThan(2 * bytes)
  expect(Array.from(row.dataSync().subarray(0, 3))).toEqual([3, 3, 3])
})

test('HEAP-8: a lazy copy of most of a block shares it until one of the two is written', () => {
  const x = full([ROWS, 4096], 3)
  const half = lazyClone(x.narrow(0, 0, ROWS / 2))
  expect(half.storage.lease!.block.id).toBe(x.storage.lease!.block.id)
  x.fill_(4)
  expect([half.dataSync()[0], x.dataSync()[0]]).toEqual([3, 4])
})
