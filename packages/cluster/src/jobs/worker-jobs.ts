/** The worker's side of a cluster's pools: `currentJobs(name)` submits to the main thread (`cluster-jobs.ts`) by the control port. */
import { type JobFunction, Jobs } from '@postgrad/jobs'
import { attachJobs, type JobFromWorker, PortHost, type Post } from '@postgrad/jobs/internal'
import type { WorkerRuntime } from '@postgrad/rpc'
import { threadRegistry, workerGenerator } from '@postgrad/rpc/internal'

/** Attaches the pools to a worker, and gives what takes in the main thread's answers. */
export function jobsOfMainThread(
  runtime: WorkerRuntime,
  { seed, life }: { readonly seed: number; readonly life: number },
  post: Post<JobFromWorker>,
): PortHost {
  const host = new PortHost(post)
  attachJobs(runtime, (name) => {
    const nameOf = (fn: JobFunction): string => threadRegistry.nameOf(fn)
    const generator = workerGenerator(seed, `${runtime.info.name}/${name}`, life)
    return new Jobs({ host: host.pool(name), clock: runtime.clock, nameOf, generator })
  })
  runtime.contribute(() => ({ pendingJobs: host.pendingCount }))
  runtime.onClose(() => host.close())
  return host
}
