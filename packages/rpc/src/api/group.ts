/**
 * The functions that end a worker: `leave`, `drain`, and `shutdown`, which every member of the group calls. The member with the smallest name leads, without code
 * of its own. PyTorch: `torch/distributed/rpc/api.py`.
 */
import type { ShutdownOptions } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/** Options of `leave`: how long it may take. */
export interface GroupOptions {
  /** How long `leave` may wait, in ms; default the worker's `rpcTimeoutMs` (60,000). 0: without a limit. */
  readonly timeoutMs?: number
}

/**
 * Ends this worker together with all others: when each of them has called `shutdown` and no call is running anywhere, including calls that another call or
 * a callback made. With `graceful: false` this worker ends at once, alone. Even if `shutdown` rejects with GROUP_TIMEOUT or WORKER_DIED, this worker has ended.
 *
 * A function that serves a call may call `shutdown`, but must not await it: `shutdown` waits for that call. PyTorch: `rpc.shutdown`, which waits forever
 * for a worker that has died.
 * @throws GROUP_TIMEOUT if the workers do not all end within `timeoutMs`
 * @throws WORKER_DIED if another worker dies meanwhile
 * @throws NOT_PERMITTED if this worker's role lacks the right `groups` at another worker: this worker has left, and the others continue; call `leave` instead
 * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
 * @example await shutdown({ timeoutMs: 30_000 }) // on every worker: it waits for all of them
 */
export async function shutdown(options?: ShutdownOptions): Promise<void> {
  await currentRuntime().shutdown(options)
}

/**
 * Ends this worker without asking its peers. Later calls of the peers fail with WORKER_DRAINING; the worker serves the calls that wait, and then closes.
 * A function that serves a call must not await `drain`: `drain` waits for that call. `timeoutMs` defaults to the worker's `rpcTimeoutMs` (60,000); 0: without
 * a limit. PyTorch has no counterpart.
 * @throws RPC_TIMEOUT if the worker is still busy after `timeoutMs`; it has closed all the same
 * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
 * @example void drain({ timeoutMs: 10_000 }) // refuses later calls; the calls that wait are served
 */
export async function drain(options?: { readonly timeoutMs?: number }): Promise<void> {
  await currentRuntime().drain(options)
}

/**
 * Ends this worker while the others continue. This worker waits for its own calls, and serves the calls that its peers made before they learned that it
 * leaves. The peers see that it left, not that it died. PyTorch: `rpc.shutdown` of a dynamic group.
 * @throws GROUP_TIMEOUT if that takes longer than `timeoutMs`; the worker has left all the same
 * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
 * @example await leave({ timeoutMs: 10_000 }) // the other workers continue
 */
export async function leave(options?: GroupOptions): Promise<void> {
  await currentRuntime().leave(options)
}
