/**
 * The other contents of a gradient message: how its pass runs (in the body); in the lineage field of the envelope the receiver's part of the
 * plan, and under createGraph also the send function that the gradients themselves recorded, since a later pass may go back through them.
 *
 *     plan…                                         a plain pass; null where there is none
 *     counter, length, lineage…, plan…              under createGraph: the low 48 bits of the send function's id (its worker is the sender), and its
 *                                                   lineage as any message has it (`lineage-field.ts`); 0, 0 where no gradient has a history
 */
import { localOf, type WorkerId } from '@postgrad/base'
import { globalId, LOCAL_ID_MAX } from '@postgrad/base/internal'
import type { Message } from '@postgrad/wire/internal'
import { malformed } from './lineage-field.js'

/** A message with a send function: its id, and its field for the receiver (`lineage-field.ts`). */
export interface RecordedSend {
  readonly autogradId: bigint
  readonly field: number[]
}

/** Bits of a gradient message's second field. */
export const KEEP_GRAPH = 1
export const CREATE_GRAPH = 2

export function createsGraph({ body }: Pick<Message, 'body'>): boolean {
  return ((body[1] as number) & CREATE_GRAPH) !== 0
}

export function writeGradientField(recorded: RecordedSend | null, plan: readonly number[] | null): number[] {
  if (recorded === null) return [0, 0, ...(plan ?? [])]
  const { autogradId, field } = recorded
  return [localOf(autogradId), field.length, ...field, ...(plan ?? [])]
}

interface GradientField {
  /** Null where no gradient has a history. */
  readonly recorded: RecordedSend | null
  readonly plan: readonly number[]
}

/** @throws LINEAGE_MALFORMED */
export function readGradientField({ body, lineage }: Pick<Message, 'body' | 'lineage'>, from: WorkerId): GradientField {
  const field = lineage ?? []
  if (!createsGraph({ body })) return { recorded: null, plan: field }
  const [counter, length] = field
  if (counter === undefined || length === undefined || length > field.length - 2) throw malformed('it ends too early')
  if (counter > LOCAL_ID_MAX) throw malformed('a counter has more than 48 bits')
  const behind = 2 + length
  const recorded = length === 0 ? null : { autogradId: globalId(from, counter), field: field.slice(2, behind) }
  return { recorded, plan: field.slice(behind) }
}

/** The lineage of the gradients themselves; null where there is none, or it cannot be read. */
export function lineageOfGradients({ body, lineage }: Pick<Message, 'body' | 'lineage'>): readonly number[] | null {
  if (!createsGraph({ body }) || lineage === null || lineage.length < 2) return null
  const length = lineage[1]!
  return length === 0 || length > lineage.length - 2 ? null : lineage.slice(2, 2 + length)
}
