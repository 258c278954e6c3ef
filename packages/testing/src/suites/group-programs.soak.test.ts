/** Random programs that end together, many seeds: `npm run soak -- --seeds 10000`. POSTGRAD_SOAK_FIRST moves the first. */
import { expect, test } from '@jest/globals'
import { overGroupSeeds } from './group-programs.suite.js'

const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 0)

test(`SHD-1, SHD-2, SHD-3, GRP-2 ${SEEDS} seeds from ${FIRST}: workers end together, and no call is cut off`, async () => {
  expect(await overGroupSeeds(SEEDS, FIRST)).toEqual([])
})
