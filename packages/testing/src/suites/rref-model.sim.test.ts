/** The RRef protocol against its model: some random programs with faults, and protocols that are broken on purpose. `rref-model.soak.test.ts` has thousands. */
import { expect, test } from '@jest/globals'
import { runSeed, SABOTAGES, seedsToFind } from './rref-model.suite.js'

/** `POSTGRAD_RREF_SEED=17 npm test -- testing/dist/rref-model` runs that one. */
const ONLY = process.env.POSTGRAD_RREF_SEED
/** The first, and those around the one that meets a reference that is released while its child is not confirmed (`docs/mutations.md`). */
const CHOSEN = Array.from({ length: 60 }, (_, at) => (at < 40 ? at : at + 45))
/** Once failed: the reply to a call that is out of time spoke of a value first, and took what others said of it along. */
const ONCE_FAILED = [10_338]
/** Of protocols that are broken. */
const SEEDS_TO_FIND = 600

test(`RREF-10 RREF-11 RREF-26 ${CHOSEN.length + ONCE_FAILED.length} random programs on four workers with faults: G1, G2, at most once, no wait without end, nothing left`, async () => {
  const began = performance.now()
  const seeds = ONLY === undefined ? [...CHOSEN, ...ONCE_FAILED] : [Number(ONLY)]
  for (const seed of seeds) await runSeed(seed)
  const perMinute = Math.round(seeds.length / ((performance.now() - began) / 60_000))
  console.log(`RRef model: ${seeds.length} seeds from ${seeds[0]} to ${seeds.at(-1)} hold, ${perMinute} a minute`)
})

/** Where the search begins for what few seeds meet, shortly before the first of them. */
const FIRST: Readonly<Record<string, number>> = {
  'a parent does not wait for RREF_CHILD_ACCEPT': 90,
  'a child is accepted before its owner has confirmed it': 240,
  'a call is run twice': 50,
}

// How many seeds it took from 0 on when this was written: 96, 250, 3, 6, 1, 2, 2, 58 in the order of the table.
test.each(Object.entries(SABOTAGES))('RREF-11 the model finds it when %s', async (what, sabotage) => {
  expect(await seedsToFind(sabotage, SEEDS_TO_FIND, FIRST[what])).not.toBeNull()
})
