/**
 * The errors of waits that end early, and the check of a caller's signal: shared by every wait for another worker, be it a call or a
 * collective. The rules CAN-1 to CAN-12 are in rpc's SPEC.md; `future.ts` has the wait.
 */
import { isPostgradError, PostgradError, type WorkerHop } from '../errors.js'
import { isOwnEnd } from './own-ends.js'

/** `to` is null for what asks nobody by name; `reason` is what was given to `cancel`, or why the call that this is part of was cancelled. */
export function callCancelled(op: string, to: WorkerHop | null, reason: unknown): PostgradError {
  return new PostgradError('CALL_CANCELLED', {
    op,
    message: `the call${to === null ? '' : ` to worker '${to.name}'`} was cancelled${reasonText(reason)}`,
    remedy: 'Catch this where a call may be cancelled. Put code that must run in any case into currentWorker().run(fn).',
    values: to === null ? {} : { worker: to.name, workerId: to.id },
    ...(reason === undefined ? {} : { cause: reason }),
  })
}

/** The call that is served here is out of time, and so is what was called, or was to be called, for it. */
export function outOfTime(op: string, what: string, values: Readonly<Record<string, unknown>>): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op,
    message: `nothing is left of the time of the call that is being served here, so ${what}`,
    remedy: 'Pass a longer { timeoutMs } to the call that this one is part of.',
    values: { ...values, inherited: true },
  })
}

/** Ends of a call that come from outside of it, often of many calls at once. */
const ENDS_FROM_OUTSIDE: ReadonlySet<string> = new Set(['CALL_CANCELLED', 'WORKER_DIED', 'RPC_SHUT_DOWN'])

/**
 * True for errors whose interested parties know already: who cancelled, the caller of the call that it was part of, or everyone after a death or a
 * shutdown, or the program that has ended the whole. Without this the death of one worker would be an unhandled rejection of another, and so its end too.
 */
export function isEndedElsewhere(error: unknown): boolean {
  if (!isPostgradError(error)) return false
  if (isOwnEnd(error)) return true
  return ENDS_FROM_OUTSIDE.has(error.code) || (error.code === 'RPC_TIMEOUT' && error.values.inherited === true)
}

/** @throws CALL_CANCELLED, INVALID_ARGUMENT before anything is sent */
export function checkSignal(signal: AbortSignal | undefined, op: string, to: WorkerHop | null): void {
  if (signal !== undefined && !isSignal(signal)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'an AbortSignal as { signal }',
      got: signal === null ? 'null' : typeof signal,
      remedy: 'Pass the signal of an AbortController, AbortSignal.timeout(ms), or leave it out.',
    })
  }
  if (signal?.aborted === true) throw callCancelled(op, to, signal.reason)
}

/** By what it can do: a realm has an AbortSignal of its own. */
export function isSignal(signal: unknown): signal is AbortSignal {
  if (typeof signal !== 'object' || signal === null) return false
  const { aborted, addEventListener } = signal as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
}

function reasonText(reason: unknown): string {
  if (typeof reason === 'string') return `: ${reason}`
  return isPostgradError(reason) ? `, since the one that it is part of was cancelled (${reason.code})` : ''
}
