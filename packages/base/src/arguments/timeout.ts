/** Checks the times that users pass: otherwise a value that is not a number would become a timer that fires at once, or never. */
import { PostgradError, plainText } from '../errors.js'

/**
 * How long to wait, in ms: 0, for no limit (as in a call between workers), becomes Infinity.
 * @throws TIMEOUT_INVALID
 */
export function timeLimit(op: string, timeoutMs: number): number {
  return checkTime(op, timeoutMs, '0 for no limit') === 0 ? Number.POSITIVE_INFINITY : timeoutMs
}

/** @throws TIMEOUT_INVALID */
export function checkTime(op: string, timeoutMs: number, zero: string): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs
  throw new PostgradError('TIMEOUT_INVALID', {
    op,
    expected: `a number of milliseconds, ${zero}`,
    got: plainText(timeoutMs),
    remedy: 'Leave it out for the default.',
  })
}
