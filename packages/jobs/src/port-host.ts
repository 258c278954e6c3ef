/**
 * A pool seen from another thread: a worker submits through its control port; the main thread, which has the pool, answers. Plain messages can
 * share a port with others.
 *
 *     worker (PortHost)                     main thread (PortServer)
 *       │ ── { event: 'job', id, pool, … } ──▸ │ submits to the pool of that name
 *       │ ── { event: 'job-cancel', id, why } ▸ │ cancels; a worker's end cancels all of its jobs
 *       │ ◂── { event: 'job-progress', id, … } ─ │
 *       │ ◂──── { event: 'job-reply', id, … } ── │ RESULT or EXCEPTION; what the pool itself refuses as well
 */
import { availableParallelism } from 'node:os'
import { type Payload, PayloadCodec, transferables } from '@postgrad/wire/internal'
import type { JobHost, JobRequest, SubmittedJob } from './job-host.js'
import { jobsClosed } from './job-queue.js'
import { notHere } from './jobs.js'
import type { Progress } from './progress.js'

export type JobFromWorker =
  | {
      readonly event: 'job'
      readonly id: number
      readonly pool: string
      readonly name: string
      readonly call: Payload
      readonly seed: number
      readonly wantsProgress: boolean
      readonly isCancellable: boolean
    }
  | { readonly event: 'job-cancel'; readonly id: number; readonly why: Payload }

export type JobToWorker =
  | { readonly event: 'job-progress'; readonly id: number; readonly progress: Progress }
  | { readonly event: 'job-reply'; readonly id: number; readonly reply: Payload }

/** Moves what is listed instead of cloning it. */
export type Post<M> = (message: M, transfer: readonly ArrayBuffer[]) => void

const EVENTS: ReadonlySet<unknown> = new Set(['job', 'job-cancel', 'job-progress', 'job-reply'])

/** Whether a message of a shared port is about jobs. */
export function isJobMessage(data: unknown): boolean {
  return EVENTS.has((data as { event?: unknown } | null)?.event)
}

interface Waiting {
  readonly name: string
  readonly onProgress: ((progress: Progress) => void) | null
  resolve(reply: Payload): void
  reject(error: unknown): void
}

/** The worker's end, for all pools. */
export class PortHost {
  private readonly post: Post<JobFromWorker>
  private readonly waiting = new Map<number, Waiting>()
  private lastId = 0
  private closed = false

  constructor(post: Post<JobFromWorker>) {
    this.post = post
  }

  get pendingCount(): number {
    return this.waiting.size
  }

  /** The functions of the jobs that are waited for. */
  get pendingNames(): readonly string[] {
    return [...this.waiting.values()].map(({ name }) => name)
  }

  /** The pool of that name. How many threads it has is mostly not known here; as many as there are cores is a guess. */
  pool(pool: string, threads: number = availableParallelism()): JobHost {
    return {
      threads,
      submit: (job) => this.submit(pool, job),
      // Only what this worker has submitted is known here.
      counts: () => ({ running: this.waiting.size, waiting: 0 }),
      close: async () => {},
    }
  }

  receive(message: JobToWorker): void {
    const entry = this.waiting.get(message.id)
    // It was cancelled meanwhile.
    if (entry === undefined) return
    if (message.event === 'job-progress') {
      entry.onProgress?.(message.progress)
      return
    }
    this.waiting.delete(message.id)
    entry.resolve(message.reply)
  }

  /** The worker has ended. */
  close(): void {
    this.closed = true
    const left = [...this.waiting.values()]
    this.waiting.clear()
    for (const { name, reject } of left) reject(jobsClosed(name))
  }

  private submit(pool: string, { name, call, seed, onProgress, isCancellable }: JobRequest): SubmittedJob {
    if (this.closed) throw jobsClosed(name)
    const id = ++this.lastId
    const reply = new Promise<Payload>((resolve, reject) => {
      this.waiting.set(id, { name, onProgress, resolve, reject })
    })
    const wantsProgress = onProgress !== null
    this.post({ event: 'job', id, pool, name, call, seed, wantsProgress, isCancellable }, transferables(call))
    return {
      reply,
      cancel: (why) => {
        if (this.waiting.delete(id)) this.post({ event: 'job-cancel', id, why }, transferables(why))
      },
    }
  }
}

/** The main thread's end of one worker. */
export class PortServer {
  private readonly post: Post<JobToWorker>
  private readonly find: (pool: string) => JobHost | undefined
  private readonly payloads = new PayloadCodec(null)
  private readonly jobs = new Map<number, SubmittedJob>()

  constructor(post: Post<JobToWorker>, find: (pool: string) => JobHost | undefined) {
    this.post = post
    this.find = find
  }

  receive(message: JobFromWorker): void {
    if (message.event === 'job-cancel') {
      this.jobs.get(message.id)?.cancel(message.why)
      return
    }
    const { id, pool, name, call, seed, wantsProgress } = message
    const onProgress = wantsProgress ? (progress: Progress) => this.post({ event: 'job-progress', id, progress }, []) : null
    let job: SubmittedJob
    try {
      const host = this.find(pool)
      if (host === undefined) throw notHere(pool, 'the cluster has no pool of that name')
      // Cancellable in any case: the worker may die.
      job = host.submit({ name, call, seed, onProgress, isCancellable: true })
    } catch (error) {
      this.reply(id, this.payloads.encodeError(error))
      return
    }
    this.jobs.set(id, job)
    job.reply.then(
      (reply) => this.reply(id, reply),
      (error) => this.reply(id, this.payloads.encodeError(error)),
    )
  }

  /** Cancels everything that the worker has submitted: it has ended. */
  drop(error: unknown): void {
    for (const job of this.jobs.values()) job.cancel(this.payloads.encodeError(error))
  }

  private reply(id: number, reply: Payload): void {
    this.jobs.delete(id)
    this.post({ event: 'job-reply', id, reply }, transferables(reply))
  }
}
