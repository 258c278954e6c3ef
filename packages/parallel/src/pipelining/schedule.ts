/**
 * A schedule: for each rank the list of its actions, in order, with all stages and micro-batches in it. Plain data, so it can be printed, sent, written to a file and
 * proven before anything runs. `action.ts` has actions, `generators.ts` makes schedules, `simulation.ts` executes them without workers, `pipeline.ts` with them.
 */
import { actionText, invalidSchedule, isCommunication, type PipelineAction, type PipelineActionKind, parseCell } from './action.js'

/** The actions of each rank, as plain data. PyTorch: `pipeline_order`. */
export interface PipelineSchedule {
  /** The number of stages. */
  readonly stages: number
  /** The number of micro-batches of a step. */
  readonly microbatches: number
  /** The rank of each stage. */
  readonly rankOf: readonly number[]
  /** The actions of each rank, in order. */
  readonly ranks: readonly (readonly PipelineAction[])[]
}

/**
 * Makes a schedule from lists of actions, one list for each rank, and checks it. Each stage is on one rank. Each of its micro-batches runs forward once, and
 * backward once (B, or I and then W); a schedule without any backward is for evaluation. The order must be one that a rank can follow. Sends and receives are
 * all there, or none. `simulateSchedule` proves that ranks do not wait for each other for ever.
 * @throws SCHEDULE_INVALID if the lists break one of these rules
 * @example
 * const schedule = scheduleOf(pipelineSchedule('GPipe', { ranks: 2, microbatches: 2 }).ranks)
 * schedule.microbatches // 2
 */
export function scheduleOf(ranks: readonly (readonly PipelineAction[])[]): PipelineSchedule {
  const all = ranks.flat()
  if (all.length === 0) throw invalidSchedule('at least one action', 'none', 'Give each rank its list.')
  const stages = Math.max(...all.map(({ stage }) => stage)) + 1
  const microbatches = Math.max(...all.map(({ microbatch }) => microbatch)) + 1
  // Before anything is made of numbers that somebody may have mistyped.
  if (stages * microbatches > all.length)
    throw invalidSchedule(
      'a forward of every stage and micro-batch',
      `${all.length} actions for ${stages} stages and ${microbatches} micro-batches`,
      'Every stage takes every micro-batch; both are counted from 0.',
      { stages, microbatches },
    )
  const rankOf = new Array<number>(stages).fill(-1)
  ranks.forEach((actions, rank) => {
    for (const { stage } of actions) {
      if (rankOf[stage] !== -1 && rankOf[stage] !== rank)
        throw invalidSchedule(
          `stage ${stage} on one rank`,
          `ranks ${rankOf[stage]} and ${rank}`,
          'Put all actions of a stage into one list.',
          { stage },
        )
      rankOf[stage] = rank
    }
  })
  const schedule = { stages, microbatches, rankOf, ranks }
  checkLists(schedule)
  return schedule
}

/** Actions that must come before, on the same rank. */
const AFTER: Readonly<Record<PipelineActionKind, readonly PipelineActionKind[]>> = {
  F: [],
  B: ['F'],
  I: ['F'],
  W: ['I'],
  SEND_F: ['F'],
  RECV_F: [],
  SEND_B: ['B', 'I'],
  RECV_B: [],
}

function checkLists(schedule: PipelineSchedule): void {
  const { stages, microbatches, ranks } = schedule
  const seen = new Set<string>()
  for (const [rank, actions] of ranks.entries()) {
    for (const action of actions) {
      const { stage, kind, microbatch } = action
      const text = actionText(action)
      if (seen.has(text)) throw invalidSchedule(`${text} once`, 'twice', 'Remove one.', { rank, action: text })
      const before = AFTER[kind].map((each) => actionText({ stage, kind: each, microbatch }))
      if (before.length > 0 && !before.some((each) => seen.has(each)))
        throw invalidSchedule(
          `${before.join(' or ')} before ${text}`,
          'none',
          `Put ${before.join(' or ')} before ${text} in the list of rank ${rank}.`,
          { rank, action: text },
        )
      seen.add(text)
    }
  }
  const has = (stage: number, kind: PipelineActionKind, microbatch: number): boolean => seen.has(actionText({ stage, kind, microbatch }))
  const backward = hasBackward(schedule)
  for (let stage = 0; stage < stages; stage++) {
    for (let microbatch = 0; microbatch < microbatches; microbatch++) {
      const at = `stage ${stage} and micro-batch ${microbatch}`
      if (!has(stage, 'F', microbatch))
        throw invalidSchedule(`a forward of ${at}`, 'none', 'Every stage takes every micro-batch.', { stage, microbatch })
      const [b, i, w] = [has(stage, 'B', microbatch), has(stage, 'I', microbatch), has(stage, 'W', microbatch)]
      if (backward ? b === i || i !== w : b || i || w)
        throw invalidSchedule(
          `one backward of ${at}: B, or I and W`,
          [b && 'B', i && 'I', w && 'W'].filter(Boolean).join(', ') || 'none',
          'Give each micro-batch one, on every stage.',
          { stage, microbatch },
        )
    }
  }
  checkCommunications(schedule, seen)
}

function checkCommunications(schedule: PipelineSchedule, seen: ReadonlySet<string>): void {
  if (!isLowered(schedule)) return
  const expected = new Set(withCommunications(computationsOf(schedule)).ranks.flat().map(actionText))
  for (const text of seen)
    if (!expected.has(text))
      throw invalidSchedule('communications between stages of different ranks alone', text, 'Let withCommunications put them in.', {
        action: text,
      })
  for (const text of expected)
    if (!seen.has(text))
      throw invalidSchedule(`all communications or none; ${text} too`, 'only some', 'Let withCommunications put them in.', { action: text })
}

/** Whether it is more than forwards. */
export function hasBackward({ ranks }: PipelineSchedule): boolean {
  return ranks.some((actions) => actions.some(({ kind }) => kind === 'B' || kind === 'I' || kind === 'W'))
}

/** Whether it says what is sent and received. */
export function isLowered({ ranks }: PipelineSchedule): boolean {
  return ranks.some((actions) => actions.some(({ kind }) => isCommunication(kind)))
}

function computationsOf(schedule: PipelineSchedule): PipelineSchedule {
  return { ...schedule, ranks: schedule.ranks.map((actions) => actions.filter(({ kind }) => !isCommunication(kind))) }
}

/**
 * The schedule with its sends and receives, where the next stage is on another rank: a receive before the action that needs it, and a send after the action
 * that makes it. A pipeline asks for all its receives when a step begins. So a receive is the place where a rank waits, not where it asks. PyTorch:
 * `_add_send_recv`.
 * @example
 * const schedule = pipelineSchedule('GPipe', { ranks: 2, microbatches: 1 })
 * schedule.ranks[0]!.length // 2
 * withCommunications(schedule).ranks[0]!.length // 4
 */
export function withCommunications(schedule: PipelineSchedule): PipelineSchedule {
  if (isLowered(schedule)) return schedule
  const { stages, rankOf } = schedule
  const isApart = (stage: number, other: number): boolean => other >= 0 && other < stages && rankOf[stage] !== rankOf[other]
  const around = (action: PipelineAction): PipelineAction[] => {
    const { stage, kind } = action
    const as = (other: PipelineActionKind): PipelineAction => ({ ...action, kind: other })
    if (kind === 'F')
      return [...(isApart(stage, stage - 1) ? [as('RECV_F')] : []), action, ...(isApart(stage, stage + 1) ? [as('SEND_F')] : [])]
    if (kind === 'W') return [action]
    return [...(isApart(stage, stage + 1) ? [as('RECV_B')] : []), action, ...(isApart(stage, stage - 1) ? [as('SEND_B')] : [])]
  }
  return { ...schedule, ranks: schedule.ranks.map((actions) => actions.flatMap(around)) }
}

/** The forward part alone, for evaluation. */
export function forwardOnly(schedule: PipelineSchedule): PipelineSchedule {
  return {
    ...schedule,
    ranks: schedule.ranks.map((actions) => actions.filter(({ kind }) => kind === 'F' || kind === 'SEND_F' || kind === 'RECV_F')),
  }
}

/**
 * Reads a schedule from CSV: a row for each rank, a cell for each step, and empty cells for gaps. It reads the output of `scheduleToCsv` and of PyTorch's
 * `_dump_csv`. A forward and a backward that overlap there come one after the other. Actions that shard parameters or reduce gradients are left out.
 * @throws SCHEDULE_INVALID if the text is not a valid schedule
 * @example
 * const schedule = scheduleFromCsv('0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n')
 * schedule.stages // 2
 */
export function scheduleFromCsv(csv: string): PipelineSchedule {
  const rows = csv.split(/\r?\n/)
  if (rows.at(-1) === '') rows.pop()
  return scheduleOf(rows.map((row) => row.split(',').flatMap(parseCell)))
}
