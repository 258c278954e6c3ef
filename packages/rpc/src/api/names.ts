/** PyTorch's functions for worker infos and the default timeout: `get_worker_info`, `get_worker_infos`, `_set_rpc_timeout`, `_get_rpc_timeout`. */

import type { Target, WorkerInfo } from '../common/worker-info.js'
import { currentRuntime } from './api.js'

/**
 * Returns the name and id of a worker; without an argument, of the current worker. You can send the result to other workers, and use it as the target of
 * calls on each of them. PyTorch: `rpc.get_worker_info`.
 * @throws UNKNOWN_WORKER if the current worker does not know `target`
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * getWorkerInfo().name // 'worker0'
 * await call(getWorkerInfo('worker1'), addOne, [x]) // [[2, 3], [4, 5]]
 */
export function getWorkerInfo(target?: Target): WorkerInfo {
  const worker = currentRuntime()
  return target === undefined ? worker.info : worker.resolve(target, 'getWorkerInfo')
}

/**
 * Returns the name and id of each living worker that the current worker knows, itself included. Workers that are leaving and guests are not in the list.
 * PyTorch: `rpc.get_worker_infos`.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example getWorkerInfos().map(({ name }) => name) // ['worker0', 'worker1']
 */
export function getWorkerInfos(): WorkerInfo[] {
  return currentRuntime().workers()
}

/**
 * Sets the default deadline of the current worker's later calls, in ms; 0: without a limit. A call's own `timeoutMs` replaces the default.
 * PyTorch: `_set_rpc_timeout`, in seconds.
 * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * setRpcTimeout(5_000) // from now on, a call fails with RPC_TIMEOUT after 5 s
 * const y = await call('worker1', addOne, [x], { timeoutMs: 60_000 }) // this call has 60 s
 */
export function setRpcTimeout(timeoutMs: number): void {
  currentRuntime().setRpcTimeout(timeoutMs)
}

/**
 * Returns the default deadline of the current worker's calls, in ms; 0: without a limit. PyTorch: `_get_rpc_timeout`, in seconds.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example getRpcTimeout() // 60000
 */
export function getRpcTimeout(): number {
  return currentRuntime().rpcTimeoutMs
}
