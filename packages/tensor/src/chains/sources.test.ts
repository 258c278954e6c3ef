/** A step holds the elements of its operands as they were: sources, later writes, and `close`. */
import { expect, test } from '@jest/globals'
import { fromTypedArray, full, memoryScope, randn, type Tensor, tensor, zeros } from '../index.js'
import { isPending, recording, Storage, withHeapFrom } from '../internal.js'
import { PLACES, small } from './chains.fixture.js'

test.each(['managed memory', 'the heap'])(
  'CHAIN-3 of %s, a step reads what its operands held when it was recorded: later writes and closes change nothing',
  (place) => {
    PLACES[place]!(() => {
      const x = full([3000], 2)
      const row = tensor(Float32Array.from({ length: 3000 }, (_, i) => i))
      const [y, z] = small(() =>
        recording(() => {
          const y = x.mul(10).add(row)
          const z = y.add(1)
          x.fill_(5)
          return [y, z]
        }),
      )
      x.mul_(2)
      row.close()
      expect(isPending(y!)).toBe(true)
      y!.add_(100)
      expect([y!.dataSync()[7], z!.dataSync()[7], x.dataSync()[7]]).toEqual([127, 28, 10])
      x.close()
      const later = small(() => recording(() => y!.mul(2).neg()))
      y!.close()
      expect(later.dataSync()[7]).toBe(-254)
    })
  },
)

test('CHAIN-3 a write to a user’s array, or to another tensor on it, changes no step that was recorded before', () => {
  for (const n of [3000, 40_000]) {
    const array = new Float32Array(n).fill(1)
    const [x, same] = [fromTypedArray(array), fromTypedArray(array)]
    const [a, b] = small(() =>
      recording(() => {
        const a = x.mul(2).add(1)
        array.fill(100)
        const b = x.mul(2)
        same.fill_(7)
        return [a, b]
      }),
    )
    expect([a!.dataSync()[5], b!.dataSync()[5]]).toEqual([3, 200])
  }
})

test('CHAIN-3 HEAP-8 a small part of a block is copied, or not recorded: a step never keeps the whole block', () => {
  withHeapFrom(1, () => {
    const rows = zeros([100, 3000])
    const { heap, block } = rows.storage.lease!
    const [y, z] = small(() => recording(() => [rows.select(0, 1).mul(2), rows.narrow(0, 0, 20).mul(2)]))
    expect([isPending(y!), isPending(z!), heap.isShared(block)]).toEqual([true, false, false])
    const w = small(() => recording(() => rows.narrow(0, 0, 30).mul(2)))
    expect([isPending(w), heap.isShared(block)]).toEqual([true, true])
    rows.fill_(1)
    expect([y, w].map((each) => each!.dataSync()[0])).toEqual([0, 0])
  })
})

test('CHAIN-3 a memoryScope around steps closes those that it does not return, and the returned one has its elements', () => {
  const x = randn([5000])
  const expected = x.mul(3).add(1).dataSync()
  let inner: Tensor | null = null
  const y = small(() =>
    recording(() =>
      memoryScope(() => {
        inner = x.mul(3)
        return inner.add(tensor([1]))
      }),
    ),
  )
  expect([inner!.isClosed, isPending(y)]).toEqual([true, true])
  expect(y.dataSync()).toEqual(expected)
})

test('CHAIN-3 what steps alone hold is given back when they are computed or closed', () => {
  withHeapFrom(1, () => {
    const x = randn([4000])
    const { heap, block } = x.storage.lease!
    expect(heap.isShared(block)).toBe(false)
    const [a, b] = small(() => recording(() => [x.mul(2), x.mul(3)]))
    expect(heap.isShared(block)).toBe(true)
    a!.dataSync()
    expect(heap.isShared(block)).toBe(true)
    b!.close()
    expect(heap.isShared(block)).toBe(false)
  })
})

test('CHAIN-3 a small tensor that many steps read is one source of them, until it is written', () => {
  withHeapFrom(1, () => {
    const x = randn([50, 60])
    const row = tensor(Float32Array.from({ length: 60 }, (_, i) => i))
    let copies = 0
    const { uninitialized } = Storage
    Storage.uninitialized = (dtype, length, memory) => {
      if (length === 60) copies++
      return uninitialized.call(Storage, dtype, length, memory)
    }
    try {
      const [a, b] = small(() =>
        recording(() => {
          const a = x.mul(row).add(row).mul(row)
          row.mul_(2)
          return [a, a.mul(row)]
        }),
      )
      expect(copies).toBe(2)
      const before = row.div(2)
      const expected = x.mul(before).add(before).mul(before)
      expect([a!, b!].map((y) => y.dataSync())).toEqual([expected, expected.mul(row)].map((y) => y.dataSync()))
    } finally {
      Storage.uninitialized = uninitialized
    }
  })
})
