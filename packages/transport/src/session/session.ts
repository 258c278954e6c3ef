/**
 * A link over a carrier that may lose, repeat, delay and reorder frames, and may be replaced by another (`reconnect`): sequence numbers,
 * acknowledgement, resending, one window of credits. The rules SES-1 to SES-24 are in SPEC.md. The carrier has a link's methods and weaker
 * promises: the simulation's under fault rules, or a socket, which loses nothing until it breaks. A MessagePort cannot lose, and needs no session.
 *
 * This file has the carriers, the ends, and whose frames are taken; what goes out is in `sending.ts`, what comes in in `receiving.ts`.
 */
import { strict as assert } from 'node:assert'
import type { Timer } from '../clock.js'
import { EVERY_ORDER, type Frame, type Link, type LinkClosed, type LinkReceiver, type OnFlushed } from '../link.js'
import { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from '../link-errors.js'
import { Receiving } from './receiving.js'
import { Sending } from './sending.js'
import { SessionHeadReader, SessionKind } from './session-frame.js'
import { noCounts, type SessionOptions, type SessionSettings, settingsOf } from './session-options.js'

export class Session implements Link {
  readonly counts = noCounts()
  private readonly settings: SessionSettings
  private readonly sending: Sending
  private readonly receiving: Receiving
  private readonly heads = new SessionHeadReader()
  private reason: LinkClosed | null = null
  /** Nothing is sent, received or waited for any more, though what is ready is still delivered. */
  private over = false
  private reconnectTimer: Timer | null = null
  private isPaused = false

  /** Opens the carrier at once, since acknowledgements come before `open` too. Null: the first comes by `reconnect`. */
  constructor(carrier: Link | null, options: SessionOptions) {
    this.settings = settingsOf(options)
    this.receiving = new Receiving(
      this.settings,
      this.counts,
      () => this.sending.sendAck(),
      () => this.onPeerEnd(),
    )
    this.sending = new Sending(this.settings, this.counts, this.receiving, (detail) => this.abandon(detail))
    if (carrier !== null) this.attach(carrier)
  }

  get closed(): boolean {
    return this.reason !== null
  }

  get unreadBytes(): number {
    return this.sending.unreadBytes
  }

  /** How many frames are not acknowledged yet, sent or not. */
  get unacknowledged(): number {
    return this.sending.unacknowledged
  }

  open(receiver: LinkReceiver): void {
    this.receiving.open(receiver)
  }

  /** @throws LINK_CLOSED, also when this frame is the one that breaks the link (SES-8), or what `check` throws */
  send(frame: Frame, order = EVERY_ORDER, onFlushed: OnFlushed | null = null): void {
    if (this.reason === null) {
      this.settings.check?.(frame)
      this.sending.checkRoom(frame)
    }
    if (this.reason !== null) throw linkClosedError(this.settings.name, this.reason)
    this.sending.send(SessionKind.DATA, frame, order, onFlushed)
  }

  flush(): void {
    this.sending.flush()
  }

  poll(): number {
    return this.receiving.poll(this.sending.carrier)
  }

  /** Acknowledgements wait with the frames that they ride on. Frames that arrived before, and wait for their turn here, are delivered. */
  setPaused(isPaused: boolean): void {
    this.isPaused = isPaused
    this.sending.carrier?.setPaused?.(isPaused)
  }

  /** The session continues to send until the peer has every frame, or `giveUpMs` pass without a sign of it. */
  close(): void {
    if (this.reason === null) {
      this.end(CLOSED_BY_SELF)
      // The peer's word that it has END is to be read.
      if (this.isPaused) this.setPaused(false)
      // Nothing was ever sent, so no peer knows of this session.
      if (this.sending.carrier === null && this.unacknowledged === 0) this.finish()
      if (!this.over) this.sending.sendEnd()
    } else if (this.reason.by === 'peer') {
      this.finish()
    }
  }

  /**
   * Continues over another carrier, whose other end the peer's session was given: unacknowledged frames are sent again, nothing is delivered
   * twice. The old carrier is closed. A session that is over closes the new one. `peer` is the other's life, where it was not known yet.
   */
  reconnect(carrier: Link, peer: number | null = this.sending.peer): void {
    if (this.over) {
      carrier.close()
      return
    }
    const { sending } = this
    assert(peer !== null && (sending.peer === null || sending.peer === peer), 'a session belongs to one life of its peer')
    sending.peer = peer
    this.reconnectTimer?.cancel()
    this.attach(carrier)
    sending.resume()
  }

  /** Ends the link as its carrier's end for good would: its owner no longer looks for another carrier. */
  abandon(detail: string): void {
    if (this.over) return
    this.finish()
    if (this.reason === null) this.end({ by: 'peer', detail })
  }

  private attach(carrier: Link): void {
    const { sending } = this
    const before = sending.carrier
    sending.carrier = carrier
    before?.close()
    carrier.open({
      onFrame: (frame) => {
        if (carrier === sending.carrier) this.receive(frame)
      },
      onTurnEnd: () => {
        if (carrier === sending.carrier) this.receiving.endTurn()
      },
      onClose: (reason) => {
        if (carrier === sending.carrier) this.onCarrierClosed(reason)
      },
    })
    if (this.isPaused) carrier.setPaused?.(true)
  }

  private receive(frame: Frame): void {
    const { sending } = this
    const head = this.heads.read(frame)
    if (this.over || head === null || head.from !== sending.peer || head.to !== this.settings.self || head.ack > sending.transmitted) {
      this.counts.refused++
      sending.carrier?.idle?.()
      return
    }
    const { unacknowledged } = sending
    sending.onAck(head.ack)
    // The last of all, END, has arrived.
    if (this.reason?.by === 'self' && sending.unacknowledged === 0) this.finish()
    if (head.kind === SessionKind.ACK) {
      if (unacknowledged === sending.unacknowledged) sending.carrier?.idle?.()
      return
    }
    const { duplicates, refused } = this.counts
    this.receiving.accept(head, frame)
    if (duplicates !== this.counts.duplicates || refused !== this.counts.refused) sending.carrier?.idle?.()
  }

  /** The peer has closed. Its END may come again until it knows that it has arrived, so the carrier stays until the peer closes it. */
  private onPeerEnd(): void {
    if (this.reason !== null) return
    this.end(CLOSED_BY_PEER)
    this.sending.forget()
  }

  private onCarrierClosed({ detail }: LinkClosed): void {
    if (this.over) return
    const { clock, reconnectMs } = this.settings
    // The peer has nothing more to say, or has closed as this end has: nobody waits for anything.
    if (this.reason?.by === 'peer' || reconnectMs === 0) this.abandon(detail)
    else if (reconnectMs !== Number.POSITIVE_INFINITY)
      this.reconnectTimer = clock.setTimer(reconnectMs, () => this.abandon(`${detail}; nobody reconnected in ${reconnectMs} ms`))
  }

  private end(reason: LinkClosed): void {
    this.reason = reason
    this.receiving.end(reason)
  }

  private finish(): void {
    if (this.over) return
    this.over = true
    this.sending.forget()
    this.receiving.stop()
    this.reconnectTimer?.cancel()
    this.sending.carrier?.close()
    this.settings.onOver?.()
  }
}
