/** Measures the rows: each contestant of a row in turns, the minimum of its turns, microseconds. */

/** Does a row's work so often, and gives the seconds. */
export type Timed = (times: number) => Promise<number>

const TURN_SECONDS = 0.03
/**
 * V8 optimizes a function after some hundred calls, on a thread of its own, which may take some milliseconds; and again when it meets operands that it has not seen. The first row of a run needs
 * all of it.
 */
const WARM_SECONDS = 0.05

export async function minima(contestants: readonly Timed[], turns: number): Promise<number[]> {
  const times: number[] = []
  for (const run of contestants) {
    await run(2)
    const cold = await run(1)
    await run(Math.max(1, Math.floor(WARM_SECONDS / Math.max(cold, 1e-7))))
    const few = Math.max(1, Math.floor(TURN_SECONDS / 10 / Math.max(cold, 1e-7)))
    const one = (await run(few)) / few
    times.push(Math.max(1, Math.floor(TURN_SECONDS / Math.max(one, 1e-7))))
  }
  const best = contestants.map(() => Number.POSITIVE_INFINITY)
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, run] of contestants.entries()) best[i] = Math.min(best[i]!, ((await run(times[i]!)) / times[i]!) * 1e6)
  }
  return best
}
