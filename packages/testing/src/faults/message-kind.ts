/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { FaultMatch as SimFaultMatch, FaultRule as SimFaultRule } from '@postgrad/sim'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageName, type MessageType, requestHead } from '@postgrad/wire/internal'

/** A frame without a readable message. Not UNREADABLE: that is the message by which its receiver says so. */
export const DAMAGED = 'DAMAGED'

/**
 * The kind of a message, for fault rules: CALL, RESULT, RREF_ACK, PROPAGATE_GRADIENTS and the other messages of workers; DAMAGED for a message that cannot be
 * read; SESSION_ACK and SESSION_END for messages of the session itself.
 */
export type MessageKind = MessageName | typeof DAMAGED | 'SESSION_ACK' | 'SESSION_END'
/**
 * The messages that a fault rule applies to. A message must meet all conditions that are given:
 * - `from`, `to`: names of senders, of receivers; `between`: two sides, in either direction
 * - `kind`: kinds of messages; `when`: a function `(frame) => boolean`
 * - `nth`: only the nth message, from 1, that meets the conditions above; `every`: every nth of them
 * - `probability`: from 0 to 1; the simulation's seed decides
 */
export type FaultMatch = SimFaultMatch<MessageKind>
/**
 * A fault rule: what happens to which messages of a simulation, such as `{ match: { kind: 'RESULT', nth: 2 }, do: 'drop' }`. All times are in ms of virtual time.
 * - `match`: the messages (`FaultMatch`), or a function `(frame) => boolean`; by default all messages
 * - `do`: the action (`FaultAction`)
 * - `delayMs`: the delay of 'delay' (default 10), 'duplicate', 'slow' and 'restart' (default 0); `bytesPerMs`: the line's speed for 'slow', by default unlimited
 * - `worker`: the worker that crashes or restarts; by default the receiver
 * - `times`: how often the rule applies, by default unlimited, and once for 'crash' and 'restart'; `timesEach`: how often it applies to each message
 * - `fromMs`, `untilMs`: the rule applies from `fromMs` (default 0) until before `untilMs` (default: without an end)
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
