/**
 * What users write to end a worker: `leave`, `drain`, and `shutdown`, which every member of the group calls; who leads is the one with the smallest name, and needs
 * no code of its own. PyTorch: `torch/distributed/rpc/api.py`.
 */
import type { ShutdownOptions } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/** Of `leave`. */
export interface GroupOptions {
  /** In ms; default the worker's `rpcTimeoutMs` (60,000), 0 is no limit. */
  readonly timeoutMs?: number
}

/**
 * Ends this worker together with all others, once each has called it and no call is under way anywhere, nested ones and those that callbacks make
 * included; or at once with `graceful: false`. The local end comes about whatever goes wrong; nothing can be called after it. In a function that serves a
 * call it may be begun and not awaited: it waits for that call.
 * @throws (rejects) GROUP_TIMEOUT, WORKER_DIED, TIMEOUT_INVALID. PyTorch: `rpc.shutdown`, which waits for ever for one that has died
 */
export async function shutdown(options?: ShutdownOptions): Promise<void> {
  await currentRuntime().shutdown(options)
}

/**
 * Ends the worker that runs this by its own decision, without asking its peers: their later calls are refused with WORKER_DRAINING, what waits is
 * served. Not to be awaited by a function that is served. @throws (rejects) RPC_TIMEOUT, see `WorkerRuntime.drain`
 */
export async function drain(options?: { readonly timeoutMs?: number }): Promise<void> {
  await currentRuntime().drain(options)
}

/**
 * Ends this worker while the others continue: it waits for its own calls, and for those that its peers made before they learned of it. They see
 * that it has left.
 * @throws (rejects) GROUP_TIMEOUT (it has left all the same), TIMEOUT_INVALID. PyTorch: `rpc.shutdown` of a dynamic group
 */
export async function leave(options?: GroupOptions): Promise<void> {
  await currentRuntime().leave(options)
}
