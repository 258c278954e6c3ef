/** `jobs(url)`: a pool of threads for a module's exposed functions. `cluster-jobs.ts` opens it to workers. The rules JOB-n are in `packages/jobs/SPEC.md`. */
import { PostgradError } from '@postgrad/base'
import { locateModule, ownFile, refuseWhileLoading } from '@postgrad/base/internal'
import { type JobFunction, Jobs } from '@postgrad/jobs'
import { checkQueueMax, checkThreads, JobQueue, ThreadPlaces } from '@postgrad/jobs/internal'
import { threadRegistry, workerGenerator } from '@postgrad/rpc/internal'
import { type DeviceSpec, device as deviceOf } from '@postgrad/tensor'
import { RealClock } from '@postgrad/transport/internal'
import type { ResourceLimits } from '../host/worker-host.js'
import { checkNames, type OptionNames } from '../options/check-options.js'
import type { JobProgramData } from './job-program.js'

/** Options of `jobs`. */
export interface JobsOptions {
  /** How many threads the pool has, from 1 to 1024. Default: one less than the machine has cores, but at least 1. */
  readonly threads?: number
  /** How many jobs may wait for a thread. Further jobs fail with JOBS_QUEUE_FULL. Default 16,384. */
  readonly queueMax?: number
  /** The seed of the jobs' random numbers. Default 0; for `cluster.jobs`, the cluster's seed. */
  readonly seed?: number
  /** The device on which jobs compute. Default 'wasm'; for `cluster.jobs`, the cluster's device. */
  readonly device?: DeviceSpec
  /** The memory limits of each thread, as Node's `Worker` takes them. If a thread exceeds them, its job fails with WORKER_DIED. Default: Node's. */
  readonly resourceLimits?: ResourceLimits
  /** The URL of `tsx/esm/api`, which loads TypeScript modules. Default: threads look for tsx from the module's folder. */
  readonly typescript?: string
}

export const JOBS_OPTIONS: OptionNames<JobsOptions> = {
  threads: true,
  queueMax: true,
  seed: true,
  device: true,
  resourceLimits: true,
  typescript: true,
}

/** A pool, and the queue that others may submit to. */
export interface OpenPool {
  readonly jobs: Jobs
  readonly queue: JobQueue
}

/**
 * Makes a pool of threads without a cluster. Jobs run the functions that the module at `url` exposes: `expose({ rollout })` there, `pool.run(rollout)` here.
 * Threads start at once, and load the module at their first job. PyTorch: `multiprocessing.Pool`.
 * @param url the module: a `file:` URL, or a path from the working directory
 * @throws JOBS_MODULE_NOT_FOUND; INVALID_ARGUMENT, DEVICE_UNKNOWN if an option is invalid; POSTGRAD_BUNDLED if postgrad's own files are in a bundle;
 * THREADS_WHILE_LOADING if a worker that loads this module makes this call
 * @example
 * await using pool = jobs(new URL('./program.js', import.meta.url), { threads: 4 })
 * const y = await pool.run(addOne, [x]) // the program has: expose({ addOne })
 */
export function jobs(url: URL | string, options: JobsOptions = {}): Jobs {
  return openPool('jobs', url, options, 'jobs').jobs
}

/** @param submitter whose calls' order decides the seeds */
export function openPool(op: string, url: URL | string, options: JobsOptions, submitter: string, onClose?: () => void): OpenPool {
  refuseWhileLoading(op)
  checkNames(op, options, JOBS_OPTIONS)
  const threads = checkThreads(op, options.threads)
  const queueMax = checkQueueMax(op, options.queueMax)
  const found = locateModule(url)
  if (!found.isThere) {
    throw new PostgradError('JOBS_MODULE_NOT_FOUND', {
      op,
      expected: 'the file: URL or path of a module that exists',
      got: found.url,
      remedy: `${found.near}new URL('./my-jobs.js', import.meta.url) names a file in the folder of the running one. In a bundle, emit it as an entry of its own.`,
      values: { url: found.url },
    })
  }
  const data: JobProgramData = { url: found.url, typescript: options.typescript ?? null }
  const program = ownFile(op, 'cluster', 'jobs/job-program.js').href
  const clock = new RealClock()
  const { device = null, resourceLimits, seed = 0 } = options
  if (device !== null) deviceOf(device)
  const queue = new JobQueue(new ThreadPlaces({ boot: { program, data, device }, threads, resourceLimits }), { threads, queueMax, clock })
  const nameOf = (fn: JobFunction): string => threadRegistry.nameOf(fn)
  const generator = workerGenerator(seed, submitter)
  return { queue, jobs: new Jobs({ host: queue, clock, nameOf, generator, ...(onClose === undefined ? {} : { onClose }) }) }
}
