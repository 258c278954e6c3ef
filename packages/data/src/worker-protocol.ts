/** Types of the messages between the pool (`worker-pool.ts`) and a worker's thread (`worker-task.ts`). */
import type { BatchPlan } from './batch.js'
import type { SourceIndex, WorkerSource } from './worker-dataset.js'

/** A thread's initial data: the pool's `data`. */
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
