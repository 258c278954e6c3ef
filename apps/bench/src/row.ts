/** A row of the bench: one question, with all its figures measured in one run, in turns. */

export interface Row {
  readonly name: string
  /** Of `ours`, `limit`, `peers` and `aim`. */
  readonly unit: string
  readonly ours: number
  /** The raw limit: the same messages or additions without anything of ours. */
  readonly limit: number
  readonly peers: Readonly<Record<string, number>>
  /** Null where the row has none, and `met` with it. */
  readonly aim: number | null
  readonly met: boolean | null
  /** How often ours had done its work before it was measured. */
  readonly warm: number
  /** Our cost at first, in the row's unit: the first 100 times in this run, or fewer if a turn has fewer. Null where `warm` is 0. */
  readonly first: number | null
}

/** One contestant of a row: does its work n times and gives the seconds that it took. */
export type Contestant = (n: number) => Promise<number>

export interface RowPlan {
  readonly name: string
  readonly unit: string
  /** How often each contestant does its work per turn. */
  readonly n: number
  /** At most so many turns, for work that takes seconds. */
  readonly turnsMax?: number
  /** Ours and the limit do their work so often before they are measured, at least; 0: ours is code that was never run. Default: WARM_PASSES. */
  readonly warm?: number
  /** A figure from the seconds that n times took. */
  readonly figure: (seconds: number, n: number) => number
  readonly higherIsBetter: boolean
  readonly ours: Contestant
  readonly limit: Contestant
  readonly peers: Readonly<
    Record<string, { readonly run: Contestant /** Does its work this much less often: it is slower. */; readonly share?: number }>
  >
  /** The aim in the row's unit, from the limit and the peers; null: there is none, or the peer that it needs is not there. */
  readonly aim: (limit: number, peers: Readonly<Record<string, number>>) => number | null
}

/** How long each contestant works before it is measured, in s, and in turns. */
const WARM_UP_SECONDS = 1
const WARM_UP_TURNS_MAX = 200
/** Where work is to be done so often that it takes longer, no longer than that. */
const WARM_UP_SECONDS_MAX = 20
/** A pass takes ten times as long at first, and its final time after so many: V8 optimizes a function when it has often been called, on each worker separately. */
export const WARM_PASSES = 3000
const FIRST_PASSES = 100

/** Perturbations of a shared machine only ever make a turn slower, so the median of many short turns is what stays. */
export async function measure(plan: RowPlan, turns: number, tick: () => void): Promise<Row> {
  const contestants: [string, Contestant, number][] = [
    ['ours', plan.ours, plan.n],
    ['limit', plan.limit, plan.n],
  ]
  for (const [name, { run, share = 1 }] of Object.entries(plan.peers))
    contestants.push([`peer:${name}`, run, Math.max(1, Math.round(plan.n * share))])
  const figures = new Map<string, number[]>(contestants.map(([name]) => [name, []]))
  // Warm first: code is compiled, heaps have their size. The limit of many rows is code of ours, too; the peers are compiled, or loops that V8 optimizes within the second.
  let warm = 0
  let first: number | null = null
  for (const [name, run, n] of contestants) {
    const isOurs = name === 'ours'
    if (isOurs && plan.warm === 0) continue
    const timesMin = isOurs || name === 'limit' ? (plan.warm ?? WARM_PASSES) : 0
    const isWarm = (times: number, spent: number): boolean =>
      spent >= WARM_UP_SECONDS && (times >= timesMin || spent >= WARM_UP_SECONDS_MAX)
    let times = 0
    for (let spent = 0; !isWarm(times, spent); ) {
      const turn = times === 0 ? Math.min(n, FIRST_PASSES) : n
      const started = performance.now()
      const seconds = await run(turn)
      if (isOurs && times === 0) first = plan.figure(seconds, turn)
      // Some time only a part of their work, or count something else.
      spent += Math.max(seconds, (performance.now() - started) / 1000, WARM_UP_SECONDS / WARM_UP_TURNS_MAX)
      times += turn
    }
    if (isOurs) warm = times
  }
  for (let turn = 0; turn < Math.min(turns, plan.turnsMax ?? turns); turn++) {
    for (const [name, run, n] of contestants) figures.get(name)!.push(plan.figure(await run(n), n))
    tick()
  }
  const of = (name: string) => median(figures.get(name)!)
  const ours = of('ours')
  const limit = of('limit')
  const peers = Object.fromEntries(Object.keys(plan.peers).map((name) => [name, of(`peer:${name}`)]))
  const aim = plan.aim(limit, peers)
  return {
    name: plan.name,
    unit: plan.unit,
    ours,
    limit,
    peers,
    aim,
    met: aim === null ? null : plan.higherIsBetter ? ours >= aim : ours <= aim,
    warm,
    first,
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
