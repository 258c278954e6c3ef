/**
 * The threads of one DataLoader: a job queue of `@postgrad/jobs`, in which jobs run, fail and end. A batch does not depend on earlier ones, so any thread may
 * load any; the DataLoader orders them. If a thread dies, its DataLoader closes the pool: a new thread would make the dataset again, and perhaps
 * die again.
 */
import { type DeathCause, isPostgradError, type PostgradError } from '@postgrad/base'
import { ownFile, refuseWhileLoading, workerDied } from '@postgrad/base/internal'
import { JobQueue, ThreadPlaces } from '@postgrad/jobs/internal'
import { RealClock } from '@postgrad/transport/internal'
import { type Payload, PayloadCodec } from '@postgrad/wire/internal'
import type { BatchTask, WorkerBoot } from './worker-protocol.js'

export class WorkerPool {
  private readonly queue: JobQueue
  private readonly payloads = new PayloadCodec(null)
  private closing: Promise<void> | null = null

  /** @throws THREADS_WHILE_LOADING, POSTGRAD_BUNDLED */
  constructor(data: WorkerBoot, workers: number) {
    refuseWhileLoading('DataLoader')
    const program = ownFile('DataLoader', 'data', 'worker-task.js').href
    const places = new ThreadPlaces({ boot: { program, data, device: null }, threads: workers })
    // The DataLoader bounds how many batches it asks for ahead.
    this.queue = new JobQueue(places, { threads: workers, queueMax: Number.POSITIVE_INFINITY, clock: new RealClock() })
  }

  get isClosed(): boolean {
    return this.closing !== null
  }

  /** The worker's answer. Rejects with its error, or WORKER_DIED. */
  async load(task: BatchTask): Promise<unknown> {
    const call = this.payloads.encodeCall('batch', [task])
    let reply: Payload
    try {
      // No job uses the seed: each sample has its own.
      reply = await this.queue.submit({ name: 'batch', call, seed: 0, onProgress: null, isCancellable: false }).reply
    } catch (error) {
      throw lostBatch(task, error)
    }
    return this.payloads.decodeReply(reply)
  }

  /** Ends the threads wherever they are; idempotent. Batches that are being loaded are rejected. */
  close(): Promise<void> {
    this.closing ??= this.queue.close()
    return this.closing
  }
}

/** A job whose thread has died says why; anything else is the end of the pool. */
function lostBatch({ plan: { number, indices } }: BatchTask, error: unknown): PostgradError {
  const death = isPostgradError(error, 'WORKER_DIED') ? error : null
  const thrown = death === null ? error : death.cause
  const cause = death === null ? 'killed' : (death.values.cause as DeathCause)
  const remedy = 'A dataset must not end its thread; see the cause, and try { workers: 0 }.'
  const about = { batch: number, indices }
  return workerDied('DataLoader', { worker: null, cause, detail: (thrown as Error).message, thrown }, { remedy, about })
}
