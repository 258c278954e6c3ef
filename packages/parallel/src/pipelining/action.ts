/** One action of a worker in a step of a pipeline, and its text form: PyTorch's schedule IR. `schedule.ts` has lists of them. */
import { PostgradError } from '@postgrad/base'

/**
 * The kind of an action. F is forward. B is the whole backward; I is its part for the inputs of the stage, and W its part for the weights. SEND and RECV move
 * activations (F) and gradients (B) to and from another worker.
 */
export type PipelineActionKind = 'F' | 'I' | 'W' | 'B' | 'SEND_F' | 'RECV_F' | 'SEND_B' | 'RECV_B'

/** One thing that a stage does with one micro-batch. `1F0` is stage 1, forward, micro-batch 0. PyTorch: `_Action`. */
export interface PipelineAction {
  /** The number of the stage, from 0. */
  readonly stage: number
  readonly kind: PipelineActionKind
  /** The number of the micro-batch, from 0. */
  readonly microbatch: number
}

const FORM = /^(\d+)(F|I|W|B|SEND_F|RECV_F|SEND_B|RECV_B)(\d+)$/

/** `2F0`, `1SEND_B3`. */
export function actionText({ stage, kind, microbatch }: PipelineAction): string {
  return `${stage}${kind}${microbatch}`
}

/** PyTorch's files also have several actions in one, `(0F1;3B0)OVERLAP_F_B`, and actions that move sharded parameters and reduce gradients, which are not part of the order here. */
const OVERLAPPED = /^\((.*)\)OVERLAP_F_B$/
const LEFT_OUT = /^\d+(UNSHARD|RESHARD|REDUCE_GRAD)$/

/** The actions of a cell of a file: none, one, or those that overlap, one after the other. @throws SCHEDULE_INVALID */
export function parseCell(text: string): PipelineAction[] {
  const cell = text.trim()
  if (LEFT_OUT.test(cell)) return []
  const parts = OVERLAPPED.exec(cell)?.[1]?.split(';') ?? [cell]
  return parts.map(parseAction).filter((action) => action !== null)
}

/** Null for an empty cell. @throws SCHEDULE_INVALID */
export function parseAction(text: string): PipelineAction | null {
  const cell = text.trim()
  if (cell === '') return null
  const found = FORM.exec(cell)
  if (found === null)
    throw invalidSchedule('actions like 2F0, 1I3, 0W2, 0B1, 1SEND_F0', `'${cell}'`, 'Write the stage, what it does, and the micro-batch.')
  return { stage: Number(found[1]), kind: found[2] as PipelineActionKind, microbatch: Number(found[3]) }
}

export function isCommunication(kind: PipelineActionKind): boolean {
  return kind.length > 1
}

export function invalidSchedule(
  expected: string,
  got: string,
  remedy: string,
  values: Readonly<Record<string, unknown>> = {},
): PostgradError {
  return new PostgradError('SCHEDULE_INVALID', { op: 'PipelineSchedule', expected, got, remedy, values })
}
