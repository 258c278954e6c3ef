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
  /** Default: one less than there are cores, at least one. */
  readonly threads?: number
  /** Jobs that wait at most; one more is refused with JOBS_QUEUE_FULL. Default 16,384. */
  readonly queueMax?: number
  /** The seed of the jobs' random numbers; default 0, in a cluster the cluster's seed. */
  readonly seed?: number
  /** Where the jobs' kernels run; default 'wasm', in a cluster the cluster's. */
  readonly device?: DeviceSpec
  /** The limits of each thread. If a thread needs more, its job fails with WORKER_DIED. */
  readonly resourceLimits?: ResourceLimits
  /** URL of `tsx/esm/api` for TypeScript modules; by default it is looked for from the module's folder. */
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
 * A pool of threads without a cluster. The module exposes functions (`expose({ rollout })`); the program that holds the pool passes the function
 * itself. Threads start at once and load the module at their first job.
 * @param url the module: a `file:` URL, or a path from the working directory
 * @throws JOBS_MODULE_NOT_FOUND, INVALID_ARGUMENT, DEVICE_UNKNOWN, POSTGRAD_BUNDLED, THREADS_WHILE_LOADING
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
