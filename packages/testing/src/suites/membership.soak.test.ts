/** Changes of membership with some two thousand orders each, all of them, and many changes by seeds: `npm run soak -- --seeds 10000 membership`. */
import { expect, test } from '@jest/globals'
import { membershipProgram } from './membership.suite.js'
import { everyOrder, LARGE_CHANGES } from './membership-changes.suite.js'

test.each(LARGE_CHANGES)('MEM-12 every order of %s: who lives is linked, and hears of each end once', async (what, workers, body) => {
  const found = await everyOrder(what, workers, body)
  expect(found).toMatchObject({ exhausted: true, drawn: 0 })
  expect(found.orders).toBeGreaterThan(1000)
})

const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000)

test(`MEM-12 many changes of four names, as ${SEEDS} seeds have them, on bare links and on sessions`, async () => {
  for (let seed = 0; seed < SEEDS; seed++) await membershipProgram(seed)
})
