/**
 * The threads of one DataLoader: a pool of `@postgrad/jobs`, which says how jobs run, fail and end. A batch needs no memory of earlier ones, so any thread may
 * take any; the order of batches is the DataLoader's matter. A thread that died takes the DataLoader's pool with it: another would make the dataset
 * again, perhaps to die again.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { ownFile, refuseWhileLoading } from '@postgrad/base/internal'
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
    const program = ownFile('DataLoader', () => new URL('./worker-task.js', import.meta.url)).href
    const places = new ThreadPlaces({ boot: { program, data, device: null }, threads: workers })
    // How many batches are asked for ahead is bounded by the DataLoader.
    this.queue = new JobQueue(places, { threads: workers, queueMax: Number.POSITIVE_INFINITY, clock: new RealClock() })
  }

  get isClosed(): boolean {
    return this.closing !== null
  }

  /** What the worker answered. Rejects with its error, or WORKER_DIED. */
  async load(task: BatchTask): Promise<unknown> {
    const call = this.payloads.encodeCall('batch', [task])
    let reply: Payload
    try {
      // The seed is nobody's: each sample has its own.
      reply = await this.queue.submit({ name: 'batch', call, seed: 0, onProgress: null, isCancellable: false }).reply
    } catch (error) {
      const { number, indices } = task.plan
      const cause = isPostgradError(error, 'WORKER_DIED') ? error.cause : error
      throw new PostgradError('WORKER_DIED', {
        op: 'DataLoader',
        message: `the thread that loaded batch ${number} is gone: ${(cause as Error).message}`,
        remedy: 'A dataset must not end its thread; see the cause, and try { workers: 0 }.',
        values: { batch: number, indices },
        cause,
      })
    }
    return this.payloads.decodeReply(reply)
  }

  /** Ends the threads wherever they are; idempotent. Batches that are being loaded are rejected. */
  close(): Promise<void> {
    this.closing ??= this.queue.close()
    return this.closing
  }
}
