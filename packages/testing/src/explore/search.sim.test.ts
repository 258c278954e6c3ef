/** The search through all orders, compared with the plain one, on little programs of a world. */
import { describe, expect, test } from '@jest/globals'
import { type Little, searchAll, searchCleverly } from './little.suite.js'
import { Search } from './search.js'

const PLAIN = { defers: false, timers: false, polls: false, driver: false }

/** Programs of two to four workers, three of each. */
const programs = (what: Partial<Little>, from: number): Little[] =>
  Array.from({ length: 12 }, (_, i) => {
    const seed = from + i
    return { ...PLAIN, workers: 2 + (seed % 3), seed, first: 2 + (seed % 3), later: 1 + (seed % 2), ...what }
  })

describe.each([
  ['frames alone', { world: { arrival: 'alone' } }],
  ['with deferred turns and timers', { defers: true, timers: true, world: { arrival: 'alone' } }],
  ['with a program around the workers that acts by what they tell it', { driver: true, world: { arrival: 'alone' } }],
  ['with crashes', { crashes: true, world: { arrival: 'alone' } }],
  // In seed 55 a frame comes before its receiver closes the link, or is sent after that.
  ['with links that close', { closes: true, world: { arrival: 'alone' } }, 50],
  ['frames that arrive together or not', { world: { arrival: 'seeded' } }],
  ['frames that a poll finds or not', { polls: true, timers: true, world: { arrival: 'seeded' } }],
] as [string, Partial<Little>, number?][])('%s', (_, what, from = 0) => {
  test('TK-3: every order and outcome of the plain enumeration is met, and no other', async () => {
    let compared = 0
    let most = { naive: 0, orders: 0 }
    for (const little of programs(what, from)) {
      const all = await searchAll(little, 200)
      if (all === null) continue
      compared++
      const found = await searchCleverly(little)
      const seed = `seed ${little.seed}`
      expect([seed, [...found.orders].sort()]).toEqual([seed, [...all.orders].sort()])
      expect([seed, [...found.outcomes].sort()]).toEqual([seed, [...all.outcomes].sort()])
      expect(found.search.counts.orders).toBe(all.orders.size)
      expect(found.runs).toBe(found.search.counts.orders + found.search.counts.redundant)
      if (all.runs > most.naive) most = { naive: all.runs, orders: all.orders.size }
    }
    // Without this the test might compare nothing.
    expect(compared).toBeGreaterThan(3)
    expect(most.naive).toBeGreaterThan(most.orders)
  })
})

test('TK-3: far fewer runs than rows of steps, and what was left out is counted', async () => {
  const little: Little = { ...PLAIN, workers: 4, seed: 2, first: 4, later: 1, world: { arrival: 'alone' } }
  const found = await searchCleverly(little)
  expect(found.search.exhausted).toBe(true)
  expect(await searchAll(little, 10 * found.runs)).toBe(null)
  expect(found.search.counts.pruned).toBeGreaterThan(found.runs)
})

test('TK-3: a search that is not over can be left, and begins with the order by age', async () => {
  const little: Little = { ...PLAIN, workers: 4, seed: 2, first: 4, later: 1, world: { arrival: 'alone' } }
  const { search, runs } = await searchCleverly(little, 3)
  expect([search.exhausted, runs, search.counts.orders]).toEqual([false, 3, 3])
  expect(new Search().exhausted).toBe(false)
})
