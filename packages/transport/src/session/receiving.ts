/**
 * The receiving half of a session: it decides when an arriving frame is delivered, how the receiver learns of the end, and which frames are still to be
 * acknowledged. `session.ts` reads the heads of the frames; `sending.ts` sends the acknowledgements.
 *
 *     accept ─→ in order? ─→ ready ─→ receiver
 *                   ├ else: early, until the gap is filled
 *                   └ or it has overtaken: delivered, and noted in `arrivals`
 */
import { strict as assert } from 'node:assert'
import { Arrivals } from '../arrivals.js'
import type { Timer } from '../clock.js'
import type { Frame, Link, LinkClosed, LinkReceiver } from '../link.js'
import { type SessionHead, SessionKind, sessionPayload } from './session-frame.js'
import type { SessionCounts, SessionSettings } from './session-options.js'

export class Receiving {
  private readonly settings: SessionSettings
  private readonly counts: SessionCounts
  /** Sends an ACK now. */
  private readonly acknowledge: () => void
  /** The peer has closed, and everything before that has arrived. */
  private readonly onPeerEnd: () => void
  private receiver: LinkReceiver | null = null
  /** Why the link has ended. */
  private reason: LinkClosed | null = null
  private isEndScheduled = false

  // Arrived frames: delivered or ready.
  private readonly arrivals = new Arrivals()
  private readonly early = new Map<number, { readonly kind: SessionKind; readonly frame: Frame }>()
  private readonly ready: Frame[] = []
  private polling = 0
  private turnHasFrames = false

  // Frames not acknowledged yet.
  private unanswered = 0
  private isAckDue = false
  private ackTimer: Timer | null = null
  private isStopped = false

  constructor(settings: SessionSettings, counts: SessionCounts, acknowledge: () => void, onPeerEnd: () => void) {
    this.settings = settings
    this.counts = counts
    this.acknowledge = acknowledge
    this.onPeerEnd = onPeerEnd
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.receiver = receiver
    if (this.ready.length > 0 || this.reason !== null) this.settings.clock.defer(this.turn)
  }

  /** A DATA or END of the peer. */
  accept({ kind, seq }: SessionHead, frame: Frame): void {
    const { arrivals, early, ready, receiver } = this
    const { carrierLoses, windowFrames } = this.settings
    if (arrivals.has(seq) || early.has(seq)) {
      this.counts.duplicates++
      // Its acknowledgement may have been lost.
      this.isAckDue = true
      return
    }
    // What is ready and not delivered, since the link was not opened yet, takes of the window. Where nothing is lost, nothing comes before its turn
    // but what has overtaken, which is small, or from a peer that wants it kept here.
    const mayBeEarly = carrierLoses || ((frame.overtook ?? 0) > 0 && kind === SessionKind.DATA)
    if (seq > arrivals.last + (mayBeEarly ? windowFrames - ready.length : 1)) {
      this.counts.refused++
      return
    }
    if (seq > arrivals.last + 1) {
      if (!carrierLoses && this.mayOvertake) {
        this.takeAhead(seq, frame)
        return
      }
      this.counts.early++
      early.set(seq, { kind, frame })
      return
    }
    if (
      kind === SessionKind.DATA &&
      early.size === 0 &&
      !arrivals.hasGap &&
      ready.length === 0 &&
      this.reason === null &&
      receiver !== null
    ) {
      // Nearly always. The rest of this method would do the same in more steps.
      arrivals.addNext()
      this.unanswered++
      this.hand(receiver, sessionPayload(frame))
      return
    }
    this.take(kind, frame)
    this.takeNext()
    this.deliver()
  }

  /** Delivers what is ready, and what the carrier has. Returns how many. */
  poll(carrier: Link | null): number {
    if (this.receiver === null || this.reason?.by === 'self') return 0
    const before = this.counts.delivered
    this.polling++
    try {
      this.deliver()
      carrier?.poll()
    } finally {
      this.polling--
    }
    this.answer()
    return this.counts.delivered - before
  }

  endTurn(): void {
    this.answer()
    if (!this.turnHasFrames) return
    this.turnHasFrames = false
    this.receiver?.onTurnEnd()
  }

  /**
   * The number to acknowledge; nothing is owed then. Over a carrier that loses, frames that are refused for want of room arrive again (SES-7). Over any
   * other they never would, so this end does not acknowledge undelivered frames there, and the peer's window ends where the room does.
   */
  takeAck(): number {
    const { carrierLoses } = this.settings
    this.unanswered = 0
    this.isAckDue = false
    // To set and cancel a timer for every answer costs 1 µs. Where nothing is lost, one that fires for nothing every 5 ms costs less.
    if (carrierLoses || this.isStopped) {
      this.ackTimer?.cancel()
      this.ackTimer = null
    }
    return carrierLoses ? this.arrivals.last : this.arrivals.last - this.ready.length
  }

  /** The link has ended: later frames are only counted. The receiver learns of it after the ready frames, which are dropped if this end closed. */
  end(reason: LinkClosed): void {
    this.reason = reason
    if (reason.by === 'self') {
      this.ready.length = 0
      // A carrier that does not lose never brings them again.
      if (!this.settings.carrierLoses) for (const seq of this.early.keys()) this.arrivals.addAhead(seq)
      this.early.clear()
    }
    this.scheduleEnd()
  }

  /** Nothing arrives or is acknowledged any more, though ready frames are still delivered. */
  stop(): void {
    this.isStopped = true
    this.early.clear()
    this.arrivals.clear()
    this.takeAck()
  }

  /** Whether a frame that overtook is delivered before its turn. If other frames wait here, it waits too. */
  private get mayOvertake(): boolean {
    return this.reason !== null || (this.early.size === 0 && this.ready.length === 0 && this.receiver !== null)
  }

  /** After `close` it is only counted. */
  private takeAhead(seq: number, frame: Frame): void {
    const overtook = this.arrivals.missingBefore(seq)
    this.arrivals.addAhead(seq)
    this.unanswered++
    if (this.reason !== null) return
    this.counts.ahead++
    this.hand(this.receiver as LinkReceiver, sessionPayload(frame, overtook))
  }

  /** A gap was filled: what follows on it has come before. */
  private takeNext(): void {
    for (;;) {
      const seq = this.arrivals.last + 1
      const next = this.early.get(seq)
      if (next !== undefined) {
        this.early.delete(seq)
        this.take(next.kind, next.frame)
      } else if (!this.arrivals.passGap()) return
    }
  }

  /** The next in order. After `close` it is still counted, or the peer could not end. */
  private take(kind: SessionKind, frame: Frame): void {
    this.arrivals.addNext()
    const isKept = kind === SessionKind.DATA && this.reason === null
    if (isKept) this.ready.push(sessionPayload(frame))
    if (this.settings.carrierLoses || !isKept) this.unanswered++
    if (kind !== SessionKind.END) return
    this.isAckDue = true
    this.onPeerEnd()
  }

  private deliver(): void {
    const { receiver, ready } = this
    if (receiver === null) return
    try {
      while (ready.length > 0) {
        if (!this.settings.carrierLoses) this.unanswered++
        this.hand(receiver, ready.shift() as Frame)
      }
    } finally {
      // If the receiver threw, it still gets the frames after that one.
      if (ready.length > 0) this.settings.clock.defer(this.turn)
    }
  }

  private hand(receiver: LinkReceiver, frame: Frame): void {
    this.counts.delivered++
    if (this.polling === 0) this.turnHasFrames = true
    receiver.onFrame(frame)
  }

  /** For frames from before `open` or after a throw. */
  private readonly turn = (): void => {
    this.deliver()
    this.endTurn()
    if (this.reason !== null) this.scheduleEnd()
  }

  private scheduleEnd(): void {
    if (this.isEndScheduled || this.receiver === null) return
    this.isEndScheduled = true
    this.settings.clock.defer(this.deliverEnd)
  }

  private readonly deliverEnd = (): void => {
    if (this.ready.length > 0) {
      this.isEndScheduled = false
      this.settings.clock.defer(this.turn)
      return
    }
    this.receiver?.onClose(this.reason as LinkClosed)
  }

  /** Acknowledges now where somebody may be waiting for it; else it may ride on what is sent until the delay has passed. */
  private answer(): void {
    if (this.isStopped) return
    const { clock, windowFrames, ackDelayMs } = this.settings
    if (this.isAckDue || this.unanswered * 2 >= windowFrames) this.acknowledge()
    else if (this.unanswered > 0 && this.ackTimer === null) this.ackTimer = clock.setTimer(ackDelayMs, this.onAckDelay)
  }

  private readonly onAckDelay = (): void => {
    this.ackTimer = null
    // Else it was answered meanwhile, and nobody cancelled the timer.
    if (this.unanswered > 0) this.acknowledge()
  }
}
