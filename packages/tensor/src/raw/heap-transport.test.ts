/** The transport of tensors between two workers of one heap, both in this thread. Names begin with the rule of HEAP.md that they hold. */
import { beforeEach, describe, expect, test } from '@jest/globals'
import { Heap } from '../heap/heap.js'
import { HEAP_BYTES_MIN, withHeapLimit } from '../heap/policy.js'
import { threadHeap } from '../heap/thread-heap.js'
import { tensor, zeros } from '../index.js'
import { raw, type Tensor } from '../internal.js'
import { HeapRoom, HeapTransport } from './heap-transport.js'

const here = threadHeap()
let there: Heap
let out: HeapTransport
let into: HeapTransport
const LENGTH = HEAP_BYTES_MIN

beforeEach(() => {
  there = Heap.attach(here.handle()!)
  out = new HeapTransport(here)
  into = new HeapTransport(there)
})

function large(): Tensor {
  return tensor(Float32Array.from({ length: LENGTH }, (_, i) => i)).add(0)
}

function carry(x: Tensor): Tensor {
  const name = out.give(x)
  expect(name).not.toBeNull()
  return into.take(name!, x.dtype, x.shape, x.numel)
}

describe('a tensor on its way', () => {
  test('HEAP-4 is held by the sender until the receiver has read the message, then by the receiver alone', () => {
    const x = large()
    const held = there.heldBytes
    const y = carry(x)
    out.sent(1)
    expect(y.storage.host!.buffer).toBe(x.storage.host!.buffer)
    expect(y.storage.host!.byteOffset).toBe(x.storage.host!.byteOffset)
    expect([out.inFlight, into.hasTaken]).toEqual([1, true])
    const values = x.dataSync()
    x.storage.close()
    out.taken(0)
    expect(out.inFlight).toBe(1)
    out.taken(1)
    expect(out.inFlight).toBe(0)
    expect(y.dataSync()).toEqual(values)
    expect(there.heldBytes).toBeGreaterThan(held)
    y.storage.close()
    expect(there.heldBytes).toBe(held)
  })

  test('HEAP-8 is a copy to both: who writes first writes elsewhere', () => {
    const x = large()
    const view = x.narrow(0, 10, 5)
    const y = carry(x)
    out.sent(1)
    raw.fill_(x, -1)
    expect(Array.from(view.dataSync())).toEqual([-1, -1, -1, -1, -1])
    expect(y.dataSync()[11]).toBe(11)
    raw.fill_(y, -2)
    expect(x.dataSync()[11]).toBe(-1)
    const z = carry(x)
    raw.mul_(z, 2)
    expect([x.dataSync()[11], z.dataSync()[11]]).toEqual([-1, -2])
  })

  test('views and managed tensors arrive row by row', () => {
    const x = large().reshape([2, LENGTH / 2])
    expect(carry(x.narrow(0, 1, 1)).dataSync()[0]).toBe(LENGTH / 2)
    const transposed = carry(x.T)
    expect(transposed.isContiguous).toBe(true)
    expect(transposed.dataSync()).toEqual(x.T.dataSync())
    const managed = withHeapLimit(0, () => zeros([LENGTH]).add(3))
    expect(managed.storage.kind).toBe('managed')
    expect(carry(managed).dataSync()[7]).toBe(3)
  })

  test('HEAP-6 without room its bytes have to travel', () => {
    const managed = zeros([16])
    withHeapLimit(0, () => expect(out.give(managed)).toBeNull())
    const turned = large().reshape([2, LENGTH / 2]).T
    const { heldBytes } = here
    withHeapLimit(0, () => expect(out.give(turned)).toBeNull())
    expect(here.heldBytes).toBe(heldBytes)
  })

  test('a closed tensor is refused, and nothing of it is held', () => {
    for (const x of [large(), large().reshape([2, LENGTH / 2]).T]) {
      const { heldBytes } = here
      x.storage.close()
      expect(() => out.give(x)).toThrow(expect.objectContaining({ code: 'TENSOR_CLOSED' }))
      expect(here.heldBytes).toBeLessThan(heldBytes)
    }
  })

  test('HEAP-4 a message that does not leave, and a link that breaks, give everything back', () => {
    const x = large()
    const inFlight = here.inFlight
    out.give(x)
    out.unsent()
    expect(here.inFlight).toBe(inFlight)
    out.give(x)
    out.sent(7)
    out.give(x)
    out.close()
    expect([here.inFlight, out.inFlight]).toEqual([inFlight, 0])
  })
})

test('HEAP-4 a link that breaks gives back what it held, and nothing of another', () => {
  const next = new HeapTransport(here)
  const inFlight = here.inFlight
  const x = large()
  next.give(x)
  next.sent(1)
  out.give(x)
  out.sent(1)
  out.close()
  expect([here.inFlight - inFlight, next.inFlight]).toEqual([1, 1])
  next.close()
  expect(here.inFlight).toBe(inFlight)
})

describe('what arrives', () => {
  test('is storage of its own elements alone, so a write copies no more than these', () => {
    const x = large()
    const y = carry(x.narrow(0, LENGTH - 10, 5))
    expect([y.offset, y.storage.host!.length]).toEqual([0, 5])
    const z = new HeapTransport(there).give(y)!
    expect(z[4]).toBe(LENGTH - 10)
    const again = new HeapTransport(here).take(z, 'float32', [5], 5)
    raw.add_(y, 1)
    expect(y.toArray()).toEqual([LENGTH - 9, LENGTH - 8, LENGTH - 7, LENGTH - 6, LENGTH - 5])
    expect(again.toArray()).toEqual([LENGTH - 10, LENGTH - 9, LENGTH - 8, LENGTH - 7, LENGTH - 6])
  })
})

describe('a name that is wrong', () => {
  test.each([
    ['the offset', (n: number[]) => n.with(4, LENGTH), 'HEAP_BLOCK_STALE'],
    ['a negative offset', (n: number[]) => n.with(4, -1), 'HEAP_BLOCK_STALE'],
    ['the generation', (n: number[]) => n.with(1, n[1]! + 1), 'HEAP_BLOCK_STALE'],
    ['the sender', (n: number[]) => n.with(2, 999), 'HEAP_BLOCK_STALE'],
    ['the block', (n: number[]) => n.with(0, -5), 'HEAP_BLOCK_STALE'],
  ])('HEAP-5 by %s is refused and holds nothing', (_, change, code) => {
    const x = large()
    const name = change([...out.give(x)!]) as unknown as Parameters<HeapTransport['take']>[0]
    const held = there.heldBytes
    expect(() => into.take(name, 'float32', [LENGTH], LENGTH)).toThrow(expect.objectContaining({ code }))
    expect(there.heldBytes).toBe(held)
    out.unsent()
  })
})

describe('to a worker of another process', () => {
  beforeEach(() => {
    out = new HeapTransport(here, new HeapRoom())
  })

  test('HEAP-4 the bytes are lent where they lie, and held until the peer has read the message', () => {
    const x = large()
    const part = x.narrow(0, 8, LENGTH - 8)
    const held = here.heldBytes
    const bytes = out.lend(part)!
    out.sent(3)
    expect([bytes.buffer, bytes.length]).toEqual([x.storage.host!.buffer, 4 * (LENGTH - 8)])
    expect(new Float32Array(bytes.buffer, bytes.byteOffset, 2)).toEqual(Float32Array.of(8, 9))
    x.storage.close()
    expect([out.inFlight, here.heldBytes]).toEqual([1, held])
    out.taken(3)
    expect(out.inFlight).toBe(0)
    expect(here.heldBytes).toBeLessThan(held)
  })

  test('HEAP-8 who writes to a tensor whose bytes are lent writes elsewhere', () => {
    const x = large()
    const bytes = out.lend(x)!
    out.sent(1)
    raw.fill_(x, -1)
    expect(new Float32Array(bytes.buffer, bytes.byteOffset, LENGTH)[5]).toBe(5)
    out.taken(1)
  })

  test('HEAP-4 what was lent when this worker closes is held until the link has let it go', () => {
    const inFlight = here.inFlight
    out.lend(large())
    out.sent(1)
    out.end()
    expect(here.inFlight).toBe(inFlight + 1)
    out.close()
    expect(here.inFlight).toBe(inFlight)
  })

  test('nothing is lent to a peer that is not to be believed, nor without a heap', () => {
    const x = large()
    expect(new HeapTransport(here, new HeapRoom(), false).lend(x)).toBeNull()
    const without = new HeapTransport(null, new HeapRoom())
    expect([without.lend(x), without.lend(zeros([3])), without.give(x)]).toEqual([null, null, null])
    expect([without.reach, without.inFlight]).toEqual(['bytes', 0])
  })

  test('what does not lie so in the heap is not lent, and nothing is named', () => {
    const x = large()
    expect(out.give(x)).toBeNull()
    expect(out.lend(x.reshape([2, LENGTH / 2]).T)).toBeNull()
    expect(out.lend(zeros([3]))).toBeNull()
    expect(out.inFlight).toBe(0)
  })

  test('HEAP-5 a name that comes from there is refused', () => {
    const name = new HeapTransport(here).give(large())!
    expect(() => out.take(name, 'float32', [LENGTH], LENGTH)).toThrow(expect.objectContaining({ code: 'HEAP_NOT_SHARED' }))
  })

  test('HEAP-4 bytes are read into a block, which becomes a tensor of any type where it lies, and goes back with it', () => {
    const room = new HeapRoom()
    const into = new HeapTransport(here, room)
    const held = here.heldBytes
    const bytes = room.place(4 * LENGTH)!
    new Float32Array(bytes.buffer, bytes.byteOffset, LENGTH).forEach((_, i, all) => {
      all[i] = i
    })
    const x = into.over(bytes, 'float32', [2, LENGTH / 2], LENGTH)!
    expect([x.storage.host!.buffer, x.storage.host!.byteOffset, x.storage.kind]).toEqual([bytes.buffer, bytes.byteOffset, 'heap'])
    expect(x.narrow(1, LENGTH / 2 - 1, 1).toArray()).toEqual([[LENGTH / 2 - 1], [LENGTH - 1]])
    expect(into.over(bytes, 'float32', [LENGTH], LENGTH)).toBeNull()
    x.storage.close()
    expect(here.heldBytes).toBe(held)
    const flags = room.place(LENGTH)!.fill(7)
    const truths = into.over(flags, 'bool', [LENGTH], LENGTH)!
    expect(truths.storage.host![LENGTH - 1]).toBe(1)
    expect(into.over(new Uint8Array(8), 'float32', [2], 2)).toBeNull()
    expect(room.place(16)).toBeNull()
    truths.storage.close()
  })
})
