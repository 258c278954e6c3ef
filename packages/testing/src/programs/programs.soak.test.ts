/**
 * Random distributed programs, many seeds: `npm run soak -- --programs 100000 --programs-from 0 programs`. Prints how many a minute, and what failed with
 * its seed; `generate(seed)` makes the program again.
 */
import { expect, test } from '@jest/globals'
import { overPrograms, reportLine } from './soak.suite.js'

const PROGRAMS = Number(process.env.POSTGRAD_SOAK_PROGRAMS ?? 2000)
const FIRST = Number(process.env.POSTGRAD_SOAK_PROGRAMS_FROM ?? 0)
/** Reported on the way. */
const PART = 5000

test(`TK-60, DA-46 ${PROGRAMS} programs from ${FIRST}: the bits of the inlined program`, async () => {
  const failed: string[] = []
  for (let first = FIRST; first < FIRST + PROGRAMS; first += PART) {
    const report = await overPrograms(Math.min(PART, FIRST + PROGRAMS - first), { first })
    failed.push(...report.failed)
    console.log(`seeds from ${first}: ${reportLine(report)}`)
  }
  expect(failed).toEqual([])
})
