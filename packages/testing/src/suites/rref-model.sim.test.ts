/** The RRef protocol against its model: some random programs with faults, and protocols that are broken on purpose. `rref-model.soak.test.ts` has thousands. */
import { expect, test } from '@jest/globals'
import { runSeed, SABOTAGES, seedsToFind } from './rref-model.suite.js'

/** `POSTGRAD_RREF_SEED=17 npm test -- testing/dist/rref-model` runs that one. */
const ONLY = process.env.POSTGRAD_RREF_SEED
const SEEDS = 60
/** Of protocols that are broken. */
const SEEDS_TO_FIND = 600

test(`RREF-10 RREF-11 RREF-26 ${SEEDS} random programs on four workers with faults: G1, G2, at most once, no wait without end, nothing left`, async () => {
  const began = performance.now()
  const seeds = ONLY === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONLY)]
  for (const seed of seeds) await runSeed(seed)
  const perMinute = Math.round(seeds.length / ((performance.now() - began) / 60_000))
  console.log(`RRef model: seeds ${seeds[0]} to ${seeds.at(-1)} hold, ${perMinute} a minute`)
})

// How many seeds it took when this was written: 12, 12, 3, 6, 3, 2, 2, 3 in the order of the table.
test.each(Object.entries(SABOTAGES))('RREF-11 the model finds it when %s', async (_, sabotage) => {
  expect(await seedsToFind(sabotage, SEEDS_TO_FIND)).not.toBeNull()
})
