/** Every collective against its formula, in random programs of 1 to 16 ranks under random orders of delivery. */
import { describe, test } from '@jest/globals'
import { randomProgram, withSeed } from './sim-ranks.suite.js'

describe('random programs', () => {
  test('PG-10, PG-11, PG-12, PG-13, PG-14, PG-29: each result is that of the formula, and nothing is left', async () => {
    for (let seed = 1; seed <= 40; seed++) await withSeed(seed, () => randomProgram(seed, 1 + (seed % 5)))
  })

  test('PG-11: with up to 16 ranks', async () => {
    for (const size of [6, 8, 11, 16]) await withSeed(size, () => randomProgram(size, size, { steps: 8, numelMax: 80 }))
  })
})
