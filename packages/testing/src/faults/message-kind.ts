/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { FaultMatch as SimFaultMatch, FaultRule as SimFaultRule } from '@postgrad/sim'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageName, type MessageType, requestHead } from '@postgrad/wire/internal'

/** What no message can be read from. Not UNREADABLE: that is the message by which its receiver says so. */
export const DAMAGED = 'DAMAGED'

/** What a fault rule may call a message: a message of workers (CALL, RESULT, RREF_ACK, PROPAGATE_GRADIENTS, …), what cannot be read, or what a session sends by itself. */
export type MessageKind = MessageName | typeof DAMAGED | 'SESSION_ACK' | 'SESSION_END'
/** Which messages a fault rule is about; all that are given must hold. */
export type FaultMatch = SimFaultMatch<MessageKind>
/** What becomes of which messages of a simulation: `{ match: { kind: 'RESULT', nth: 2 }, do: 'drop' }`. The kinds are checked by the compiler, and again when it begins. */
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
