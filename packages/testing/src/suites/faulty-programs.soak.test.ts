/** Random programs under random faults, many seeds: `npm run soak -- --seeds 10000`. POSTGRAD_SOAK_FIRST moves the first. */
import { expect, test } from '@jest/globals'
import { overFaultySeeds } from './faulty-programs.suite.js'

const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 0)

test(`FLT-5, FLT-9, FLT-10, RPC-9, RPC-22 ${SEEDS} seeds from ${FIRST}: at most once, every wait ends by its deadline, survivors hold nothing`, async () => {
  expect(await overFaultySeeds(SEEDS, FIRST)).toEqual([])
})
