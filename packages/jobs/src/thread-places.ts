/**
 * The threads of a pool: piscina, with additions around it. A job needs no memory of earlier ones, so any thread may take any.
 *
 * Note [How a pool ends]. `close` terminates the threads wherever they are, one in an endless loop included, and resolves when they are gone.
 * A thread that dies takes its one job with it; piscina starts another.
 */
import { MessageChannel, type MessagePort, type ResourceLimits, receiveMessageOnPort } from 'node:worker_threads'
import { dropUnread, ownFile, shareCode, warnOfDeath } from '@postgrad/base/internal'
import { type Payload, transferables } from '@postgrad/wire/internal'
import type { Piscina } from 'piscina'
import type { JobRequest } from './job-host.js'
import { died, type Places, type RunningPlace } from './job-queue.js'
import type { Progress } from './progress.js'
import { type JobTask, NO_JOB, type ThreadBoot } from './protocol.js'

export interface ThreadPlacesOptions {
  readonly boot: Omit<ThreadBoot, 'rejections'>
  readonly threads: number
  readonly resourceLimits?: ResourceLimits | undefined
}

export class ThreadPlaces implements Places {
  /** Imported when it is needed: every worker loads this package, few make a pool. */
  private readonly piscina: Promise<Piscina>
  private readonly rejections: Int32Array
  private readonly freeSlots: number[]

  constructor(options: ThreadPlacesOptions) {
    const { threads } = options
    this.rejections = new Int32Array(new SharedArrayBuffer(4 * (1 + threads)))
    this.freeSlots = Array.from({ length: threads }, (_, i) => 1 + i)
    this.piscina = start(options, this.rejections)
  }

  run({ call, seed, onProgress, isCancellable }: JobRequest): RunningPlace {
    const way = onProgress !== null || isCancellable ? new Way(onProgress) : null
    const killer = isCancellable ? new AbortController() : null
    // Its queue runs no more jobs at once than there are threads.
    const slot = this.freeSlots.pop() ?? NO_JOB
    const task: JobTask = { call, seed, port: way?.there ?? null, slot }
    const transferList = [...transferables(call), ...(way === null ? [] : [way.there])]
    const options = { transferList, ...(killer === null ? {} : { signal: killer.signal }) }
    const reply = this.piscina.then((piscina) => piscina.run(task, options) as Promise<Payload>)
    const leave = (): void => {
      if (slot !== NO_JOB) this.freeSlots.push(slot)
    }
    reply.then(leave, leave)
    if (way !== null) {
      const end = (): void => way.end()
      reply.then(end, end)
    }
    return {
      reply,
      cancel: (why) => way?.cancel(why),
      kill: () => killer?.abort(new Error('it was cancelled and continued')),
      endedByRejection: () => wasRejection(this.rejections, slot),
    }
  }

  /** See Note [How a pool ends]. */
  async close(): Promise<void> {
    await (await this.piscina).destroy()
  }
}

async function start({ boot, threads, resourceLimits }: ThreadPlacesOptions, rejections: Int32Array): Promise<Piscina> {
  const { Piscina } = await import('piscina')
  shareCode()
  const piscina = new Piscina({
    filename: ownFile('jobs', 'jobs', 'job-entry.cjs').href,
    workerData: { ...boot, rejections } satisfies ThreadBoot,
    minThreads: threads,
    maxThreads: threads,
    idleTimeout: Number.POSITIVE_INFINITY,
    // A thread that waits by atomics stops its event loop, and with it what a job has open.
    atomics: 'disabled',
    recordTiming: false,
    ...(resourceLimits === undefined ? {} : { resourceLimits }),
  })
  for (const thread of piscina.threads) dropUnread(thread)
  piscina.on('workerCreate', () => piscina.threads.forEach(dropUnread))
  // piscina replaces a thread that dies between two jobs, and no job gets its error.
  piscina.on('error', (thrown) => {
    if (!isLateResult(thrown)) warnOfDeath(died('jobs', {}, thrown, wasRejection(rejections, NO_JOB)))
  })
  return piscina
}

/** Whether the thread with this slot threw the reason of a promise. Clears the slot for the next job. */
function wasRejection(rejections: Int32Array, slot: number): boolean {
  return Atomics.exchange(rejections, slot, 0) === 1
}

/**
 * Whether piscina has got the result of a job that it had already rejected, since it ended the thread: a port that is closed while it gives its messages
 * still gives those that are there. piscina makes an 'error' of it, which has no code.
 */
function isLateResult(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.startsWith('Unexpected message from Worker: ')
}

/** The channel of one job: progress here, cancellation there. */
class Way {
  readonly there: MessagePort
  private readonly here: MessagePort
  private readonly onProgress: (progress: Progress) => void
  private closed = false

  constructor(onProgress: ((progress: Progress) => void) | null) {
    const { port1, port2 } = new MessageChannel()
    this.here = port1
    this.there = port2
    this.onProgress = onProgress ?? (() => {})
    port1.on('message', this.onProgress)
    port1.on('close', () => {
      this.closed = true
    })
  }

  cancel(why: Payload): void {
    this.here.postMessage(why)
  }

  /** The reply takes another way: progress sent before it is reported before it. After 'close' nothing is left, and to look would crash Node 20. */
  end(): void {
    while (!this.closed) {
      const got = receiveMessageOnPort(this.here)
      if (got === undefined) break
      this.onProgress(got.message as Progress)
    }
    this.here.close()
  }
}
