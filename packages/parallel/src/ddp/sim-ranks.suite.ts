/** The fixture of simulated data-parallel tests: workers with process groups and distributed autograd, and a program that runs on all of them at once. */
import { expect } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { initProcessGroup, type ProcessGroup, type ProcessGroupOptions } from '@postgrad/process-group'
import { installProcessGroups } from '@postgrad/process-group/internal'
import { type WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { Cluster, runWithCrash, withSeed } from '@postgrad/rpc/suite'

export { failure, runWithCrash, withSeed } from '@postgrad/rpc/suite'

const HELD = ['pendingCalls', 'servingCalls', 'autogradContexts', 'currentBackwardPasses', 'collectives', 'collectivesUnread']

function install(runtime: WorkerRuntime): void {
  installDistAutograd(runtime)
  installProcessGroups(runtime)
}

export class Ranks extends Cluster {
  constructor(seed: number, size: number) {
    super(seed, size, { install, generatorOf: (name) => workerGenerator(0, name) })
  }

  /** Runs `main` on all workers at once, and gives what came of each, by id. */
  all<T>(main: (rank: number) => Promise<T>): Promise<PromiseSettledResult<T>[]> {
    return this.world.run(Promise.allSettled(this.workers.map((worker, rank) => worker.run(() => main(rank)))))
  }
}

/** Runs `main` on all ranks of one default group, once per seed (each another order of delivery; `programs.sim` has many), and gives what the last run gave. Failures of ranks are thrown; nothing may be left. */
export async function overSeeds<T>(
  size: number,
  main: (rank: number, group: ProcessGroup) => Promise<T>,
  seeds = 1,
  options: ProcessGroupOptions = {},
): Promise<T[]> {
  let results: T[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    await withSeed(seed, async () => {
      const ranks = new Ranks(seed, size)
      const outcomes = await ranks.all(async (rank) => main(rank, await initProcessGroup(options)))
      const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
      // Of the others the error is that this one did not come.
      const first = reasons.find((reason) => !isPostgradError(reason, 'COLLECTIVE_TIMEOUT') && !isPostgradError(reason, 'GROUP_BROKEN'))
      if (reasons.length > 0) throw first ?? reasons[0]
      results = outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value)
      if (ranks.bugs.length > 0) throw ranks.bugs[0]
      const left = await ranks.leftovers({ held: HELD })
      if (left.length > 0) throw new Error(left.join('; '))
    })
  }
  return results
}

/** How many programs of the survivors have failed: none unless a rank has crashed, and each with an error that says so. */
export function failedAmong(survivors: readonly PromiseSettledResult<unknown>[], crashed: boolean): number {
  const failed = survivors.filter((each) => each.status === 'rejected')
  for (const { reason } of failed) {
    expect(crashed).toBe(true)
    expect(['GROUP_BROKEN', 'WORKER_DIED', 'GATHER_FAILED']).toContain((reason as PostgradError).code)
  }
  return failed.length
}

/** Of three ranks the last one dies, later in each of twelve runs: the others end, with an error where it had not ended before. `stepsApart` is how much later. */
export async function expectErrorsOfSurvivors(stepsApart: number, main: (rank: number) => Promise<unknown>): Promise<void> {
  let [died, failed] = [0, 0]
  for (let seed = 1; seed <= 12; seed++) {
    await withSeed(seed, async () => {
      const ranks = new Ranks(seed, 3)
      const programs = ranks.workers.map((worker, rank) => worker.run(() => main(rank)))
      programs[2]!.catch(() => {})
      const survivors = Promise.allSettled(programs.slice(0, 2))
      const { outcome, value, crashed } = await runWithCrash(ranks, survivors, 'worker2', stepsApart * seed)
      expect(outcome).toBe('value')
      died += Number(crashed)
      failed += failedAmong(value!, crashed)
    })
  }
  expect(failed).toBeGreaterThan(died)
}
