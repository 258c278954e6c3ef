/** The job that runs this code: `currentJob()` finds it in the scope, where `perform.ts` has put it. */
import { PostgradError } from '@postgrad/base'
import { currentScope, ScopedAbort } from '@postgrad/base/internal'
import { checkProgress, type Progress } from './progress.js'

/** The job that runs the current code: the result of `currentJob()`. */
export interface CurrentJob {
  /**
   * Aborts when the job is cancelled or has timed out. Then its result is dropped, and if the job still runs after 5 s, its thread is ended. Reading this property
   * also reads new messages of the thread. So a loop without an await can check `currentJob().signal.aborted`.
   */
  readonly signal: AbortSignal
  /**
   * Reports progress to `onProgress` of the job's caller. Reports arrive in order, at most one every 50 ms, and always the last one.
   * @throws INVALID_ARGUMENT if `done` or `total` is not a finite number
   */
  report(progress: Progress): void
}

/** A job while it runs. */
export class RunningJob implements CurrentJob {
  private readonly look: () => void
  private readonly post: (progress: Progress) => void
  private controller: ScopedAbort | null = null
  private why: { readonly error: unknown } | null = null

  /** @param look reads what has come for this job, and may call `cancel` */
  constructor(look: () => void, post: (progress: Progress) => void) {
    this.look = look
    this.post = post
  }

  get signal(): AbortSignal {
    if (this.why === null) this.look()
    if (this.controller === null) {
      this.controller = new ScopedAbort()
      if (this.why !== null) this.controller.abort(this.why.error)
    }
    return this.controller.signal
  }

  report(progress: Progress): void {
    this.post(checkProgress('currentJob().report', progress))
  }

  cancel(error: unknown): void {
    if (this.why !== null) return
    this.why = { error }
    this.controller?.abort(error)
  }
}

/** The job that runs this code, or null. */
export function jobOfScope(): CurrentJob | null {
  return currentScope().job as CurrentJob | null
}

/**
 * Returns the job that runs this code. @throws JOB_NOT_CURRENT if no job runs it
 * @example
 * const step = () => {
 *   const job = currentJob()
 *   for (let done = 0; done < 100 && !job.signal.aborted; done++) job.report({ done, total: 100 })
 * }
 * expose({ step }) // for pool.run(step)
 */
export function currentJob(): CurrentJob {
  const job = jobOfScope()
  if (job !== null) return job
  throw new PostgradError('JOB_NOT_CURRENT', {
    op: 'currentJob',
    message: 'no job is current here',
    remedy: 'Ask inside a function that jobs.run() or jobs.map() runs.',
  })
}
