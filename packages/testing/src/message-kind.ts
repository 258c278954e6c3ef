/** Which kind of message a frame is, for the simulation's fault rules: `sim` knows frames, not messages. */
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageType, requestHead } from '@postgrad/wire/internal'

/** What no message can be read from. */
export const UNREADABLE = 'UNREADABLE'

/** A name of `MESSAGE_TABLE`: CALL, RESULT, RREF_ACK, … Never throws. */
export function messageKind(frame: Frame): string {
  const head = requestHead(frame)
  return head === null ? UNREADABLE : MESSAGE_TABLE[head.type].name
}

/** Every kind that `messageKind` can give, of messages. */
export const MESSAGE_KINDS: readonly string[] = Object.keys(MESSAGE_TABLE).map((type) => MESSAGE_TABLE[Number(type) as MessageType].name)
