/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { FaultMatch as SimFaultMatch, FaultRule as SimFaultRule } from '@postgrad/sim'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageName, type MessageType, requestHead } from '@postgrad/wire/internal'

/** A frame without a readable message. Not UNREADABLE: that is the message by which its receiver says so. */
export const DAMAGED = 'DAMAGED'

/**
 * The kinds of messages for fault rules: messages of workers (CALL, RESULT, RREF_ACK, PROPAGATE_GRADIENTS, …), DAMAGED for what cannot be read, and
 * messages of the session itself.
 */
export type MessageKind = MessageName | typeof DAMAGED | 'SESSION_ACK' | 'SESSION_END'
/** The messages that a fault rule applies to; a message must meet all given conditions. */
export type FaultMatch = SimFaultMatch<MessageKind>
/**
 * A fault rule, which says what happens to which messages of a simulation: `{ match: { kind: 'RESULT', nth: 2 }, do: 'drop' }`. The compiler checks the
 * kinds, and `simulate` checks them again.
 */
export type FaultRule = SimFaultRule<MessageKind>

/** A name of `MESSAGE_TABLE`: CALL, RESULT, RREF_ACK, …, or DAMAGED. Never throws. */
export function messageKind(frame: Frame): string {
  const head = requestHead(frame)
  return head === null ? DAMAGED : MESSAGE_TABLE[head.type].name
}

/** Every kind that `messageKind` can give, of messages. */
export const MESSAGE_KINDS: readonly MessageName[] = Object.keys(MESSAGE_TABLE).map(
  (type) => MESSAGE_TABLE[Number(type) as MessageType].name,
)
