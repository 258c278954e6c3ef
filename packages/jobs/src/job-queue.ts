/**
 * The queue before the places where jobs run: first come, first served, bounded. It adds to piscina that a job that waits can
 * be removed, a cancelled job that continues loses its thread, and `close` rejects all jobs with JOBS_CLOSED. Below are the
 * places: threads (`thread-places.ts`), or this thread in a simulation (`in-thread-places.ts`).
 */
import { availableParallelism } from 'node:os'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { causeOfThrown, ownEnd, workerDied } from '@postgrad/base/internal'
import type { Clock } from '@postgrad/transport'
import type { Payload } from '@postgrad/wire/internal'
import type { JobHost, JobRequest, SubmittedJob } from './job-host.js'

/** A job that has begun. */
export interface RunningPlace {
  /** RESULT or EXCEPTION; rejects when the thread has died under it. */
  readonly reply: Promise<Payload>
  /** Cancels the job. */
  cancel(why: Payload): void
  /** Ends the thread under it, if it has one of its own. */
  kill(): void
  /** When `reply` has rejected: whether the thread ended for a promise that nobody handled. To be asked once. */
  endedByRejection(): boolean
}

export interface Places {
  run(job: JobRequest): RunningPlace
  /** Ends what runs, wherever it is. */
  close(): Promise<void>
}

export interface JobQueueOptions {
  readonly threads: number
  /** Jobs that wait at most. */
  readonly queueMax: number
  readonly clock: Clock
}

/** How long a cancelled job may continue before its thread is ended, in ms. */
export const CANCEL_GRACE_MS = 5000
const QUEUE_MAX = 16_384
const THREADS_MAX = 1024

interface Entry {
  readonly job: JobRequest
  readonly resolve: (reply: Payload) => void
  readonly reject: (error: unknown) => void
}

export class JobQueue implements JobHost {
  readonly threads: number
  private readonly queueMax: number
  private readonly clock: Clock
  private readonly places: Places
  /** In the order in which they came. */
  private readonly waiting = new Set<Entry>()
  private readonly running = new Map<Entry, RunningPlace>()
  private closing: Promise<void> | null = null

  constructor(places: Places, { threads, queueMax, clock }: JobQueueOptions) {
    this.places = places
    this.threads = threads
    this.queueMax = queueMax
    this.clock = clock
  }

  counts(): { running: number; waiting: number } {
    return { running: this.running.size, waiting: this.waiting.size }
  }

  submit(job: JobRequest): SubmittedJob {
    if (this.closing !== null) throw jobsClosed(job.name)
    if (this.running.size >= this.threads && this.waiting.size >= this.queueMax) throw queueFull(job.name, this.queueMax)
    let entry!: Entry
    const reply = new Promise<Payload>((resolve, reject) => {
      entry = { job, resolve, reject }
    })
    this.waiting.add(entry)
    this.next()
    return { reply, cancel: (why) => this.cancel(entry, why) }
  }

  close(): Promise<void> {
    this.closing ??= this.end()
    return this.closing
  }

  private async end(): Promise<void> {
    // A rejected caller may submit again: that must meet the closed queue.
    await null
    const left = [...this.running.keys(), ...this.waiting]
    this.running.clear()
    this.waiting.clear()
    for (const { job, reject } of left) reject(jobsClosed(job.name))
    await this.places.close()
  }

  private next(): void {
    for (const entry of this.waiting) {
      if (this.running.size >= this.threads) return
      this.waiting.delete(entry)
      const place = this.places.run(entry.job)
      this.running.set(entry, place)
      place.reply.then(
        (reply) => this.ended(entry, () => entry.resolve(reply)),
        (error) =>
          this.ended(entry, () => entry.reject(died(`job '${entry.job.name}'`, { job: entry.job.name }, error, place.endedByRejection()))),
      )
    }
  }

  private ended(entry: Entry, settle: () => void): void {
    // False: the queue was closed meanwhile, and has said so.
    if (!this.running.delete(entry)) return
    settle()
    this.next()
  }

  private cancel(entry: Entry, why: Payload): void {
    if (this.waiting.delete(entry)) {
      entry.reject(cancelled(entry.job.name, null))
      return
    }
    const place = this.running.get(entry)
    if (place === undefined) return
    place.cancel(why)
    const late = this.clock.setTimer(CANCEL_GRACE_MS, () => {
      if (this.running.get(entry) === place) place.kill()
    })
    const stop = (): void => late.cancel()
    place.reply.then(stop, stop)
  }
}

/** @throws INVALID_ARGUMENT */
export function checkThreads(op: string, threads = Math.max(1, availableParallelism() - 1)): number {
  if (Number.isSafeInteger(threads) && threads >= 1 && threads <= THREADS_MAX) return threads
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: `threads to be an integer from 1 to ${THREADS_MAX}`,
    got: String(threads),
    remedy: 'Leave it out for one less than there are cores.',
  })
}

/** @throws INVALID_ARGUMENT */
export function checkQueueMax(op: string, queueMax = QUEUE_MAX): number {
  if (Number.isSafeInteger(queueMax) && queueMax >= 0) return queueMax
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'queueMax to be an integer ≥ 0',
    got: String(queueMax),
    remedy: `Leave it out for ${QUEUE_MAX}.`,
  })
}

export function cancelled(name: string, reason: unknown): PostgradError {
  return new PostgradError('JOB_CANCELLED', {
    op: `job '${name}'`,
    message: `it was cancelled${reason === null ? '' : `: ${textOf(reason)}`}`,
    values: { job: name },
    ...(reason === null ? {} : { cause: reason }),
  })
}

export function jobsClosed(name: string): PostgradError {
  return ownEnd(
    new PostgradError('JOBS_CLOSED', {
      op: `job '${name}'`,
      message: 'the pool has been closed',
      remedy: 'Await all jobs before you close the pool.',
      values: { job: name },
    }),
  )
}

function queueFull(name: string, queueMax: number): PostgradError {
  return new PostgradError('JOBS_QUEUE_FULL', {
    op: `job '${name}'`,
    message: `${queueMax} jobs wait already`,
    remedy: 'Await some results first (jobs.map does so by itself), or give the pool a larger queueMax.',
    values: { job: name, queueMax },
  })
}

/**
 * @param about the job that it ran, if any
 * @param isRejection a promise was rejected with `thrown`, and nobody handled that
 */
export function died(op: string, about: { readonly job?: string }, thrown: unknown, isRejection: boolean): PostgradError {
  if (isPostgradError(thrown) && about.job !== undefined) return thrown
  const detail = textOf(thrown)
  const cause = detail.startsWith('worker exited') ? 'exited' : causeOfThrown(thrown, isRejection)
  const remedy = 'A job must not end its thread, nor need more memory than resourceLimits allow. The pool continues with another thread.'
  return workerDied(op, { worker: null, cause, detail, thrown }, { remedy, about })
}

function textOf(error: unknown): string {
  return String((error as { message?: unknown } | null)?.message ?? error)
}
