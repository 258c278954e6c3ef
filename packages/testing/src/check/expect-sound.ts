/**
 * All checkers in one call. Each also stands alone: `expectClean`, `expectConserved`, `expectExecutedOnce`, `expectCreditsReturned`, `expectSameBits`.
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

/** What the checkers look at of a `Simulation`. */
export interface Checked {
  /** For the message of a failure. */
  readonly seed?: number
  /** What is compared with the oracle. */
  readonly result?: unknown
  /** What each worker held at the end. */
  readonly debugInfo: DebugInfos
  /** What became of each message; null: not counted. */
  readonly messages: Messages | null
  /** Names whose last life had crashed. */
  readonly crashed: readonly string[]
  /** Whether any worker crashed, left or was started again. */
  readonly anyEnded: boolean
}

/** Of `expectSound`. */
export interface SoundOptions extends CleanOptions {
  /** What the inlined program gives: the simulation's result must have its bits. Left out, results are not compared. */
  readonly oracle?: unknown
}

/**
 * Proves of one run: its result has the bits of the oracle (if one is given); nothing is held on any worker that did not crash; each request ran once at
 * most; every message that was sent is accounted for; every credit came back. A dead letter is no fault where a worker ended: it may be about that worker.
 * What is found ends as a run that fails does: with a trace if one is asked for, and with the line that repeats the run.
 * @throws BITS_DIFFER, EXECUTED_TWICE, NOT_CONSERVED, CREDITS_LOST, NOT_COUNTED, NOT_CLEAN: the worst that is found, in this order, with the texts of all others in its message
 */
export function expectSound(simulation: Checked, { oracle, except = [], allow = [] }: SoundOptions = {}): void {
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
  if (found.size > 0) throw foundIn(simulation, together([...found.values()]))
}

/** A checker that fails itself finds nothing; what was found before it is in its stack. */
function broken(simulation: Checked, error: unknown, found: readonly PostgradError[]): unknown {
  if (found.length > 0) noteInStack(error, `\nAlso found:\n${textsOf(found)}`)
  return foundIn(simulation, error)
}

function textsOf(found: readonly PostgradError[]): string {
  return found.map(({ code, message }) => `${code}: ${message.trimEnd()}`).join('\n')
}

/** The worst, which tells of the others. */
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
 * Runs `body` inlined, then in the simulation, and holds the run against it with every checker. `body` gets what both clusters have in common.
 * @throws as `simulate` and `expectSound`
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
