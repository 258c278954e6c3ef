/** `CallOptions`, the last argument of every request to another worker, and the checks of options and of argument lists. */

import { PostgradError } from '@postgrad/base'
import { checkOptions } from '@postgrad/tensor/internal'

/** Options of every request to another worker: its deadline, a signal that cancels it, and its order. */
export interface CallOptions {
  /**
   * Time for the whole call in ms, until the reply arrives; default the worker's `rpcTimeoutMs` (60,000). 0: without a limit. A call that another call makes
   * has at most the time that the outer call has left. PyTorch: `timeout`, in seconds.
   */
  readonly timeoutMs?: number
  /** Cancels the call when it aborts: the call fails with CALL_CANCELLED, and the callee's `currentSignal()` aborts. */
  readonly signal?: AbortSignal
  /**
   * Whether the call begins after earlier calls to that worker; default true. With false it may overtake them: a small call to another process then need not
   * wait for a large tensor that is being sent.
   */
  readonly ordered?: boolean
}

const NAMES = ['timeoutMs', 'signal', 'ordered'] as const
const REMEDY = 'Write them in braces after the arguments, as in call(to, fn, [x], { timeoutMs: 1000 }); times are in ms.'

/**
 * Options that were left out cost nothing, and what is right is not copied: calls are the hot path.
 * @param known all names, where there are others than a call's
 * @throws INVALID_ARGUMENT
 */
export function checkCallOptions<O extends CallOptions>(
  op: string,
  options: O | undefined,
  known: readonly (keyof O & string)[] = NAMES,
): void {
  if (options !== undefined) checkOptions(op, options, known, REMEDY)
}

/** PyTorch takes a tuple or nothing; JavaScript code may pass a single value. @throws INVALID_ARGUMENT before anything is sent */
export function checkArgs(args: unknown, op: string): void {
  if (Array.isArray(args)) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'the arguments in an array',
    got: args === null ? 'null' : typeof args,
    remedy: 'Write call(to, fn, [a, b], options), also for a single argument.',
  })
}
