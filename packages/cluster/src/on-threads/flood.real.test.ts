/** A small flood on threads: no call is lost without an error, waiting calls are bounded, all others are answered. */
import { expect, test } from '@jest/globals'
import { measureFlood } from './flood.fixture.js'

const SENDERS = 3
const CALLS = 500
const WINDOW = 64
/** The watcher's own wait there as well: at most three calls and a fetch at a time. */
const WATCHER = 4

test.each([
  ['CRE-11: to a worker that is busy, without looking for room', { us: 100, async: false, ready: false }],
  ['CRE-7: to a worker that is busy, looking for room first', { us: 100, async: false, ready: true }],
  ['CRE-5: to a worker that waits for something else', { us: 2000, async: true, ready: false }],
])('%s', async (_, how) => {
  const result = await measureFlood({ senders: SENDERS, callsEach: CALLS, callsMax: WINDOW, ...how })
  const { made, served, refused } = result.counts
  expect(made).toBe(SENDERS * CALLS)
  expect(served + refused).toBe(made)
  expect(result.begun).toBe(served)
  if (how.ready) expect(refused).toBe(0)
  expect(result.depthMax).toBeGreaterThan(0)
  expect(result.depthMax).toBeLessThanOrEqual(SENDERS * WINDOW + WATCHER)
  const { fetches, calls, cancels, references } = result.answers
  for (const answered of [fetches, calls, cancels, references]) expect(answered).toBeGreaterThan(0)
  expect(cancels).toBe(calls)
  expect(result.cancelled).toBe(cancels)
  expect({ deadLetters: result.deadLetters, pendingCalls: result.pendingCalls }).toEqual({ deadLetters: 0, pendingCalls: 0 })
})
