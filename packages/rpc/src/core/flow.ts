/**
 * How much is under way between this worker and one peer, and the words that tell the sender so: calls and fetches that have begun (CREDITS), blocks of
 * the shared heap that were read (BLOCKS_TAKEN). `call-credits.ts` and `block-post.ts` below count. Rules CRE-1 to CRE-12 in SPEC.md.
 */
import type { Clock, Frame } from '@postgrad/transport'
import { MessageType } from '@postgrad/wire/internal'
import type { BlockPost } from './block-post.js'
import { IncomingCalls, type MailboxOptions, OutgoingCalls } from './call-credits.js'

export class PeerFlow {
  /** Of calls that wait at the peer. */
  readonly outgoing: OutgoingCalls
  /** Of the peer's calls that wait here. */
  readonly incoming: IncomingCalls
  /** The same of fetches: they go ahead of calls, so calls may not use up their room. */
  readonly outgoingFetches: OutgoingCalls
  readonly incomingFetches: IncomingCalls
  /** Null: no heap is shared with it, and tensors travel with their bytes. */
  readonly blocks: BlockPost | null

  constructor(window: Required<MailboxOptions>, clock: Clock, blocks: BlockPost | null) {
    this.outgoing = new OutgoingCalls(window, clock)
    this.incoming = new IncomingCalls(window)
    this.outgoingFetches = new OutgoingCalls(window, clock)
    this.incomingFetches = new IncomingCalls(window)
    this.blocks = blocks
  }

  /** Where a request to the peer counts until it begins; null: it needs no room. */
  outgoingOf(type: MessageType): OutgoingCalls | null {
    return isCall(type) ? this.outgoing : type === MessageType.RREF_FETCH ? this.outgoingFetches : null
  }

  /** Where a request of the peer counts until it begins. */
  incomingOf(type: MessageType): IncomingCalls | null {
    return isCall(type) ? this.incoming : type === MessageType.RREF_FETCH ? this.incomingFetches : null
  }

  /** The words of CREDITS. */
  onCredits(begun: number, bytes: number, fetchesBegun: number, fetchBytes: number): boolean {
    const areKnown = [this.outgoing.onCredits(begun, bytes), this.outgoingFetches.onCredits(fetchesBegun, fetchBytes)]
    return !areKnown.includes(false)
  }

  /** What the peer is told, from now on known to it. */
  takeCredits(): [begun: number, bytes: number, fetchesBegun: number, fetchBytes: number] {
    const { incoming, incomingFetches } = this
    incoming.onTold()
    incomingFetches.onTold()
    return [incoming.begun, incoming.begunBytes, incomingFetches.begun, incomingFetches.begunBytes]
  }
}

/** Whether messages of this kind need credits of the receiver: those that wait in its call lane. */
export function isCall(type: MessageType): boolean {
  return type === MessageType.CALL || type === MessageType.REMOTE_CALL
}

export function bytesOf({ header, segments }: Frame): number {
  let bytes = header.length
  for (let i = 0; i < segments.length; i++) bytes += segments[i]!.length
  return bytes
}
