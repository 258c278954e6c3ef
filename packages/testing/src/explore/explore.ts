/**
 * `explore`: runs a body under every order of delivery if there are few enough, else under many of them. Each order is a run as `simulate` makes it; `search.ts`
 * knows which orders there are and which of them are equal (Note [Explore]).
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { now } from '@postgrad/base/internal'
import { checkNames, type OptionNames } from '@postgrad/cluster/internal'
import type { Schedule, SimWorldOptions } from '@postgrad/sim'
import { SeedSchedule } from '@postgrad/sim/internal'
import { noteInStack } from '../replay/error-notes.js'
import type { RunVariant } from '../replay/replay-token.js'
import { noteFailure, replayOf, reported, shrinkOf, tellPasses } from '../replay/reproduce.js'
import { nextRun, testEnd } from '../replay/run-identity.js'
import { bitDigest, differenceOfKnown, differenceText } from '../replay/same-bits.js'
import { checkRun } from '../simulate/check-run.js'
import {
  runSimulation,
  SIMULATE_OPTIONS,
  type SimCluster,
  type SimulatedWorkers,
  type SimulateOptions,
  type Simulation,
} from '../simulate/simulate.js'
import { Order, OrderRecorder } from './order.js'
import { PctSchedule } from './pct.js'
import { ObservedSchedule, Search, type SearchRun } from './search.js'

/** Runs that a search may take before it gives up to be complete. */
export const ORDERS_MAX = 2000
/** Runs by seeds or priorities. */
export const SEEDS = 500
/** An exploration ends when so much of its test's timeout is left. */
const TIME_LEFT = 0.02
/** Runs by seeds that check a search which has ended. */
const CHECKS = 10

/** Options of `explore`. */
export interface ExploreOptions extends Omit<SimulateOptions, 'world' | 'twice'> {
  /**
   * 'exhaustive' (default) runs every order; if `ordersMax` runs are not enough, it continues as 'seeds' does. 'seeds' draws one order for each seed, as `simulate`
   * does. 'pct' draws priorities and changes them during the run: this finds bugs that need a few events in a rare order.
   */
  readonly strategy?: 'exhaustive' | 'seeds' | 'pct'
  /** How many runs the exhaustive search may make. Default 2000. */
  readonly ordersMax?: number
  /** How many runs 'seeds' and 'pct' make, also those after an exhaustive search that was not complete. Default 500. */
  readonly seeds?: number
  /** For 'pct': how many events must come in a certain order for the bug to appear. Default 3. */
  readonly depth?: number
  /** Whether all orders must give the same result, to the last bit (`expectSameBits`). Parts without bits, such as undefined, are not compared. Default true. */
  readonly sameResult?: boolean
  /** When this signal aborts, the exploration ends before the next run, and resolves with the counts so far and `aborted: true`. */
  readonly signal?: AbortSignal
  /** Receives the progress after each run. */
  readonly onProgress?: (progress: ExploreProgress) => void
  /**
   * Options of the simulated world, as in `simulate`, but `arrival` is 'alone' by default: each frame arrives in a turn of its own. With 'seeded', the search also
   * tries frames that arrive together, which makes far more orders.
   */
  readonly world?: Omit<SimWorldOptions, 'faults' | 'schedule' | 'observer'>
}

const { twice: _, ...OF_A_RUN } = SIMULATE_OPTIONS
export const EXPLORE_OPTIONS: OptionNames<ExploreOptions> = {
  ...OF_A_RUN,
  strategy: true,
  ordersMax: true,
  seeds: true,
  depth: true,
  sameResult: true,
  signal: true,
  onProgress: true,
}

/** How far an exploration is. */
export interface ExploreProgress {
  /** How many runs there were so far. */
  readonly runs: number
  /** How many runs there will be at most, as far as this is known. */
  readonly runsMax: number
  /** How many different orders there were so far. */
  readonly orders: number
}

/** The result of an exploration. */
export interface Exploration {
  /** How many different orders were run. Orders that differ only in steps that do not affect each other count once. */
  readonly orders: number
  /** Whether all orders were run. */
  readonly exhausted: boolean
  /** How many branches the search left out, because other branches reach the same orders. */
  readonly pruned: number
  /** How many runs repeated an order that had been run before. */
  readonly redundant: number
  /** How many runs there were. */
  readonly runs: number
  /** How many of the runs were drawn by seeds or priorities. 0 if the exhaustive search was complete. */
  readonly drawn: number
  /** How many different results there were. */
  readonly outcomes: number
  /** How many steps the longest run took. */
  readonly steps: number
  /** Whether `signal` ended the exploration. */
  readonly aborted: boolean
  /** These counts as a sentence. */
  readonly text: string
}

/** @throws INVALID_ARGUMENT */
export function checkOptions(options: ExploreOptions): void {
  const { strategy = 'exhaustive', ordersMax = ORDERS_MAX, seeds = SEEDS, depth = 3 } = options
  if (strategy === 'exhaustive' && options.world?.arrival === 'at-once') {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'explore',
      expected: "arrival 'alone' or 'seeded'",
      got: "'at-once'",
      remedy: "With 'seeded' all that may arrive together does so in some order. By seeds ({ strategy: 'seeds' }) 'at-once' can be had.",
    })
  }
  if (strategy === 'exhaustive' && options.world?.overtaking === true) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'explore',
      expected: 'a world in which messages of a pair keep their order',
      got: 'overtaking: true',
      remedy: "The search knows no overtaking. Seeds do: { strategy: 'seeds' }.",
    })
  }
  const isFine =
    ['exhaustive', 'seeds', 'pct'].includes(strategy) && [ordersMax, seeds, depth - 1].every((n) => Number.isInteger(n) && n >= 0)
  if (isFine) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'explore',
    expected: "strategy 'exhaustive', 'seeds' or 'pct'; ordersMax and seeds from 0, depth from 1, all whole",
    got: JSON.stringify({ strategy, ordersMax, seeds, depth }),
    remedy: 'Leave out what you do not need: the defaults search through all orders of a small program.',
  })
}

/**
 * Runs `body` in simulations under every order of messages, or under many of them (see `strategy`). Each run has a new cluster and calls `body` again. `body` must
 * not keep state between its calls, and workers must share nothing except messages.
 * @throws the error of `body`, with `order` (the number of the run), `decisions`, and the line that repeats the run; ORDERS_DIFFER if two orders give
 * different results; ORDERS_MISSED or NOT_DETERMINISTIC if workers share more than messages, or use real time or unseeded random numbers; the errors of `simulate`
 * @throws RUN_TIMEOUT in a test of Jest or vitest whose timeout is too short for all runs
 * @example
 * const { orders, exhausted } = await explore({ workers: 2 }, async (sim) => {
 *   const y = await sim.on('worker0').run(() => call('worker1', addOne, [x]))
 *   if (!equal(y, x.add(1))) throw new Error('wrong') // its message has the line that repeats this order
 * })
 * exhausted // true
 */
export async function explore<T>(options: ExploreOptions, body: (sim: SimCluster) => Promise<T>): Promise<Exploration> {
  checkRun('explore', options, body)
  checkNames('explore', options, EXPLORE_OPTIONS)
  checkOptions(options)
  const explorer = new Explorer(options, body)
  const identity = nextRun(options.name)
  const replayed = replayOf(identity)
  const { traceDir } = options
  try {
    if (replayed === null) return await explorer.run(testEnd(identity))
    const found = await explorer.replay(replayed)
    tellPasses()
    return found
  } catch (error) {
    throw await reported(error, identity, {
      shrink: replayed === null ? shrinkOf(options, identity) : false,
      ...(traceDir === undefined ? {} : { traceDir }),
      run: (variant) => explorer.replay(variant, isPostgradError(error, 'ORDERS_DIFFER')),
    })
  }
}

/** The results of some seeds, as they travel between threads. */
export interface Part {
  readonly orders: readonly string[]
  /** Digests of the different results. */
  readonly outcomes: readonly string[]
  readonly runs: number
  readonly steps: number
}

/** @internal */
export class Explorer<T> {
  private readonly options: ExploreOptions
  private readonly body: (sim: SimCluster) => Promise<T>
  private readonly search = new Search()
  private readonly met = new Set<string>()
  private runs = 0
  private runsMax = 0
  private drawn = 0
  private steps = 0
  /** Decisions of the longest run, for `pct`. */
  private decisions = 0
  private test = { endMs: Number.POSITIVE_INFINITY, limitMs: Number.POSITIVE_INFINITY }
  private longestRunMs = 0
  private outcomes: { readonly result: T; readonly run: number }[] = []
  /** Digests of these, and of those that other threads have met. */
  private readonly digests = new Set<string>()

  constructor(options: ExploreOptions, body: (sim: SimCluster) => Promise<T>) {
    this.options = options
    this.body = body
  }

  /** @param test when the runner ends the test: the exploration fails before that, since the runner would say nothing of it */
  async run(test: ReturnType<typeof testEnd>): Promise<Exploration> {
    this.test = test
    const { strategy = 'exhaustive', seeds = SEEDS } = this.options
    if (strategy === 'exhaustive') await this.searchThrough()
    if (strategy !== 'exhaustive' || !(this.search.exhausted || this.isAborted)) await this.drawRuns(seeds, strategy === 'pct')
    else if (this.search.exhausted) await this.check()
    return this.report()
  }

  /** All orders, up to the bound; returns whether these were all. Drawn runs check them. */
  async searchPart(): Promise<boolean> {
    await this.searchThrough()
    if (this.search.exhausted) await this.check()
    return this.search.exhausted
  }

  /** Some of the seeds. All parts are held to the result of the first seed. */
  async seedsPart(first: number, count: number): Promise<Part> {
    const { seed = 0, strategy } = this.options
    if (first !== seed && this.options.sameResult !== false) await this.drawOne(new SeedSchedule(seed))
    await this.drawRuns(count, strategy === 'pct', first)
    return { orders: [...this.met], outcomes: [...this.digests], runs: this.drawn, steps: this.steps }
  }

  add({ orders, outcomes, runs, steps }: Part): void {
    for (const outcome of outcomes) this.digests.add(outcome)
    for (const order of orders) this.met.add(order)
    this.runs += runs
    this.drawn += runs
    this.steps = Math.max(this.steps, steps)
  }

  /** Runs and orders so far. */
  get soFar(): { readonly runs: number; readonly orders: number } {
    return { runs: this.runs, orders: this.met.size }
  }

  /** One run, of a token or of the shrinking of a failed one. Its failure may be that its result differs from the first order's. */
  async replay(variant: RunVariant, comparesResult = true): Promise<Exploration> {
    const run = ++this.runs
    const { world, ...options } = this.options
    let sim: SimulatedWorkers | null = null
    const { steps, result } = await runSimulation(
      { ...options, variant, saysSeed: false, world: { arrival: 'alone', ...world } },
      this.body,
      (one, main) => {
        sim = one
        return one.world.run(main)
      },
    )
    this.steps = steps
    if (comparesResult && options.sameResult !== false && result !== undefined) {
      if (this.outcomes.length === 0) await this.firstOrder()
      this.compare(result, run, sim!)
    }
    return this.report()
  }

  /** The one to which the results of all others are held. */
  private firstOrder(): Promise<unknown> {
    const { strategy = 'exhaustive', seed = 0, depth = 3 } = this.options
    if (strategy === 'pct') return this.drawOne(new PctSchedule(seed, { depth, decisions: 0 }))
    if (strategy === 'seeds') return this.drawOne(new SeedSchedule(seed))
    const run = new Search().start()
    return this.simulate(run, run)
  }

  private get isAborted(): boolean {
    return this.options.signal?.aborted === true
  }

  private async searchThrough(): Promise<void> {
    const { search } = this
    this.runsMax = this.options.ordersMax ?? ORDERS_MAX
    while (!search.exhausted && this.runs < this.runsMax && !this.isAborted) {
      const run = search.start()
      await this.simulate(run, run)
      if (run.parting !== null) throw this.parted(run)
      this.met.add(search.finish(run).fingerprint)
      this.progress()
    }
  }

  private async drawRuns(count: number, byPriority: boolean, seed = this.options.seed ?? 0): Promise<void> {
    const { depth = 3 } = this.options
    this.runsMax = this.runs + count
    for (let i = 0; i < count && !this.isAborted; i++) {
      const schedule = byPriority ? new PctSchedule(seed + i, { depth, decisions: this.decisions }) : new SeedSchedule(seed + i)
      this.met.add(await this.drawOne(schedule))
      this.drawn++
      this.progress()
    }
  }

  /** A search that has ended knows every order: none that a seed gives is news. */
  private async check(): Promise<void> {
    const { seed = 0 } = this.options
    for (let i = 0; i < CHECKS && !this.isAborted; i++) {
      if (this.met.has(await this.drawOne(new SeedSchedule(seed + i)))) continue
      throw new PostgradError('ORDERS_MISSED', {
        op: 'explore',
        message: `the search ended after ${this.met.size} orders, and seed ${seed + i} gives another one`,
        remedy:
          'Code of two workers, or of one and the test around them, reads and writes something other than messages: a variable of a module or of the closure. Keep it in an actor or in workerLocal.',
        values: { seed: seed + i, orders: this.met.size },
      })
    }
  }

  private async drawOne(schedule: Schedule): Promise<string> {
    const recorder = new OrderRecorder()
    await this.simulate(new ObservedSchedule(schedule, recorder), recorder)
    return new Order(recorder.events).fingerprint
  }

  private async simulate(schedule: Schedule, observer: SearchRun | OrderRecorder): Promise<void> {
    const { world, ...options } = this.options
    const startMs = now()
    this.checkTime(startMs)
    const run = ++this.runs
    const variant = { seed: options.seed ?? 0, decisions: null, faults: null }
    const keepsTrace = (options.traceDir ?? process.env.POSTGRAD_TRACE_DIR ?? '') !== ''
    let simulation: Simulation<T>
    let sim: SimulatedWorkers | null = null
    try {
      simulation = await runSimulation(
        {
          ...options,
          variant,
          saysSeed: false,
          world: { arrival: 'alone', ...(keepsTrace ? {} : { traceEventsMax: 0 }), ...world, schedule, observer },
        },
        this.body,
        (one, main) => {
          sim = one
          return one.world.run(main)
        },
      )
    } catch (error) {
      throw noted(error, run, sim === null ? [] : (sim as SimulatedWorkers).world.decisions)
    }
    this.longestRunMs = Math.max(this.longestRunMs, now() - startMs)
    this.steps = Math.max(this.steps, simulation.steps)
    this.decisions = Math.max(this.decisions, sim!.world.decisions.length)
    this.compare(simulation.result, run, sim!)
  }

  /** Whether there is time for another run. The last one may take longer than those before, and the runner has work of its own. */
  private checkTime(nowMs: number): void {
    const { runs, test } = this
    const isUnlimited = test.limitMs === Number.POSITIVE_INFINITY
    if (runs === 0 || isUnlimited || test.endMs - nowMs > TIME_LEFT * test.limitMs + 2 * this.longestRunMs) return
    const { size: orders } = this.met
    throw new PostgradError('RUN_TIMEOUT', {
      op: 'explore',
      message: `not all orders are run, and the test's timeout of ${test.limitMs} ms is almost over: ${runs} runs so far, ${orders} different orders`,
      remedy:
        'Pass the test a longer timeout, as in test(name, fn, 120_000), or explore fewer runs (ordersMax, seeds). Fewer workers, calls that are awaited one after another, and fewer fault rules make fewer orders.',
      values: { timeoutMs: test.limitMs, runs, orders },
    })
  }

  /** The body has to check values without bits. */
  private compare(result: T, run: number, sim: SimulatedWorkers): void {
    const { sameResult = true } = this.options
    const differences = this.outcomes.map((other) => differenceOfKnown(result, other.result))
    if (differences.includes(null)) return
    if (differences.length > 0 && sameResult) {
      const error = new PostgradError('ORDERS_DIFFER', {
        op: 'explore',
        message: `two orders of delivery give different results: run ${run}, against run ${this.outcomes[0]!.run}\n${differenceText(differences[0]!)}`,
        remedy: 'If results may differ, pass { sameResult: false }.',
        values: { order: run, decisions: [...sim.world.decisions] },
      })
      noteFailure(error, sim.record())
      throw noted(error, run, sim.world.decisions)
    }
    this.outcomes.push({ result, run })
    this.digests.add(bitDigest(result))
  }

  private progress(): void {
    this.options.onProgress?.({ runs: this.runs, runsMax: this.runsMax, orders: this.met.size })
  }

  private parted({ parting }: SearchRun): PostgradError {
    return new PostgradError('NOT_DETERMINISTIC', {
      op: 'explore',
      message: `the same decisions gave another run: it parted at step ${parting!.step} (${parting!.label}), in run ${this.runs}`,
      remedy:
        'The program takes time, chance or order from somewhere else: Date, Math.random, real timers or I/O, a variable that outlives a run. Take them from the worker (its clock, its generator).',
      values: { ...parting, order: this.runs },
    })
  }

  report(aborted = this.isAborted): Exploration {
    const { search, runs, drawn, steps } = this
    const { pruned, redundant } = search.counts
    const { exhausted } = search
    const orders = this.met.size
    const outcomes = this.digests.size
    const bySearch = exhausted
      ? `all ${orders} orders of delivery`
      : `${orders} orders of delivery, not all${drawn === 0 ? '' : `: ${search.counts.orders} by search, the rest by ${drawn} ${this.options.strategy === 'pct' ? 'priority schedules' : 'seeds'}`}`
    const text = `explored ${bySearch} (${runs} runs of at most ${steps} steps; ${pruned} branches pruned, ${redundant} runs redundant)${aborted ? '; aborted' : ''}`
    return { orders, exhausted, pruned, redundant, runs, drawn, outcomes, steps, aborted, text }
  }
}

/** The error of an order says which it was, and how it is run again. */
function noted(error: unknown, order: number, decisions: readonly number[]): unknown {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return error
  Object.assign(error, { order, decisions: [...decisions] })
  noteInStack(error, ` (run ${order} of explore)`)
  return error
}
