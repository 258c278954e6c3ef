/**
 * The order of messages on the way to a peer: which must keep it, and which may overtake a large one under way (`FrameOrder` in transport's `link.ts`). Messages keep
 * the order that the mailbox promises (actor's SPEC.md, MB-2 and MB-4), and no other. `message-path.ts` asks for each message that it sends by a link on which frames
 * may overtake, or while others wait for a device (`outbox.ts`). Rules ORD-1 to ORD-5 in SPEC.md.
 *
 *     bit 0 to 2: the lanes control, gradient and call     bit 3 to 15: contexts and RRefs, by their ids
 *
 * As in the mailbox, control messages go past calls and gradients, and never these past control messages.
 *
 * Two ids may share a bit. Their messages then keep an order that they do not need. A message that must not be overtaken, or has no valid id, has every bit.
 */
import { Lane, type MessageLane } from '@postgrad/base/internal'
import type { Frame, FrameOrder } from '@postgrad/transport'
import { EVERY_ORDER, frameOrder, isLargeSegment, NO_ORDER, SEGMENT_MOVED_BYTES_MIN } from '@postgrad/transport/internal'
import { MESSAGE_TABLE, MessageType, type OutgoingMessage } from '@postgrad/wire/internal'
import { METHOD_CALL } from '../common/built-in-names.js'
import { bytesOf } from './peer-ledger.js'

const CONTROL = 1 << 0
const GRADIENT = 1 << 1
const CALL = 1 << 2
/** A link takes a frame of so many bytes for small in any case. */
const UNORDERED_BYTES_MAX = SEGMENT_MOVED_BYTES_MIN - 1
/** The bits that an unordered call lacks, so that it and other calls overtake each other. */
const UNORDERED = frameOrder(CALL, CALL)
const FIRST_ID_BIT = 3
const ID_BITS = 13n

const OF_LANE: Readonly<Record<MessageLane, FrameOrder>> = {
  [Lane.signal]: EVERY_ORDER,
  [Lane.control]: frameOrder(CONTROL),
  [Lane.gradient]: frameOrder(GRADIENT, GRADIENT | CONTROL),
  [Lane.call]: frameOrder(CALL, CALL | CONTROL),
}

/** Those that do not just follow their lane. */
const OF_TYPE: Partial<Record<MessageType, FrameOrder>> = {
  // Its call must arrive before it.
  [MessageType.CALL_CANCEL]: frameOrder(CONTROL, CONTROL | CALL),
  // It arrives after earlier calls, and the counts of Note [The end of a group] say what has arrived before them.
  [MessageType.GROUP_UPDATE]: EVERY_ORDER,
  [MessageType.UNREADABLE]: EVERY_ORDER,
}

// As a plain array by number, for the way of every message.
const ORDERS: FrameOrder[] = []
for (const [type, { lane }] of Object.entries(MESSAGE_TABLE)) ORDERS[Number(type)] = OF_TYPE[Number(type) as MessageType] ?? OF_LANE[lane]

/** Large messages overtake nothing, whatever their orders are. */
export const isLargeFrame = ({ segments }: Frame): boolean => segments.length > 0 && segments.some(isLargeSegment)

/** `frame` is the message, encoded. */
export function orderOf(out: OutgoingMessage, frame: Frame): FrameOrder {
  const { type, context, note, body } = out
  // Counting references needs every order.
  if (note !== null) return EVERY_ORDER
  let order = ORDERS[type]!
  if (context !== null) order |= bitOf(context)
  // Replies come as they come: one that is large is late for nothing but its own call.
  else if (type === MessageType.RESULT && isLargeFrame(frame)) return NO_ORDER
  // A large call overtakes nothing, and messages about it arrive after it.
  if (out.isUnordered && type === MessageType.CALL && bytesOf(frame) <= UNORDERED_BYTES_MAX) order &= ~UNORDERED
  const rrefId = subjectOf(type, body)
  return rrefId === null ? order : order | bitOf(rrefId)
}

/** The RRef that the message is about, or whose value's method it calls by its id. */
function subjectOf(type: MessageType, body: readonly unknown[]): unknown {
  const { rrefField } = MESSAGE_TABLE[type]
  if (rrefField !== null) return body[rrefField]
  return type === MessageType.CALL && body[0] === METHOD_CALL ? (body[1] as readonly unknown[])[0] : null
}

/** The receiver refuses an invalid id. */
const bitOf = (id: unknown): FrameOrder => (typeof id === 'bigint' ? frameOrder(1 << (FIRST_ID_BIT + Number(id % ID_BITS))) : EVERY_ORDER)
