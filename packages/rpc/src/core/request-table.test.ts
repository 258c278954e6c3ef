/** The table against a Map, which it replaces. */
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { RequestTable } from './request-table.js'

const value = (id: number) => ({ id })

test('any history of requests is that of a Map (fast-check prints its seed)', () => {
  // Numbers go up by one or by many (calls to other peers); of what waits the oldest ends, the newest, or any.
  const step = fc.oneof(
    fc.record({ set: fc.integer({ min: 1, max: 100 }) }),
    fc.record({ set: fc.constant(1) }),
    fc.record({ take: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ take: fc.constantFrom(0, 1) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const table = new RequestTable<{ id: number }>()
      const map = new Map<number, { id: number }>()
      let last = 0
      for (const one of steps) {
        if ('set' in one) {
          last += one.set
          const made = value(last)
          table.set(last, made)
          map.set(last, made)
        } else {
          const ids = [...map.keys()]
          const id = ids[Math.min(ids.length - 1, Math.floor(one.take * ids.length))] ?? last + 1
          expect(table.get(id)).toBe(map.get(id))
          expect(table.take(id)).toBe(map.get(id))
          expect(table.take(id)).toBeUndefined()
          map.delete(id)
        }
        expect(table.size).toBe(map.size)
      }
      expect([...table.entries()]).toEqual([...map])
    }),
    { numRuns: 50 },
  )
})

test('a flood of them stands in order, and each is found', () => {
  const table = new RequestTable<{ id: number }>()
  const kept = value(1)
  table.set(1, kept)
  for (let id = 2; id <= 20_000; id++) table.set(id, value(id))
  expect(table.size).toBe(20_000)
  expect([...table.entries()].map(([id]) => id)).toEqual(Array.from({ length: 20_000 }, (_, i) => i + 1))
  // One `expect`, since twenty thousand of them take a second.
  const wrong: number[] = []
  for (let id = 20_000; id >= 2; id--) if (table.take(id)?.id !== id) wrong.push(id)
  expect(wrong).toEqual([])
  expect([...table.entries()]).toEqual([[1, kept]])
})

test('going through them leaves out what is taken meanwhile, and what is added', () => {
  const table = new RequestTable<{ id: number }>()
  for (const id of [5, 5 + 64, 7]) table.set(id, value(id))
  const seen: number[] = []
  for (const [id] of table.entries()) {
    seen.push(id)
    table.take(7)
    table.set(100 + id, value(100 + id))
  }
  expect(seen).toEqual([5, 69])
  expect(table.size).toBe(4)
})

test('what nobody has set is not there', () => {
  const table = new RequestTable<{ id: number }>()
  expect([table.get(0), table.take(0), table.get(3)]).toEqual([undefined, undefined, undefined])
  table.set(64, value(64))
  expect([table.get(0), table.take(0), table.size]).toEqual([undefined, undefined, 1])
})
