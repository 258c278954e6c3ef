/** Every collective against its formula, in random programs of 1 to 16 ranks under random orders of delivery. */
import { describe, expect, test } from '@jest/globals'
import { runProgram } from './programs.suite.js'
import { Ranks, withSeed } from './sim-ranks.suite.js'

describe('random programs', () => {
  test('PG-10, PG-11, PG-12, PG-13, PG-14, PG-29: each result is that of the formula, with the same bits on all ranks, and nothing is left', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      await withSeed(seed, async () => {
        const ranks = new Ranks(seed, 1 + (seed % 5))
        await ranks.inGroup((_rank, group) => runProgram(group, seed))
        expect(await ranks.leftovers()).toEqual([])
      })
    }
  })

  test('PG-11: with up to 16 ranks', async () => {
    for (const size of [6, 8, 11, 16]) {
      await withSeed(size, async () => {
        const ranks = new Ranks(size, size)
        await ranks.inGroup((_rank, group) => runProgram(group, size, { steps: 8, numelMax: 80 }))
        expect(await ranks.leftovers()).toEqual([])
      })
    }
  })
})
