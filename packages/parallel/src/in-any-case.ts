/**
 * Calls that every worker must get before an operation over several workers ends: those that take back a part that some have done, and the last round after all have agreed. The caller's signal
 * and time do not limit them, nor does the end of the call that is being served here, or `checkSignal` and `timeLeft` would refuse the very calls that put things right. They end when each
 * worker has answered or died. `distributed-optimizer.ts` and `checkpoint/checkpoints.ts` make them.
 */
import { withScope } from '@postgrad/base/internal'
import type { CallOptions } from '@postgrad/rpc'

/** Runs `fn` outside of the call that is being served, with the options for its calls. */
export function inAnyCase<T>(fn: (limits: CallOptions) => T): T {
  return withScope({ deadlineMs: Number.POSITIVE_INFINITY, serving: null }, () => fn({ timeoutMs: 0 }))
}
