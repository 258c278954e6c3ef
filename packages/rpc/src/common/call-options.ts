/** What every exchange with another worker takes as its last arguments: those of the function, in an array, then a time and a signal. */

import { PostgradError } from '@postgrad/base'
import { checkOptions } from '@postgrad/tensor/internal'

/** Of everything that asks another worker: a deadline, and a signal that cancels. */
export interface CallOptions {
  /** Time for the whole call in ms, from now to the reply's arrival; default the worker's `rpcTimeoutMs` (60,000); 0 is no limit. Never longer than what is left to the call that is being served. */
  readonly timeoutMs?: number
  /** Cancels it: it ends with CALL_CANCELLED, and the callee finds its `currentSignal()` aborted. */
  readonly signal?: AbortSignal
  /**
   * False: it may begin before calls to that worker that were made earlier. So a small one need not wait for a large tensor that is on its way to another process. Default true.
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

/** PyTorch takes a tuple or nothing; whoever has no compiler may pass a single value. @throws INVALID_ARGUMENT before anything is sent */
export function checkArgs(args: unknown, op: string): void {
  if (Array.isArray(args)) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'the arguments in an array',
    got: args === null ? 'null' : typeof args,
    remedy: 'Write call(to, fn, [a, b], options), also for a single argument.',
  })
}
