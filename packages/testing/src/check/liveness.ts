/**
 * Two kinds of runs under faults, since they ask for different things. Safety: faults never end, nothing need end, and nothing wrong may
 * happen. Liveness: faults end at a point, and from there on everything must end within a bound of virtual time and steps.
 *
 *     safety     ~~~~~~~ faults ~~~~~~~~~~~~~~~~~~~~~~~~~~|  forMs: it may be pending, and a typed error of the weather is fine
 *     liveness   ~~~~~~~ faults ~~~~~|── withinMs ────────|  still pending: LIVENESS_VIOLATED, with who waits for whom
 *                                    └ faultsEndMs
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { randomFaults } from '../faults/fault-plan.js'
import { runSimulation, type SimCluster, type SimulatedWorkers, type SimulateOptions, type Simulation } from '../simulate/simulate.js'
import { whoWaitsText } from '../simulate/who-waits.js'

/** Options of `checkLiveness`. */
export interface LivenessOptions extends SimulateOptions {
  /** The virtual time, in ms, at which all fault rules end and partitions heal. Workers that a rule restarts still start again. Default 3000. */
  readonly faultsEndMs?: number
  /** How long after the faults' end, in ms of virtual time, the body may take to end. Then also no worker may wait for anything. Default 30,000. */
  readonly withinMs?: number
  /** How many steps after the faults' end the body may take. Default 1 million. */
  readonly withinSteps?: number
}

/** Options of `checkSafety`. */
export interface SafetyOptions extends SimulateOptions {
  /** The virtual time, in ms, at which the run ends, even if the body is pending. Default 10,000. */
  readonly forMs?: number
  /** The number of steps after which the run ends, even if the body is pending. Default 1 million. */
  readonly forSteps?: number
  /** Checks the cluster's state. This function is called after each step. If it throws, the run fails with SAFETY_VIOLATED. Default: no check. */
  readonly check?: (sim: SimCluster) => void
  /** Codes of errors with which the body may fail, in addition to those that faults cause, such as RPC_TIMEOUT and WORKER_DIED. Default: none. */
  readonly allow?: readonly string[]
}

/** How the body of `checkSafety` ended: with a value, with an error that is allowed, or not at all. */
export type SafetyEnd<T> =
  | { readonly ended: 'value'; readonly value: T }
  | { readonly ended: 'error'; readonly code: string }
  | { readonly ended: 'pending' }

const FAULTS_END_MS = 3000
const WITHIN_MS = 30_000
const FOR_MS = 10_000
const STEPS = 1_000_000
/** How often it is looked whether anybody still waits, in ms of virtual time. */
const LOOK_MS = 10

/** Errors of calls when workers die and messages are lost. */
const WEATHER: ReadonlySet<string> = new Set([
  ...['RPC_TIMEOUT', 'WORKER_DIED', 'RREF_CREATION_TIMEOUT', 'CALL_CANCELLED', 'WORKER_DRAINING', 'RPC_SHUT_DOWN'],
  ...['DIST_BACKWARD_TIMEOUT', 'GROUP_TIMEOUT', 'CONTEXT_RELEASED'],
])

/**
 * Checks that a program recovers from faults. It runs the body under faults, which are drawn from the seed by default, ends the faults, and waits until the body has
 * ended and no worker waits for anything.
 * @throws LIVENESS_VIOLATED if something is still pending at the limit, with the waits of all workers; the errors of `simulate`
 * @example
 * const { result } = await checkLiveness({ workers: 2, seed: 7 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * result // [[2, 3], [4, 5]]
 */
export function checkLiveness<T>(options: LivenessOptions, body: (sim: SimCluster) => Promise<T>): Promise<Simulation<T>> {
  const { faults = randomFaults() } = options
  return runSimulation({ ...options, faults }, body, (sim, main) => liveness(sim, main, options))
}

async function liveness<T>(sim: SimulatedWorkers, main: Promise<T>, options: LivenessOptions): Promise<T> {
  const { faultsEndMs = FAULTS_END_MS, withinMs = WITHIN_MS, withinSteps = STEPS } = options
  const { world } = sim
  const endFaults = () => {
    world.faults?.end()
    sim.heal()
    world.limitSteps(withinSteps)
  }
  world.clock.setTimer(faultsEndMs, endFaults)
  let isOver = false
  const late = new Promise<never>((_, reject) => {
    world.clock.setTimer(faultsEndMs + withinMs, () => isOver || reject(violated(sim, options)))
  })
  try {
    const value = await world.run(Promise.race([main, late]))
    // The body did not wait for all that it began.
    while (world.nowMs < faultsEndMs || sim.whoWaits().waits.length > 0) {
      await world.run(Promise.race([new Promise<void>((resolve) => world.clock.setTimer(LOOK_MS, resolve)), late]))
    }
    isOver = true
    return value
  } catch (error) {
    throw isPostgradError(error, 'SIM_LIMIT') ? violated(sim, options) : error
  }
}

function violated(sim: SimulatedWorkers, { faultsEndMs = FAULTS_END_MS, withinMs = WITHIN_MS }: LivenessOptions): PostgradError {
  const waits = sim.whoWaits()
  const { nowMs, steps } = sim.world
  const text =
    waits.waits.length === 0 ? "No worker waits for anything: it is the test's own promise that is pending." : whoWaitsText(waits)
  return new PostgradError('LIVENESS_VIOLATED', {
    op: 'checkLiveness',
    message: `the faults ended at ${faultsEndMs} ms, and at ${nowMs} ms (bound: ${faultsEndMs + withinMs} ms), after ${steps} steps, something is still pending. ${text}\n`,
    remedy: 'Make sure that every wait ends and that its waiter is notified, or allow more time with withinMs and withinSteps.',
    values: { timeMs: nowMs, steps, faultsEndMs, withinMs, ...waits },
  })
}

/**
 * Checks that a program does nothing wrong under faults that never end, which are drawn from the seed by default. The body may stay pending, or fail with an error
 * that faults cause, such as a timeout or a worker's death.
 * @throws SAFETY_VIOLATED if `check` throws; any other error of the body; the errors of `simulate`
 * @example
 * const { result } = await checkSafety({ workers: 2, seed: 7 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * result.ended // 'value', 'error' or 'pending'
 */
export function checkSafety<T>(options: SafetyOptions, body: (sim: SimCluster) => Promise<T>): Promise<Simulation<SafetyEnd<T>>> {
  const { faults = randomFaults({ untilMs: Number.POSITIVE_INFINITY }) } = options
  return runSimulation({ ...options, faults }, body, (sim, main) => safety(sim, main, options))
}

async function safety<T>(sim: SimulatedWorkers, main: Promise<T>, options: SafetyOptions): Promise<SafetyEnd<T>> {
  const { forMs = FOR_MS, forSteps = STEPS, check, allow = [] } = options
  const { world } = sim
  if (check !== undefined) {
    world.onQuiet = () => {
      try {
        check(sim)
      } catch (error) {
        throw unsafe(sim, error)
      }
    }
  }
  world.limitSteps(forSteps)
  const over = new Promise<SafetyEnd<T>>((resolve) => void world.clock.setTimer(forMs, () => resolve({ ended: 'pending' })))
  try {
    const end = await world.run(Promise.race([main.then((value): SafetyEnd<T> => ({ ended: 'value', value })), over]))
    return end
  } catch (error) {
    if (isPostgradError(error, 'SIM_LIMIT')) return { ended: 'pending' }
    if (isPostgradError(error) && (WEATHER.has(error.code) || allow.includes(error.code))) return { ended: 'error', code: error.code }
    throw error
  } finally {
    world.onQuiet = null
    // The run is over: what is under way need not be lost any more.
    world.faults?.end()
    world.limitSteps(STEPS)
  }
}

function unsafe(sim: SimulatedWorkers, cause: unknown): PostgradError {
  const { nowMs, steps } = sim.world
  const why = String((cause as Partial<Error> | null)?.message ?? cause)
  return new PostgradError('SAFETY_VIOLATED', {
    op: 'checkSafety',
    message: `at ${nowMs} ms, after step ${steps}: ${why}`,
    remedy: 'Repair the program, or the check if this state is allowed.',
    cause,
    values: { timeMs: nowMs, steps },
  })
}
