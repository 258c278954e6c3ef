/** Random programs of calls, many seeds: `npm run soak -- --seeds 10000`. POSTGRAD_SOAK_FIRST moves the first. */
import { expect, test } from '@jest/globals'
import { overCallSeeds } from './call-programs.suite.js'

const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 0)

test(`RPC-9, CAN-1, CAN-4, CAN-5, STR-3 ${SEEDS} seeds from ${FIRST}: at most once, every wait ends, what is cancelled ends soon`, async () => {
  expect(await overCallSeeds(SEEDS, FIRST)).toEqual([])
})
