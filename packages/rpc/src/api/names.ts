/** PyTorch's functions for worker infos and the default timeout: `get_worker_info`, `get_worker_infos`, `_set_rpc_timeout`, `_get_rpc_timeout`. */

import type { Target, WorkerInfo } from '../common/worker-info.js'
import { currentRuntime } from './api.js'

/**
 * Name and id of a worker; of the current one if none is named. It may be sent, and be used as a target anywhere; equal are those with the same
 * name and id. @throws UNKNOWN_WORKER, RPC_NOT_INITIALIZED. PyTorch: `rpc.get_worker_info`.
 * @example
 * getWorkerInfo().name // 'worker0'
 * await call(getWorkerInfo('worker1'), addOne, [x]) // [[2, 3], [4, 5]]
 */
export function getWorkerInfo(target?: Target): WorkerInfo {
  const worker = currentRuntime()
  return target === undefined ? worker.info : worker.resolve(target, 'getWorkerInfo')
}

/**
 * All workers that this one knows to live, itself included; those that are leaving are left out. @throws RPC_NOT_INITIALIZED. PyTorch: `rpc.get_worker_infos`.
 * @example getWorkerInfos().map(({ name }) => name) // ['worker0', 'worker1']
 */
export function getWorkerInfos(): WorkerInfo[] {
  return currentRuntime().workers()
}

/**
 * The default deadline of this worker's calls, in ms, for those that are made from now on; 0: without a limit. (PyTorch's -1, "not set", is leaving
 * `timeoutMs` out.) @throws TIMEOUT_INVALID, RPC_NOT_INITIALIZED. PyTorch: `_set_rpc_timeout`.
 * @example
 * setRpcTimeout(5_000) // from now on, a call fails with RPC_TIMEOUT after 5 s
 * const y = await call('worker1', addOne, [x], { timeoutMs: 60_000 }) // this call has 60 s
 */
export function setRpcTimeout(timeoutMs: number): void {
  currentRuntime().setRpcTimeout(timeoutMs)
}

/**
 * In ms; 0: without a limit. @throws RPC_NOT_INITIALIZED. PyTorch: `_get_rpc_timeout`.
 * @example getRpcTimeout() // 60000
 */
export function getRpcTimeout(): number {
  return currentRuntime().rpcTimeoutMs
}
