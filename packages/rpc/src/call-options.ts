/** What every exchange with another worker takes as its last argument: a time and a signal. */

import { callCancelled } from './served-call.js'
import type { WorkerInfo } from './worker-info.js'

export interface CallOptions {
  /** Time for the whole call in ms, from now to the reply's arrival; default the worker's `rpcTimeoutMs` (60,000); 0 is no limit. Never longer than what is left to the call that is being served. */
  readonly timeoutMs?: number
  /** Cancels it: it ends with CALL_CANCELLED, and the callee finds its `currentSignal()` aborted. */
  readonly signal?: AbortSignal
}

/** @throws CALL_CANCELLED before anything is sent */
export function checkSignal(signal: AbortSignal | undefined, op: string, to: WorkerInfo): void {
  if (signal?.aborted === true) throw callCancelled(op, to, signal.reason)
}
