/** More programs than `programs.sim`; and programs with a rank that dies at some point: the others' passes end, with an error of the group or as they should. */
import { expect, test } from '@jest/globals'
import { initProcessGroup } from '@postgrad/process-group'
import { inOnePlace, programOf, run } from './programs.suite.js'
import { failedAmong, overSeeds, Ranks, runWithCrash, withSeed } from './sim-ranks.suite.js'

test('DDP-1, DDP-6, DDP-7, DDP-17, DDP-31: 1000 random programs', async () => {
  for (let seed = 1000; seed < 2000; seed++) {
    await withSeed(seed, async () => {
      const program = programOf(seed, 4 + (seed % 9))
      const expected = await inOnePlace(program)
      expect(await overSeeds(program.size, (rank) => run(program, rank), 1)).toEqual(expected)
    })
  }
})

test('DDP-13 a rank dies in the middle of 1000 random programs', async () => {
  let [died, failed] = [0, 0]
  for (let seed = 1; seed <= 1000; seed++) {
    await withSeed(seed, async () => {
      const program = programOf(seed)
      if (program.size === 1) return
      const ranks = new Ranks(seed, program.size)
      const all = ranks.workers.map((worker, rank) =>
        worker.run(async () => {
          await initProcessGroup()
          await run(program, rank)
        }),
      )
      const victim = seed % program.size
      all[victim]!.catch(() => {})
      const survivors = Promise.allSettled(all.filter((_, rank) => rank !== victim))
      const { outcome, value, crashed } = await runWithCrash(ranks, survivors, `worker${victim}`, 1 + ((7 * seed) % 300))
      expect(outcome).toBe('value')
      died += Number(crashed)
      failed += failedAmong(value!, crashed)
    })
  }
  expect(died).toBeGreaterThan(150)
  expect(failed).toBeGreaterThan(150)
})
