/**
 * All checkers in one call. Each may be called alone: `expectClean`, `expectConserved`, `expectExecutedOnce`, `expectCreditsReturned`, `expectSameBits`.
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { inlined } from '../inlined/inlined.js'
import { noteInStack } from '../replay/error-notes.js'
import { foundIn } from '../replay/reproduce.js'
import { expectSameBits } from '../replay/same-bits.js'
import type { TestCluster } from '../simulate/cluster.js'
import type { Messages } from '../simulate/message-ledger.js'
import { type SimulateOptions, type Simulation, simulate } from '../simulate/simulate.js'
import { type CleanOptions, type DebugInfos, expectClean } from './expect-clean.js'
import { expectConserved, expectCreditsReturned, expectExecutedOnce } from './expect-conserved.js'

/** The parts of a `Simulation` that `expectSound` reads. */
export interface Checked {
  /** The seed, for the error. */
  readonly seed?: number
  /** The result of the body, which is compared with the oracle. */
  readonly result?: unknown
  /** Counts of all that each worker held at the end. */
  readonly debugInfo: DebugInfos
  /** The counts of all messages. Null (with `countMessages: false`) makes the check fail. */
  readonly messages: Messages | null
  /** The names whose latest worker had crashed at the end. */
  readonly crashed: readonly string[]
  /** Whether any worker crashed, left or was started again. */
  readonly anyEnded: boolean
}

/** Options of `expectSound`. */
export interface SoundOptions extends CleanOptions {
  /** The result of `inlined` for the same body. The simulation's result must have the same bits. Default: results are not compared. */
  readonly oracle?: unknown
}

/**
 * Checks a simulated run in all respects: its result has the same bits as the oracle (if one is given), and `expectExecutedOnce`, `expectConserved`,
 * `expectCreditsReturned` and `expectClean` pass. Crashed workers need not be clean. If a worker ended, dead letters are allowed. The error has the line that
 * repeats the run, as the error of a failed run has.
 * @throws BITS_DIFFER, EXECUTED_TWICE, NOT_CONSERVED, CREDITS_LOST, NOT_COUNTED, NOT_CLEAN: if several checks fail, the first in this order, with the messages of all
 * others in its message
 * @example
 * const body = (cluster: TestCluster) => cluster.on('worker0').run(() => call('worker1', addOne, [x]))
 * const oracle = await inlined({ workers: 2 }, body)
 * expectSound(await simulate({ workers: 2, seed: 7 }, body), { oracle }) // all checks of this module
 */
export function expectSound(simulation: Checked, options: SoundOptions = {}): void {
  const error = unsound(simulation, options)
  if (error !== null) throw foundIn(simulation, error)
}

/** The error of `expectSound`, still without the lines that repeat the run; null: nothing was found. */
export function unsound(simulation: Checked, { oracle, except = [], allow = [] }: SoundOptions): PostgradError | null {
  const { seed, result, crashed, anyEnded } = simulation
  // The worst first: a wrong result, then what led to it or may lead to one, then what is only left over.
  const checkers = [
    () => {
      if (oracle !== undefined) expectSameBits(result, oracle, seed === undefined ? {} : { seed })
    },
    () => expectExecutedOnce(simulation),
    () => expectConserved(simulation),
    () => expectCreditsReturned(simulation),
    () => expectClean(simulation, { except: [...except, ...crashed], allow: anyEnded ? [...allow, 'deadLetters'] : allow }),
  ]
  const found = new Map<string, PostgradError>()
  for (const check of checkers) {
    try {
      check()
    } catch (error) {
      if (!isPostgradError(error)) throw broken(simulation, error, [...found.values()])
      if (!found.has(error.code)) found.set(error.code, error)
    }
  }
  return found.size > 0 ? together([...found.values()]) : null
}

/** A checker that fails itself finds nothing; what was found before it is in its stack. */
function broken(simulation: Checked, error: unknown, found: readonly PostgradError[]): unknown {
  if (found.length > 0) noteInStack(error, `\nAlso found:\n${textsOf(found)}`)
  return foundIn(simulation, error)
}

function textsOf(found: readonly PostgradError[]): string {
  return found.map(({ code, message }) => `${code}: ${message.trimEnd()}`).join('\n')
}

/** The worst, with the texts of all. */
function together([worst, ...others]: readonly PostgradError[]): PostgradError {
  if (others.length === 0) return worst!
  const { code, op, message, values, cause } = worst!
  return new PostgradError(code, {
    op,
    message: `${message.slice(`${op}: `.length).trimEnd()}\nAlso found:\n${textsOf(others)}\n`,
    cause,
    values: { ...values, alsoFound: others.map((other) => other.code) },
  })
}

/**
 * Runs `body` twice, first by `inlined` and then by `simulate`, and checks the simulation by `expectSound`: both results must have the same bits. Resolves with the
 * simulation.
 * @throws the errors of `inlined`, `simulate` and `expectSound`
 * @example
 * const { result } = await simulateAgainstInlined({ workers: 2, seed: 7 }, (cluster) => cluster.on('worker0').run(() => call('worker1', addOne, [x])))
 * result // [[2, 3], [4, 5]]
 */
export async function simulateAgainstInlined<T>(
  options: SimulateOptions,
  body: (cluster: TestCluster) => Promise<T>,
  checks: Omit<SoundOptions, 'oracle'> = {},
): Promise<Simulation<T>> {
  const { workers, dataSeed } = options
  const oracle = await inlined({ workers, ...(dataSeed === undefined ? {} : { dataSeed }) }, body)
  const simulation = await simulate(options, body)
  expectSound(simulation, { ...checks, oracle })
  return simulation
}
