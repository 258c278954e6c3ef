/** The RRef protocol against its model, at length: `npm run soak -- --rref-seeds 100000 testing/dist/rref-model`. Prints the seeds and how many a minute. */
import { test } from '@jest/globals'
import { runSeed } from './rref-model.suite.js'

const SEEDS = Number(process.env.POSTGRAD_SOAK_RREF_SEEDS ?? 20_000)
/** The first seed, so that a night can begin where another ended. */
const FROM = Number(process.env.POSTGRAD_SOAK_RREF_FROM ?? 0)
const REPORT_EVERY = 5_000

test(`RREF-10 RREF-11 RREF-26 ${SEEDS} random programs from seed ${FROM} on`, async () => {
  const began = performance.now()
  for (let done = 1; done <= SEEDS; done++) {
    await runSeed(FROM + done - 1)
    if (done % REPORT_EVERY > 0 && done < SEEDS) continue
    const perMinute = Math.round(done / ((performance.now() - began) / 60_000))
    console.log(`RRef model: seeds ${FROM} to ${FROM + done - 1} hold, ${perMinute} a minute`)
  }
})
