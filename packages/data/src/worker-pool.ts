/**
 * The threads of one DataLoader: a piscina pool, with what it lacks put around it: errors that stay whole, a limit of time, and a death that is told as such.
 * A task needs no memory of earlier ones, so any thread may take any batch; the order of batches is the DataLoader's matter.
 *
 * Note [How a pool ends]. `close` terminates the threads wherever they are, a dataset that hangs included, and resolves when they are gone. A thread
 * that died takes the pool with it: piscina would start another, and the dataset would be made again, perhaps to die again.
 */
import { PostgradError } from '@postgrad/base'
import { type Payload, PayloadCodec } from '@postgrad/wire/internal'
import { Piscina } from 'piscina'
import { textOf } from './batch.js'
import type { BatchTask, WorkerBoot } from './worker-protocol.js'

export class WorkerPool {
  private readonly piscina: Piscina
  private readonly payloads = new PayloadCodec(null)
  private closing: Promise<void> | null = null

  constructor(boot: WorkerBoot, workers: number) {
    this.piscina = new Piscina({
      filename: new URL('./worker-entry.cjs', import.meta.url).href,
      workerData: boot,
      minThreads: workers,
      maxThreads: workers,
      idleTimeout: Number.POSITIVE_INFINITY,
      // A thread that waits by atomics stops its event loop, and with it what a dataset has open.
      atomics: 'disabled',
      recordTiming: false,
    })
    // A thread that dies between two tasks is replaced: nobody waits for it. Without a listener the event would be thrown.
    this.piscina.on('error', () => {})
  }

  get isClosed(): boolean {
    return this.closing !== null
  }

  /** What the worker answered. Rejects with its error, or WORKER_DIED. */
  async load(task: BatchTask): Promise<unknown> {
    let payload: Payload
    try {
      // A pool of piscina's would start threads again.
      if (this.isClosed) throw new Error('the pool is closed')
      payload = (await this.piscina.run(task)) as Payload
    } catch (cause) {
      const { number } = task.plan
      throw new PostgradError('WORKER_DIED', {
        op: 'DataLoader',
        message: `the thread that loaded batch ${number} is gone: ${textOf(cause)}`,
        remedy: 'A dataset must not end its thread; see the cause, and try { workers: 0 }.',
        values: { batch: number, indices: task.plan.indices },
        cause,
      })
    }
    return this.payloads.decodeReply(payload)
  }

  /** See Note [How a pool ends]; idempotent. Batches that are being loaded are rejected. */
  close(): Promise<void> {
    this.closing ??= this.piscina.destroy()
    return this.closing
  }
}
