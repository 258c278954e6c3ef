/**
 * The fixture of this package's simulated tests: N runtimes over one SimWorld. Package `testing`, above, has the one that users get.
 */
import type { PostgradError } from '@postgrad/base'
import { WorkerRuntime } from '@postgrad/rpc/internal'
import { withSeed } from '@postgrad/rpc/suite'
import { SimWorld } from '@postgrad/sim/internal'
import { type DistAutograd, installDistAutograd } from '../install.js'

export { runWithCrash, withSeed } from '@postgrad/rpc/suite'

export class Cluster {
  readonly world: SimWorld
  readonly workers: readonly WorkerRuntime[]
  readonly bugs: unknown[] = []

  constructor(seed: number, size: number, options: { rpcTimeoutMs?: number } = {}) {
    this.world = new SimWorld(seed)
    this.workers = Array.from({ length: size }, (_, id) => {
      const name = `worker${id}`
      return new WorkerRuntime({
        name,
        id,
        clock: this.world.clockOf(name),
        finalizers: 'report',
        onBug: (error) => this.bugs.push(error),
        ...options,
      })
    })
    for (const worker of this.workers) installDistAutograd(worker)
    this.workers.forEach((a, i) => {
      for (const b of this.workers.slice(i + 1)) {
        const [ofA, ofB] = this.world.link(a.info.name, b.info.name)
        a.connect(b.info, ofA)
        b.connect(a.info, ofB)
      }
    })
  }

  /** Runs `main` as worker `id` until it settles. */
  run<T>(id: number, main: () => Promise<T>): Promise<T> {
    return this.world.run(this.workers[id]!.run(main))
  }

  parts(id: number): DistAutograd {
    return installDistAutograd(this.workers[id]!)
  }

  /** The context as worker `id` sees it. */
  contextOn(id: number, contextId: bigint) {
    return this.parts(id).container.retrieve(contextId)
  }

  /** Delivers what is under way, then says what is left: nothing may be. */
  async leftovers(except: readonly number[] = []): Promise<string[]> {
    await this.world.drain()
    const left = this.bugs.map((bug) => `bug: ${bug instanceof Error ? bug.stack : String(bug)}`)
    for (const worker of this.workers) {
      if (except.includes(worker.info.id)) continue
      const info = worker.debugInfo()
      for (const key of ['pendingCalls', 'servingCalls', 'autogradContexts', 'currentBackwardPasses']) {
        if (info[key] !== 0) left.push(`${worker.info.name}: ${key} ${info[key]}`)
      }
    }
    return left
  }
}

/** Runs `main` on worker 0 of fresh clusters, one per seed, and asks each time that nothing is left. A failure names its seed. */
export async function overSeeds(count: number, size: number, main: (cluster: Cluster) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= count; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      await cluster.run(0, () => main(cluster))
      const left = await cluster.leftovers()
      if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
    })
  }
}

/** The codes of an error and its causes, outermost first. */
export function codesOf(error: unknown): string[] {
  const codes: string[] = []
  for (let e = error as PostgradError | undefined; e !== undefined && e !== null; e = e.cause as PostgradError | undefined)
    codes.push(String(e.code))
  return codes
}
