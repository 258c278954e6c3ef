/**
 * A link over a carrier that may lose, repeat, delay and reorder frames, and may be replaced by another (`reconnect`): sequence numbers,
 * acknowledgement, resending, one window of credits. The rules SES-1 to SES-24 are in SPEC.md. Above it is whatever uses a `Link`, below it a carrier
 * with a link's methods and weaker promises: the simulation's under fault rules, or a socket, which loses nothing until it breaks. A MessagePort
 * cannot lose and does without.
 *
 *     send ─→ kept (until acknowledged) ──window──→ carrier ~~~~→ in order? ─→ ready ─→ receiver
 *               ↑ resent when the acknowledgement is late          ├ else: early, until the gap is filled
 *                                                                  └ or it has overtaken: delivered, and noted in `arrivals`
 */

import { strict as assert } from 'node:assert'
import { Arrivals } from './arrivals.js'
import type { Clock, Timer } from './clock.js'
import { flushed, type Kept, KeptArena, KeptCopy, KeptQueue, KeptWhole, keptBytesOf } from './kept.js'
import {
  EVERY_ORDER,
  type Frame,
  type FrameOrder,
  type Link,
  type LinkClosed,
  type LinkReceiver,
  NO_ORDER,
  type OnFlushed,
} from './link.js'
import { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
import { type SessionHead, SessionHeadReader, SessionKind, sessionFrame, sessionPayload, writeSessionHead } from './session-frame.js'

export interface SessionOptions {
  readonly clock: Clock
  /** Which life of this worker, and which of the other, the session belongs to: 32 bits each. Frames of any other are refused. */
  readonly self: number
  /** Null: it is known with the first carrier (`reconnect`). */
  readonly peer: number | null
  /** Appears in errors. */
  readonly name?: string
  /** How many frames may be under way unacknowledged; what comes behind waits here. Both ends must agree. Default 1,024. */
  readonly windowFrames?: number
  /** The link breaks when more than this waits to be acknowledged. Defaults 65,536 frames and 256 MiB. */
  readonly keptFramesMax?: number
  readonly keptBytesMax?: number
  /** An acknowledgement that finds no frame to ride on leaves by itself after this time. Default 5. */
  readonly ackDelayMs?: number
  /** What is not acknowledged is sent again after this time, then twice it, and so on up to `resendMaxMs`. Defaults 50 and 1,000. */
  readonly resendMs?: number
  readonly resendMaxMs?: number
  /** The link breaks when nothing of what waits was acknowledged for so long. Default 30,000. */
  readonly giveUpMs?: number
  /** How long a session without a carrier waits for `reconnect`; 0: the carrier's end is the link's; infinite: until `abandon`. Default 0. */
  readonly reconnectMs?: number
  /** False: a carrier that has not ended has lost nothing, so nothing is sent again before it is replaced. Default true. */
  readonly carrierLoses?: boolean
  /** False: frames are lent to the carrier, which copies what is small and leaves the rest where it is (SES-19). Default true: it takes buffers away. */
  readonly carrierTakes?: boolean
  /** Throws if the frame is one that no carrier would take; it is then still the caller's. */
  readonly check?: (frame: Frame) => void
  /** There is something to send, and there was no carrier yet. Told at every frame until there is. */
  readonly onWant?: () => void
  /** Once: nothing more is sent, received or waited for. */
  readonly onOver?: () => void
}

/** So many frames are sent again at once, the oldest. */
export const RESEND_BURST = 64

const NOTHING: Frame = Object.freeze({ header: new Uint8Array(0), segments: [] })

export class Session implements Link {
  /** What it took to keep the promise. `refused`: of another incarnation, of no session, or out of the window. */
  readonly counts = { sent: 0, resent: 0, acks: 0, delivered: 0, early: 0, ahead: 0, duplicates: 0, refused: 0 }
  private readonly clock: Clock
  private readonly self: number
  private peer: number | null
  private readonly name: string
  private readonly windowFrames: number
  private readonly keptFramesMax: number
  private readonly keptBytesMax: number
  private readonly ackDelayMs: number
  private readonly resendMs: number
  private readonly resendMaxMs: number
  private readonly giveUpMs: number
  private readonly reconnectMs: number
  private readonly carrierLoses: boolean
  /** Null: the carrier takes buffers away, so it gets copies. */
  private readonly arena: KeptArena | null
  private readonly check: ((frame: Frame) => void) | null
  private readonly onWant: (() => void) | null
  private readonly onOver: (() => void) | null
  /** Null before the first. */
  private carrier: Link | null
  private receiver: LinkReceiver | null = null
  private reason: LinkClosed | null = null
  /** Nothing is sent, received or waited for any more, though what is ready is still delivered. */
  private over = false

  // Sending: acknowledged ≤ transmitted ≤ last. `kept` holds what is behind `acknowledged`.
  private readonly kept = new KeptQueue()
  private last = 0
  private transmitted = 0
  private acknowledged = 0
  private attempt = 0
  private progressMs = 0
  private resendTimer: Timer | null = null
  private reconnectTimer: Timer | null = null

  // Receiving: what has arrived is delivered or ready.
  private readonly arrivals = new Arrivals()
  private readonly early = new Map<number, SessionFrame>()
  private readonly ready: Frame[] = []
  private readonly heads = new SessionHeadReader()
  private unanswered = 0
  private isAckDue = false
  private ackTimer: Timer | null = null
  private polling = 0
  private turnHasFrames = false
  private endScheduled = false

  /** Opens the carrier at once, since acknowledgements come before `open` too. Null: the first comes by `reconnect`. */
  constructor(carrier: Link | null, options: SessionOptions) {
    this.clock = options.clock
    this.self = options.self
    this.peer = options.peer
    this.name = options.name ?? 'session'
    this.windowFrames = options.windowFrames ?? 1024
    this.keptFramesMax = options.keptFramesMax ?? 65_536
    this.keptBytesMax = options.keptBytesMax ?? 256 * 2 ** 20
    this.ackDelayMs = options.ackDelayMs ?? 5
    this.resendMs = options.resendMs ?? 50
    this.resendMaxMs = options.resendMaxMs ?? 1000
    this.giveUpMs = options.giveUpMs ?? 30_000
    this.reconnectMs = options.reconnectMs ?? 0
    this.carrierLoses = options.carrierLoses ?? true
    this.arena = (options.carrierTakes ?? true) ? null : new KeptArena()
    this.check = options.check ?? null
    this.onWant = options.onWant ?? null
    this.onOver = options.onOver ?? null
    this.carrier = carrier
    if (carrier !== null) this.attach(carrier)
  }

  get closed(): boolean {
    return this.reason !== null
  }

  /** How many frames are not acknowledged yet, sent or not. */
  get unacknowledged(): number {
    return this.kept.size
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.receiver = receiver
    if (this.ready.length > 0 || this.reason !== null) this.clock.defer(this.turn)
  }

  /** @throws LINK_CLOSED, also when this frame is the one that breaks the link (SES-8), or what `check` throws */
  send(frame: Frame, order = EVERY_ORDER, onFlushed: OnFlushed | null = null): void {
    if (this.reason === null) {
      this.check?.(frame)
      this.checkRoom(frame)
    }
    if (this.reason !== null) throw linkClosedError(this.name, this.reason)
    this.keep(SessionKind.DATA, frame, order, onFlushed)
  }

  flush(): void {
    if (this.carrier !== null && !this.carrier.closed) this.carrier.flush()
  }

  poll(): number {
    if (this.receiver === null || this.reason?.by === 'self') return 0
    const before = this.counts.delivered
    this.polling++
    try {
      this.deliver()
      this.carrier?.poll()
    } finally {
      this.polling--
    }
    this.answer()
    return this.counts.delivered - before
  }

  /** What was sent goes on being sent until the peer has all of it, or `giveUpMs` pass without a sign of it. */
  close(): void {
    if (this.reason === null) {
      this.reason = CLOSED_BY_SELF
      this.ready.length = 0
      // A carrier that does not lose brings them no second time.
      if (!this.carrierLoses) for (const seq of this.early.keys()) this.arrivals.addAhead(seq)
      this.early.clear()
      this.scheduleEnd()
      // Nothing was ever said, and nobody has heard of it: there is nobody to tell.
      if (this.carrier === null && this.last === 0) this.finish()
      if (!this.over) this.keepEnd()
    } else if (this.reason.by === 'peer') {
      this.finish()
    }
  }

  /**
   * Goes on over another carrier, whose other end the peer's session was given: what is not acknowledged is sent again, nothing is delivered
   * twice. The old carrier is closed. A session that is over closes the new one. `peer` is the other's life, where it was not known yet.
   */
  reconnect(carrier: Link, peer: number | null = this.peer): void {
    if (this.over) {
      carrier.close()
      return
    }
    assert(peer !== null && (this.peer === null || this.peer === peer), 'a session belongs to one life of its peer')
    this.peer = peer
    const before = this.carrier
    this.carrier = carrier
    this.reconnectTimer?.cancel()
    this.reconnectTimer = null
    before?.close()
    this.attach(carrier)
    this.attempt = 0
    this.progressMs = this.clock.now()
    this.acknowledge()
    this.resend(this.windowFrames)
    this.transmitWindow()
    this.flush()
    this.rearm()
  }

  /** Ends the link as its carrier's end for good would: whoever looks for another carrier has given up. */
  abandon(detail: string): void {
    if (!this.over) this.break(detail)
  }

  // --- sending

  /** The credit of a peer that acknowledges nothing ends: it is as good as dead, and keeping more would only be found later. */
  private checkRoom(frame: Frame): void {
    const { kept } = this
    if (kept.size < this.keptFramesMax && kept.bytes + keptBytesOf(frame) <= this.keptBytesMax) return
    this.break(`the other end has left ${kept.size} frames (${kept.bytes} bytes) unacknowledged, which is the limit`)
  }

  private keep(kind: SessionKind, frame: Frame, order: FrameOrder, onFlushed: OnFlushed | null = null): void {
    if (this.kept.size === 0) this.progressMs = this.isTimed ? this.clock.now() : 0
    const kept = this.arena === null ? new KeptCopy(kind, frame, order) : this.arena.keep(kind, frame, order)
    kept.onFlushed = onFlushed
    this.kept.push(kept)
    this.last++
    this.transmitWindow()
  }

  private keepEnd(): void {
    this.keep(SessionKind.END, NOTHING, EVERY_ORDER)
    this.flush()
    if (this.carrierLoses) return
    // The first time that the clock matters here.
    this.progressMs = this.clock.now()
    this.rearm()
  }

  /** Without loss, time judges nobody: whether the other end lives is the carrier's to say. Only who has closed does not wait for ever. */
  private get isTimed(): boolean {
    return this.carrierLoses || this.reason !== null
  }

  private transmitWindow(): void {
    if (this.carrier === null) {
      this.onWant?.()
      return
    }
    const end = Math.min(this.last, this.acknowledged + this.windowFrames)
    while (this.transmitted < end) {
      this.transmitted++
      this.counts.sent++
      this.transmit(this.transmitted)
    }
    if (this.resendTimer === null && this.kept.size > 0) this.arm()
  }

  private transmit(seq: number): void {
    const kept = this.kept.at(seq - this.acknowledged - 1)
    if (!(kept instanceof KeptWhole)) {
      this.post(kept.kind, seq, kept, kept.order, this.tells(kept))
      return
    }
    if (this.carrier === null || this.carrier.closed) return
    this.answered()
    writeSessionHead(kept.header, kept.kind, this.self, this.peer as number, seq, this.arrived)
    this.carrier.send(kept, kept.order, this.tells(kept))
  }

  /** What a carrier has flushed counts, though it may have to be sent again. What one that has ended had not waits for the next. */
  private tells(kept: Kept): OnFlushed | null {
    const { carrier } = this
    if (kept.onFlushed === null || carrier === null) return null
    return (isFlushed) => {
      if (isFlushed && !carrier.closed) flushed(kept, true)
    }
  }

  /** Every frame acknowledges. */
  private post(kind: SessionKind, seq: number, frame: Frame | null, order: FrameOrder, onFlushed: OnFlushed | null = null): void {
    if (this.carrier === null || this.carrier.closed) return
    this.answered()
    this.carrier.send(sessionFrame({ kind, from: this.self, to: this.peer as number, seq, ack: this.arrived }, frame), order, onFlushed)
  }

  private resend(framesMax: number): void {
    if (this.carrier === null || this.carrier.closed) return
    const end = Math.min(this.transmitted, this.acknowledged + framesMax)
    for (let seq = this.acknowledged + 1; seq <= end; seq++) {
      this.counts.resent++
      this.transmit(seq)
    }
    this.flush()
  }

  private onAcknowledged(ack: number): void {
    if (ack <= this.acknowledged) return
    for (let seq = this.acknowledged + 1; seq <= ack; seq++) this.kept.shift()
    this.acknowledged = ack
    this.attempt = 0
    if (this.isTimed) this.progressMs = this.clock.now()
    if (this.kept.size > 0) {
      this.transmitWindow()
      return
    }
    this.resendTimer?.cancel()
    this.resendTimer = null
    // The last of all, END, has arrived.
    if (this.reason?.by === 'self') this.finish()
  }

  /** An acknowledgement does not move the timer; when it fires too early it is set again. */
  private arm(): void {
    if (!this.isTimed) return
    const nowMs = this.clock.now()
    const waitMs = this.carrierLoses ? Math.min(this.resendMs * 2 ** this.attempt, this.resendMaxMs) : this.giveUpMs
    this.resendTimer = this.clock.setTimer(Math.max(0, Math.min(waitMs, this.progressMs + this.giveUpMs - nowMs)), this.onLate)
  }

  private rearm(): void {
    this.resendTimer?.cancel()
    this.resendTimer = null
    if (this.kept.size > 0) this.arm()
  }

  private readonly onLate = (): void => {
    this.resendTimer = null
    // Without a carrier `reconnect` sets it again, or its time ends the session. What was closed waits no longer than it would have.
    if (this.reconnectTimer !== null && this.reason === null) return
    const quietMs = this.clock.now() - this.progressMs
    if (quietMs >= this.giveUpMs) {
      this.break(`the other end has acknowledged nothing for ${this.giveUpMs} ms`)
      return
    }
    // Something was acknowledged since the timer was set: what is the oldest now has its own time.
    if (this.carrierLoses && (this.attempt > 0 || quietMs >= this.resendMs)) {
      this.resend(RESEND_BURST)
      this.attempt++
    }
    this.arm()
  }

  // --- receiving

  private attach(carrier: Link): void {
    carrier.open({
      onFrame: (frame) => {
        if (carrier === this.carrier) this.receive(frame)
      },
      onTurnEnd: () => {
        if (carrier === this.carrier) this.endTurn()
      },
      onClose: (reason) => {
        if (carrier === this.carrier) this.onCarrierClosed(reason)
      },
    })
  }

  private receive(frame: Frame): void {
    const head = this.heads.read(frame)
    if (this.over || head === null || head.from !== this.peer || head.to !== this.self || head.ack > this.transmitted) {
      this.counts.refused++
      return
    }
    this.onAcknowledged(head.ack)
    if (head.kind !== SessionKind.ACK) this.accept(head, frame)
  }

  private accept(head: SessionHead, frame: Frame): void {
    const { seq } = head
    if (this.arrivals.has(seq) || this.early.has(seq)) {
      this.counts.duplicates++
      // Its acknowledgement may be what was lost.
      this.isAckDue = true
      return
    }
    // What is ready and not delivered, since the link was not opened yet, takes of the window. Where nothing is lost, nothing comes before its turn
    // but what has overtaken, which is small, or from a peer that wants it kept here.
    const mayBeEarly = this.carrierLoses || ((frame.overtook ?? 0) > 0 && head.kind === SessionKind.DATA)
    if (seq > this.arrivals.last + (mayBeEarly ? this.windowFrames - this.ready.length : 1)) {
      this.counts.refused++
      return
    }
    if (seq > this.arrivals.last + 1) {
      if (!this.carrierLoses && this.mayOvertake) {
        this.takeAhead(seq, frame)
        return
      }
      this.counts.early++
      this.early.set(seq, new SessionFrame(head, frame))
      return
    }
    if (
      head.kind === SessionKind.DATA &&
      this.early.size === 0 &&
      !this.arrivals.hasGap &&
      this.ready.length === 0 &&
      this.reason === null &&
      this.receiver !== null
    ) {
      // Nearly always. The rest of this method would do the same in more steps.
      this.arrivals.addNext()
      this.unanswered++
      this.counts.delivered++
      if (this.polling === 0) this.turnHasFrames = true
      this.receiver.onFrame(sessionPayload(frame))
      return
    }
    this.take(head, frame)
    this.takeNext()
    this.deliver()
  }

  /** Whether what has overtaken is delivered before its turn. Behind what waits here itself it waits too. */
  private get mayOvertake(): boolean {
    return this.reason !== null || (this.early.size === 0 && this.ready.length === 0 && this.receiver !== null)
  }

  /** After `close` it is only counted. */
  private takeAhead(seq: number, frame: Frame): void {
    const overtook = this.arrivals.missingBefore(seq)
    this.arrivals.addAhead(seq)
    this.unanswered++
    if (this.reason !== null) return
    this.counts.delivered++
    this.counts.ahead++
    if (this.polling === 0) this.turnHasFrames = true
    this.receiver?.onFrame(sessionPayload(frame, overtook))
  }

  /** A gap was filled: what follows on it has come before. */
  private takeNext(): void {
    for (;;) {
      const seq = this.arrivals.last + 1
      const next = this.early.get(seq)
      if (next !== undefined) {
        this.early.delete(seq)
        this.take(next.head, next.frame)
      } else if (!this.arrivals.passGap()) return
    }
  }

  /** The next in order. After `close` it is still counted, or the peer could not end. */
  private take({ kind }: SessionHead, frame: Frame): void {
    this.arrivals.addNext()
    const isKept = kind === SessionKind.DATA && this.reason === null
    if (isKept) this.ready.push(sessionPayload(frame))
    if (this.carrierLoses || !isKept) this.unanswered++
    if (kind === SessionKind.END) this.onEnd()
  }

  /**
   * What the peer is told that has arrived. A carrier that loses brings again what is refused for want of room (SES-7). One that does not never would,
   * so there what is not delivered yet is not acknowledged, and the peer's window ends where there is no room.
   */
  private get arrived(): number {
    return this.carrierLoses ? this.arrivals.last : this.arrivals.last - this.ready.length
  }

  private deliver(): void {
    const { receiver, ready } = this
    if (receiver === null) return
    try {
      while (ready.length > 0) {
        this.counts.delivered++
        if (!this.carrierLoses) this.unanswered++
        if (this.polling === 0) this.turnHasFrames = true
        receiver.onFrame(ready.shift() as Frame)
      }
    } finally {
      // If the receiver threw, the frames behind the one that it threw at are delivered all the same.
      if (ready.length > 0) this.clock.defer(this.turn)
    }
  }

  /** What was ready before `open`, or is behind a throw. */
  private readonly turn = (): void => {
    this.deliver()
    this.endTurn()
    if (this.reason !== null) this.scheduleEnd()
  }

  private endTurn(): void {
    this.answer()
    if (!this.turnHasFrames) return
    this.turnHasFrames = false
    this.receiver?.onTurnEnd()
  }

  /** Acknowledges now where somebody may be waiting for it; else it may ride on what is sent until the delay has passed. */
  private answer(): void {
    if (this.over) return
    if (this.isAckDue || this.unanswered * 2 >= this.windowFrames) this.acknowledge()
    else if (this.unanswered > 0 && this.ackTimer === null) this.ackTimer = this.clock.setTimer(this.ackDelayMs, this.onAckDelay)
  }

  private readonly onAckDelay = (): void => {
    this.ackTimer = null
    // It was answered meanwhile, and the timer was left standing.
    if (this.unanswered > 0) this.acknowledge()
  }

  private acknowledge(): void {
    this.counts.acks++
    this.post(SessionKind.ACK, 0, null, NO_ORDER)
    this.flush()
  }

  private answered(): void {
    this.unanswered = 0
    this.isAckDue = false
    // To set and cancel a timer for every answer costs 1 µs. Where nothing is lost, one that fires for nothing every 5 ms costs less.
    if (this.carrierLoses || this.over) {
      this.ackTimer?.cancel()
      this.ackTimer = null
    }
  }

  // --- ends

  /** The peer has closed. Its END may come again until it knows that it has arrived, so the carrier stays until the peer closes it. */
  private onEnd(): void {
    this.isAckDue = true
    if (this.reason !== null) return
    this.reason = CLOSED_BY_PEER
    this.forget()
    this.scheduleEnd()
  }

  private onCarrierClosed({ detail }: LinkClosed): void {
    if (this.over) return
    // The peer has nothing more to say, or has closed as this end has: nobody waits for anything.
    if (this.reason?.by === 'peer' || this.reconnectMs === 0) this.break(detail)
    else if (this.reconnectMs !== Number.POSITIVE_INFINITY)
      this.reconnectTimer = this.clock.setTimer(this.reconnectMs, () =>
        this.break(`${detail}; nobody reconnected in ${this.reconnectMs} ms`),
      )
  }

  private break(detail: string): void {
    this.finish()
    if (this.reason !== null) return
    this.reason = { by: 'peer', detail }
    this.scheduleEnd()
  }

  private finish(): void {
    if (this.over) return
    this.over = true
    this.forget()
    this.early.clear()
    this.arrivals.clear()
    this.answered()
    this.reconnectTimer?.cancel()
    this.carrier?.close()
    this.onOver?.()
  }

  /** What this end has sent needs nobody's acknowledgement any more. */
  private forget(): void {
    this.kept.clear()
    this.acknowledged = this.transmitted = this.last
    this.resendTimer?.cancel()
    this.resendTimer = null
  }

  private scheduleEnd(): void {
    if (this.endScheduled || this.receiver === null) return
    this.endScheduled = true
    this.clock.defer(this.deliverEnd)
  }

  private readonly deliverEnd = (): void => {
    if (this.ready.length > 0) {
      this.endScheduled = false
      this.clock.defer(this.turn)
      return
    }
    this.receiver?.onClose(this.reason as LinkClosed)
  }
}

/** A DATA or END that came before its turn. */
class SessionFrame {
  readonly head: SessionHead
  readonly frame: Frame

  constructor(head: SessionHead, frame: Frame) {
    this.head = head
    this.frame = frame
  }
}
