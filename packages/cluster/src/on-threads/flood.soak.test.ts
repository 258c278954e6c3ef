/** The whole flood of calls: `npm run soak -- --calls 50000 flood`. Prints its figures. */
import { expect, test } from '@jest/globals'
import { measureFlood } from './flood.fixture.js'

const CALLS = Number(process.env.POSTGRAD_SOAK_CALLS ?? 50_000)
const SENDERS = 8
const WATCHER = 4
/** Two windows: one that the flood fills many times over, and the default, which it nearly does. */
const PLANS = [
  { callsMax: 1000, us: 100, async: false, ready: true },
  { callsMax: 1000, us: 100, async: false, ready: false },
  { callsMax: 1000, us: 2000, async: true, ready: true },
  { callsMax: 16_384, us: 100, async: false, ready: false },
] as const

test.each(PLANS)(`${CALLS} calls of ${SENDERS} workers to a slow one: %o`, async (plan) => {
  const result = await measureFlood({ senders: SENDERS, callsEach: CALLS / SENDERS, ...plan })
  const { counts, answers, depthMax, rssBeforeBytes, rssMaxBytes, seconds } = result
  const mib = (bytes: number) => Math.round(bytes / 2 ** 20)
  console.log(
    `${JSON.stringify(plan)}: ${counts.made} made, ${counts.served} served, ${counts.refused} refused with MAILBOX_FULL, ${seconds.toFixed(1)} s; ` +
      `at most ${depthMax} waited; RSS ${mib(rssBeforeBytes)} → at most ${mib(rssMaxBytes)} MiB; meanwhile ${answers.fetches} fetches (longest ` +
      `${Math.round(answers.fetchMaxMs)} ms), ${answers.calls} calls (longest ${Math.round(answers.callMaxMs)} ms), ${answers.cancels} cancels, ` +
      `${answers.references} references`,
  )
  expect(counts.served + counts.refused).toBe(counts.made)
  expect(result.begun).toBe(counts.served)
  if (plan.ready) expect(counts.refused).toBe(0)
  expect(depthMax).toBeLessThanOrEqual(SENDERS * plan.callsMax + WATCHER)
  expect(answers.cancels).toBe(answers.calls)
  expect({ deadLetters: result.deadLetters, pendingCalls: result.pendingCalls }).toEqual({ deadLetters: 0, pendingCalls: 0 })
})
