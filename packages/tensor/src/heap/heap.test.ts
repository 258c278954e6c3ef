/** The heap within one thread: several `Heap`s on one memory act as several workers. Names begin with the rule of HEAP.md that they test. */
import { beforeEach, describe, expect, test } from '@jest/globals'
import { Generator } from '../values/generator.js'
import { Heap, type HeapBlock, type HeapHandle } from './heap.js'
import { KIND_HEAD, KIND_TAIL, ownerKind, ownerWord, SLOTS_MAX } from './layout.js'
import { RESERVED_BYTES_MIN } from './shared-memory.js'
import { CLASS_BYTES, SEGMENT_BYTES, SMALL_BYTES_MAX } from './size-classes.js'

const reservedBytes = RESERVED_BYTES_MIN
let a: Heap
let b: Heap

function join(heap: Heap): Heap {
  return Heap.attach(heap.handle()!)
}

/** Segments that are claimed, by anybody. */
function used(heap: Heap): number {
  let sum = 0
  heap.words.walk((_segment, _word, length) => {
    sum += length
  })
  return sum
}

function fill(heap: Heap, bytes: number): HeapBlock[] {
  const blocks: HeapBlock[] = []
  for (let block = heap.allocate(bytes); block !== null; block = heap.allocate(bytes)) blocks.push(block)
  return blocks
}

beforeEach(() => {
  a = Heap.create({ reservedBytes })
  b = join(a)
})

describe('allocation', () => {
  test.each([1, 4096, 4097, 30_000, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 5_000_000])(
    'HEAP-1 blocks of %d bytes do not overlap, are aligned, and come back',
    (bytes) => {
      const blocks = fill(a, bytes)
      expect(blocks.length).toBeGreaterThan(5)
      const ends = blocks.map((x) => [x.address, x.address + x.capacityBytes]).sort((x, y) => x[0]! - y[0]!)
      const wrong = ends.filter(([start, end], i) => {
        const next = ends[i + 1]?.[0] ?? reservedBytes
        return start! % 64 !== 0 || end! - start! < bytes || end! > next
      })
      expect(wrong).toEqual([])
      for (const block of blocks) a.release(block)
      expect(a.heldBytes).toBe(0)
      expect(fill(a, bytes)).toHaveLength(blocks.length)
    },
  )

  test('HEAP-1 a block wastes at most a half of itself, and up to 32 KiB a fourth', () => {
    for (let i = 1; i < CLASS_BYTES.length; i++) {
      const smallest = CLASS_BYTES[i - 1]! + 1
      expect(smallest / CLASS_BYTES[i]!).toBeGreaterThan(CLASS_BYTES[i]! <= 32_768 ? 0.74 : 0.5)
    }
  })

  test('HEAP-6 all that one size leaves becomes room for another', () => {
    for (const bytes of [5000, 3_000_000, SMALL_BYTES_MAX, 200_000]) {
      const blocks = fill(a, bytes)
      const held = blocks.reduce((sum, x) => sum + x.capacityBytes, 0)
      expect(held / reservedBytes).toBeGreaterThan(0.8)
      for (const block of blocks) a.release(block)
    }
    a.trim()
    expect(used(a)).toBe(0)
  })

  test.each([1, 2])('HEAP-6 blocks of mixed sizes that come and go need little more than is held at a time (seed %d)', (seed) => {
    const heap = Heap.create()
    const peer = join(heap)
    const random = new Generator(seed)
    const size = () => Math.floor(4096 * 2 ** (random.uniform() * 10))
    const blocks = Array.from({ length: 400 }, () => heap.allocate(size())!)
    let heldMax = 0
    for (let i = 0; i < 10_000; i++) {
      const at = Math.floor(random.uniform() * blocks.length)
      const x = blocks[at]!
      if (i % 8 > 0) heap.release(x)
      else {
        // The peer is the last to let go.
        const { descriptor, token } = heap.share(x)
        const y = peer.adopt(descriptor)
        heap.acknowledge(token)
        heap.release(x)
        peer.release(y)
      }
      blocks[at] = heap.allocate(size())!
      heldMax = Math.max(heldMax, heap.heldBytes)
    }
    expect((heap.words.high * SEGMENT_BYTES) / heldMax).toBeLessThan(1.6)
    expect((used(heap) * SEGMENT_BYTES) / heldMax).toBeLessThan(1.6)
  })

  test('HEAP-6 the limit is on all workers together', () => {
    const heap = Heap.create({ reservedBytes, limitBytes: 10 * SEGMENT_BYTES })
    const other = join(heap)
    const mine = fill(heap, SEGMENT_BYTES)
    expect(mine).toHaveLength(10)
    expect(other.allocate(5000)).toBeNull()
    heap.release(mine.pop()!)
    // Its worker sees that another went without, and keeps nothing in reserve.
    expect(other.allocate(5000)).not.toBeNull()
  })

  test('scratch grows, is apart from blocks, and is there beyond the limit', () => {
    const heap = Heap.create({ reservedBytes, limitBytes: 0 })
    expect(heap.allocate(1)).toBeNull()
    const first = heap.scratch(1000)
    expect(heap.scratch(2000)).toBe(first)
    const second = heap.scratch(10_000_000)
    expect(second % 64).toBe(0)
    expect(heap.scratch(5)).toBe(second)
    expect(() => heap.scratch(reservedBytes)).toThrow(expect.objectContaining({ code: 'STAGING_EXHAUSTED' }))
    expect(heap.scratch(1000)).toBeGreaterThan(0)
  })
})

describe('holders', () => {
  test('HEAP-3 a block is free when the last of its holders lets go, and its owner finds it', () => {
    const blocks = fill(a, 1_000_000)
    const x = blocks[3]!
    const { descriptor, token } = a.share(x)
    a.release(x)
    const y = b.adopt(descriptor)
    a.acknowledge(token)
    expect(a.heldBytes).toBe((blocks.length - 1) * x.capacityBytes)
    expect(a.allocate(1_000_000)).toBeNull()
    expect(y.address).toBe(x.address)
    b.release(y)
    expect(a.allocate(1_000_000)).toMatchObject({ id: x.id, generation: x.generation + 1 })
  })

  test('HEAP-5 what names no block of its sender is refused, and leaves no trace', () => {
    const x = a.allocate(5000)!
    const { descriptor, token } = a.share(x)
    const stale = expect.objectContaining({ code: 'HEAP_BLOCK_STALE' })
    for (const forged of [
      { ...descriptor, id: 3 },
      { ...descriptor, id: -1 },
      { ...descriptor, id: 1.5 },
      { ...descriptor, id: 1e12 },
      { ...descriptor, id: x.id + 1 },
      { ...descriptor, generation: x.generation + 1 },
      { ...descriptor, sender: b.slot },
      { ...descriptor, sender: SLOTS_MAX },
      { ...descriptor, epoch: a.epoch + 1 },
    ]) {
      expect(() => b.adopt(forged)).toThrow(stale)
    }
    a.acknowledge(token)
    a.release(x)
    expect(() => b.adopt(descriptor)).toThrow(stale)
    expect(a.words.holders(x.id)).toEqual([])
    expect([a.audit(), b.audit()]).toEqual([[], []])
  })

  test('HEAP-4 in flight the sender holds; once that is over, however it ended, it is as if it had not been sent', () => {
    const x = a.allocate(5000)!
    expect(a.isShared(x)).toBe(false)
    const { token } = a.share(x)
    expect(a.isShared(x)).toBe(true)
    a.acknowledge(token)
    expect(a.isShared(x)).toBe(false)
    a.acknowledge(token) // again
    a.release(x)
    expect(a.words.holders(x.id)).toEqual([])
  })

  test('HEAP-8 both sides see that they share, until one lets go', () => {
    const x = a.allocate(100_000)!
    const { descriptor, token } = a.share(x)
    const y = b.adopt(descriptor)
    a.acknowledge(token)
    expect([a.isShared(x), b.isShared(y)]).toEqual([true, true])
    a.release(x)
    expect(b.isShared(y)).toBe(false)
  })
})

describe('death', () => {
  test('HEAP-7 what a dead worker held is free, what others hold stays, and reclaiming again changes nothing', () => {
    const c = join(a)
    const kept = b.allocate(5000)!
    const run = b.allocate(1_000_000)!
    b.allocate(9000)
    b.allocate(500_000)
    b.scratch(1000)
    const held = [kept, run].map((x) => {
      const { descriptor } = b.share(x)
      return c.adopt(descriptor)
    })
    expect(a.reclaim(b)).toBe(true)
    expect(a.reclaim(b)).toBe(true)
    expect(held.map((x) => a.words.holders(x.id))).toEqual([[c.slot], [c.slot]])
    expect(used(a)).toBe(1 + Math.ceil(1_000_000 / SEGMENT_BYTES))
    for (const x of held) c.release(x)
    expect(used(a)).toBe(0)
  })

  test('HEAP-7 a slot that was reclaimed is taken again, and the late reclaim of its former worker does not reach the new one', () => {
    a.reclaim(b)
    const c = join(a)
    expect(c.slot).toBe(b.slot)
    const x = c.allocate(5000)!
    expect(a.reclaim(b)).toBe(true)
    expect(a.words.holders(x.id)).toEqual([c.slot])
  })

  test('HEAP-7 the free blocks of an abandoned segment serve who needs them', () => {
    const blocks = fill(b, 5000)
    const { descriptor } = b.share(blocks[0]!)
    const x = a.adopt(descriptor)
    a.reclaim(b)
    const mine = fill(a, 5000)
    expect(mine).toHaveLength(blocks.length - 1)
    a.release(x)
    expect(a.allocate(5000)).toMatchObject({ id: x.id })
  })

  test('HEAP-7 a claim and a return that were cut short go back', () => {
    const { ints, layout } = b.words
    const tail = ownerWord(b.slot, KIND_TAIL, b.epoch)
    const run = b.allocate(1_000_000)!
    const first = run.address / SEGMENT_BYTES
    expect(ownerKind(b.words.owner(first))).toBe(KIND_HEAD)
    b.words.raiseHigh(first + 20)
    for (let s = first + 12; s < first + 20; s++) Atomics.store(ints, layout.ownerAt(s), tail)
    b.release(run)
    Atomics.store(ints, layout.ownerAt(first), tail)
    a.reclaim(b)
    expect(used(a)).toBe(0)
    for (let s = first; s < first + 20; s++) expect(a.words.owner(s)).toBe(0)
  })

  test('HEAP-7 a torn reading of a length does not cost a held run its tails', () => {
    const run = a.allocate(3 * SEGMENT_BYTES)!
    const left = b.allocate(5 * SEGMENT_BYTES)!
    const { descriptor } = b.share(left)
    const kept = a.adopt(descriptor)
    const c = join(a)
    const first = run.address / SEGMENT_BYTES
    // The length of `run` that a walk reads if its segment changes owner between the two loads: the walk continues inside b's old run.
    const info = c.words.info.bind(c.words)
    Object.assign(c.words, { info: (segment: number) => (segment === first ? 5 : info(segment)) })
    c.reclaim(b)
    const start = kept.address / SEGMENT_BYTES
    for (let s = start; s < start + 5; s++) expect(a.words.owner(s)).not.toBe(0)
    a.release(kept)
    for (let s = start; s < start + 5; s++) expect(a.words.owner(s)).toBe(0)
  })

  test('HEAP-2 there are SLOTS_MAX slots; then there is no handle', () => {
    const handles: HeapHandle[] = []
    for (let handle = a.handle(); handle !== null; handle = a.handle()) handles.push(handle)
    expect(handles).toHaveLength(SLOTS_MAX - 2)
    a.reclaim(handles[5]!)
    expect(() => Heap.attach(handles[5]!)).toThrow(expect.objectContaining({ code: 'HEAP_HANDLE' }))
    expect(a.handle()).toMatchObject({ slot: handles[5]!.slot, epoch: handles[5]!.epoch + 1 })
  })
})
