/** A run of `--heap`: its measures, its samples, their trend. `watch.ts` takes the samples, `picture.ts` draws them. */

/** A line through the last half that rises by more than this share of its mean within the half is growth. */
const RISE_MAX = 0.05

export const MEASURES = {
  rss: 'resident memory of the process',
  touched: 'heap: up to where it was ever used',
  claimed: 'heap: in segments of workers',
  live: 'heap: in blocks that somebody holds',
  heapUsed: 'JavaScript heaps of all threads',
} as const
export type Measure = keyof typeof MEASURES

export interface HeapSample {
  readonly seconds: number
  readonly mebibytes: Readonly<Record<Measure, number>>
  readonly segments: number
  readonly blocksOnTheWay: number
  readonly steps: number
}

export interface Trend {
  readonly mean: number
  readonly perHour: number
  /** Of the mean, within the last half. */
  readonly rise: number
  readonly isFlat: boolean
}

export interface HeapRun {
  readonly machine: string
  readonly seed: number
  readonly workers: number
  readonly minutes: number
  readonly trends: Readonly<Record<Measure, Trend>>
  readonly samples: readonly HeapSample[]
}

/** Least squares. */
export function trendOf(points: readonly (readonly [seconds: number, value: number])[]): Trend {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
  const [x, y] = [mean(points.map(([seconds]) => seconds)), mean(points.map(([, value]) => value))]
  const spread = points.reduce((sum, [seconds]) => sum + (seconds - x) ** 2, 0)
  const slope = spread === 0 ? 0 : points.reduce((sum, [seconds, value]) => sum + (seconds - x) * (value - y), 0) / spread
  const rise = y === 0 ? 0 : (slope * ((points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0))) / y
  return { mean: y, perHour: slope * 3600, rise, isFlat: rise <= RISE_MAX }
}
