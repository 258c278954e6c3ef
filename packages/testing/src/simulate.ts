/**
 * `simulate`: a program on N workers in one thread, its messages delivered in an order drawn from a seed. Same seed, same run; every pair keeps its
 * own order, everything else is shuffled. The runtimes are the ones that `launch` starts; only clock and links are the simulation's.
 */
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import type { Target } from '@postgrad/rpc'
import { WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import type { SimWorldOptions, Trace } from '@postgrad/sim'
import { SimWorld } from '@postgrad/sim/internal'
import { suspendHeapStorage } from '@postgrad/tensor/internal'
import { InThreadCluster, type TestCluster, workerNames } from './cluster.js'

export interface SimulateOptions {
  /** Names, or a count: worker0, worker1, … */
  readonly workers: readonly string[] | number
  /** Of the order of delivery. Default 0. */
  readonly seed?: number
  /** Of the workers' random numbers, as `launch` has it: kept apart from `seed`, so that every order meets the same numbers. Default 0. */
  readonly dataSeed?: number
  /** Default deadline of calls, in ms of virtual time; 0 is none. Default 60,000. */
  readonly rpcTimeoutMs?: number
  readonly world?: SimWorldOptions
}

export interface SimCluster extends TestCluster {
  readonly seed: number
  readonly world: SimWorld
  /** Ends a worker between two of its turns, as a killed thread ends. */
  crash(target: Target): void
}

export interface Simulation<T> {
  readonly seed: number
  readonly result: T
  /** What happened, in order; equal for the same seed. */
  readonly trace: Trace
  readonly steps: number
  /** Virtual time that passed, in ms. */
  readonly timeMs: number
  /** What each worker held at the end, after all messages under way had been delivered. */
  readonly debugInfo: Readonly<Record<string, Readonly<Record<string, number>>>>
}

/**
 * Runs `body` on a simulated cluster until it settles, then delivers what is still under way.
 * @throws (rejects) what `body` throws, with the seed in `seed` and in the stack; SIM_DEADLOCK when it waits for something that cannot come
 */
export async function simulate<T>(options: SimulateOptions, body: (sim: SimCluster) => Promise<T>): Promise<Simulation<T>> {
  const names = workerNames(options.workers)
  const seed = options.seed ?? 0
  const world = new SimWorld(seed, options.world)
  const runtimes = names.map(
    (name, id) =>
      new WorkerRuntime({
        name,
        id,
        clock: world.clockOf(name),
        generator: workerGenerator(options.dataSeed ?? 0, name),
        finalizers: 'report',
        ...(options.rpcTimeoutMs === undefined ? {} : { rpcTimeoutMs: options.rpcTimeoutMs }),
      }),
  )
  for (const runtime of runtimes) installDistAutograd(runtime)
  for (const a of runtimes) {
    for (const b of runtimes) {
      if (a.info.id >= b.info.id) continue
      const [atA, atB] = world.link(a.info.name, b.info.name)
      a.connect(b.info, atA)
      b.connect(a.info, atB)
    }
  }
  const cluster = new InThreadCluster(runtimes)
  const sim: SimCluster = {
    seed,
    world,
    workers: cluster.workers,
    on: (target) => cluster.on(target),
    crash: (target) => world.crash(cluster.on(target).info.name),
  }
  const resumeHeapStorage = suspendHeapStorage()
  try {
    const result = await world.run(body(sim))
    await world.drain()
    const debugInfo = Object.fromEntries(runtimes.map((runtime) => [runtime.info.name, runtime.debugInfo()]))
    return { seed, result, trace: world.trace, steps: world.steps, timeMs: world.nowMs, debugInfo }
  } catch (error) {
    noteSeed(error, seed)
    throw error
  } finally {
    resumeHeapStorage()
    await Promise.all(runtimes.map((runtime) => runtime.close()))
  }
}

/** In the stack too, since that is what test runners print. The message stays what it was: programs compare it. */
function noteSeed(error: unknown, seed: number): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  Object.assign(error, { seed })
  const { message, stack } = error as Partial<Error>
  if (typeof message !== 'string' || typeof stack !== 'string') return
  const end = stack.indexOf(message) + message.length
  Object.assign(error, { stack: `${stack.slice(0, end)} (seed ${seed})${stack.slice(end)}` })
}
