/** Measures the rows: each contestant of a row in turns, the minimum of its turns, microseconds. */

import { setTimeout } from 'node:timers/promises'

/** Does a row's work so often, and gives the seconds. */
export type Timed = (times: number) => Promise<number>

const TURN_SECONDS = 0.03
/** A batch of warm-up runs for this long. */
const BATCH_SECONDS = 0.01
/** V8 optimizes a function after some hundred calls, on a thread of its own; and again when it meets operands that it has not seen. All functions of a row need some 10,000 runs for that. */
const WARM_TIMES = 10_000
const WARM_SECONDS = 0.4

/** OpenBLAS' threads look for work so long, on a core of their own, before they sleep; the next contestant would have one core less. */
const SPIN_MS = 60

/** @param threads with how many a contestant computes */
export async function minima(contestants: readonly Timed[], turns: number, threads: number): Promise<number[]> {
  const times: number[] = []
  for (const run of contestants) times.push(timesIn(TURN_SECONDS, await warmed(run)))
  const best = contestants.map(() => Number.POSITIVE_INFINITY)
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, run] of contestants.entries()) {
      if (threads > 1 && contestants.length > 1) await setTimeout(SPIN_MS)
      best[i] = Math.min(best[i]!, ((await run(times[i]!)) / times[i]!) * 1e6)
    }
  }
  return best
}

/** Warms a row up, and gives the seconds of one run then. */
async function warmed(run: Timed): Promise<number> {
  await run(2)
  let one = await run(1)
  for (let [runs, seconds] = [0, 0]; runs < WARM_TIMES && seconds < WARM_SECONDS; ) {
    const times = timesIn(BATCH_SECONDS, one)
    const took = await run(times)
    one = took / times
    runs += times
    seconds += took
  }
  return one
}

const timesIn = (seconds: number, one: number): number => Math.max(1, Math.floor(seconds / Math.max(one, 1e-7)))
