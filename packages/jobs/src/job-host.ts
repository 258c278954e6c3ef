/** The interface between `Jobs` (the API) and where jobs run: a queue before threads, the same in this thread, or a port to the main thread. */
import type { Payload } from '@postgrad/wire/internal'
import type { Progress } from './progress.js'

export interface JobRequest {
  /** Its name in errors. */
  readonly name: string
  /** CALL [name, args]; its buffers are the host's from here on. */
  readonly call: Payload
  readonly seed: number
  /** Called in order, before the reply; null: nobody listens. */
  readonly onProgress: ((progress: Progress) => void) | null
  /** Whether `cancel` may come: if not, no way for it is made. */
  readonly isCancellable: boolean
}

export interface SubmittedJob {
  /** RESULT or EXCEPTION. Rejects with errors that are not the job's: WORKER_DIED, JOBS_CLOSED, JOB_CANCELLED. */
  readonly reply: Promise<Payload>
  /** A job that waits will not run; the signal of one that runs aborts with this reason (an EXCEPTION). Idempotent. */
  cancel(why: Payload): void
}

export interface JobHost {
  /** How many jobs can run at once. */
  readonly threads: number
  /** @throws JOBS_CLOSED, JOBS_QUEUE_FULL */
  submit(job: JobRequest): SubmittedJob
  counts(): { readonly running: number; readonly waiting: number }
  /** All submitted jobs reject with JOBS_CLOSED. Resolves when no thread is left. Idempotent. */
  close(): Promise<void>
}
