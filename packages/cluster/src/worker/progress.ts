/**
 * How a program reports its progress: `reportProgress` reaches the launcher of the cluster (`LaunchOptions.onProgress`, the command line's
 * lines), at most once per interval, the last report always. In a job it reaches the job's submitter.
 */
import { currentScope } from '@postgrad/base/internal'
import type { Progress } from '@postgrad/jobs'
import { checkProgress, jobOfScope, ProgressReporter } from '@postgrad/jobs/internal'
import type { WorkerRuntime } from '@postgrad/rpc'

const SLOT = Symbol('postgrad.progress')

/** The reporter of a worker; one that was not attached to a launcher (in the simulation) says nothing. */
export function progressOf(runtime: WorkerRuntime, attach?: (progress: Progress) => void): ProgressReporter {
  return runtime.slot(SLOT, () => new ProgressReporter(runtime.clock, attach ?? (() => {})))
}

/**
 * Reports the progress of this worker's program to `onProgress` of `launch`. Within a job, it reports the job's progress to the job's caller. Reports arrive in order,
 * at most one every 50 ms, and always the last one. Elsewhere, as in a simulated worker, the report is dropped.
 * @throws INVALID_ARGUMENT if `done` or `total` is not a finite number
 * @example for (let done = 0; done < 100; done++) reportProgress({ done, total: 100 })
 */
export function reportProgress(progress: Progress): void {
  const checked = checkProgress('reportProgress', progress)
  const job = jobOfScope()
  if (job !== null) {
    job.report(checked)
    return
  }
  const worker = currentScope().worker as WorkerRuntime | null
  if (worker !== null) progressOf(worker).report(checked)
}
