/** Changes of membership of some two thousand orders each, to the end: `npm run soak -- membership`. */
import { expect, test } from '@jest/globals'
import { everyOrder, LARGE_CHANGES } from './membership-changes.suite.js'

test.each(LARGE_CHANGES)('MEM-12 every order of %s: who lives is linked, and hears of each end once', async (what, workers, body) => {
  const found = await everyOrder(what, workers, body)
  expect(found).toMatchObject({ exhausted: true, drawn: 0 })
  expect(found.orders).toBeGreaterThan(1000)
})
