/** The fixture of this package's simulated tests: rpc's cluster with process groups, and programs that run on all ranks at once. */
import { isPostgradError } from '@postgrad/base'
import { type ClusterOptions, Cluster as RpcCluster } from '@postgrad/rpc/suite'
import { initProcessGroup, type ProcessGroupOptions } from './api/groups.js'
import type { ProcessGroup } from './group/process-group.js'
import { installProcessGroups } from './install.js'
import { type ProgramOptions, runProgram } from './programs.suite.js'

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
    return valuesOf(outcomes)
  }

  override leftovers(options: Parameters<RpcCluster['leftovers']>[0] = {}): Promise<string[]> {
    return super.leftovers({ held: HELD, ...options })
  }
}

/** Each rank's value. Throws a failure: preferably one that does not follow from another rank's. */
export function valuesOf<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  const first = reasons.find((reason) => !isPostgradError(reason)) ?? reasons[0]
  if (first !== undefined) throw first
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value)
}

/** The random program of a seed on so many ranks, of which nothing may be left. */
export async function randomProgram(seed: number, size: number, options: ProgramOptions = {}): Promise<void> {
  const ranks = new Ranks(seed, size)
  await ranks.inGroup((_rank, group) => runProgram(group, seed, options))
  const left = await ranks.leftovers()
  if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
}
