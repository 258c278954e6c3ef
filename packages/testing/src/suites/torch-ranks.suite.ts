/**
 * The fixture of PyTorch's own tests of rpc (`torch/testing/_internal/distributed/rpc/rpc_test.py`): four workers that all run the body at once, so
 * that each test is one of four-way concurrency as well. Here over several seeds, with nothing left over.
 */
import { expectClean } from '../check/expect-clean.js'
import { type SimCluster, type SimulateOptions, simulate } from '../simulate/simulate.js'

export const WORLD_SIZE = 4

export interface Rank {
  readonly rank: number
  readonly self: string
  /** The next worker, and the one after it. */
  readonly next: string
  readonly afterNext: string
  readonly sim: SimCluster
}

export const nameOf = (rank: number): string => `worker${rank % WORLD_SIZE}`

/** Runs `body` on every rank of fresh simulations, one per seed. */
export async function everyRank(body: (rank: Rank) => Promise<void>, seeds = 3, options: Partial<SimulateOptions> = {}): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      const simulation = await simulate({ workers: WORLD_SIZE, seed, ...options }, (sim) =>
        Promise.all(
          Array.from({ length: WORLD_SIZE }, (_, rank) =>
            sim.on(rank).run(() => body({ rank, self: nameOf(rank), next: nameOf(rank + 1), afterNext: nameOf(rank + 2), sim })),
          ),
        ),
      )
      expectClean(simulation)
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
}

/** What a promise was rejected with. */
export async function failure(promise: PromiseLike<unknown>): Promise<Error & { readonly [key: string]: unknown }> {
  try {
    await promise
  } catch (error) {
    return error as Error & { readonly [key: string]: unknown }
  }
  throw new Error('expected a rejection, got a value')
}
