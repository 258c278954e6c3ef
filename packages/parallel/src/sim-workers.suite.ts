/** The fixture of this package's simulated tests: rpc's, with distributed autograd installed on it. */
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { type WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { Cluster, withSeed } from '@postgrad/rpc/suite'
import type { SimWorld } from '@postgrad/sim/internal'

export { failure } from '@postgrad/rpc/suite'

/** Runs `main` on worker 0 of a fresh cluster, once per seed. A failure names its seed. */
export async function overSeeds(
  size: number,
  main: (workers: readonly WorkerRuntime[], world: SimWorld) => Promise<void>,
  seeds = 6,
): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size, { install: installDistAutograd, generatorOf: (name) => workerGenerator(0, name) })
      await cluster.run(0, () => main(cluster.workers, cluster.world))
      if (cluster.bugs.length > 0) throw cluster.bugs[0]
    })
  }
}

/** Plain data with tensors as arrays, to be compared. */
export function arrays(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, each) => (each?.toArray === undefined ? each : each.toArray())))
}
