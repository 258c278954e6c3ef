/**
 * What `simulate` and `inlined` hand to the body of a test: N workers in this thread, each of which runs what `launch`'s workers run. The same
 * body drives either, so that a distributed run and its oracle are one program.
 */
import { PostgradError } from '@postgrad/base'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'

/** One worker of a simulated or inlined cluster. */
export interface TestWorker {
  readonly info: WorkerInfo
  /** The runtime itself, for a test that looks inside. */
  readonly runtime: WorkerRuntime
  /** Runs `fn` as this worker. The function is run as it is: it need not be exposed, and may be a closure of the test. */
  run<A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<Awaited<R>>
  /** What the worker holds: pending calls, contexts, RRefs, … */
  debugInfo(): Record<string, number>
}

export interface TestCluster {
  readonly workers: readonly WorkerInfo[]
  /** @throws UNKNOWN_WORKER */
  on(target: Target): TestWorker
}

export function testWorker(runtime: WorkerRuntime): TestWorker {
  return {
    info: runtime.info,
    runtime,
    run: <A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A) =>
      runtime.run(async (): Promise<Awaited<R>> => await fn(...args)),
    debugInfo: () => runtime.debugInfo(),
  }
}

/** Names, or a count: worker0, worker1, … @throws INVALID_ARGUMENT */
export function workerNames(workers: readonly string[] | number): readonly string[] {
  const names = typeof workers === 'number' ? Array.from({ length: workers }, (_, i) => `worker${i}`) : workers
  if (names.length === 0 || new Set(names).size < names.length) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'workers',
      expected: 'at least one worker, each name once',
      got: names.length === 0 ? 'none' : names.join(', '),
      remedy: "Pass names like ['worker0', 'worker1'], or a count.",
    })
  }
  return names
}

export class InThreadCluster implements TestCluster {
  readonly workers: readonly WorkerInfo[]
  private readonly byName = new Map<string, TestWorker>()
  private readonly runtimes: readonly WorkerRuntime[]

  constructor(runtimes: readonly WorkerRuntime[]) {
    this.runtimes = runtimes
    this.workers = runtimes.map((runtime) => runtime.info)
    for (const runtime of runtimes) this.byName.set(runtime.info.name, testWorker(runtime))
  }

  on(target: Target): TestWorker {
    return this.byName.get(this.runtimes[0]!.resolve(target).name)!
  }
}
