/**
 * The API of a pool: `jobs.run(fn, args)` and `jobs.map(fn, items)`, typed by the function. Code does not travel: `Jobs` sends the function's name, and
 * the pool's module looks it up. Below is a `JobHost`: a pool's queue, a simulation's, or a worker's port to the main thread.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { currentScope, onAbort, ownEnd, quietAtOwnEnd, timeLimit } from '@postgrad/base/internal'
import type { Generator } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import { callListener, setDeadline } from '@postgrad/transport/internal'
import type { Sendable } from '@postgrad/wire'
import { type Payload, PayloadCodec } from '@postgrad/wire/internal'
import type { JobHost } from './job-host.js'
import { cancelled } from './job-queue.js'
import type { Progress } from './progress.js'

/** A function that a pool can run: one that the pool's module exposes. */
export type JobFunction = (...args: never[]) => unknown

/** Options of `jobs.run`. */
export interface JobOptions {
  /**
   * When this signal aborts, the job is cancelled and rejects at once with JOB_CANCELLED. A job that waits for a thread will not run. In a job that runs,
   * `currentJob().signal` aborts.
   */
  readonly signal?: AbortSignal
  /** Receives the job's reports (`currentJob().report`). If this function throws, the error is an uncaught exception of the caller's thread; the job continues. */
  readonly onProgress?: (progress: Progress) => void
  /** How long the job may take, in ms. The wait for a thread counts. Then the job is cancelled, and rejects with JOB_TIMEOUT. Default 0: without a limit. */
  readonly timeoutMs?: number
  /** The seed of the job's random numbers. Default: the next seed from the pool's seed (on a worker: the worker's seed). It does not depend on the thread that runs the job. */
  readonly seed?: number
}

/** Options of `jobs.map`. */
export interface MapOptions {
  /** When this signal aborts, all jobs of the map are cancelled. */
  readonly signal?: AbortSignal
  /** Receives the number of finished items each time an item is finished, and the total if `items` is an array. */
  readonly onProgress?: (progress: Progress) => void
  /** How long each job may take, in ms. The wait for a thread counts. Default 0: without a limit. */
  readonly timeoutMs?: number
  /** How many jobs may be submitted before the loop has taken their results, at least 1. Default: twice the number of threads. */
  readonly ahead?: number
}

/** How many jobs of a pool run and wait: all of them on the main thread; on a worker those that the worker has submitted, which all count as running. */
export interface JobCounts {
  /** How many jobs run. */
  readonly running: number
  /** How many jobs wait for a thread. */
  readonly waiting: number
}

export interface JobsParts {
  readonly host: JobHost
  readonly clock: Clock
  /** The name of a function in the pool's module. @throws FUNCTION_NOT_EXPOSED */
  readonly nameOf: (fn: JobFunction) => string
  /** Seeds of jobs are drawn from it. */
  readonly generator: Generator
  /** `close` calls it, then ends the host. */
  readonly onClose?: () => void
}

/** Arguments may be left out for a function that takes none. */
type Rest<A extends readonly unknown[]> = [] extends A
  ? [args?: Sendable<A>, options?: JobOptions]
  : [args: Sendable<A>, options?: JobOptions]

const SEEDS = 2 ** 31

/**
 * A pool of threads for stateless work: rollouts, sweeps, batches. `jobs` and `cluster.jobs` make pools. PyTorch: `multiprocessing.Pool`.
 * @example
 * await using pool: Jobs = jobs(new URL('./program.js', import.meta.url))
 * for await (const y of pool.map(addOne, [x, x.mul(2)])) console.log(y) // in the order of the list
 */
export class Jobs {
  private readonly parts: JobsParts
  private readonly payloads = new PayloadCodec(null)

  /** @internal */
  constructor(parts: JobsParts) {
    this.parts = parts
  }

  /** How many jobs can run at once. On a worker, this is the number of cores of the machine. */
  get threads(): number {
    return this.parts.host.threads
  }

  /** How many jobs run and wait now. */
  get counts(): JobCounts {
    return this.parts.host.counts()
  }

  /**
   * Runs an exposed function of the pool's module on a thread of the pool, and resolves with its result. Arguments and result are copied: they may contain
   * structured-clone types and tensors. Tensors arrive as leaves. A job is never repeated, even if its thread dies.
   * @throws the function's own error, with its class, code, cause, values and the stack in the job; FUNCTION_NOT_EXPOSED; WIRE_UNSUPPORTED_VALUE if an
   * argument or the result cannot be copied; JOB_CANCELLED; JOB_TIMEOUT; JOBS_QUEUE_FULL; JOBS_CLOSED if the pool closes; WORKER_DIED if the job's thread ends
   */
  run<F extends JobFunction>(fn: F, ...[args, options]: Rest<Parameters<F>>): Promise<Awaited<ReturnType<F>>> {
    const run = async () => this.submit(this.parts.nameOf(fn), (args ?? []) as readonly unknown[], options ?? {})
    return quietAtOwnEnd(run() as Promise<Awaited<ReturnType<F>>>)
  }

  /**
   * Runs a function of one argument on every item, and yields the results in the order of the items. At most `ahead` items are taken before their results are
   * needed, so `items` may be endless. If a job fails, or the loop is left early, the remaining jobs are cancelled.
   * @throws the error of the first job in this order that fails; INVALID_ARGUMENT; the errors of `run`
   */
  async *map<F extends JobFunction>(
    fn: F,
    items: Iterable<Sendable<Parameters<F>[0]>> | AsyncIterable<Sendable<Parameters<F>[0]>>,
    options: MapOptions = {},
  ): AsyncGenerator<Awaited<ReturnType<F>>, void, undefined> {
    const name = this.parts.nameOf(fn)
    const ahead = checkAhead(options.ahead ?? 2 * this.threads)
    const total = Array.isArray(items) ? { total: items.length } : {}
    const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
    const end = new AbortController()
    const { signal } = options
    if (signal?.aborted) end.abort(signal.reason)
    const hear = signal && onAbort(signal, () => end.abort(signal.reason))
    const job: JobOptions = { signal: end.signal, ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }) }
    const underWay: Promise<unknown>[] = []
    let [ended, done] = [false, 0]
    try {
      for (;;) {
        while (!ended && underWay.length < ahead) {
          const next = await source.next()
          if (next.done === true) ended = true
          else {
            const result = this.submit(name, [next.value], job)
            // A failure is looked at when its turn comes.
            result.then(
              () => callListener(this.parts.clock, () => options.onProgress?.({ done: ++done, ...total })),
              () => {},
            )
            underWay.push(result)
          }
        }
        if (underWay.length === 0) return
        yield (await underWay.shift()) as Awaited<ReturnType<F>>
      }
    } finally {
      hear?.()
      end.abort(new Error('the map has ended'))
      if (!ended) await source.return?.()
    }
  }

  /**
   * Ends the pool at once, also its running jobs. Unfinished jobs reject with JOBS_CLOSED. Resolves when no thread is left. Idempotent. Has no effect on the pools
   * of `currentJobs`.
   */
  close(): Promise<void> {
    this.parts.onClose?.()
    return this.parts.host.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async submit(name: string, args: readonly unknown[], options: JobOptions): Promise<unknown> {
    const { signal, onProgress } = options
    const { clock } = this.parts
    let isCut = false
    const timeoutMs = timeLimit('jobs.run', options.timeoutMs ?? 0)
    // Drawn before anything can fail, so that the seeds of later jobs do not depend on it.
    const drawn = this.parts.generator.integer(0, SEEDS)
    const seed = options.seed ?? drawn
    if (signal?.aborted) throw cancelled(name, signal.reason)
    const isCancellable = signal !== undefined || timeoutMs !== Number.POSITIVE_INFINITY
    const call = this.payloads.encodeCall(name, args)
    const tell = (progress: Progress): void => {
      if (!isCut) callListener(clock, () => onProgress!(progress))
    }
    const job = this.parts.host.submit({ name, call, seed, onProgress: onProgress === undefined ? null : tell, isCancellable })
    if (!isCancellable) return this.resultOf(await job.reply)
    const reply = await new Promise<Payload>((resolve, reject) => {
      const cut = (error: PostgradError): void => {
        isCut = true
        settle()
        reject(error)
        job.cancel(this.payloads.encodeError(error))
      }
      const timer = setDeadline(clock, timeoutMs, () => cut(timedOut(name, timeoutMs)))
      const settle = (): void => {
        timer?.cancel()
        hear?.()
      }
      const hear = signal && onAbort(signal, () => cut(cancelled(name, signal.reason)))
      job.reply.then(
        (payload) => {
          settle()
          resolve(payload)
        },
        (error) => {
          settle()
          reject(error)
        },
      )
    })
    return this.resultOf(reply)
  }

  private resultOf(reply: Payload): unknown {
    try {
      return this.payloads.decodeReply(reply)
    } catch (error) {
      // A worker has it from the main thread, where the same program has closed the pool.
      throw isPostgradError(error, 'JOBS_CLOSED') ? ownEnd(error) : error
    }
  }
}

/** @throws INVALID_ARGUMENT */
function checkAhead(ahead: number): number {
  if (Number.isSafeInteger(ahead) && ahead >= 1) return ahead
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'jobs.map',
    expected: 'ahead to be an integer ≥ 1',
    got: String(ahead),
    remedy: 'Leave it out for twice the number of threads.',
  })
}

function timedOut(name: string, timeoutMs: number): PostgradError {
  return new PostgradError('JOB_TIMEOUT', {
    op: `job '${name}'`,
    message: `it had no result within ${timeoutMs} ms`,
    remedy: 'Pass a larger timeoutMs; the wait for a free thread counts.',
    values: { job: name, timeoutMs },
  })
}

const SLOT = Symbol('postgrad.jobs')

/** The part of a worker's runtime that is needed here. */
interface SlotHolder {
  slot<T>(key: symbol, make: () => T): T
}

/** Gives a worker its pools, by name; each is made when it is first asked for. */
export function attachJobs(worker: SlotHolder, make: (name: string) => Jobs): void {
  const known = new Map<string, Jobs>()
  worker.slot(SLOT, () => (name: string) => {
    const jobs = known.get(name) ?? make(name)
    known.set(name, jobs)
    return jobs
  })
}

/**
 * Returns a pool of the current worker's cluster, by the name that `cluster.jobs` gave the pool. If the worker dies, its jobs are cancelled. A worker cannot
 * end the pool: `close` has no effect here.
 * @throws JOBS_NOT_HERE if no worker of a cluster runs this code, or a simulation has no pool of this name. On threads, a job of an unknown pool fails with this code
 * @example const y = await currentJobs().run(addOne, [x]) // on a worker, after cluster.jobs(url) on the main thread
 */
export function currentJobs(name = 'jobs'): Jobs {
  const worker = currentScope().worker as SlotHolder | null
  const find = worker?.slot<((name: string) => Jobs) | null>(SLOT, () => null) ?? null
  if (find === null) throw notHere(name, 'no worker of a cluster is current here')
  return find(name)
}

export function notHere(name: string, message: string): PostgradError {
  return new PostgradError('JOBS_NOT_HERE', {
    op: `currentJobs('${name}')`,
    message,
    remedy: 'Make the pool on the main thread: cluster.jobs(url, { name }); in a simulation: simulate({ …, jobs: { name: {} } }).',
    values: { name },
  })
}
