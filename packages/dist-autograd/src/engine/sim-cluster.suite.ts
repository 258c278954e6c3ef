/** The fixture of this package's simulated tests: rpc's, with distributed autograd installed on it. */
import type { PostgradError } from '@postgrad/base'
import type { Authority } from '@postgrad/rpc'
import { type LeftoverOptions, overClusters, Cluster as RpcCluster } from '@postgrad/rpc/suite'
import { type DistAutograd, installDistAutograd } from '../install.js'

export { runWithCrash, withSeed } from '@postgrad/rpc/suite'

const HELD = ['pendingCalls', 'servingCalls', 'autogradContexts', 'currentBackwardPasses']

export class Cluster extends RpcCluster {
  constructor(
    seed: number,
    size: number,
    options: { authority?: Authority; rpcTimeoutMs?: number; apart?: readonly (readonly [number, number])[] } = {},
  ) {
    super(seed, size, { ...options, install: installDistAutograd })
  }

  parts(id: number): DistAutograd {
    return installDistAutograd(this.workers[id]!)
  }

  /** The context as worker `id` sees it. */
  contextOn(id: number, contextId: bigint) {
    return this.parts(id).container.retrieve(contextId)
  }

  override leftovers(options: LeftoverOptions = {}): Promise<string[]> {
    return super.leftovers({ letters: null, held: HELD, ...options })
  }
}

/** Runs `main` on worker 0 of fresh clusters, one per seed, and asks each time that nothing is left. A failure names its seed. */
export function overSeeds(count: number, size: number, main: (cluster: Cluster) => Promise<void>): Promise<void> {
  return overClusters(count, (seed) => new Cluster(seed, size), main)
}

/** The codes of an error and its causes, outermost first. */
export function codesOf(error: unknown): string[] {
  const codes: string[] = []
  for (let e = error as PostgradError | undefined; e !== undefined && e !== null; e = e.cause as PostgradError | undefined)
    codes.push(String(e.code))
  return codes
}
