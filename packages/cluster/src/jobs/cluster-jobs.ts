/** The pools of a cluster, next to its main thread, which passes on the jobs that workers submit through their control ports (`currentJobs`). */
import { PostgradError } from '@postgrad/base'
import type { Jobs } from '@postgrad/jobs'
import { type JobFromWorker, type JobHost, PortServer } from '@postgrad/jobs/internal'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { type JobsOptions, openPool } from './job-pool.js'

/** Options of `cluster.jobs`. */
export interface ClusterJobsOptions extends JobsOptions {
  /** The pool's name, by which workers find it: `currentJobs(name)`. Default 'jobs'. */
  readonly name?: string
}

export class ClusterJobs {
  private readonly defaults: JobsOptions
  private readonly pools = new Map<string, JobHost>()
  private readonly servers = new Map<RemoteWorker, PortServer>()

  constructor(defaults: JobsOptions) {
    this.defaults = defaults
  }

  /** @throws JOBS_NAME_TAKEN, and as `jobs` does */
  open(url: URL | string, { name = 'jobs', ...options }: ClusterJobsOptions): Jobs {
    if (this.pools.has(name)) {
      throw new PostgradError('JOBS_NAME_TAKEN', {
        op: 'cluster.jobs',
        message: `this cluster has a pool '${name}' already`,
        remedy: 'Pass another { name }, or close that one first.',
        values: { name },
      })
    }
    const pool = openPool('cluster.jobs', url, { ...this.defaults, ...options }, name, () => {
      if (this.pools.get(name) === pool.queue) this.pools.delete(name)
    })
    this.pools.set(name, pool.queue)
    return pool.jobs
  }

  /** What a worker says about jobs; at its end they are cancelled. */
  receive(message: JobFromWorker, thread: RemoteWorker): void {
    let server = this.servers.get(thread)
    if (server === undefined) {
      const made = new PortServer(
        (reply, transfer) => thread.post(reply, transfer),
        (pool) => this.pools.get(pool),
      )
      server = made
      this.servers.set(thread, server)
      void thread.ended.then(() => {
        this.servers.delete(thread)
        made.drop(thread.death('jobs'))
      })
    }
    server.receive(message)
  }

  async close(): Promise<void> {
    const open = [...this.pools.values()]
    this.pools.clear()
    await Promise.all(open.map((pool) => pool.close()))
  }
}
