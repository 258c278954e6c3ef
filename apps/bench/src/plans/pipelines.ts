/** Rows of pipelines: how idle workers are (limit: the schedule's own idle share at the same costs), and how much heap 1F1B holds (limit: GPipe). */
import type { PipelineScheduleName } from 'postgrad/pipelining'
import { others, type PassStage } from '../pass-stage.js'
import { type PipelineFigures, type PipelineRun, pipelineSteps } from '../pipeline-steps.js'
import type { RowPlan } from '../row.js'

const SCHEDULES: readonly PipelineScheduleName[] = ['GPipe', '1F1B', 'InterleavedZeroBubble', 'ZBVZeroBubble']
const TURNS_MAX = 5
/** Of 128 rows and layers 256 wide: an action takes some milliseconds, as long as a few thousand messages. */
const SIZES = { rows: 128, width: 256, layers: 4 }
const MEMORY = { workers: 4, microbatches: 16 }

export function pipelineRows(stage: PassStage): RowPlan[] {
  return [...SCHEDULES.map((schedule) => idleRow(stage, schedule)), memoryRow(stage)]
}

const asItIs = (value: number): number => value
const common = { turnsMax: TURNS_MAX, figure: asItIs, higherIsBetter: false, peers: {}, aim: () => null } as const

function idleRow(stage: PassStage, schedule: PipelineScheduleName): RowPlan {
  const [workers, microbatches] = [2, 8]
  const run: PipelineRun = { ...SIZES, schedule, workers: ['worker0', ...others(workers - 1)], microbatches, watchesHeap: false }
  const share = (of: (figures: PipelineFigures) => number) =>
    stage.with(workers, async (worker0, n) => 100 * of(await worker0.run(pipelineSteps, n, run)))
  return {
    ...common,
    name: `idle share of a pipeline's step, ${schedule}, ${workers} workers, ${microbatches} micro-batches`,
    unit: '%',
    n: 10,
    ours: share(({ bubble }) => bubble),
    limit: share(({ planned }) => planned),
  }
}

function memoryRow(stage: PassStage): RowPlan {
  const { workers, microbatches } = MEMORY
  const peak = (schedule: PipelineScheduleName) => {
    const run: PipelineRun = { ...SIZES, schedule, workers: ['worker0', ...others(workers - 1)], microbatches, watchesHeap: true }
    // Fresh workers: what earlier steps have left would go back in the middle.
    return stage.fresh(workers, async (worker0, n) => (await worker0.run(pipelineSteps, n, run)).peakBytes / 2 ** 20)
  }
  return {
    ...common,
    name: `live tensors at the peak of a step, 1F1B, ${workers} workers, ${microbatches} micro-batches`,
    unit: 'MiB',
    n: 2,
    // Bytes are the same in cold code.
    warm: 1,
    ours: peak('1F1B'),
    limit: peak('GPipe'),
  }
}
