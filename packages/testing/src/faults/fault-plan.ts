/**
 * The faults of a simulated run, as a list of rules: written by hand, with the few shapes that recur (`failFirst`), or drawn from the seed
 * (`randomFaults`). A drawn plan is a list like any other, so it can be printed, and repeated with some of its rules left out (`shrink.ts`).
 */
import { PostgradError } from '@postgrad/base'
import { didYouMean, mix32, Random } from '@postgrad/sim/internal'
import { checkOptions } from '@postgrad/tensor/internal'
import type { FaultMatch, FaultRule, MessageKind } from './message-kind.js'

/**
 * Options of `randomFaults`: the limits of the plans that it draws. Rates are shares of the frames, from 0 to 1. Each plan draws its own rates and numbers up to
 * these limits, and may leave a fault out. Times are in ms of virtual time.
 */
export interface RandomFaultsOptions {
  /** The time at which losses, repeats, delays, partitions and slow lines end. Default 3000. Infinity: never. */
  readonly untilMs?: number
  /** The highest rate of frames that are lost. Default 0.3. */
  readonly drop?: number
  /** The highest rate of frames that arrive twice. Default 0.3. */
  readonly duplicate?: number
  /** The highest rate of frames that arrive late, by up to `delayMs`. Default 0.3. */
  readonly delay?: number
  /** The longest delay of a frame. Default 400. */
  readonly delayMs?: number
  /** How often, at most, the workers are partitioned into two sides for some time. Default 1. */
  readonly partitions?: number
  /** How many pairs of workers, at most, have a slow line. Default 1. */
  readonly slow?: number
  /** How many workers, at most, crash. Default 1. */
  readonly crashes?: number
  /** How many workers, at most, crash and start again within 300 ms. Default 1. */
  readonly restarts?: number
  /** The workers that never crash. Default: the first, where a test's program usually runs. A program on a worker that crashes fails with WORKER_DIED. */
  readonly spare?: string | readonly string[]
}

/** Draws fault rules from a seed: the result of `randomFaults`. */
export interface RandomFaults {
  /** Returns the fault rules for a seed and the names of the workers. The same seed and names give the same rules. */
  draw(seed: number, workers: readonly string[]): readonly FaultRule[]
}

/** The faults of a simulation: a list of rules; 'random', which draws rules from the seed; or `randomFaults(…)`, which does so within limits. */
export type FaultsOption = readonly FaultRule[] | 'random' | RandomFaults

const UNTIL_MS = 3000
const RATE = 0.3
const DELAY_MS = 400
const RESTART_MS = 300
/** A crash comes with one of so many first messages. */
const CRASH_NTH_MAX = 40
const RANDOM_KEYS = Object.keys({
  untilMs: true,
  drop: true,
  duplicate: true,
  delay: true,
  delayMs: true,
  partitions: true,
  slow: true,
  crashes: true,
  restarts: true,
  spare: true,
} satisfies Record<keyof RandomFaultsOptions, true>) as (keyof RandomFaultsOptions)[]
/** A partition that lasts longer than a session waits (30 s) ends its links. */
const PARTITION_MS_MAX = 2000
const SLOW_MS_MAX = 50
const BYTES_PER_MS_MAX = 1000

/**
 * Draws a simulation's fault rules from its seed, within limits: `simulate({ seed, workers, faults: randomFaults({ crashes: 0 }) }, …)`. The rules that it drew
 * are in `simulation.plan`, and a run that fails prints them.
 * @throws INVALID_ARGUMENT if a limit is not valid
 * @example
 * const faults = randomFaults({ crashes: 0, restarts: 0, drop: 0.1 })
 * const { plan } = await simulate({ workers: 2, seed: 7, faults }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 */
export function randomFaults(options: RandomFaultsOptions = {}): RandomFaults {
  checkRandom(options)
  return { draw: (seed, workers) => draw(new Random(mix32(seed ^ 0x91a75)), workers, options) }
}

/**
 * Returns a fault rule that loses the first `times` sends of every message of these kinds. PyTorch: `num_fail_sends` and `messages_to_fail` of its faulty agent.
 * @example
 * const faults = [failFirst(2, 'CALL')] // each call arrives at the third attempt
 * await simulate({ workers: 2, faults }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 */
export function failFirst(times: number, kind: MessageKind | readonly MessageKind[]): FaultRule {
  return { match: { kind }, do: 'drop', timesEach: times }
}

/** Null: without faults, on bare links. */
export function rulesOf(faults: FaultsOption | undefined, seed: number, workers: readonly string[]): readonly FaultRule[] | null {
  if (faults === undefined) return null
  if (faults === 'random') return randomFaults().draw(seed, workers)
  if (Array.isArray(faults)) return faults as readonly FaultRule[]
  if (typeof faults === 'object' && faults !== null && 'draw' in faults) return faults.draw(seed, workers)
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: "a list of rules, 'random', or randomFaults({ … })",
    got: typeof faults === 'string' ? `'${faults}'` : JSON.stringify(faults),
    remedy: "A rule is { match?: { from, to, kind, nth, probability, … }, do: 'drop' | 'duplicate' | 'delay' | …, delayMs?, times?, … }.",
  })
}

/** Whether the rules are drawn from the seed. */
export function isDrawn(faults: FaultsOption | undefined): boolean {
  return faults === 'random' || (typeof faults === 'object' && 'draw' in faults)
}

function draw(random: Random, workers: readonly string[], options: RandomFaultsOptions): FaultRule[] {
  const { untilMs = UNTIL_MS, drop = RATE, duplicate = RATE, delay = RATE, delayMs = DELAY_MS } = options
  const { partitions = 1, slow = 1, crashes = 1, restarts = 1, spare = workers.slice(0, 1) } = options
  const end = untilMs === Number.POSITIVE_INFINITY ? {} : { untilMs }
  const weatherMs = Math.min(untilMs, UNTIL_MS)
  const plan: FaultRule[] = []
  const mortal = workers.filter((name) => !namesOf(spare).includes(name))
  const nth = (to: string): FaultMatch => ({ to, nth: 1 + random.below(CRASH_NTH_MAX) })
  for (let left = random.below(1 + crashes); left > 0 && mortal.length > 0; left--) {
    plan.push({ match: nth(mortal.splice(random.below(mortal.length), 1)[0]!), do: 'crash' })
  }
  for (let left = random.below(1 + restarts); left > 0 && mortal.length > 0; left--) {
    plan.push({ match: nth(mortal[random.below(mortal.length)]!), do: 'restart', delayMs: random.below(RESTART_MS) })
  }
  for (let left = random.below(1 + partitions); left > 0 && workers.length > 1; left--) {
    const [one, other] = sides(random, workers)
    const fromMs = random.below(Math.max(1, Math.floor(weatherMs / 2)))
    const lastsMs = 1 + random.below(Math.max(1, Math.floor(Math.min(PARTITION_MS_MAX, weatherMs / 2))))
    plan.push({ match: { between: [one, other] }, do: 'drop', fromMs, untilMs: fromMs + lastsMs })
  }
  for (let left = random.below(1 + slow); left > 0 && workers.length > 1; left--) {
    const one = workers[random.below(workers.length)]!
    const others = workers.filter((name) => name !== one)
    const other = others[random.below(others.length)]!
    const bytesPerMs = 1 + random.below(BYTES_PER_MS_MAX)
    plan.push({ match: { between: [one, other] }, do: 'slow', delayMs: random.below(SLOW_MS_MAX), bytesPerMs, ...end })
  }
  const rate = (max: number) => ((1 + random.below(1000)) / 1000) * max
  if (random.coin() && drop > 0) plan.push({ match: { probability: rate(drop) }, do: 'drop', ...end })
  if (random.coin() && delay > 0)
    plan.push({ match: { probability: rate(delay) }, do: 'delay', delayMs: 1 + random.below(delayMs), ...end })
  if (random.coin() && duplicate > 0)
    plan.push({ match: { probability: rate(duplicate) }, do: 'duplicate', delayMs: random.below(delayMs), ...end })
  return plan
}

/** Two sides, with at least one worker each. */
function sides(random: Random, workers: readonly string[]): [string[], string[]] {
  const all = [...workers]
  const one = all.splice(random.below(all.length), 1)
  const other = all.splice(random.below(all.length), 1)
  for (const name of all) (random.coin() ? one : other).push(name)
  return [one, other]
}

// --- printing

/**
 * Returns a text that describes fault rules, one line for each rule: `drop 12 % of CALL from worker0 to worker1, from 100 ms until 400 ms`.
 * @example
 * const { plan } = await simulate({ workers: 2, seed: 7, faults: randomFaults() }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * console.log(planText(plan))
 */
export function planText(rules: readonly FaultRule[]): string {
  return rules.map((rule, index) => `  ${index + 1}. ${ruleText(rule)}`).join('\n')
}

/** "drop 12 % of CALL from worker0 to worker1, from 100 ms until 400 ms" */
export function ruleText(rule: FaultRule): string {
  const { match, do: action, delayMs, bytesPerMs, worker, times, timesEach, fromMs, untilMs } = rule
  const parts = [`${action} ${typeof match === 'function' ? 'what a function says' : matchText(match ?? {})}`]
  if (worker !== undefined) parts.push(`of worker ${worker}`)
  if (delayMs !== undefined && delayMs > 0) parts.push(action === 'restart' ? `back after ${delayMs} ms` : `by ${delayMs} ms`)
  if (bytesPerMs !== undefined) parts.push(`at ${bytesPerMs} bytes a ms`)
  if (times !== undefined) parts.push(`${times} times`)
  if (timesEach !== undefined) parts.push(`the first ${timesEach} sends of each`)
  if (fromMs !== undefined) parts.push(`from ${fromMs} ms`)
  if (untilMs !== undefined) parts.push(`until ${untilMs} ms`)
  return parts.join(', ')
}

function matchText({ from, to, between, kind, when, nth, every, probability }: FaultMatch): string {
  const what = kind === undefined ? 'frames' : namesOf(kind).join(' or ')
  const words: string[] = []
  if (probability !== undefined) words.push(`${Math.round(probability * 1000) / 10} % of`)
  if (nth !== undefined) words.push(`number ${nth} of`)
  if (every !== undefined) words.push(`every ${every}th of`)
  words.push(what)
  if (from !== undefined) words.push(`from ${namesOf(from).join(', ')}`)
  if (to !== undefined) words.push(`to ${namesOf(to).join(', ')}`)
  if (between !== undefined) words.push(`between ${between.map((side) => namesOf(side).join(', ')).join(' and ')}`)
  if (when !== undefined) words.push('where a function says so')
  return words.join(' ')
}

/** The error of rules that name a worker which was not in the run at any time, or null. Known only at its end: a body may let workers join. */
export function misnamed(rules: readonly FaultRule[], workers: readonly string[]): PostgradError | null {
  for (const [index, rule] of rules.entries()) {
    const { worker = [] } = rule
    const { from = [], to = [], between = [] } = typeof rule.match === 'object' ? rule.match : {}
    const unknown = [from, to, ...between, worker].flatMap(namesOf).filter((name) => !workers.includes(name))
    if (unknown.length === 0) continue
    return new PostgradError('INVALID_ARGUMENT', {
      op: 'faults',
      expected: `workers that are in the simulation at some time: ${workers.join(', ')}`,
      got: `${unknown.join(', ')} in rule ${index + 1} (${ruleText(rule)})`,
      remedy: didYouMean(unknown[0]!, workers) || 'Correct the name. The rule did not apply to any message of such a worker.',
      values: { unknown, rule: index },
    })
  }
  return null
}

export function namesOf(names: string | readonly string[]): readonly string[] {
  return typeof names === 'string' ? [names] : names
}

function checkRandom(options: RandomFaultsOptions): void {
  checkOptions('randomFaults', options, RANDOM_KEYS, 'Every option has a default: leave out what need not be limited.')
  const { drop = 0, duplicate = 0, delay = 0, delayMs = 1, partitions = 0, slow = 0, crashes = 0, restarts = 0, untilMs = 1 } = options
  const areRates = [drop, duplicate, delay].every((rate) => rate >= 0 && rate <= 1)
  const areCounts = [partitions, slow, crashes, restarts].every((count) => Number.isSafeInteger(count) && count >= 0)
  if (areRates && areCounts && Number.isSafeInteger(delayMs) && delayMs >= 1 && untilMs >= 0) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'randomFaults',
    expected: 'rates from 0 to 1, counts that are integers from 0, times in ms',
    got: JSON.stringify(options),
    remedy: 'Leave out what need not be bounded; every option has a default.',
  })
}
