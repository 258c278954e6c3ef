/**
 * All that one worker counts of its exchange with one peer, as totals. Links lose nothing, and say how many messages a frame has overtaken, so both ends
 * count alike: the n-th message of the sender is the n-th of the receiver, and a total covers all before it too. Credits are sums without an
 * order, since unordered calls may overtake calls. `progress.ts` sends the peer the totals of this worker, in one message; `call-credits.ts` counts what needs room. Rules CRE-1 to CRE-15 in SPEC.md.
 *
 *     sender                                         receiver
 *     messages sent      ───────────────────────▸    received = read  ─ ahead: read, and not all before it
 *     calls sent         ── CALL, REMOTE_CALL ──▸    received ─ begun
 *     fetches sent       ── RREF_FETCH ─────────▸    received ─ begun
 *     items sent         ── STREAM_ITEM ────────▸    received ─ taken     (a stream counts its own: `stream.ts`, `stream-serving.ts`)
 *              known  ◂── PROGRESS [read, begun, bytes, fetches begun, bytes, [stream, taken] …] ──
 *
 * The sender holds blocks of the shared heap from the message that names them until the peer has read it, or has failed to. So PROGRESS has no entry for
 * blocks, only the number of messages.
 */
import type { HeapTransport } from '@postgrad/tensor/internal'
import type { Clock, Frame, Timer } from '@postgrad/transport'
import { Arrivals } from '@postgrad/transport/internal'
import { type MessageBodies, MessageType } from '@postgrad/wire/internal'
import { IncomingCalls, type MailboxOptions, OutgoingCalls } from './call-credits.js'

export type ProgressBody = MessageBodies[typeof MessageType.PROGRESS]

/** A message that is being written while another is written to the same peer, since a getter in its body sends that one; or one that waits for a device. */
export interface Suspended {
  /** They name its blocks. */
  readonly tokens: readonly number[]
  /** Bytes of the blocks that it has named so far; of one that waits, with those of its frame. */
  readonly bytes: number
}

const NO_TOKENS: readonly number[] = []

export class PeerLedger {
  /** Messages of every kind, with those that could not be read, of which all before them have come too. UNREADABLE names them by these numbers. */
  sent = 0
  /** The same with those that wait in the outbox: Note [Late messages]. */
  private placed = 0
  private readonly arrivals = new Arrivals()
  /** Calls that wait at the peer, and those of the peer that wait here. */
  readonly outgoing: OutgoingCalls
  readonly incoming: IncomingCalls
  /** The same of fetches: they go ahead of calls, so calls may not use up their room. */
  readonly outgoingFetches: OutgoingCalls
  readonly incomingFetches: IncomingCalls
  /** Null: no heap is shared with the peer, and tensors travel with their bytes. */
  readonly transport: HeapTransport | null
  /** Set while a PROGRESS is bound to be sent by itself. */
  telling: Timer | null = null
  /** A PROGRESS is due. */
  isDue = false
  /** The messages of groups. */
  private groupSent = 0
  private groupReceived = 0
  /** Streams of the peer whose progress is due: how many items were taken. */
  private streams: [requestId: number, items: number][] = []
  /** A message to the peer is being written. It may copy a tensor, and others arrive in the pauses of that copy. */
  private isWriting = false
  /** Bytes of blocks that were named before the message that is being written, or read. */
  private givenBytes = 0
  private takenBytes = 0

  constructor(window: Required<MailboxOptions>, clock: Clock, transport: HeapTransport | null) {
    this.outgoing = new OutgoingCalls(window, clock)
    this.incoming = new IncomingCalls(window)
    this.outgoingFetches = new OutgoingCalls(window, clock)
    this.incomingFetches = new IncomingCalls(window)
    this.transport = transport
  }

  /** Where a request to the peer counts until it begins; null: it needs no room. */
  outgoingOf(type: MessageType): OutgoingCalls | null {
    if (type === MessageType.CALL || type === MessageType.REMOTE_CALL) return this.outgoing
    return type === MessageType.RREF_FETCH ? this.outgoingFetches : null
  }

  /** Where a request of the peer counts until it begins. */
  incomingOf(type: MessageType): IncomingCalls | null {
    if (type === MessageType.CALL || type === MessageType.REMOTE_CALL) return this.incoming
    return type === MessageType.RREF_FETCH ? this.incomingFetches : null
  }

  get received(): number {
    return this.arrivals.last
  }

  /** Messages without those of groups: see Note [The end of a group]. */
  get traffic(): { readonly sent: number; readonly received: number } {
    return { sent: this.placed - this.groupSent, received: this.received - this.groupReceived }
  }

  // --- sending

  /** Returns the message that was being written; null, nearly always: none was. `resume` continues it. */
  onWriting(): Suspended | null {
    const { transport } = this
    const outer = this.isWriting ? { tokens: transport?.suspend() ?? NO_TOKENS, bytes: this.newBytes } : null
    this.isWriting = true
    if (transport !== null) this.givenBytes = transport.givenBytes
    return outer
  }

  /** The message that a getter of this one has sent has left, or will not. */
  resume({ tokens, bytes }: Suspended): void {
    const { transport } = this
    this.isWriting = true
    if (transport === null) return
    transport.resume(tokens)
    this.givenBytes = transport.givenBytes - bytes
  }

  /** The message that is being written has named blocks of so many bytes. */
  private get newBytes(): number {
    return this.transport === null ? 0 : this.transport.givenBytes - this.givenBytes
  }

  /** The message was sent, in a frame of so many bytes. Returns its number. */
  onSent(type: MessageType, bytes: number): number {
    this.count(type, bytes)
    this.sent++
    this.transport?.sent(this.sent)
    return this.sent
  }

  /** The same for a message that leaves later. The result is for `onLeft` or `onDropped`. */
  onPlaced(type: MessageType, bytes: number): Suspended {
    this.count(type, bytes)
    const blockBytes = this.newBytes
    return { tokens: this.transport?.suspend() ?? NO_TOKENS, bytes: bytes + blockBytes }
  }

  /** It left; with `failureBytes` in a frame of so many bytes, which says that it cannot be had. */
  onLeft(type: MessageType, { tokens, bytes }: Suspended, failureBytes: number | null): number {
    this.sent++
    this.transport?.sent(this.sent, tokens)
    if (failureBytes !== null) this.outgoingOf(type)?.onShrunk(bytes - failureBytes)
    return this.sent
  }

  onDropped({ tokens }: Suspended): void {
    this.transport?.unsent(tokens)
  }

  private count(type: MessageType, bytes: number): void {
    this.isWriting = false
    this.placed++
    if (type === MessageType.GROUP_UPDATE) this.groupSent++
    const account = this.outgoingOf(type)
    if (account !== null) account.onSent(bytes + this.newBytes)
  }

  /** The message that was being written will not be sent. */
  onUnsent(): void {
    this.isWriting = false
    this.transport?.unsent()
  }

  // --- receiving

  /** Returns the message's number. */
  onReading({ overtook = 0 }: Frame): number {
    if (this.transport !== null) this.takenBytes = this.transport.takenBytes
    if (overtook > 0) {
      const number = this.arrivals.numberBehind(overtook)
      this.arrivals.addAhead(number)
      return number
    }
    const number = this.arrivals.addNext()
    // An earlier PROGRESS did not count those that came ahead.
    while (this.arrivals.passGap()) this.isDue = true
    return number
  }

  /**
   * The message was read, or could not be: then it may have named any block. `type` is undefined if not even that is known. Returns what it counts in its
   * sender's account: its bytes, with those of its blocks; 0 for what needs no room.
   */
  onRead(type: MessageType | undefined, frame: Frame, isReadable: boolean): number {
    const { transport } = this
    if (type === MessageType.GROUP_UPDATE) this.groupReceived++
    if (transport !== null) {
      // A message has everything lent to it in its segments.
      const isLent = transport.reach === 'bytes' && frame.segments.length > 0
      if (transport.hasTaken || isLent || !isReadable) this.isDue = true
      transport.hasTaken = false
    }
    if (type === undefined || this.incomingOf(type) === null) return 0
    return bytesOf(frame) + (transport === null ? 0 : transport.takenBytes - this.takenBytes)
  }

  // --- progress

  /** A call or fetch begins, or ends without: its sender has the place again. Returns whether to notify the peer. */
  onBegun(type: MessageType, bytes: number): boolean {
    const isDue = this.incomingOf(type)!.onBegun(bytes)
    if (isDue) this.isDue = true
    return isDue
  }

  /** So many items of a stream of the peer were taken; notifies it. */
  onTaken(requestId: number, items: number): void {
    this.streams.push([requestId, items])
    this.isDue = true
  }

  /**
   * The totals for the peer, which count as sent from now on. Null: none are due, or a message to the peer is being written; `take` is called again
   * after that.
   */
  take(): ProgressBody | null {
    if (!this.isDue || this.isWriting) return null
    this.isDue = false
    const { received, incoming, incomingFetches, streams } = this
    incoming.onTold()
    incomingFetches.onTold()
    this.streams = []
    return [received, incoming.begun, incoming.begunBytes, incomingFetches.begun, incomingFetches.begunBytes, streams]
  }

  /** Takes the peer's totals, except of streams. False, and without effect, if not so much was sent. */
  onProgress([read, begun, bytes, fetchesBegun, fetchBytes]: ProgressBody): boolean {
    const { outgoing, outgoingFetches } = this
    if (read > this.sent || !outgoing.hasSent(begun, bytes) || !outgoingFetches.hasSent(fetchesBegun, fetchBytes)) return false
    this.transport?.taken(read)
    outgoing.onProgress(begun, bytes)
    outgoingFetches.onProgress(fetchesBegun, fetchBytes)
    return true
  }
}

/** Whether messages of this kind need room at the receiver: those that wait in its call lane. */
export function isCall(type: MessageType): boolean {
  return type === MessageType.CALL || type === MessageType.REMOTE_CALL
}

/** Before it is sent: a link takes buffers away. */
export function bytesOf({ header, segments }: Frame): number {
  let bytes = header.length
  for (let i = 0; i < segments.length; i++) bytes += segments[i]!.length
  return bytes
}
