/**
 * Makes the schedules that have names. All but those along a V (`v-schedules.ts`) follow one form: a rank takes units of forward and of backward work, in an order given by how many micro-batches make a round. They differ
 * in how many forwards come first, and in whether, and how late, backward's weight part comes.
 *
 *     round of k micro-batches    forward    stage a of mb 0 … k−1, stage b of mb 0 … k−1, stage a of mb k … 2k−1, …
 *                                 backward   stage b of mb 0 … k−1, stage a of mb 0 … k−1, stage b of mb k … 2k−1, …
 *     a rank with warm-up w       F × w, then (F, B) as long as there are forwards, then B × w
 *
 * Sources: GPipe (arXiv 1811.06965), PipeDream-flush 1F1B and interleaved (2104.04473), breadth-first (2211.05953), zero bubble (2401.10241: ZB1P).
 * Every stage's backward goes through the micro-batches in ascending order, in which their gradients are added up. (PyTorch's LoopedBFS goes backwards; its gradients would have to be kept.)
 */
import { PostgradError } from '@postgrad/base'
import { checkOptions } from '@postgrad/tensor/internal'
import type { PipelineAction } from './action.js'
import type { PipelineSchedule } from './schedule.js'
import { dualPipeV, rankOfV, zbv } from './v-schedules.js'

/** The name of a pipeline schedule, as in PyTorch (`get_schedule_class`). */
export type PipelineScheduleName =
  | 'GPipe'
  | '1F1B'
  | 'Interleaved1F1B'
  | 'LoopedBFS'
  | 'InterleavedZeroBubble'
  | 'ZBVZeroBubble'
  | 'DualPipeV'

type VName = 'ZBVZeroBubble' | 'DualPipeV'
type LoopName = Exclude<PipelineScheduleName, VName>

/** The sizes of the pipeline for which a schedule is made. */
export interface PipelineSizes {
  /** The number of workers. */
  readonly ranks: number
  /** The number of micro-batches of a step. */
  readonly microbatches: number
  /** The number of stages on each worker. Default 1 for GPipe and 1F1B, which allow only 1, and 2 for the others. */
  readonly stagesPerRank?: number
}

/** Of one rank. */
interface Shape {
  readonly rank: number
  readonly ranks: number
  readonly microbatches: number
  readonly perRank: number
  /** Micro-batches of a round. */
  readonly round: number
}

interface Flow {
  /** Forwards before the first backward. */
  readonly warmup: number
  /** After how many other backwards the weight part of one comes; null: backward is whole. */
  readonly weightsLate: number | null
}

const loops = ({ perRank, round }: Shape): number => (perRank - 1) * round
const behind = ({ rank, ranks }: Shape): number => ranks - 1 - rank

/** By name: whether it takes several stages of a rank, whether rounds are of `ranks` micro-batches (else one round is all), and its flow. */
const FLOWS: Readonly<Record<LoopName, { readonly loops: boolean; readonly rounds: boolean; readonly flow: (shape: Shape) => Flow }>> = {
  GPipe: { loops: false, rounds: false, flow: ({ microbatches }) => ({ warmup: microbatches, weightsLate: null }) },
  '1F1B': { loops: false, rounds: false, flow: (shape) => ({ warmup: behind(shape), weightsLate: null }) },
  LoopedBFS: { loops: true, rounds: false, flow: ({ microbatches, perRank }) => ({ warmup: microbatches * perRank, weightsLate: null }) },
  Interleaved1F1B: { loops: true, rounds: true, flow: (shape) => ({ warmup: loops(shape) + 2 * behind(shape), weightsLate: null }) },
  InterleavedZeroBubble: {
    loops: true,
    rounds: true,
    flow: (shape) => ({ warmup: loops(shape) + behind(shape), weightsLate: shape.rank }),
  },
}

/** By name: the least number of micro-batches, and a rank's list. */
const VS: Readonly<
  Record<
    VName,
    { readonly least: (ranks: number) => number; readonly list: (rank: number, ranks: number, microbatches: number) => PipelineAction[] }
  >
> = {
  ZBVZeroBubble: { least: () => 1, list: zbv },
  DualPipeV: { least: (ranks) => 2 * ranks, list: dualPipeV },
}

/** The names of all schedules. */
export const PIPELINE_SCHEDULES: readonly PipelineScheduleName[] = [...(Object.keys(FLOWS) as LoopName[]), ...(Object.keys(VS) as VName[])]

const isV = (name: PipelineScheduleName): name is VName => name in VS

/**
 * Makes the schedule with that name. Stage s is on rank s mod ranks. In ZBVZeroBubble and DualPipeV the stages form a V: from the first rank to the last, and
 * back.
 * @throws SCHEDULE_UNSUPPORTED if the name is unknown, or the schedule does not allow these sizes
 * @example console.log(formatSchedule(pipelineSchedule('1F1B', { ranks: 4, microbatches: 8 })))
 */
export function pipelineSchedule(name: PipelineScheduleName, sizes: PipelineSizes): PipelineSchedule {
  checkOptions('pipelineSchedule', sizes, ['ranks', 'microbatches', 'stagesPerRank'])
  const { ranks, microbatches, stagesPerRank } = sizes
  if (!PIPELINE_SCHEDULES.includes(name))
    throw unsupported(String(name), `one of ${PIPELINE_SCHEDULES.join(', ')}`, `'${String(name)}'`, 'Pass one of these names.')
  const single = !isV(name) && !FLOWS[name].loops
  const perRank = stagesPerRank ?? (single ? 1 : 2)
  for (const [what, value] of Object.entries({ ranks, microbatches, stagesPerRank: perRank }))
    if (!Number.isSafeInteger(value) || value < 1)
      throw unsupported(name, `a whole number of ${what} from 1 on`, String(value), `Pass ${what} as a whole number.`)
  if (single && perRank !== 1) throw unsupported(name, 'one stage per rank', String(perRank), 'Take Interleaved1F1B or LoopedBFS for more.')
  if (isV(name)) {
    const { least, list } = VS[name]
    if (perRank !== 2) throw unsupported(name, 'two stages per rank', String(perRank), 'Take InterleavedZeroBubble for any number.')
    if (microbatches < least(ranks))
      throw unsupported(
        name,
        `at least as many micro-batches as stages, ${least(ranks)}`,
        String(microbatches),
        'Take ZBVZeroBubble for fewer.',
      )
    return { stages: 2 * ranks, microbatches, rankOf: rankOfV(ranks), ranks: each(ranks, (rank) => list(rank, ranks, microbatches)) }
  }
  const { rounds, flow } = FLOWS[name]
  const count = rounds ? Math.max(1, Math.floor(microbatches / ranks)) : 1
  if (microbatches % count !== 0)
    throw unsupported(
      name,
      `micro-batches that make ${count} equal rounds`,
      String(microbatches),
      `Take ${count * Math.floor(microbatches / count)} micro-batches, or ${count * Math.ceil(microbatches / count)}.`,
    )
  const stages = ranks * perRank
  return {
    stages,
    microbatches,
    rankOf: each(stages, (stage) => stage % ranks),
    ranks: each(ranks, (rank) => {
      const shape = { rank, ranks, microbatches, perRank, round: microbatches / count }
      return flowing(shape, flow(shape))
    }),
  }
}

function flowing({ rank, ranks, microbatches, perRank, round }: Shape, { warmup, weightsLate }: Flow): PipelineAction[] {
  const units = microbatches * perRank
  const unit = (kind: PipelineAction['kind'], i: number): PipelineAction => {
    const turn = Math.floor(i / round) % perRank
    const local = kind === 'F' ? turn : perRank - 1 - turn
    return { stage: local * ranks + rank, kind, microbatch: Math.floor(i / (round * perRank)) * round + (i % round) }
  }
  const first = Math.min(warmup, units)
  const actions = each(first, (i) => unit('F', i))
  for (let i = 0; i < units; i++) {
    if (first + i < units) actions.push(unit('F', first + i))
    actions.push(unit(weightsLate === null ? 'B' : 'I', i))
    if (weightsLate !== null && i >= weightsLate) actions.push(unit('W', i - weightsLate))
  }
  if (weightsLate !== null) for (let i = Math.max(0, units - weightsLate); i < units; i++) actions.push(unit('W', i))
  return actions
}

function each<T>(length: number, fn: (i: number) => T): T[] {
  return Array.from({ length }, (_, i) => fn(i))
}

function unsupported(name: string, expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError('SCHEDULE_UNSUPPORTED', { op: name, expected, got, remedy, values: { schedule: name } })
}
