/**
 * The messages between a pool and a thread of it, in one file: `thread-places.ts` is the one end, `job-thread.ts` the other. Arguments, results
 * and errors are wire's `Payload`s, whose buffers are moved; piscina carries the task to the thread and the reply back.
 *
 *     pool                                   thread
 *       │ workerData: ThreadBoot               │
 *       │ ── JobTask ────────────────────────▸ │ imports the program at the first
 *       │ ◂─────────────────────── Progress ── │ through the task's port, if it has one
 *       │ ── Payload (EXCEPTION: why) ───────▸ │ through the same: the job is cancelled, its signal aborts
 *       │ ◂──────────────────────── Payload ── │ RESULT or EXCEPTION
 */
import type { MessagePort } from 'node:worker_threads'
import type { Payload } from '@postgrad/wire/internal'

/** The `workerData` of every thread of a pool. */
export interface ThreadBoot {
  /** URL of the module that is a `JobProgram`. */
  readonly program: string
  /** The pool's data for the program. */
  readonly data: unknown
  /** For `device()`; null is the thread's default. */
  readonly device: string | null
  /** For each slot of a `JobTask`, 1 once a promise that nobody handles has ended its thread. The thread writes it as it ends: a message might come too late. */
  readonly rejections: Int32Array
}

/** The slot of a thread between two jobs. */
export const NO_JOB = 0

/** The exports of the threads' module: it runs jobs by their name. */
export interface JobProgram {
  /** @param data the pool's `data`, as it was cloned to this thread */
  runJob(name: string, args: readonly unknown[], data: unknown): unknown
}

/** One job. */
export interface JobTask {
  /** CALL [name, args] */
  readonly call: Payload
  /** Of the job's random numbers. */
  readonly seed: number
  /** For progress and cancellation; null when nobody listens and nobody can cancel. */
  readonly port: MessagePort | null
  /** Its place in `ThreadBoot.rejections`; no other job that runs has it. */
  readonly slot: number
}
