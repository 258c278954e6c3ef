/** What the pool and a worker's thread say to each other, to be read alone: `worker-pool.ts` is the one end, `worker-task.ts` the other. */
import type { BatchPlan } from './batch.js'
import type { SourceIndex, WorkerSource } from './worker-dataset.js'

/** What a thread is born with: the pool's `data`. */
export interface WorkerBoot {
  readonly sources: readonly WorkerSource[]
}

/** The argument of one job; its result is the batch, or the samples. */
export interface BatchTask {
  readonly plan: BatchPlan
  /** Per index of the plan. */
  readonly items: readonly SourceIndex[]
  /** Whether the worker puts the batch together, by `defaultCollate`; else the samples come as they are. */
  readonly collate: boolean
}
