/**
 * How many tensors of `send` one rank may have waiting at another, as both ends count them; rpc's `call-credits.ts` bounds calls in the same way.
 *
 *     sender                                                    receiver
 *     sent − taken < window, else it waits here ── SEND ──▸     received − taken
 *            taken  ◂── TAKEN [tensors, bytes] ────────────     after each half of the window
 */

export interface SendWindow {
  readonly tensorsMax: number
  /** The tensor that reaches it is the last that leaves. */
  readonly bytesMax: number
}

/** As rpc has it for calls, in bytes; tensors are fewer than calls. */
export const SEND_WINDOW: SendWindow = { tensorsMax: 1024, bytesMax: 64 * 2 ** 20 }

/** The sender's side. */
export class OutgoingSends {
  private readonly window: SendWindow
  private sent = 0
  private sentBytes = 0
  /** Of these, as far as the receiver has said. */
  private taken = 0
  private takenBytes = 0

  constructor(window: SendWindow) {
    this.window = window
  }

  get isFull(): boolean {
    return this.sent - this.taken >= this.window.tensorsMax || this.sentBytes - this.takenBytes >= this.window.bytesMax
  }

  onSent(bytes: number): void {
    this.sent++
    this.sentBytes += bytes
  }

  /** So many were taken in total. False, and without effect: not so much was sent. */
  onTaken(tensors: number, bytes: number): boolean {
    if (tensors > this.sent || bytes > this.sentBytes) return false
    this.taken = Math.max(this.taken, tensors)
    this.takenBytes = Math.max(this.takenBytes, bytes)
    return true
  }
}

/** The receiver's side. */
export class IncomingSends {
  taken = 0
  takenBytes = 0
  private readonly window: SendWindow
  private received = 0
  private receivedBytes = 0
  /** Known to the sender. */
  private told = 0
  private toldBytes = 0

  constructor(window: SendWindow) {
    this.window = window
  }

  /** Returns whether it is within the window; it counts in either case. */
  onReceived(bytes: number): boolean {
    const isWithin = this.received - this.taken < this.window.tensorsMax && this.receivedBytes - this.takenBytes < this.window.bytesMax
    this.received++
    this.receivedBytes += bytes
    return isWithin
  }

  /**
   * Returns whether the sender must get a TAKEN: after half a window, of either kind. A sender that sees no room has at least half a window here,
   * and gets one when that is taken.
   */
  onTaken(bytes: number): boolean {
    this.taken++
    this.takenBytes += bytes
    const isDue = 2 * (this.taken - this.told) >= this.window.tensorsMax || 2 * (this.takenBytes - this.toldBytes) >= this.window.bytesMax
    if (isDue) {
      this.told = this.taken
      this.toldBytes = this.takenBytes
    }
    return isDue
  }
}
