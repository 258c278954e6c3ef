/**
 * The cluster that `simulate` and `inlined` give to a test's body: N workers in this thread, with the runtimes of `launch`. The same
 * body drives either, so that a distributed run and its oracle are one program.
 */
import { PostgradError } from '@postgrad/base'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'

/** A worker of a simulated or inlined cluster. */
export interface TestWorker {
  /** The worker's name and id. */
  readonly info: WorkerInfo
  /** The worker's runtime, for tests that inspect a worker. */
  readonly runtime: WorkerRuntime
  /**
   * Runs `fn(...args)` as this worker, and resolves with its result. `fn` need not be exposed, and may use variables of the test.
   * @throws (rejects) the error of `fn`; WORKER_DIED if this life of the worker has crashed, or crashes before `fn` ends
   */
  run<A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<Awaited<R>>
  /** Returns counts of all that the worker holds: pending calls, contexts, references, … */
  debugInfo(): Record<string, number>
}

/** The cluster that `simulate` and `inlined` pass to a test's body. */
export interface TestCluster {
  /** The name and id of each worker. */
  readonly workers: readonly WorkerInfo[]
  /** Returns a worker, which you name by its name, id or info. @throws UNKNOWN_WORKER */
  on(target: Target): TestWorker
}

/** Called if the code around the workers uses something of one; `` is for its own things. */
export type Touch = (worker: string) => void

/** Of a program on a worker: how it ends, or that the worker has died before. */
export type UntilDeath = <R>(runtime: WorkerRuntime, run: () => Promise<R>) => Promise<R>

export function testWorker(runtime: WorkerRuntime, touch: Touch = () => {}, untilDeath: UntilDeath = (_runtime, run) => run()): TestWorker {
  const { name } = runtime.info
  return {
    info: runtime.info,
    get runtime() {
      touch(name)
      return runtime
    },
    run: <A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A) => {
      touch(name)
      const main = async (): Promise<Awaited<R>> => {
        try {
          return await fn(...args)
        } finally {
          // The caller continues now, in the step that ended this.
          touch('')
        }
      }
      return untilDeath(runtime, () => runtime.run(main))
    },
    debugInfo: () => {
      touch(name)
      return runtime.debugInfo()
    },
  }
}

/** Names, or a count: worker0, worker1, … @throws INVALID_ARGUMENT */
export function workerNames(workers: readonly string[] | number): readonly string[] {
  const names = typeof workers === 'number' ? Array.from({ length: workers }, (_, i) => `worker${i}`) : workers
  if (!Array.isArray(names) || names.length === 0 || new Set(names).size < names.length) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'workers',
      expected: 'at least one worker, each name once',
      got: !Array.isArray(names) ? String(names) : names.length === 0 ? 'none' : names.join(', '),
      remedy: "Pass names like ['worker0', 'worker1'], or a count.",
    })
  }
  return names
}

export class InThreadCluster implements TestCluster {
  /** Every life of every worker, in the order in which they began. */
  readonly runtimes: WorkerRuntime[] = []
  private readonly byName = new Map<string, TestWorker>()
  private readonly byId = new Map<number, TestWorker>()

  private readonly touch: Touch | undefined
  private readonly untilDeath: UntilDeath | undefined

  constructor(runtimes: readonly WorkerRuntime[], touch?: Touch, untilDeath?: UntilDeath) {
    this.touch = touch
    this.untilDeath = untilDeath
    for (const runtime of runtimes) this.add(runtime)
  }

  /** The name means this worker from now on. */
  add(runtime: WorkerRuntime): TestWorker {
    const worker = testWorker(runtime, this.touch, this.untilDeath)
    this.runtimes.push(runtime)
    this.byName.set(runtime.info.name, worker)
    this.byId.set(runtime.info.id, worker)
    return worker
  }

  /** The last life of each name. */
  get current(): readonly TestWorker[] {
    return [...this.byName.values()]
  }

  get workers(): readonly WorkerInfo[] {
    return this.current.map(({ info }) => info)
  }

  on(target: Target): TestWorker {
    const worker = typeof target === 'string' ? this.byName.get(target) : this.byId.get(typeof target === 'number' ? target : target.id)
    // `resolve` refuses a target that is not a worker of the cluster.
    if (worker === undefined || (typeof target === 'object' && target.name !== worker.info.name)) this.runtimes[0]!.resolve(target)
    return worker as TestWorker
  }
}
