/** Random programs of calls under cancellation, deadlines, errors and deaths: a few seeds of `call-programs.soak.test.ts`. */
import { expect, test } from '@jest/globals'
import { overCallSeeds } from './call-programs.suite.js'

const SEEDS = 80

test(`RPC-9, CAN-1, CAN-4, CAN-5, STR-3 ${SEEDS} seeds: at most once, every wait ends, what is cancelled ends soon, nothing is left`, async () => {
  const seen: Record<string, number> = {}
  expect(await overCallSeeds(SEEDS, 1, seen)).toEqual([])
  // All ends occur.
  expect(Object.keys(seen).sort()).toEqual(expect.arrayContaining(['CALL_CANCELLED', 'RPC_TIMEOUT', 'RangeError', 'WORKER_DIED', 'value']))
})
