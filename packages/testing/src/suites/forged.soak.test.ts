/** Forged messages, many: `npm run soak -- --forged 500000 testing/dist/forged`. POSTGRAD_SOAK_FIRST moves the first seed. */
import { expect, test } from '@jest/globals'
import { forgedRuns } from './forged.suite.js'

const FORGED = Number(process.env.POSTGRAD_SOAK_FORGED ?? 100_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 0)

test(`RPC-52 ${FORGED} forged messages, seeds from ${FIRST}: nothing uncaught, no wait past its deadline, and every worker still answers`, async () => {
  const { uncaught, late, problems } = await forgedRuns(FIRST, FORGED, 150)
  expect({ uncaught, late, problems }).toEqual({ uncaught: 0, late: [], problems: [] })
})
