/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { FaultFrame, FaultMatch as SimFaultMatch, FaultRule as SimFaultRule } from '@postgrad/sim'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageName, type MessageType, requestHead } from '@postgrad/wire/internal'

/** A frame without a readable message. Not UNREADABLE: that is the message by which its receiver says so. */
export const DAMAGED = 'DAMAGED'

/**
 * The kind of a message, for fault rules. The trace of a run (`simulation.trace.readable`) has one line for each message that arrived:
 * - calls: CALL, REMOTE_CALL (`remote`) and RREF_FETCH (`toHere`); their answers RESULT, EXCEPTION (an error) and REMOTE_RET; STREAM_ITEM, CALL_CANCEL
 * - references: RREF_FORK_REQUEST, RREF_CHILD_ACCEPT, RREF_ACK, RREF_USER_DELETE
 * - passes and contexts: PROPAGATE_GRADIENTS (gradients on their way back), PASS_REPORT, PASS_COMMIT, PASS_ABORT, PASS_ERROR, LINEAGE, CLEANUP_CONTEXT
 * - actors: ACTOR_DOWN, ACTOR_UNWATCH; groups: COLLECTIVE, GROUP_UPDATE
 * - of postgrad itself: PROGRESS, UNREADABLE, SESSION_ACK, SESSION_END; and DAMAGED for a message that cannot be read
 */
export type MessageKind = MessageName | typeof DAMAGED | 'SESSION_ACK' | 'SESSION_END'

/** The messages that a fault rule applies to. A message must meet all conditions that are given. Other keys are refused with INVALID_ARGUMENT. */
export interface FaultMatch extends SimFaultMatch {
  /** The kinds of messages. Default: all kinds. */
  readonly kind?: MessageKind | readonly MessageKind[]
}

/**
 * A fault rule: what happens to which messages of a simulation. All times are in ms of virtual time. The first rule that applies to a message decides. Other keys
 * are refused with INVALID_ARGUMENT, and so is a rule about a worker that is not in the simulation at any time.
 * @example
 * const rule: FaultRule = { match: { kind: 'RESULT', nth: 2 }, do: 'drop' } // loses the second result; it is sent again
 * const { faults } = await simulate({ workers: 2, faults: [rule] }, (sim) =>
 *   sim.on('worker0').run(async () => {
 *     await call('worker1', addOne, [x])
 *     await call('worker1', addOne, [x])
 *   }),
 * )
 * faults.drop // 1
 */
export interface FaultRule extends SimFaultRule {
  /** The messages, or a function that says whether the rule applies. Default: all messages. */
  readonly match?: FaultMatch | ((frame: FaultFrame) => boolean)
}

/** A name of `MESSAGE_TABLE`: CALL, RESULT, RREF_ACK, …, or DAMAGED. Never throws. */
export function messageKind(frame: Frame): string {
  const head = requestHead(frame)
  return head === null ? DAMAGED : MESSAGE_TABLE[head.type].name
}

/** Every kind that `messageKind` can give, of messages. */
export const MESSAGE_KINDS: readonly MessageName[] = Object.keys(MESSAGE_TABLE).map(
  (type) => MESSAGE_TABLE[Number(type) as MessageType].name,
)
