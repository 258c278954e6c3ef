/** Every kind of message under every fault, a seed for every hundred: `npm run soak -- --seeds 10000 fault-matrix`. POSTGRAD_SOAK_FIRST moves the first. */
import { test } from '@jest/globals'
import { KINDS, underEveryFault } from './fault-matrix.suite.js'

// A seed is some two hundred runs.
const SEEDS = Math.ceil(Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000) / 100)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 0)

test.each(KINDS)(`FLT-5, FLT-9, FLT-10 %s under every fault, ${SEEDS} seeds from ${FIRST}`, async (kind) => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) await underEveryFault(kind, seed)
})
