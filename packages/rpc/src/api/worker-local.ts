/**
 * `workerLocal`: state of a module that each worker has for itself. All workers of a thread share a user's module and its variables (a simulation has
 * all its workers in one thread).
 */

import type { WorkerInfo } from '../common/worker-info.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { currentRuntime } from './api.js'

/**
 * Gives an accessor of a value that is made once per worker, when that worker first asks for it, and ends with it.
 *
 * An `init` that throws is tried again by the next access. @throws (the accessor) RPC_NOT_INITIALIZED outside of any worker
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
