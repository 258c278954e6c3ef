/** Measures one figure over many sizes, to show how it grows. `sweeps.ts` has the questions, `picture.ts` draws the answer. */
import { type Contestant, median } from '../row.js'

export interface Series {
  readonly name: string
  /** At most; larger sizes are left out. */
  readonly max?: number
  /** The contestant at that size. */
  readonly at: (size: number) => Contestant
  /** Does its work so often before it is measured, however long that takes (no longer than 20 s); default: a while. */
  readonly warm?: (size: number) => number
  /** Units of work in one, where the figure is of a part of it; default 1. */
  readonly parts?: (size: number) => number
}

export interface SweepPlan {
  /** Of its files. */
  readonly id: string
  readonly title: string
  readonly x: string
  readonly y: string
  /** The marks of the axis are its powers; with 16 they are read as bytes. */
  readonly base: number
  readonly sizes: readonly number[]
  readonly series: readonly Series[]
}

/** Figures in µs, by the names of the series; null where one was left out. */
export interface Sweep extends Omit<SweepPlan, 'series'> {
  readonly series: readonly { readonly name: string; readonly us: readonly (number | null)[] }[]
}

/** A contestant's time per turn, about. */
const TURN_SECONDS = 0.1
/** Before it is measured it works so often, since each worker compiles its code for itself, and so long; but no longer than that. */
const WARM_UP_TIMES = 300
const WARM_UP_SECONDS = 0.3
const WARM_UP_SECONDS_MAX = 3
/** Where it is said how often. */
const WARM_UP_SECONDS_MAX_SAID = 20
const MICROSECONDS = 1e6

/** Every size: all series in turns; a figure is the median over the turns. */
export async function measureSweep(plan: SweepPlan, turns: number, tick: (text: string) => void): Promise<Sweep> {
  const figures = plan.series.map(() => [] as (number | null)[])
  for (const size of plan.sizes) {
    const contestants: { run: Contestant; n: number; us: number[]; parts: number }[] = []
    for (const { at, max = Number.POSITIVE_INFINITY, parts = () => 1, warm } of plan.series) {
      const run = at(size)
      contestants.push({ run, n: size > max ? 0 : await warmUp(run, warm?.(size) ?? null), us: [], parts: parts(size) })
    }
    for (let turn = 0; turn < turns; turn++) {
      for (const { run, n, us, parts } of contestants) {
        if (n > 0) us.push(((await run(n)) * MICROSECONDS) / (n * parts))
      }
      tick(`${plan.id} ${size}: ${turn + 1} of ${turns}`)
    }
    for (const [i, { us }] of contestants.entries()) figures[i]!.push(us.length === 0 ? null : median(us))
  }
  const { series, ...rest } = plan
  return { ...rest, series: series.map(({ name }, i) => ({ name, us: figures[i]! })) }
}

/** Works until it is warm; gives how often it should per turn. */
async function warmUp(run: Contestant, timesMin: number | null): Promise<number> {
  const secondsMax = timesMin === null ? WARM_UP_SECONDS_MAX : WARM_UP_SECONDS_MAX_SAID
  let [n, times, spent] = [1, 0, 0]
  for (;;) {
    const seconds = await run(n)
    spent += seconds
    times += n
    const warm = times >= (timesMin ?? WARM_UP_TIMES) && spent >= WARM_UP_SECONDS
    if (warm || spent >= secondsMax) return Math.max(1, Math.round((n * TURN_SECONDS) / seconds))
    if (seconds < TURN_SECONDS) n *= 2
  }
}
