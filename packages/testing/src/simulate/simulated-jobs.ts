/**
 * The pools of a simulation: the queue and the port of `cluster.jobs`, with this thread in place of others. A worker's request takes a turn to the
 * pool and the answer one back, on its own clock, which stops when it crashes.
 */
import { workerDied } from '@postgrad/base/internal'
import { type JobFunction, Jobs } from '@postgrad/jobs'
import { attachJobs, checkQueueMax, checkThreads, InThreadPlaces, JobQueue, PortHost, PortServer } from '@postgrad/jobs/internal'
import type { WorkerRuntime } from '@postgrad/rpc'
import { runExposed, threadRegistry, workerGenerator } from '@postgrad/rpc/internal'
import type { SimWorld } from '@postgrad/sim/internal'

/** Options of a simulated pool of jobs. */
export interface SimulatedJobsOptions {
  /** How many jobs may have begun and not ended at a time. Default 2. */
  readonly threads?: number
  /** How many jobs may wait. Further jobs fail with JOBS_QUEUE_FULL. Default 16,384. */
  readonly queueMax?: number
}

const THREADS = 2

export class SimulatedJobs {
  private readonly world: SimWorld
  private readonly seed: number
  private readonly pools = new Map<string, JobQueue>()

  /** @throws INVALID_ARGUMENT */
  constructor(world: SimWorld, pools: Readonly<Record<string, SimulatedJobsOptions>>, seed: number) {
    this.world = world
    this.seed = seed
    for (const [name, options] of Object.entries(pools)) {
      const threads = checkThreads('simulate', options.threads ?? THREADS)
      const places = new InThreadPlaces(world.clock, (job, args) => runExposed(threadRegistry.lookup(job, 'job threads'), args))
      const queueMax = checkQueueMax('simulate', options.queueMax)
      this.pools.set(name, new JobQueue(places, { threads, queueMax, clock: world.clock }))
    }
  }

  /** Gives a worker the pools, as on threads each with random seeds of its own. */
  attach(runtime: WorkerRuntime, life: number): void {
    if (this.pools.size === 0) return
    const { info, clock } = runtime
    const host: PortHost = new PortHost((message) => clock.defer(() => server.receive(message)))
    const server: PortServer = new PortServer(
      (message) => clock.defer(() => host.receive(message)),
      (name) => this.pools.get(name),
    )
    attachJobs(runtime, (name) => {
      const generator = workerGenerator(this.seed, `${info.name}/${name}`, life)
      const nameOf = (fn: JobFunction): string => threadRegistry.nameOf(fn)
      return new Jobs({ host: host.pool(name, this.pools.get(name)?.threads), clock, nameOf, generator })
    })
    this.world.onCrash((worker) => {
      if (worker !== info.name) return
      server.drop(workerDied('jobs', { worker: info, cause: 'killed', detail: 'it crashed' }))
    })
    runtime.contribute(() => ({ pendingJobs: host.pendingCount }))
    runtime.contributeWaits(() =>
      host.pendingNames.map((name) => ({ kind: 'job', what: `job ${name}`, on: [], requestId: null, within: null })),
    )
    runtime.onClose(() => host.close())
  }
}
