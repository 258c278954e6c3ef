/** Clusters to measure distributed passes on, one at a time. The last cluster closes when a row needs another number of workers. */
import { type Cluster, type Controller, launch } from 'postgrad'
import type { Contestant } from './row.js'

export class PassStage {
  private readonly program: string
  private readonly processes: number | undefined
  private size = 0
  private cluster: Cluster | null = null

  /**
   * @param program next to this file; every worker loads it
   * @param processes over which the workers are spread; default none but this one
   */
  constructor(program = 'training.js', processes?: number) {
    this.program = program
    this.processes = processes
  }

  /** Does that with worker0, of `workers`. */
  with(workers: number, work: (worker0: Controller, n: number) => Promise<number>): Contestant {
    return async (n) => {
      if (this.cluster === null || this.size !== workers) {
        await this.close()
        this.cluster = await this.launch(workers)
        this.size = workers
      }
      return work(this.cluster.on('worker0'), n)
    }
  }

  /** The same, each time with newly launched workers. The cluster of `with` stays open meanwhile, and sleeps. */
  fresh(workers: number, work: (worker0: Controller, n: number) => Promise<number>): Contestant {
    return async (n) => {
      await using cluster = await this.launch(workers)
      return await work(cluster.on('worker0'), n)
    }
  }

  async close(): Promise<void> {
    // Training keeps values for a next step, undisposed.
    await this.cluster?.close({ timeoutMs: 0 })
    this.cluster = null
  }

  private launch(workers: number): Promise<Cluster> {
    return launch(new URL(this.program, import.meta.url), { workers, processes: this.processes })
  }
}

/** The workers that worker0 calls. */
export const others = (count: number): string[] => Array.from({ length: count }, (_, i) => `worker${i + 1}`)
