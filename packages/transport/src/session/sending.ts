/**
 * The sending half of a session: it decides which frames leave when, over the current carrier, and which leave again. `session.ts` gives it the carrier
 * and the peer's acknowledgements; `kept.ts` keeps the frames that may have to leave again.
 *
 *     send ─→ kept (until acknowledged) ──window──→ carrier
 *               ↑ resent when the acknowledgement is late
 */
import type { Timer } from '../clock.js'
import { EVERY_ORDER, FRAME_KEPT_BYTES, type Frame, type FrameOrder, type Link, NO_ORDER, type OnFlushed } from '../link.js'
import { flushed, type Kept, KeptArena, KeptQueue, keptBytesOf, keptCopy } from './kept.js'
import type { Receiving } from './receiving.js'
import { SessionKind, sessionFrame, writeSessionHead } from './session-frame.js'
import type { SessionCounts, SessionSettings } from './session-options.js'

/** So many frames are sent again at once, the oldest. */
const RESEND_BURST = 64

const NOTHING: Frame = Object.freeze({ header: new Uint8Array(0), segments: [] })

export class Sending {
  /** Null before the first. */
  carrier: Link | null = null
  /** The other's life; null as long as it is not known. */
  peer: number | null
  /** The number of the last frame that has left. */
  transmitted = 0
  private readonly settings: SessionSettings
  private readonly counts: SessionCounts
  private readonly receiving: Receiving
  private readonly giveUp: (detail: string) => void
  /** Null: the carrier takes away what it is given, so that is a copy. */
  private readonly arena: KeptArena | null
  /** The frames after `acknowledged`, which is `transmitted` at most. */
  private readonly kept = new KeptQueue()
  private acknowledged = 0
  private isEnding = false
  private attempt = 0
  private progressMs = 0
  private resendTimer: Timer | null = null

  /** Every frame says what `receiving` has. `giveUp` breaks the link. */
  constructor(settings: SessionSettings, counts: SessionCounts, receiving: Receiving, giveUp: (detail: string) => void) {
    this.peer = settings.peer
    this.settings = settings
    this.counts = counts
    this.receiving = receiving
    this.giveUp = giveUp
    this.arena = settings.carrierTakes ? null : new KeptArena()
  }

  /** How many frames are not acknowledged yet, sent or not. */
  get unacknowledged(): number {
    return this.kept.size
  }

  /** Without the oldest frame: the peer may be taking that one just now, however long it takes. */
  get unreadBytes(): number {
    const { kept } = this
    return kept.size === 0 ? 0 : this.allBytes - kept.at(0).bytes - FRAME_KEPT_BYTES
  }

  private get allBytes(): number {
    return this.kept.bytes + this.kept.size * FRAME_KEPT_BYTES
  }

  /** The credit of a peer that acknowledges nothing ends: it is as good as dead, and keeping more would only be found later. */
  checkRoom(frame: Frame): void {
    const { kept, settings } = this
    if (kept.size < settings.keptFramesMax && this.allBytes + keptBytesOf(frame) <= settings.keptBytesMax) return
    this.giveUp(`the other end has left ${kept.size} frames (${kept.bytes} bytes) unacknowledged, which is the limit`)
  }

  send(kind: SessionKind, frame: Frame, order: FrameOrder, onFlushed: OnFlushed | null): void {
    if (this.kept.size === 0) this.progressMs = this.isTimed ? this.settings.clock.now() : 0
    const kept = this.arena === null ? keptCopy(kind, frame, order) : this.arena.keep(kind, frame, order)
    kept.onFlushed = onFlushed
    this.kept.push(kept)
    this.transmitWindow()
  }

  sendEnd(): void {
    this.isEnding = true
    this.send(SessionKind.END, NOTHING, EVERY_ORDER, null)
    this.flush()
    if (this.settings.carrierLoses) return
    // The first time that the clock matters here.
    this.progressMs = this.settings.clock.now()
    this.arm()
  }

  sendAck(): void {
    this.counts.acks++
    const { carrier } = this
    if (carrier === null || carrier.closed) return
    const head = { kind: SessionKind.ACK, from: this.settings.self, to: this.peer as number, seq: 0, ack: this.receiving.takeAck() }
    carrier.send(sessionFrame(head, null), NO_ORDER, null)
    this.flush()
  }

  flush(): void {
    if (this.carrier !== null && !this.carrier.closed) this.carrier.flush()
  }

  /** The peer has everything up to this number. */
  onAck(ack: number): void {
    if (ack <= this.acknowledged) return
    for (let seq = this.acknowledged + 1; seq <= ack; seq++) this.kept.shift()
    this.acknowledged = ack
    this.attempt = 0
    if (this.isTimed) this.progressMs = this.settings.clock.now()
    if (this.kept.size > 0) this.transmitWindow()
    else this.disarm()
  }

  /** There is another carrier. */
  resume(): void {
    this.attempt = 0
    this.progressMs = this.settings.clock.now()
    this.sendAck()
    this.resend(this.settings.windowFrames)
    this.transmitWindow()
    this.flush()
    this.arm()
  }

  /** The frames of this end need no acknowledgement any more. */
  forget(): void {
    this.acknowledged = this.transmitted = this.acknowledged + this.kept.size
    this.kept.clear()
    this.disarm()
  }

  private transmitWindow(): void {
    if (this.carrier === null) {
      this.settings.onWant?.()
      return
    }
    const end = this.acknowledged + Math.min(this.kept.size, this.settings.windowFrames)
    while (this.transmitted < end) {
      this.transmitted++
      this.counts.sent++
      this.transmit(this.transmitted)
    }
    if (this.resendTimer === null) this.arm()
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

  private transmit(seq: number): void {
    const { carrier } = this
    if (carrier === null || carrier.closed) return
    const kept = this.kept.at(seq - this.acknowledged - 1)
    writeSessionHead(kept.header, kept.kind, this.settings.self, this.peer as number, seq, this.receiving.takeAck())
    const sent = this.arena === null ? { header: new Uint8Array(kept.header), segments: kept.segments } : kept
    carrier.send(sent, kept.order, tellingOf(kept, carrier))
  }

  /** Without loss only the carrier decides whether the other end lives, not time. But an end that has closed does not wait for ever. */
  private get isTimed(): boolean {
    return this.settings.carrierLoses || this.isEnding
  }

  /** An acknowledgement does not move the timer; when it fires too early it is set again. */
  private arm(): void {
    this.disarm()
    if (!this.isTimed || this.kept.size === 0) return
    const { clock, carrierLoses, resendMs, resendMaxMs, giveUpMs } = this.settings
    const nowMs = clock.now()
    const waitMs = carrierLoses ? Math.min(resendMs * 2 ** this.attempt, resendMaxMs) : giveUpMs
    this.resendTimer = clock.setTimer(Math.max(0, Math.min(waitMs, this.progressMs + giveUpMs - nowMs)), this.onLate)
  }

  private disarm(): void {
    this.resendTimer?.cancel()
    this.resendTimer = null
  }

  private readonly onLate = (): void => {
    this.resendTimer = null
    // Another carrier sets it again, or there is none and the link ends. A closed session waits no longer than with a carrier.
    if (this.carrier?.closed === true && !this.isEnding) return
    const { clock, carrierLoses, resendMs, giveUpMs } = this.settings
    const quietMs = clock.now() - this.progressMs
    if (quietMs >= giveUpMs) {
      this.giveUp(`the other end has acknowledged nothing for ${giveUpMs} ms`)
      return
    }
    // Something was acknowledged since the timer was set: what is the oldest now has its own time.
    if (carrierLoses && (this.attempt > 0 || quietMs >= resendMs)) {
      this.resend(RESEND_BURST)
      this.attempt++
    }
    this.arm()
  }
}

/** A frame that a carrier has flushed counts, even if it must be sent again. If the carrier ended before, the frame waits for the next. */
function tellingOf(kept: Kept, carrier: Link): OnFlushed | null {
  if (kept.onFlushed === null) return null
  return (isFlushed) => {
    if (isFlushed && !carrier.closed) flushed(kept, true)
  }
}
