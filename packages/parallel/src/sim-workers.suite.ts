/** The fixture of this package's simulated tests: N runtimes over one SimWorld, and how a promise fails. */
import type { PostgradError } from '@postgrad/base'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { SimWorld } from '@postgrad/sim/internal'

/** Runs `main` on worker 0 of a fresh cluster, once per seed. A failure names its seed. */
export async function overSeeds(
  size: number,
  main: (workers: readonly WorkerRuntime[], world: SimWorld) => Promise<void>,
  seeds = 6,
): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    const world = new SimWorld(seed)
    const workers = Array.from({ length: size }, (_, id) => {
      const worker = new WorkerRuntime({
        name: `worker${id}`,
        id,
        clock: world.clockOf(`worker${id}`),
        generator: workerGenerator(0, `worker${id}`),
        finalizers: 'report',
      })
      installDistAutograd(worker)
      return worker
    })
    workers.forEach((a, i) => {
      for (const b of workers.slice(i + 1)) {
        const [ofA, ofB] = world.link(a.info.name, b.info.name)
        a.connect(b.info, ofA)
        b.connect(a.info, ofB)
      }
    })
    await world.run(workers[0]!.run(() => main(workers, world))).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    })
  }
}

/** The error that a promise is rejected with. */
export async function failure(promise: PromiseLike<unknown>): Promise<PostgradError> {
  return await promise.then(
    () => {
      throw new Error('it did not fail')
    },
    (error: PostgradError) => error,
  )
}

/** Plain data with tensors as arrays, to be compared. */
export function arrays(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, each) => (each?.toArray === undefined ? each : each.toArray())))
}
