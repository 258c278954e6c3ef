/**
 * Makes every simulated run: a failure becomes a smaller one (`shrink.ts`) and a line that repeats it, and with that line
 * (`POSTGRAD_REPLAY=<token>` in front of the test command) the run of the token takes the place of the test's own.
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { now } from '@postgrad/base/internal'
import type { Trace } from '@postgrad/sim'
import { type FaultsOption, isDrawn, planText } from '../faults/fault-plan.js'
import { noteInStack } from './error-notes.js'
import { decodeToken, encodeToken, type RunIdentity, type RunVariant } from './replay-token.js'
import { nextRun, shrinkTimeMs } from './run-identity.js'
import { choices, type FailedRun, type ShrinkOptions, type Shrunk, shrink } from './shrink.js'
import { writeTrace } from './trace-files.js'

/** The options of a run that count here. */
export interface Reproducible {
  readonly faults?: FaultsOption
  readonly shrink?: boolean | ShrinkOptions
  readonly name?: string
  readonly traceDir?: string
  /** This run out of those of the options; then nothing is replayed, shrunk or printed. */
  readonly variant?: RunVariant
  /** Whose run it is; default the test's that runs now. Null: nobody's, who cannot repeat it. */
  readonly identity?: RunIdentity | null
}

/** Runs that failed, by their errors. */
const failures = new WeakMap<object, FailedRun>()

/** Notes of an error which run it ended. */
export function noteFailure(error: unknown, failed: Omit<FailedRun, 'error'>): void {
  if (typeof error === 'object' && error !== null) failures.set(error, { ...failed, error })
}

/** Runs that came to their end, by what they gave: a checker may find fault with them later. */
const ran = new WeakMap<object, PastRun>()

interface PastRun {
  readonly run: Omit<FailedRun, 'error'>
  readonly identity: RunIdentity | null
  readonly traceDir: string | undefined
}

/** Notes of a simulation which run it was; whose it was is known when it ends. */
export function noteRun(simulation: object, run: Omit<FailedRun, 'error'>): void {
  ran.set(simulation, { run, identity: null, traceDir: undefined })
}

/** The lines about a run with which `error` finds fault: where its trace is, and how it is repeated. Empty: the run is not known. */
export function linesOf(simulation: unknown, error: unknown): string[] {
  const past = typeof simulation === 'object' && simulation !== null ? ran.get(simulation) : undefined
  return past === undefined || past.identity === null ? [] : lastLines({ ...past.run, error }, past.identity, past.traceDir)
}

/** The error of a checker with these lines, once. */
export function foundIn(simulation: unknown, error: unknown): unknown {
  if (typeof error === 'object' && error !== null && (error as { replay?: unknown }).replay === undefined) {
    for (const line of linesOf(simulation, error)) noteInStack(error, `\n${line}`)
  }
  return error
}

/** Makes a run, or the one of the token in the environment. @throws (rejects) what the run throws, with its line; REPLAY_TOKEN_INVALID, REPLAY_OTHER_TEST */
export async function reproducible<O extends Reproducible, R>(options: O, run: (options: O) => Promise<R>): Promise<R> {
  if (options.variant !== undefined) return run(options)
  const identity = options.identity === undefined ? nextRun(options.name) : options.identity
  const replayed = identity?.kind === 'test' ? replayOf(identity) : null
  try {
    const result = await run(replayed === null ? options : { ...options, variant: replayed })
    if (replayed !== null) tellPasses()
    const past = ran.get(result as object)
    if (past !== undefined) ran.set(result as object, { ...past, identity, traceDir: options.traceDir })
    return result
  } catch (error) {
    throw await reported(error, identity, {
      // A run that differs when repeated differs with less too.
      shrink: replayed === null && !isPostgradError(error, 'NOT_DETERMINISTIC') ? shrinkOf(options, identity) : false,
      ...(options.traceDir === undefined ? {} : { traceDir: options.traceDir }),
      run: (variant) => run({ ...options, variant }),
    })
  }
}

/** A replayed run that does not fail says so: a test that passes looks the same as one whose token was not seen. */
export function tellPasses(): void {
  process.stderr.write('POSTGRAD_REPLAY: this run passes now, up to the checks after it\n')
}

/** The variant that the environment asks for in place of this run; null: none. @throws REPLAY_TOKEN_INVALID, REPLAY_OTHER_TEST */
export function replayOf(identity: RunIdentity): RunVariant | null {
  const text = process.env.POSTGRAD_REPLAY
  if (text === undefined || text === '') return null
  const { of, variant } = decodeToken(text)
  if (of.kind !== 'test' || identity.kind !== 'test' || of.name !== identity.name || of.file !== identity.file)
    throw otherTest(of, identity)
  return of.run === identity.run ? variant : null
}

export interface ReportOptions {
  readonly shrink: ShrinkOptions | false
  /** Makes a variant of the run. */
  readonly run: (variant: RunVariant) => Promise<unknown>
  /** Default POSTGRAD_TRACE_DIR. */
  readonly traceDir?: string
}

/**
 * The error of a failed run as it is to be thrown: of the smallest run that fails in this way, with the line that repeats it. An error
 * of no known run stays as it is.
 */
export async function reported(
  error: unknown,
  identity: RunIdentity | null,
  { shrink: shrinkOptions, run, traceDir }: ReportOptions,
): Promise<unknown> {
  const failed = failureOf(error)
  if (failed === null) return error
  const shrunk = shrinkOptions === false ? null : await shrinkRun(failed, shrinkOptions, run)
  const best = shrunk === null || shrunk.failed.error === error ? failed : shrunk.failed
  for (const line of [summary(failed, shrunk), ...lastLines(best, identity, traceDir)]) {
    if (line !== '') noteInStack(best.error, `\n${line}`)
  }
  return best.error
}

/** The rules, the trace's files, and the line that repeats it; the token goes into the error as well. */
function lastLines(failed: FailedRun, identity: RunIdentity | null, traceDir = process.env.POSTGRAD_TRACE_DIR): string[] {
  const lines = planLines(failed)
  if (traceDir !== undefined && traceDir !== '') lines.push(writeTrace(traceDir, failed, identity))
  if (identity === null) lines.push('This run has no token: its rules hold functions. Its seed repeats it.')
  else {
    const token = encodeToken({ of: identity, variant: failed.variant })
    if (Object.isExtensible(failed.error)) Object.assign(failed.error as object, { replay: token })
    // By itself that run is as good as the other: it is shown, and nothing fails.
    const isOneOfTwo = identity.kind === 'program' && isPostgradError(failed.error, 'ORDERS_DIFFER')
    lines.push(isOneOfTwo ? `See this order: npx postgrad replay ${token} --trace` : replayLine(identity, token))
  }
  return lines.filter((line) => line !== '')
}

/**
 * Returns the trace of the simulated run that failed with this error. Returns null if the error is not of a simulated run.
 * @example
 * const fail = () => { throw new Error('no data') }
 * expose({ fail })
 * const error = await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(() => call('worker1', fail))).catch((error) => error)
 * console.log(runTrace(error)?.readable)
 */
export function runTrace(error: unknown): Trace | null {
  return failureOf(error)?.trace ?? null
}

function failureOf(error: unknown): FailedRun | null {
  return typeof error === 'object' && error !== null ? (failures.get(error) ?? null) : null
}

/** "POSTGRAD_REPLAY=pg1.… in front of the same test command": the last line of a failed run. */
function replayLine(identity: RunIdentity, token: string): string {
  if (identity.kind === 'program') return `Repeat it: npx postgrad replay ${token}`
  return `Repeat it, in front of the same test command: POSTGRAD_REPLAY=${token}`
}

async function shrinkRun(failed: FailedRun, options: ShrinkOptions, run: (variant: RunVariant) => Promise<unknown>): Promise<Shrunk> {
  const progress = new Progress()
  try {
    return await shrink(failed, options, {
      now,
      attempt: (variant) =>
        run(variant).then(
          () => null,
          (error: unknown) => failureOf(error),
        ),
      onProgress: (tried, max, best) => progress.show(`shrinking: run ${tried} of ${max}, ${sizeText(best)}`),
    })
  } finally {
    progress.clear()
  }
}

/** How far a failed run with these options is to be shrunk; false where the seed alone says it. By default it ends before its test does, of whose timeout alone the runner would speak. */
export function shrinkOf({ shrink: wanted, faults }: Reproducible, identity: RunIdentity | null): ShrinkOptions | false {
  const { POSTGRAD_SHRINK: told } = process.env
  if (told === '0') return false
  const isWanted = typeof wanted === 'object' || (wanted ?? (isDrawn(faults) || told === '1'))
  if (!isWanted) return false
  return { ...(identity?.kind === 'test' && { timeMs: shrinkTimeMs(identity) }), ...(typeof wanted === 'object' && wanted) }
}

function summary(first: FailedRun, shrunk: Shrunk | null): string {
  if (shrunk === null || isSmallest(first)) return ''
  const stopped = shrunk.isDone ? '' : ', and then stopped by its bounds'
  if (shrunk.runs === 0)
    return `Not shrunk, since no time was left to the test: ${sizeText(first)}. Give it a longer timeout, or { shrink: { timeMs } }.`
  if (shrunk.failed.error === first.error) return `Could not be shrunk in ${shrunk.runs} runs${stopped}: ${sizeText(first)}.`
  return `Shrunk in ${shrunk.runs} runs${stopped}: from ${sizeText(first)} to ${sizeText(shrunk.failed)}.`
}

/** It has no faults, and messages arrived in the default order: there is nothing to take away. */
function isSmallest({ variant, decisions, faults }: FailedRun): boolean {
  return faults.length === 0 && choices(variant.decisions ?? decisions) === 0
}

function sizeText({ variant, decisions, faults: { length: faults } }: FailedRun): string {
  const said = choices(variant.decisions ?? decisions)
  return `${said} decision${said === 1 ? '' : 's'} and ${faults} fault${faults === 1 ? '' : 's'}`
}

/** The rules; of a run that was shrunk the faults that are left. */
function planLines({ plan, variant, faults }: FailedRun): string[] {
  if (faults.length === 0) return []
  if (variant.faults === null) return plan.length === 0 ? [] : [`Under these rules:\n${planText(plan)}`]
  const lines = faults.slice(0, FAULTS_SHOWN).map(({ frame, action, delayMs, worker }, index) => {
    const to = action === 'crash' || action === 'restart' ? ` (${worker})` : ''
    return `  ${index + 1}. ${action}${to} at ${frame}${delayMs > 0 ? `, by ${Math.round(delayMs * 100) / 100} ms` : ''}`
  })
  const rest = faults.length - lines.length
  return [
    `These faults (pair, kind and number of the message, and how often it was seen before):\n${lines.join('\n')}${rest > 0 ? `\n  … and ${rest} more` : ''}`,
  ]
}

const FAULTS_SHOWN = 20

/** One line on a terminal, while it lasts. */
class Progress {
  private readonly startMs = now()
  private isShown = false

  show(text: string): void {
    if (!process.stderr.isTTY || now() - this.startMs < PROGRESS_AFTER_MS) return
    this.isShown = true
    process.stderr.write(`\r${text}\u001b[K`)
  }

  clear(): void {
    if (this.isShown) process.stderr.write('\r\u001b[K')
  }
}

const PROGRESS_AFTER_MS = 300

function otherTest(of: RunIdentity, identity: RunIdentity): PostgradError {
  return new PostgradError('REPLAY_OTHER_TEST', {
    op: 'replay',
    expected: `the run that POSTGRAD_REPLAY is of: ${identityText(of)}`,
    got: identityText(identity),
    remedy:
      of.kind === 'program'
        ? 'Use `postgrad replay <token>`.'
        : 'Run that test alone (jest and vitest: -t with its name), or without POSTGRAD_REPLAY.',
    values: { of, here: identity },
  })
}

function identityText(identity: RunIdentity): string {
  if (identity.kind === 'program') return `the program ${identity.program} (export ${identity.export})`
  return identity.name === '' ? 'a test without a name' : `the test '${identity.name}'${identity.file === '' ? '' : ` of ${identity.file}`}`
}
