/**
 * Executes a schedule without workers: each rank takes its actions in order, as long as each costs, and waits for what it needs. So it proves that no rank waits for ever, and says how long
 * a step takes, how much of it is idle, and how many activations a rank holds. The grid of `formatSchedule` and the cells of a CSV are its steps at a cost of one each.
 */
import { PostgradError } from '@postgrad/base'
import { actionText, isCommunication, type PipelineAction, type PipelineActionKind } from './action.js'
import { isLowered, type PipelineSchedule } from './schedule.js'

/** How long actions take, in any unit: one number for each kind, or a function of the action. Default: F, I and W take 1, B takes 2, and communication takes 0. */
export type PipelineCosts = Partial<Readonly<Record<PipelineActionKind, number>>> | ((action: PipelineAction) => number)

/** An action with the times when it began and ended. */
export interface TimedAction {
  readonly action: PipelineAction
  /** When the action began: in ms of a `step`, or in the unit of the costs of a simulation. */
  readonly start: number
  /** When the action ended, in the same unit. */
  readonly end: number
}

/** The result of `simulateSchedule`. */
export interface PipelineSimulation {
  /** The actions of each rank, with their times. */
  readonly ranks: readonly (readonly TimedAction[])[]
  /** The duration of the whole step, in the unit of the costs. */
  readonly duration: number
  /** The idle share of the time of all ranks, from 0 to 1. */
  readonly bubble: number
  /** For each rank, the largest number of micro-batches whose activations it holds at once, over all its stages. A rank holds them from F to the end of B, or of W. */
  readonly peakActivations: readonly number[]
}

const COSTS: Readonly<Record<PipelineActionKind, number>> = { F: 1, B: 2, I: 1, W: 1, SEND_F: 0, RECV_F: 0, SEND_B: 0, RECV_B: 0 }

/**
 * Simulates one step of the schedule without workers. @throws SCHEDULE_DEADLOCK if ranks wait for each other for ever; `values.waits` says what each rank waits
 * for
 * @example
 * const { duration, bubble } = simulateSchedule(pipelineSchedule('1F1B', { ranks: 4, microbatches: 8 }), { F: 1, B: 2 })
 * duration // 33
 * bubble // 0.2727
 */
export function simulateSchedule(schedule: PipelineSchedule, costs: PipelineCosts = {}): PipelineSimulation {
  return simulate('simulateSchedule', schedule, costs)
}

/** The same for the operation `op`, which the error names. @throws SCHEDULE_DEADLOCK */
export function simulate(op: string, schedule: PipelineSchedule, costs: PipelineCosts = {}): PipelineSimulation {
  const costOf = typeof costs === 'function' ? costs : ({ kind }: PipelineAction) => costs[kind] ?? COSTS[kind]
  const needs = needsOf(schedule)
  const ended = new Map<number, number>()
  const ranks = schedule.ranks.map((): TimedAction[] => [])
  for (let moved = true; moved; ) {
    moved = false
    for (const [rank, actions] of schedule.ranks.entries()) {
      const timed = ranks[rank]!
      for (let action = actions[timed.length]; action !== undefined; action = actions[timed.length]) {
        const need = needs(action)
        const from = need === null ? 0 : ended.get(keyOf(need))
        if (from === undefined) break
        const start = Math.max(from, timed.at(-1)?.end ?? 0)
        const end = start + costOf(action)
        timed.push({ action, start, end })
        ended.set(keyOf(action), end)
        moved = true
      }
    }
  }
  const stuck = schedule.ranks.flatMap((actions, rank) =>
    ranks[rank]!.length < actions.length ? [{ rank, action: actions[ranks[rank]!.length]! }] : [],
  )
  if (stuck.length > 0)
    throw deadlock(
      op,
      stuck.map(({ rank, action }) => ({ rank, action: actionText(action), needs: actionText(needs(action)!) })),
    )
  return measured(ranks)
}

/** The same of what was measured: when actions began and ended, by rank, on one clock. */
export function measured(ranks: readonly (readonly TimedAction[])[]): PipelineSimulation {
  const all = ranks.flat()
  const [from, to] = all.reduce(
    ([low, high], { start, end }) => [Math.min(low, start), Math.max(high, end)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  )
  const duration = all.length === 0 ? 0 : to - from
  const busy = all.reduce((sum, { action, start, end }) => (isCommunication(action.kind) ? sum : sum + end - start), 0)
  return {
    ranks,
    duration,
    bubble: duration === 0 ? 0 : 1 - busy / (ranks.length * duration),
    peakActivations: ranks.map((timed) => {
      let held = 0
      let peak = 0
      for (const { action } of timed) {
        if (action.kind === 'F') peak = Math.max(peak, ++held)
        else if (action.kind === 'B' || action.kind === 'W') held--
      }
      return peak
    }),
  }
}

const KINDS: readonly PipelineActionKind[] = ['F', 'B', 'I', 'W', 'SEND_F', 'RECV_F', 'SEND_B', 'RECV_B']
const STAGES_MAX = 2 ** 20

/** A number of its own; but I and B of one stage and micro-batch give the same gradient. */
export function keyOf({ stage, kind, microbatch }: PipelineAction): number {
  return (microbatch * STAGES_MAX + stage) * KINDS.length + KINDS.indexOf(kind === 'I' ? 'B' : kind)
}

/** The action that one waits for, except earlier ones of its rank. */
export function needsOf(schedule: PipelineSchedule): (action: PipelineAction) => PipelineAction | null {
  const { stages, rankOf } = schedule
  const lowered = isLowered(schedule)
  const on = (stage: number, kind: PipelineActionKind, microbatch: number): PipelineAction => ({ stage, kind, microbatch })
  const gives = (kind: 'F' | 'B', stage: number, from: number, microbatch: number): PipelineAction =>
    lowered && rankOf[stage] !== rankOf[from] ? on(stage, `RECV_${kind}`, microbatch) : on(from, kind, microbatch)
  return ({ stage, kind, microbatch }) => {
    switch (kind) {
      case 'F':
        return stage === 0 ? null : gives('F', stage, stage - 1, microbatch)
      case 'B':
      case 'I':
        return stage === stages - 1 ? on(stage, 'F', microbatch) : gives('B', stage, stage + 1, microbatch)
      case 'W':
        return on(stage, 'B', microbatch)
      case 'SEND_F':
        return on(stage, 'F', microbatch)
      case 'SEND_B':
        return on(stage, 'B', microbatch)
      case 'RECV_F':
        return on(stage - 1, 'SEND_F', microbatch)
      case 'RECV_B':
        return on(stage + 1, 'SEND_B', microbatch)
      default:
        return kind satisfies never
    }
  }
}

function deadlock(op: string, waits: readonly { readonly rank: number; readonly action: string; readonly needs: string }[]): PostgradError {
  return new PostgradError('SCHEDULE_DEADLOCK', {
    op,
    message: `these ranks would wait for ever: ${waits.map(({ rank, action, needs }) => `rank ${rank} at ${action} for ${needs}`).join(', ')}`,
    remedy: 'Change the order of actions on one of these ranks.',
    values: { waits },
  })
}

/** By rank, a cell for each step at a cost of one for each action; null is a gap. */
function cellsOf(op: string, schedule: PipelineSchedule): (PipelineAction | null)[][] {
  return simulate(op, schedule, () => 1).ranks.map((timed) => {
    const cells = new Array<PipelineAction | null>(timed.at(-1)?.end ?? 0).fill(null)
    for (const { action, start } of timed) cells[start] = action
    return cells
  })
}

/**
 * Writes a schedule as CSV: a row for each rank, a cell for each step, and empty cells for gaps. PyTorch: `_dump_csv`. @throws SCHEDULE_DEADLOCK if ranks wait
 * for each other for ever
 * @example scheduleToCsv(pipelineSchedule('GPipe', { ranks: 2, microbatches: 1 })).split('\n') // ['0F0,,,0B0', ',1F0,1B0', '']
 */
export function scheduleToCsv(schedule: PipelineSchedule): string {
  return cellsOf('scheduleToCsv', schedule)
    .map((cells) => `${cells.map((action) => (action === null ? '' : actionText(action))).join(',')}\n`)
    .join('')
}

/**
 * Writes a schedule as a text to look at: a row for each rank, and a column for each step. @throws SCHEDULE_DEADLOCK if ranks wait for each other for ever
 * @example console.log(formatSchedule(pipelineSchedule('1F1B', { ranks: 2, microbatches: 4 })))
 */
export function formatSchedule(schedule: PipelineSchedule): string {
  const rows = cellsOf('formatSchedule', schedule).map((cells) => cells.map((action) => (action === null ? '' : actionText(action))))
  const width = Math.max(...rows.flat().map((text) => text.length))
  const label = `rank ${rows.length - 1}`.length
  return rows
    .map((cells, rank) => `${`rank ${rank}`.padEnd(label)}  ${cells.map((text) => text.padEnd(width)).join(' ')}`.trimEnd())
    .join('\n')
}
