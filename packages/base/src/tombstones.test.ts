import { expect, test } from '@jest/globals'
import { Tombstones } from './tombstones.js'

test('the last `min` are remembered, and at most twice as many', () => {
  const tombstones = new Tombstones(10)
  const remembered = () => Array.from({ length: 100 }, (_, id) => BigInt(id)).filter((id) => tombstones.has(id))
  for (let id = 0n; id < 100n; id++) {
    tombstones.add(id)
    const ids = remembered()
    expect(ids.length).toBeLessThanOrEqual(20)
    expect(ids.slice(-10)).toEqual(Array.from({ length: 10 }, (_, i) => id - 9n + BigInt(i)).filter((n) => n >= 0n))
  }
})

test('what is deleted is not remembered, in either generation', () => {
  const tombstones = new Tombstones(2)
  for (const id of [1n, 2n, 3n]) tombstones.add(id)
  tombstones.delete(1n)
  tombstones.delete(3n)
  expect([1n, 2n, 3n].map((id) => tombstones.has(id))).toEqual([false, true, false])
})
