/**
 * The functions that end a worker: `leave`, `drain`, and `shutdown`, which every member of the group calls. The member with the smallest name leads, without code
 * of its own. PyTorch: `torch/distributed/rpc/api.py`.
 */
import type { ShutdownOptions } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/** Options of `leave`. */
export interface GroupOptions {
  /** The deadline in ms; default the worker's `rpcTimeoutMs` (60,000). 0: without a limit. */
  readonly timeoutMs?: number
}

/**
 * Ends this worker together with all others, when each of them has called it and no call is running anywhere, including nested calls and calls from
 * callbacks. With `graceful: false` it ends this worker at once. Whatever goes wrong, this worker ends; nothing can be called after it. A function that
 * serves a call may call it without awaiting it: `shutdown` waits for that call.
 * @throws (rejects) GROUP_TIMEOUT, WORKER_DIED, TIMEOUT_INVALID. PyTorch: `rpc.shutdown`, which waits forever for a worker that has died
 * @example await shutdown({ timeoutMs: 30_000 }) // on every worker: it waits for all of them
 */
export async function shutdown(options?: ShutdownOptions): Promise<void> {
  await currentRuntime().shutdown(options)
}

/**
 * Ends this worker without asking its peers. It refuses their later calls with WORKER_DRAINING, and serves the calls that wait. A function that serves a
 * call must not await it. @throws (rejects) RPC_TIMEOUT, see `WorkerRuntime.drain`
 * @example void drain({ timeoutMs: 10_000 }) // refuses later calls; the calls that wait are served
 */
export async function drain(options?: { readonly timeoutMs?: number }): Promise<void> {
  await currentRuntime().drain(options)
}

/**
 * Ends this worker while the others continue. It waits for its own calls, and for calls that its peers made before they learned that it leaves. The peers see that it has left.
 * @throws (rejects) GROUP_TIMEOUT (it has left all the same), TIMEOUT_INVALID. PyTorch: `rpc.shutdown` of a dynamic group
 * @example await leave({ timeoutMs: 10_000 }) // the other workers continue
 */
export async function leave(options?: GroupOptions): Promise<void> {
  await currentRuntime().leave(options)
}
