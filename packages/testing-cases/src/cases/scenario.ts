/**
 * Acceptance cases without PyTorch's numbers: programs that compare their results with the local engine or with known values, and report them as plain
 * values. All four workers run a case at the same time, as the ranks of PyTorch's tests do, so each is a test of concurrency too.
 */
import { isPostgradError } from '@postgrad/base'
import { currentWorker } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { CASE_WORKERS, type CaseCluster } from './case.js'

export interface ScenarioCase {
  /** PyTorch's name, with its number in the list of cases. */
  readonly name: string
  /** Exposed; runs on every worker at once, or on worker0 alone. */
  readonly main: () => Promise<unknown>
  /** Each run's result. */
  readonly expected: unknown
  readonly aloneOnWorker0?: true
  /** How many seeds the simulation gives it, where the usual number takes too long. */
  readonly seeds?: number
}

/** The result of each worker's run. */
export function runScenario(cluster: CaseCluster, { main, aloneOnWorker0 }: ScenarioCase): Promise<unknown[]> {
  const workers = aloneOnWorker0 ? 1 : CASE_WORKERS
  return Promise.all(Array.from({ length: workers }, (_, id) => cluster.on(`worker${id}`).run(main)))
}

/** The worker `steps` after this one in the ring of all. */
export function next(steps = 1): string {
  return `worker${(currentWorker().info.id + steps) % CASE_WORKERS}`
}

/** All workers but this one, from the next one on. */
export function others(): string[] {
  return Array.from({ length: CASE_WORKERS - 1 }, (_, i) => next(i + 1))
}

/** The code of what a promise rejects with, or 'value'. */
export async function endOf(promise: PromiseLike<unknown>): Promise<string> {
  try {
    await promise
    return 'value'
  } catch (error) {
    return isPostgradError(error) ? error.code : `${(error as Error).name}: ${(error as Error).message}`
  }
}

/** Whether every element is `value`. */
export function isAll(t: Tensor | undefined, value: number): boolean {
  return t?.dataSync().every((element: number) => element === value) === true
}

/** On the clock of this worker. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => currentWorker().clock.setTimer(ms, resolve))
}

/** @throws what a test can read */
export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`${currentWorker().info.name}: ${what}`)
}
