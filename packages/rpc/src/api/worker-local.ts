/**
 * `workerLocal`: state of a module that each worker has for itself. All workers of a thread share a user's module and its variables (a simulation has
 * all its workers in one thread).
 */

import type { WorkerInfo } from '../common/worker-info.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/**
 * Makes a variable that each worker has for itself. Returns a function that returns the value of the worker that calls it.
 *
 * `init` makes a worker's value when the worker first calls that function. The value ends with the worker. If `init` throws, the next access runs it again.
 * All workers of a simulation share a module's variables, so use `workerLocal` for state of a worker.
 * @throws RPC_NOT_INITIALIZED (from the returned function) if no worker runs this code
 * @example
 * const counter = workerLocal(() => ({ calls: 0 })) // one for each worker
 * const count = () => ++counter().calls
 * expose({ count })
 * await call('worker1', count) // 1
 * await call('worker1', count) // 2
 * await call('worker0', count) // 1
 */
export function workerLocal<T>(init: (worker: WorkerInfo) => T): () => T {
  const values = new WeakMap<WorkerRuntime, { readonly value: T }>()
  return () => {
    const worker = currentRuntime()
    let entry = values.get(worker)
    if (entry === undefined) {
      // In the worker's own scope: what is kept belongs to no call, no context and no deadline.
      entry = { value: worker.run(() => init(worker.info)) }
      values.set(worker, entry)
    }
    return entry.value
  }
}
