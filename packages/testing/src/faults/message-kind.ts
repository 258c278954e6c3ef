/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { FaultAction, FaultFrame } from '@postgrad/sim'
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
export interface FaultMatch {
  /** The names of senders. Default: all workers. */
  readonly from?: string | readonly string[]
  /** The names of receivers. Default: all workers. */
  readonly to?: string | readonly string[]
  /** Two sides: messages from a worker of one side to a worker of the other, in either direction. */
  readonly between?: readonly [string | readonly string[], string | readonly string[]]
  /** The kinds of messages. Default: all kinds. */
  readonly kind?: MessageKind | readonly MessageKind[]
  /** A function that says whether the rule applies. */
  readonly when?: (frame: FaultFrame) => boolean
  /** Only the nth message, from 1, of those that meet the conditions above. A message that is sent again counts again. */
  readonly nth?: number
  /** Only every nth message of those that meet the conditions above: with 3 the third, the sixth, …. */
  readonly every?: number
  /** The probability that the rule applies, from 0 to 1. The simulation's seed decides. */
  readonly probability?: number
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
export interface FaultRule {
  /** The messages, or a function that says whether the rule applies. Default: all messages. */
  readonly match?: FaultMatch | ((frame: FaultFrame) => boolean)
  /** The action on these messages. */
  readonly do: FaultAction
  /** The delay of 'delay' (default 10), and of 'duplicate', 'slow' and 'restart' (default 0). */
  readonly delayMs?: number
  /** For 'slow': the speed of the line, in bytes per ms. Default: unlimited. */
  readonly bytesPerMs?: number
  /** For 'crash' and 'restart': the worker that ends. Default: the receiver of the message. */
  readonly worker?: string
  /** How often the rule applies. Default: unlimited, and once for 'crash' and 'restart'. */
  readonly times?: number
  /** How often the rule applies to each message. A message that is sent again is the same message. PyTorch: `num_fail_sends`. */
  readonly timesEach?: number
  /** When the rule begins. Default 0. */
  readonly fromMs?: number
  /** When the rule ends. Default: never. */
  readonly untilMs?: number
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
