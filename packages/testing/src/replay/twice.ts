/**
 * Makes a run twice and compares, to catch programs that are not deterministic: they depend on real time, on chance that is not the seed's, or on state of
 * an earlier run. The error says where the two parted, what was the same before, and what they asked of the real world.
 */
import { PostgradError } from '@postgrad/base'
import type { NamedEvent, Trace } from '@postgrad/sim'
import { type RealSource, RealSources } from './real-sources.js'
import { differenceOfKnown, differenceText } from './same-bits.js'

/** How a run ended. */
type Outcome<R> = { readonly result: R; readonly error?: undefined } | { readonly result?: undefined; readonly error: unknown }

/** Of the events around the place where two runs part. */
const CONTEXT_BEFORE = 4
const CONTEXT_AFTER = 4

/**
 * Makes the run twice and gives what the first one gave.
 * @throws (rejects) NOT_DETERMINISTIC when they differ in an event, in how they ended, or in the result; what the first run throws
 */
export async function twice<R extends { readonly trace: Trace; readonly result: unknown }>(
  run: () => Promise<R>,
  traceOf: (error: unknown) => Trace | null,
): Promise<R> {
  const sources = new RealSources()
  sources.watch()
  let outcomes: readonly [Outcome<R>, Outcome<R>]
  let real: readonly RealSource[] = []
  try {
    outcomes = [await ended(run), await ended(run)]
  } finally {
    real = sources.end()
  }
  const [one, other] = outcomes
  const difference = differenceOf(one, other, traceOf)
  if (difference !== null) throw notDeterministic(difference, real)
  if (one.error !== undefined) throw one.error
  return one.result as R
}

async function ended<R>(run: () => Promise<R>): Promise<Outcome<R>> {
  try {
    return { result: await run() }
  } catch (error) {
    // A rejection with nothing is a failure too.
    return { error: error ?? new Error('the body rejected with nothing') }
  }
}

/** In words; null: none is seen. */
function differenceOf<R extends { readonly trace: Trace; readonly result: unknown }>(
  one: Outcome<R>,
  other: Outcome<R>,
  traceOf: (error: unknown) => Trace | null,
): string | null {
  const [a, b] = [one, other].map(({ result, error }) => (result === undefined ? traceOf(error) : result.trace))
  if (a && b && a.hash !== b.hash) return parting(a, b)
  if ((one.error === undefined) !== (other.error === undefined)) {
    return `one run failed and the other did not: ${messageOf(one.error ?? other.error)}`
  }
  if (one.error !== undefined) return failureDifference(one.error, other.error)
  const difference = differenceOfKnown(other.result?.result, one.result?.result)
  return difference && `all events were the same, and the results are not: ${differenceText(difference).replace(/\n$/, '')}`
}

/** Whole messages, with their numbers, and whatever else of the errors has bits; causes too. Stacks differ by where the test is. */
function failureDifference(one: unknown, other: unknown): string | null {
  const [first, second] = [factsOf(one), factsOf(other)]
  const difference = differenceOfKnown(second, first)
  if (difference === null) return null
  return `they failed in different ways\n  first:  ${messageOf(one)}\n  second: ${messageOf(other)}\n  ${differenceText(difference).trimEnd()}`
}

/** A chain of causes is followed so far: it may be a ring. */
const CAUSES_MAX = 32

function factsOf(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null || !('message' in error) || depth === CAUSES_MAX) return error
  const { name, message, code, op, values, cause, errors } = error as Partial<PostgradError> & { readonly errors?: unknown }
  const parts = Array.isArray(errors) ? errors.map((part) => factsOf(part, depth + 1)) : null
  return { name, message: String(message), code, op, values, cause: factsOf(cause, depth + 1), errors: parts }
}

/** Where two traces part, with the events before and after. */
function parting(a: Trace, b: Trace): string {
  const [one, other] = [a.named, b.named]
  const [droppedA, droppedB] = [a.count - one.length, b.count - other.length]
  if (droppedA !== droppedB || (droppedA > 0 && !sameEvent(one[0], other[0]))) {
    return `they part before the last ${Math.min(one.length, other.length)} events, which is all that is kept (${a.count} and ${b.count} events). Keep more with { world: { traceEventsMax } }`
  }
  let at = 0
  while (at < one.length && at < other.length && sameEvent(one[at], other[at])) at++
  const lines = (events: readonly NamedEvent[], from: number, to: number) => events.slice(Math.max(0, from), to).map(eventLine)
  const both = lines(one, at - CONTEXT_BEFORE, at)
  const parts = [`they part at event ${droppedA + at + 1}`, ...both.map((line) => `  both    ${line}`)]
  for (const [name, events] of [
    ['first', one],
    ['second', other],
  ] as const) {
    const after = lines(events, at, at + CONTEXT_AFTER)
    parts.push(
      ...(after.length === 0 ? [`  ${name.padEnd(7)} (nothing more happens)`] : after.map((line) => `  ${name.padEnd(7)} ${line}`)),
    )
  }
  return parts.join('\n')
}

function sameEvent(a: NamedEvent | undefined, b: NamedEvent | undefined): boolean {
  if (a === undefined || b === undefined) return false
  return (
    a.step === b.step &&
    a.timeMs === b.timeMs &&
    a.kind === b.kind &&
    a.from === b.from &&
    a.to === b.to &&
    a.bytes === b.bytes &&
    a.hash === b.hash
  )
}

function eventLine({ step, timeMs, kind, from, to, label, bytes, hash }: NamedEvent): string {
  const where = to === '' ? from : `${from} → ${to}`
  // Two messages of one name may have other bytes.
  const what = label === '' ? '' : `: ${label}, ${bytes} bytes (${(hash >>> 0).toString(16).padStart(8, '0')})`
  return `#${step} ${Math.round(timeMs * 100) / 100} ms ${kind}${where === '' ? '' : ` ${where}`}${what}`
}

function notDeterministic(difference: string, real: readonly RealSource[]): PostgradError {
  const asked = real.map(({ what, where, times }) => `  ${what}, ${times} time${times === 1 ? '' : 's'}, first at ${where}`)
  const hint =
    asked.length > 0
      ? `The program asked the real world meanwhile:\n${asked.join('\n')}`
      : 'It asked no real clock and no real chance that is watched: look for what outlives a run, such as variables of modules, statics and caches.'
  return new PostgradError('NOT_DETERMINISTIC', {
    op: 'simulate',
    message: `the same run was made twice, and was not the same: ${difference}\n${hint}\n`,
    remedy:
      "Take chance from the worker's generator (rand, randn, …), time from currentWorker().clock, and keep state in actors or workerLocal, or reset it at the start of the body.",
    values: { real },
  })
}

function messageOf(error: unknown): string {
  return String((error as Partial<Error> | null)?.message ?? error).split('\n')[0]!
}
