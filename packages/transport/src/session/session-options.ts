/** The options, defaults and counters of a `Session`. */
import type { Clock } from '../clock.js'
import type { Frame } from '../link.js'

export interface SessionOptions {
  readonly clock: Clock
  /** Which life of this worker, and which of the other, the session belongs to: 32 bits each. Frames of any other are refused. */
  readonly self: number
  /** Null: it is known with the first carrier (`reconnect`). */
  readonly peer: number | null
  /** Appears in errors. */
  readonly name?: string
  /** How many frames may be under way unacknowledged; later ones wait here. Both ends must agree. Default 1,024. */
  readonly windowFrames?: number
  /** The link breaks when more than this waits to be acknowledged. Defaults 65,536 frames and 256 MiB. */
  readonly keptFramesMax?: number
  readonly keptBytesMax?: number
  /** An acknowledgement that finds no frame to ride on leaves by itself after this time. Default 5. */
  readonly ackDelayMs?: number
  /** An unacknowledged frame is sent again after this time, then twice it, and so on up to `resendMaxMs`. Defaults 50 and 1,000. */
  readonly resendMs?: number
  readonly resendMaxMs?: number
  /** The link breaks when none of the waiting frames was acknowledged for so long. Default 30,000. */
  readonly giveUpMs?: number
  /** How long a session without a carrier waits for `reconnect`; 0: the carrier's end is the link's; infinite: until `abandon`. Default 0. */
  readonly reconnectMs?: number
  /** False: a carrier that has not ended has lost nothing, so nothing is sent again before it is replaced. Default true. */
  readonly carrierLoses?: boolean
  /** False: frames are lent to the carrier, which copies what is small and leaves the rest where it is (SES-19). Default true: it takes buffers away. */
  readonly carrierTakes?: boolean
  /** Throws if the frame is one that no carrier would take; it is then still the caller's. */
  readonly check?: (frame: Frame) => void
  /** Called at every frame that is to be sent before the session has its first carrier. */
  readonly onWant?: () => void
  /** Once: nothing more is sent, received or waited for. */
  readonly onOver?: () => void
}

const DEFAULTS = {
  name: 'session',
  windowFrames: 1024,
  keptFramesMax: 65_536,
  keptBytesMax: 256 * 2 ** 20,
  ackDelayMs: 5,
  resendMs: 50,
  resendMaxMs: 1000,
  giveUpMs: 30_000,
  reconnectMs: 0,
  carrierLoses: true,
  carrierTakes: true,
}

export type SessionSettings = SessionOptions & Readonly<typeof DEFAULTS>
export const settingsOf = (options: SessionOptions): SessionSettings => ({ ...DEFAULTS, ...options })

/** Frames so far. `refused`: of another incarnation, of no session, or out of the window. */
export const noCounts = () => ({ sent: 0, resent: 0, acks: 0, delivered: 0, early: 0, ahead: 0, duplicates: 0, refused: 0 })
export type SessionCounts = ReturnType<typeof noCounts>
