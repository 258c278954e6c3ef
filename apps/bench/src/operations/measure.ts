/** Measures the rows: each contestant of a row in turns, the minimum of its turns, microseconds. */

/** Does a row's work so often, and gives the seconds. */
export type Timed = (times: number) => Promise<number>

/** A turn takes so long, but at most TIMES_MAX times. */
const TURN_SECONDS = 0.03
const TIMES_MAX = 2000
/** V8 optimizes a function after some hundred calls. */
const WARM_TIMES = 300
const WARM_SECONDS_MAX = 0.3

export async function minima(contestants: readonly Timed[], turns: number): Promise<number[]> {
  const times: number[] = []
  for (const run of contestants) {
    await run(2)
    const one = await run(1)
    times.push(Math.max(1, Math.min(TIMES_MAX, Math.floor(TURN_SECONDS / Math.max(one, 1e-7)))))
    const warm = Math.min(WARM_TIMES, Math.floor(WARM_SECONDS_MAX / Math.max(one, 1e-7)))
    if (warm > 0) await run(warm)
  }
  const best = contestants.map(() => Number.POSITIVE_INFINITY)
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, run] of contestants.entries()) best[i] = Math.min(best[i]!, ((await run(times[i]!)) / times[i]!) * 1e6)
  }
  return best
}
