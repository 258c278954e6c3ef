/** The fixture of this package's simulated tests: rpc's cluster, with process groups installed on it, and programs that run on all ranks at once. */
import { type ClusterOptions, Cluster as RpcCluster } from '@postgrad/rpc/suite'
import { initProcessGroup, type ProcessGroupOptions } from './api/groups.js'
import type { ProcessGroup } from './group/process-group.js'
import { installProcessGroups } from './install.js'

export { failure, runWithCrash, withSeed } from '@postgrad/rpc/suite'

const HELD = ['pendingCalls', 'servingCalls', 'collectives', 'collectivesUnread']

export class Ranks extends RpcCluster {
  constructor(seed: number, size: number, options: ClusterOptions = {}) {
    super(seed, size, { ...options, install: installProcessGroups })
  }

  /** Runs `main` on all workers at once, and gives what came of each, by id. */
  async all<T>(main: (rank: number) => Promise<T>): Promise<PromiseSettledResult<T>[]> {
    return this.world.run(Promise.allSettled(this.workers.map((worker, rank) => worker.run(() => main(rank)))))
  }

  /** The same in a fresh default group, which must come about. A failure of any rank is thrown. */
  async inGroup<T>(main: (rank: number, group: ProcessGroup) => Promise<T>, options: ProcessGroupOptions = {}): Promise<T[]> {
    const outcomes = await this.all(async (rank) => main(rank, await initProcessGroup(options)))
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    })
  }

  override leftovers(options: Parameters<RpcCluster['leftovers']>[0] = {}): Promise<string[]> {
    return super.leftovers({ held: HELD, ...options })
  }
}
