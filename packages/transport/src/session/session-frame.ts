/**
 * The format of the head that a session writes in front of each frame's header. `sending.ts` writes it, `session.ts` reads it.
 *
 *     byte 0: kind   1: version   2, 3: 0   4: sender's incarnation   8: receiver's incarnation   12: 0
 *     byte 16: sequence number (float64, 0 in an ACK)   24: the last number received in order (float64)   32: the frame's own header
 *
 * Little-endian. The header after it starts at a multiple of 8, so parts that the sender aligned inside it stay aligned.
 */
import type { Frame } from '../link.js'

export const SessionKind = {
  /** Carries one frame of the link. */
  DATA: 1,
  /** Carries nothing but what was received. */
  ACK: 2,
  /** The sender has closed: nothing follows. It has a number of its own, so it arrives as surely as a frame. */
  END: 3,
} as const

export type SessionKind = (typeof SessionKind)[keyof typeof SessionKind]

export const SESSION_BYTES = 32
const VERSION = 1
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

export interface SessionHead {
  readonly kind: SessionKind
  readonly from: number
  readonly to: number
  /** Counts DATA and END, from 1. */
  readonly seq: number
  readonly ack: number
}

/** The bytes are fresh, as the receiver owns them. */
export function sessionFrame({ kind, from, to, seq, ack }: SessionHead, frame: Frame | null): Frame {
  const header = new Uint8Array(SESSION_BYTES + (frame?.header.length ?? 0))
  writeSessionHead(Buffer.from(header.buffer), kind, from, to, seq, ack)
  if (frame !== null) header.set(frame.header, SESSION_BYTES)
  return { header, segments: frame?.segments ?? NO_SEGMENTS }
}

/** In front of a header that has room for it. */
export function writeSessionHead(header: Buffer, kind: SessionKind, from: number, to: number, seq: number, ack: number): void {
  header.writeUInt32LE(kind | (VERSION << 8), 0)
  header.writeUInt32LE(from, 4)
  header.writeUInt32LE(to, 8)
  header.writeUInt32LE(0, 12)
  header.writeDoubleLE(seq, 16)
  header.writeDoubleLE(ack, 24)
}

/** Reads heads. Many small frames lie in one buffer, so the view on that is kept: to make one costs more than to read by it. */
export class SessionHeadReader {
  private view: DataView = new DataView(new ArrayBuffer(0))

  /** Null if no session of this version wrote it. */
  read({ header }: Frame): SessionHead | null {
    if (header.length < SESSION_BYTES) return null
    if (this.view.buffer !== header.buffer) this.view = new DataView(header.buffer)
    const { view } = this
    const at = header.byteOffset
    const kind = view.getUint8(at)
    const seq = view.getFloat64(at + 16, true)
    const ack = view.getFloat64(at + 24, true)
    if (kind < SessionKind.DATA || kind > SessionKind.END || view.getUint8(at + 1) !== VERSION) return null
    if (!isCount(seq) || !isCount(ack) || (kind === SessionKind.ACK) !== (seq === 0)) return null
    return { kind: kind as SessionKind, from: view.getUint32(at + 4, true), to: view.getUint32(at + 8, true), seq, ack }
  }
}

/** One head alone. */
export const sessionHead = (frame: Frame): SessionHead | null => new SessionHeadReader().read(frame)

/** The frame of the link that a DATA carries: views on the same bytes. `overtook`: see `Frame`. */
export function sessionPayload({ header, segments }: Frame, overtook = 0): Frame {
  return { header: new Uint8Array(header.buffer, header.byteOffset + SESSION_BYTES, header.length - SESSION_BYTES), segments, overtook }
}

const isCount = (n: number): boolean => Number.isSafeInteger(n) && n >= 0
