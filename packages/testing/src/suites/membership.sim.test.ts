/** Joins, restarts, leaves and deaths as they ship, in every order in which words, calls and passes can come. Rules MEM-n of `cluster/SPEC.md`. */
import { describe, expect, test } from '@jest/globals'
import { membershipProgram } from './membership.suite.js'
import { CHANGES, everyOrder, LARGE_CHANGES } from './membership-changes.suite.js'

/** Of a large change; `npm run soak -- membership` sees every order. */
const DRAWN = 60
/** Of many changes; the soak takes more. */
const SEEDS = 70

describe('every order', () => {
  test.each(CHANGES)(
    'MEM-12 of %s: who lives is linked, and hears of each end once',
    async (what, workers, body) => {
      const found = await everyOrder(what, workers, body)
      expect(found).toMatchObject({ exhausted: true, drawn: 0 })
      expect(found.orders).toBeGreaterThan(5)
    },
    120_000,
  )

  test.each(LARGE_CHANGES)(`MEM-12 of %s: ${DRAWN} that were drawn`, async (what, workers, body) => {
    const found = await everyOrder(what, workers, body, { ordersMax: 1, seeds: DRAWN })
    expect(found).toMatchObject({ exhausted: false, drawn: DRAWN })
  })
})

test('MEM-12 many changes of four names, as a seed has them, on bare links and on sessions', async () => {
  for (let seed = 0; seed < SEEDS; seed++) await membershipProgram(seed)
})
