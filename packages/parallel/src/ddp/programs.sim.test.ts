import { expect, test } from '@jest/globals'
import { inOnePlace, programOf, run } from './programs.suite.js'
import { overSeeds, withSeed } from './sim-ranks.suite.js'

test('DDP-1, DDP-6, DDP-7, DDP-17, DDP-31: random programs give what one place gives, on all ranks', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    await withSeed(seed, async () => {
      const program = programOf(seed)
      const expected = await inOnePlace(program)
      expect(await overSeeds(program.size, (rank) => run(program, rank), 1)).toEqual(expected)
    })
  }
})
