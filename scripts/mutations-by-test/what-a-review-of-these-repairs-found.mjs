/** What a review of these repairs found. */
import { t } from './mutation.mjs'

export const whatAReviewOfTheseRepairsFound = [
  t(
    'watches-the-departed',
    'packages/testing/src/suites/deaths-kept.sim.test.ts',
    'RPC-57',
    'packages/rpc/src/core/pending-calls.ts',
    '    this.onGivenUp = onGivenUp\n',
    '    this.onGivenUp = onGivenUp\n    deadlines.watch(this)\n',
    'each call to a dead peer is watched for ever',
  ),
  t(
    'shrinks-not-in-scripts',
    'packages/testing/src/replay/reproduce.sim.test.ts',
    'TK-28 where no test runner',
    'packages/testing/src/replay/run-identity.ts',
    'return told === 0 || told === undefined ? Number.POSITIVE_INFINITY : told',
    'return told === 0 ? Number.POSITIVE_INFINITY : (told ?? 5000)',
    'a script that has run for 3.5 s shrinks nothing',
  ),
]
