/** Deaths as in `ends.sim`, at all points instead of each seventh, under other orders of delivery; more random programs. */
import { describe, expect, test } from '@jest/globals'
import { diesAtPoints, PROGRAMS } from './deaths.suite.js'
import { randomProgram, withSeed } from './sim-ranks.suite.js'

describe('a rank dies', () => {
  test.each(PROGRAMS)('PG-24, PG-25: in %s, at every point, under 10 orders', async (_name, program) => {
    for (let seed = 1; seed <= 1000; seed += 100) expect(await diesAtPoints(program, { seed, stride: 1 })).toBeGreaterThan(15)
  })
})

test('PG-11, PG-12: 1000 random programs of 1 to 16 ranks', async () => {
  for (let seed = 1000; seed < 2000; seed++) {
    await withSeed(seed, () => randomProgram(seed, 1 + (seed % 16)))
  }
})
