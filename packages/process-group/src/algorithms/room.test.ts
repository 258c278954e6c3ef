/** Where a reduction is written: never where another rank reads, and without a copy if the tensor fills its block. */
import { expect, test } from '@jest/globals'
import { full, Tensor } from '@postgrad/tensor'
import { raw, threadHeap, withHeapLimit } from '@postgrad/tensor/internal'
import { combine } from './combine.js'
import { flat } from './parts.js'
import { roomFor, settle } from './room.js'

const SHAPE = [100, 100]
const inHeap = <T>(fn: () => T): T => withHeapLimit(Number.POSITIVE_INFINITY, fn)

/** Reduces with another rank's tensor `came` while a receiver of `out` still reads it; gives what that receiver sees. */
function reduced(out: Tensor, came: Tensor, isRead = true): { readonly room: Tensor; readonly seen: number } {
  const token = isRead ? out.storage.share(out.offset)!.token : null
  const before = out.storage.host!
  return inHeap(() => {
    const own = flat(out)
    const room = roomFor(out, [flat(came)])
    combine('sum', [own, flat(came)], room)
    settle('allReduce', out, room)
    if (token !== null) threadHeap().acknowledge(token)
    return { room, seen: before[out.offset]! }
  })
}

test('PG-31: into what has come, where nobody else has it', () => {
  threadHeap()
  const [x, came] = inHeap(() => [full(SHAPE, 1), full(SHAPE, 2)])
  const view = raw.narrow(x!, 0, 50, 50)
  const { address } = came!.storage.lease!.block
  const { version } = x!.storage
  expect(reduced(x!, came!).seen).toBe(1)
  expect([x!.dataSync()[9999], view.dataSync()[0], came!.isClosed, x!.storage.lease!.block.address]).toEqual([3, 3, true, address])
  expect(x!.storage.version).toBe(version + 1)
})

test('PG-31: into fresh memory, where what has come is read by others or is only a part of a block', () => {
  threadHeap()
  const [x, came, y] = inHeap(() => [full(SHAPE, 1), full(SHAPE, 2), full(SHAPE, 4)])
  const { token } = came!.storage.share(0)!
  expect(reduced(x!, came!).seen).toBe(1)
  threadHeap().acknowledge(token)
  const half = raw.narrow(y!, 0, 0, 50)
  const z = inHeap(() => full([50, 100], 8))
  expect(reduced(z, half).seen).toBe(8)
  expect([x, came, y, z].map((each) => each!.dataSync()[0])).toEqual([3, 2, 4, 12])
  expect([came!.isClosed, y!.isClosed]).toEqual([false, false])
})

test('PG-31: in place, where nobody reads it, and into a copy of the whole where it is a part', () => {
  threadHeap()
  const [x, came, y] = inHeap(() => [full(SHAPE, 1), full(SHAPE, 2), full(SHAPE, 4)])
  const { address } = x!.storage.lease!.block
  expect(reduced(x!, came!, false).room.storage).toBe(x!.storage)
  expect([x!.dataSync()[0], x!.storage.lease!.block.address, came!.isClosed]).toEqual([3, address, false])
  const half = raw.narrow(y!, 0, 50, 50)
  expect(reduced(half, raw.narrow(came!, 0, 0, 50)).seen).toBe(4)
  expect([y!.dataSync()[0], y!.dataSync()[9999], half.dataSync()[0]]).toEqual([4, 6, 6])
})

test('PG-31: what came as it is: its block, which its sender shares until it writes, and views follow', () => {
  threadHeap()
  const [x, sent] = inHeap(() => [full(SHAPE, 1), full(SHAPE, 2)])
  const view = raw.narrow(x!, 0, 50, 50)
  const { address } = sent!.storage.lease!.block
  const came = flat(new Tensor(sent!.storage.fork(0, 10_000)!, [10_000], [1], 0, 10_000, true))
  settle('broadcast', x!, came)
  expect([x!.storage.lease!.block.address, came.isClosed, x!.storage.isShared]).toEqual([address, true, true])
  inHeap(() => raw.add_(sent!, 1))
  expect([x!.dataSync()[0], view.dataSync()[0], sent!.dataSync()[0], x!.storage.isShared]).toEqual([2, 2, 3, false])
})

test('PG-31: what came as a small part of a block is copied, so that the block can go', () => {
  threadHeap()
  const [x, sent] = inHeap(() => [full([4000], 1), full(SHAPE, 2)])
  const { address } = x!.storage.lease!.block
  const came = inHeap(() => new Tensor(sent!.storage.fork(0, 4000)!, [4000], [1], 0, 4000, true))
  settle('recv', x!, came)
  expect([x!.storage.lease!.block.address, came.isClosed, x!.dataSync()[3999]]).toEqual([address, false, 2])
})

test('PG-31: a tensor whose elements do not lie in order gets them in its own', () => {
  threadHeap()
  const x = inHeap(() => raw.transpose(full(SHAPE, 1), 0, 1))
  const { storage } = x
  reduced(
    x,
    inHeap(() => full(SHAPE, 2)),
    false,
  )
  expect([x.storage === storage, x.isContiguous, raw.contiguous(x).dataSync()[5]]).toEqual([true, false, 3])
})
