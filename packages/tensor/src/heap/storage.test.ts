/** Storage in the heap and outside: equal results, blocks come back, views follow a copy on write, closed stays closed. */
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { cachedDataVersionTag, setFlagsFromString } from 'node:v8'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { full, rand, Tensor, tensor, zeros } from '../index.js'
import {
  beginTemporaries,
  collectEarly,
  currentHeap,
  endTemporaries,
  raw,
  Storage,
  suspendHeapStorage,
  threadHeap,
  withHeapLimit,
  withoutTemporaries,
} from '../internal.js'
import { Generator } from '../values/generator.js'
import { Heap } from './heap.js'
import { CPU } from './memory.js'
import { HEAP_BYTES_MIN } from './policy.js'
import { outsideOfScopes } from './storage.js'
import { verifyHeap } from './verify.js'

const LARGE = [100, 100]
const PLENTY = Number.POSITIVE_INFINITY
const inHeap = <T>(fn: () => T): T => withHeapLimit(PLENTY, fn)

beforeEach(() => {
  threadHeap()
})

/** Reached from outside: what another worker does with a block that it was sent. */
function another(): Heap {
  return Heap.attach(currentHeap()!.handle()!)
}

describe('policy', () => {
  test('small storage is managed, large storage lies in the heap, and beyond the limit it is managed again', () => {
    const kinds = inHeap(() => [zeros([HEAP_BYTES_MIN / 4 - 1]), zeros([HEAP_BYTES_MIN / 4])].map((x) => x.storage.kind))
    expect(kinds).toEqual(['managed', 'heap'])
    expect(withHeapLimit(50_000, () => [zeros(LARGE), zeros(LARGE)].map((x) => x.storage.kind))).toEqual(['heap', 'managed'])
    expect(withHeapLimit(0, () => zeros(LARGE).storage.kind)).toBe('managed')
  })

  test('at a good moment what was taken comes back before a collection is forced', async () => {
    const [heap, turns] = [threadHeap(), 5]
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    for (let i = 0; i < turns; i++) {
      // Nobody holds it: a sixth of what would force a collection.
      inHeap(() => zeros([11 * 2 ** 20]))
      await turn()
    }
    const held = heap.heldBytes
    setFlagsFromString('--no-expose-gc')
    const flags = cachedDataVersionTag()
    collectEarly()
    // Threads that start later take the code that was compiled under these flags.
    expect(cachedDataVersionTag()).toBe(flags)
    for (let i = 0; i < turns; i++) await turn()
    expect(held - heap.heldBytes).toBeGreaterThan(3 * 2 ** 20 * 44)
  })

  const turn = () => new Promise((resolve) => setImmediate(resolve))
  /** Nothing is written to it, so it costs addresses alone. */
  const half = () => Tensor.uninitialized('float32', [160 * 2 ** 18], CPU)

  test('a block that came back counts in its turn as it does when it goes: what the turn may take is the same', async () => {
    await turn()
    const heap = threadHeap()
    const x = half()
    const { place, token } = x.storage.share(0)!
    Storage.adopt(heap, 'float32', x.numel, place).close()
    heap.acknowledge(token)
    const second = half()
    expect([x, second].map(({ storage }) => storage.kind)).toEqual(['heap', 'managed'])
    x.close()
  })

  test('a fork counts in its turn alone', async () => {
    await turn()
    const x = half()
    await turn()
    const fork = x.storage.fork(0, x.numel)!
    await turn()
    const second = half()
    expect(second.storage.kind).toBe('heap')
    for (const each of [x.storage, fork, second.storage]) each.close()
  })

  test('while a simulation runs, all storage is managed', () => {
    const resume = suspendHeapStorage()
    expect(inHeap(() => zeros(LARGE).storage.kind)).toBe('managed')
    resume()
    resume()
    expect(inHeap(() => zeros(LARGE).storage.kind)).toBe('heap')
  })

  test('a full collection is asked for where much is left to the collector, and not where it was given back by hand', async () => {
    // 320 MiB in turns of 64: asked for once. Blocks of 1 MiB.
    const asked = async (end: (x: Tensor) => void): Promise<number> => {
      let forced = 0
      const count = (entries: readonly object[]): void => {
        for (const { detail } of entries as readonly { readonly detail: unknown }[]) {
          const { flags } = detail as { readonly flags: number }
          if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) forced++
        }
      }
      const observer = new PerformanceObserver((list) => count(list.getEntries()))
      observer.observe({ entryTypes: ['gc'] })
      for (let turn = 0; turn < 5; turn++) {
        inHeap(() => {
          for (let i = 0; i < 64; i++) end(Tensor.uninitialized('float32', [2 ** 18], CPU))
        })
        await new Promise(setImmediate)
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      count(observer.takeRecords())
      observer.disconnect()
      return forced
    }
    expect(await asked((x) => x.close())).toBe(0)
    expect(await asked(() => {})).toBe(1)
  })

  test('a warm block is zero where zeros are asked for', () => {
    inHeap(() => {
      for (let i = 0; i < 5; i++) full(LARGE, 7).close()
      expect(
        zeros(LARGE)
          .dataSync()
          .every((v) => v === 0),
      ).toBe(true)
    })
  })

  test('no bit of a result depends on where storage lies', () => {
    const compute = () => {
      const generator = new Generator(7)
      const x = rand([60, 70], { generator })
      const w = rand([70, 80], { generator })
      const y = raw.matmul(x, w)
      const z = raw.softmax(raw.add(raw.mul(y, 0.25), raw.narrow(y.T, 0, 0, 60).transpose(0, 1).reshape([60, 60]).sum(1, true)), 1)
      raw.add_(z, raw.exp(raw.neg(z)), 0.5)
      return [y, z, raw.sum(z), raw.gt(z, 0.5)].map((t) => Buffer.from(t.dataSync().slice().buffer as ArrayBuffer).toString('hex'))
    }
    const expected = withHeapLimit(0, compute)
    for (const limit of [0, 20_000, 30_000, 60_000, 100_000, 150_000, PLENTY]) expect(withHeapLimit(limit, compute)).toEqual(expected)
  })
})

describe('blocks come back', () => {
  test('close gives the block back at once, once', () => {
    const heap = threadHeap()
    const before = heap.heldBytes
    const x = inHeap(() => zeros(LARGE))
    expect(heap.heldBytes).toBeGreaterThan(before)
    x.close()
    x.close()
    expect(heap.heldBytes).toBe(before)
    expect(verifyHeap(heap.words, [{ slot: heap.slot, held: heap.audit() }])).toEqual([])
  })

  test('using closes at the end of the block', () => {
    const x = inHeap(() => zeros(LARGE))
    {
      using y = x
      expect(y.isClosed).toBe(false)
    }
    expect(x.isClosed).toBe(true)
  })

  test('what is closed refuses every use, its views too, and says which operation asked', () => {
    for (const make of [() => zeros([2, 2]), () => inHeap(() => zeros(LARGE))]) {
      const x = make()
      const view = raw.transpose(x, 0, 1)
      x.close()
      expect(view.isClosed).toBe(true)
      const uses: [string, () => unknown][] = [
        ['matmul', () => raw.matmul(view, x)],
        ['exp', () => x.exp()],
        ['add_', () => raw.add_(x, 1)],
        ['dataSync', () => view.dataSync()],
      ]
      for (const [op, use] of uses) expect(use).toThrow(expect.objectContaining({ code: 'TENSOR_CLOSED', op }))
    }
  })
})

describe('HEAP-8 copy on write', () => {
  function sent(x: Tensor, to: Heap) {
    const { heap, block } = x.storage.lease!
    const { descriptor, token } = heap.share(block)
    const theirs = to.adopt(descriptor)
    return { theirs, acknowledge: () => heap.acknowledge(token), seen: () => new Float32Array(to.buffer, theirs.address, 1)[0] }
  }

  test('a write copies what another worker or a message holds; all views follow, the receiver keeps the old value', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 1))
    const view = raw.narrow(x, 0, 0, 50)
    const { theirs, acknowledge, seen } = sent(x, to)
    inHeap(() => raw.add_(view, 1))
    acknowledge()
    expect([x.dataSync()[0], view.dataSync()[0], seen()]).toEqual([2, 2, 1])
    const { host: array } = x.storage
    inHeap(() => raw.add_(x, 1))
    expect(x.storage.host!).toBe(array) // alone again
    to.release(theirs)
    currentHeap()!.reclaim(to)
  })

  test('a storage that copies before each of its writes is registered for its finalizer once', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 1))
    const { lease } = x.storage
    const blocks = new Set<number>()
    for (let step = 0; step < 5; step++) {
      blocks.add(lease!.block.id)
      const { theirs, acknowledge } = sent(x, to)
      acknowledge()
      inHeap(() => raw.add_(x, 1))
      expect(x.storage.lease).toBe(lease)
      expect(x.storage.host!.byteOffset).toBe(lease!.block.address)
      to.release(theirs)
    }
    expect(blocks.size).toBeGreaterThan(1)
    const held = threadHeap().heldBytes
    x.close()
    expect(threadHeap().heldBytes).toBeLessThan(held)
    currentHeap()!.reclaim(to)
  })

  test('HEAP-8: who writes all of it takes over another block, and copies nothing', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 1))
    const view = raw.narrow(x, 0, 50, 50)
    const { theirs, acknowledge, seen } = sent(x, to)
    expect(x.storage.isShared).toBe(true)
    const { lease } = x.storage
    const other = inHeap(() => full(LARGE, 7))
    const { address } = other.storage.lease!.block
    const held = threadHeap().heldBytes
    expect(x.storage.takeOver(other.storage)).toBe(true)
    // The storage's own reference has gone back; the message still has one.
    acknowledge()
    expect(threadHeap().heldBytes).toBeLessThan(held)
    expect([x.storage.isShared, other.isClosed, x.storage.host!.byteOffset]).toEqual([false, true, address])
    expect([x.dataSync()[0], view.dataSync()[0], seen()]).toEqual([7, 7, 1])
    expect(x.storage.lease).toBe(lease)
    x.close()
    expect(view.isClosed).toBe(true)
    to.release(theirs)
    currentHeap()!.reclaim(to)
  })

  test('HEAP-8: nothing is taken over of a block of which it would fill less than half', () => {
    const [x, large] = inHeap(() => [full([5000], 1), full(LARGE, 2)])
    const part = large!.storage.fork(0, 5000)!
    const { block } = large!.storage.lease!
    expect(2 * 4 * 5000).toBeLessThan(block.capacityBytes)
    expect([x!.storage.takeOver(part), part.isClosed, x!.dataSync()[0]]).toEqual([false, false, 1])
    part.close()
  })

  test('HEAP-8: managed storage takes nothing over', () => {
    const [managed, other] = withHeapLimit(0, () => [full(LARGE, 1), full(LARGE, 2)])
    const x = inHeap(() => full(LARGE, 3))
    expect([x.storage.takeOver(managed!.storage), managed!.storage.takeOver(x.storage), managed!.storage.takeOver(other!.storage)]).toEqual(
      [false, false, false],
    )
    expect([x, managed!, other!].map((each) => each.dataSync()[0])).toEqual([3, 1, 2])
  })

  test('HEAP-8: a fork shares the block until one of the two is written or closed', () => {
    const x = inHeap(() => full(LARGE, 1))
    const { heap, block } = x.storage.lease!
    const held = heap.heldBytes
    const fork = x.storage.fork(5000, 5000)!
    expect([heap.heldBytes, fork.host!.byteOffset, fork.length]).toEqual([held, block.address + 20_000, 5000])
    expect([x.storage.isShared, fork.isShared]).toEqual([true, true])
    inHeap(() => raw.add_(x, 1))
    expect([x.dataSync()[5000], fork.host![0], fork.isShared]).toEqual([2, 1, false])
    expect(fork.lease!.block).toBe(block)
    const again = fork.fork(0, 10)!
    fork.close()
    expect([again.host![9], again.isShared]).toEqual([1, false])
    again.close()
    expect(heap.heldBytes).toBe(held)
    expect(withHeapLimit(0, () => full(LARGE, 1)).storage.fork(0, 1)).toBe(null)
  })

  test('zeros in a block that was used before are zeros', () => {
    const used = inHeap(() => full(LARGE, 7))
    const { address } = used.storage.lease!.block
    used.close()
    const x = inHeap(() => zeros(LARGE))
    expect(x.storage.lease!.block.address).toBe(address)
    expect(x.dataSync().every((v) => v === 0)).toBe(true)
  })

  test('beyond the limit the copy is managed; a closed tensor leaves the receiver its value', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 1))
    const first = sent(x, to)
    withHeapLimit(0, () => raw.fill_(x, 5))
    expect([x.storage.kind, x.dataSync()[9_999], first.seen()]).toEqual(['managed', 5, 1])
    const y = inHeap(() => full(LARGE, 3))
    const second = sent(y, to)
    second.acknowledge()
    y.close()
    inHeap(() => full(LARGE, 4))
    expect(second.seen()).toBe(3)
    first.acknowledge()
    currentHeap()!.reclaim(to)
  })
})

describe('between workers', () => {
  test('HEAP-5 a message names the block, and the receiver has the values without a copy; then both may let go in any order', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 6))
    const { place, token } = x.storage.share(0)!
    const received = Storage.adopt(to, 'float32', 10_000, place)
    currentHeap()!.acknowledge(token)
    expect([received.kind, received.host![9_999], received.lease!.block.id]).toEqual(['heap', 6, x.storage.lease!.block.id])
    received.prepareWrite()
    received.host![0] = 1
    expect([received.host![0], received.host![1], x.dataSync()[0]]).toEqual([1, 6, 6])
    x.close()
    received.close()
    expect(zeros([3]).storage.share(0)).toBeNull()
    currentHeap()!.reclaim(to)
  })

  test('HEAP-5 a shape that does not fit its block is refused, and nothing is held', () => {
    const to = another()
    const x = inHeap(() => full(LARGE, 6))
    for (const length of [1e6, Number.NaN, -1, 0.5]) {
      const { place, token } = x.storage.share(0)!
      expect(() => Storage.adopt(to, 'float32', length, place)).toThrow(expect.objectContaining({ code: 'HEAP_BLOCK_STALE' }))
      currentHeap()!.acknowledge(token)
    }
    expect(to.audit()).toEqual([])
    currentHeap()!.reclaim(to)
  })
})

test('a storage over an array of its own stays what it was', () => {
  const x = new Storage('float32', new Float32Array(3))
  x.prepareWrite()
  expect([x.kind, x.isClosed, x.host!.length]).toEqual(['managed', false, 3])
  expect(tensor([1, 2]).storage.kind).toBe('managed')
})

test('temporaries: the heap storages of a formula, but not what users’ code or a kernel’s pause makes meanwhile', () => {
  const [mine, later] = inHeap(() => {
    beginTemporaries()
    zeros([2])
    const mine = zeros(LARGE)
    withoutTemporaries(() => {
      zeros(LARGE)
      // A formula of a pass within.
      beginTemporaries()
      const inner = zeros(LARGE)
      expect(endTemporaries()).toEqual([inner.storage])
    })
    outsideOfScopes(() => zeros(LARGE))
    return [mine, zeros(LARGE)]
  })
  expect(endTemporaries()).toEqual([mine!.storage, later!.storage])
  inHeap(() => zeros(LARGE))
  expect(endTemporaries()).toBeNull()
})
