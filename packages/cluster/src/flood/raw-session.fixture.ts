/**
 * A session's client by hand, for floods: it authenticates, joins a worker's session, and then writes the same message again and again, as fast as the other end reads, straight into the socket. It
 * counts and acknowledges the messages that come back. `flood-kinds.fixture.ts` has the messages.
 */
import { once } from 'node:events'
import net from 'node:net'
import { crc32 } from 'node:zlib'
import {
  ChunkReader,
  ChunkType,
  ControlChunk,
  type Credentials,
  controlChunk,
  Handshake,
  HEAD_BYTES,
  type Identity,
  SessionKind,
  sessionHead,
  type TcpAddress,
} from '@postgrad/transport/internal'

const HEAD_OF_SESSION = 32
/** Of frames that go into one chunk, which has 32 KiB at most. */
const BATCH_BYTES = 30 * 1024
const PLAIN_BYTES = 200_000
const OPEN_MS = 5000
/** Bytes that wait in the socket; with more it is full. */
const FULL_BYTES = 2 * 2 ** 20

/** One message, as its header on the wire. A request id of this value is another in each copy. */
export const ANY_REQUEST = 0x7a7b7c7d

export interface RawSessionOptions {
  readonly at: TcpAddress
  readonly self: Identity
  readonly credentials: Credentials
  readonly wants: { readonly name: string; readonly id: number }
}

export class RawSession {
  readonly socket: net.Socket
  readonly got = { frames: 0, bytes: 0 }
  /** What the other end said at last. */
  bye: string | null = null
  /** A session numbers messages in order; if true, each copy has the first one's number. */
  isRepeating = false
  private readonly reader = new ChunkReader({ frameBytesMax: 2 ** 30, segmentsMax: 2 ** 14 })
  private readonly life = 1 + Math.floor(Math.random() * 2 ** 31)
  private peerLife = 0
  private chunks = 0
  private sequence = 1
  private ack = 0
  private request = 1
  private onAttach: (() => void) | null = null

  private constructor(socket: net.Socket) {
    this.socket = socket
    socket.on('error', () => {})
  }

  /** Resolves when frames may be sent, or after the handshake. Rejects when the other end refuses, or does not answer. */
  static async open({ at, self, credentials, wants }: RawSessionOptions, purpose = 'session', isKnownEnough = false): Promise<RawSession> {
    const socket = net.connect(at.port, at.host)
    const session = new RawSession(socket)
    const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes))
    const handshake = new Handshake({ side: 'dialler', self, credentials, wants: purpose === 'session' ? wants : null, purpose, random })
    const known = new Promise<void>((resolve, reject) => {
      socket.on('close', () => reject(new Error(`closed: ${session.bye ?? 'without a word'}`)))
      session.onAttach = resolve
    })
    known.catch(() => {})
    socket.on('data', (bytes: Buffer) => {
      try {
        session.read(bytes, handshake, purpose, isKnownEnough)
      } catch {
        socket.destroy()
      }
    })
    await Promise.race([once(socket, 'connect'), known])
    session.control(ChunkType.HANDSHAKE, handshake.begin() as Uint8Array)
    const timer = setTimeout(() => socket.destroy(), OPEN_MS)
    await known.finally(() => clearTimeout(timer))
    return session
  }

  get closed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded
  }

  get isFull(): boolean {
    return this.socket.writableLength > FULL_BYTES
  }

  control(type: ChunkType, body: Uint8Array = new Uint8Array(0)): void {
    this.socket.write(controlChunk(type, body, this.chunks++))
  }

  /** As many copies of a small message as one chunk takes; a large one once, in parts. @returns how many */
  write(message: Uint8Array): number {
    const bytes = 8 + HEAD_OF_SESSION + align8(message.length)
    if (bytes > BATCH_BYTES) {
      this.writeLarge(message)
      return 1
    }
    const count = Math.min(250, Math.floor(BATCH_BYTES / bytes))
    const chunk = Buffer.alloc(HEAD_BYTES + count * bytes)
    const requestAt = requestIn(message)
    for (let i = 0, at = HEAD_BYTES; i < count; i++, at += bytes) {
      chunk.writeUInt32LE(HEAD_OF_SESSION + message.length, at)
      this.head(chunk, at + 8, SessionKind.DATA)
      chunk.set(message, at + 8 + HEAD_OF_SESSION)
      if (requestAt >= 0) chunk.writeUInt32BE(this.request++ & 0x7fff_ffff, at + 8 + HEAD_OF_SESSION + requestAt)
    }
    this.chunk(ChunkType.FRAMES, chunk, 1)
    return count
  }

  /** Acknowledgements, one to a frame. */
  writeAcks(count: number): void {
    const bytes = 8 + HEAD_OF_SESSION
    const chunk = Buffer.alloc(HEAD_BYTES + count * bytes)
    for (let i = 0, at = HEAD_BYTES; i < count; i++, at += bytes) {
      chunk.writeUInt32LE(HEAD_OF_SESSION, at)
      this.head(chunk, at + 8, SessionKind.ACK)
    }
    this.chunk(ChunkType.FRAMES, chunk, 1)
  }

  /** Headers of frames as they are, for a connection without a session. */
  writeHeaders(header: Uint8Array, count: number): void {
    const bytes = 8 + align8(header.length)
    const chunk = Buffer.alloc(HEAD_BYTES + count * bytes)
    for (let i = 0, at = HEAD_BYTES; i < count; i++, at += bytes) {
      chunk.writeUInt32LE(header.length, at)
      chunk.set(header, at + 8)
    }
    this.chunk(ChunkType.FRAMES, chunk, 1)
  }

  private writeLarge(message: Uint8Array): void {
    const frame = Buffer.alloc(HEAD_OF_SESSION + message.length)
    this.head(frame, 0, SessionKind.DATA)
    frame.set(message, HEAD_OF_SESSION)
    const announced = Buffer.alloc(HEAD_BYTES + 8)
    announced.writeUInt32LE(frame.length, HEAD_BYTES)
    this.chunk(ChunkType.LARGE, announced, 1)
    for (let at = 0; at < frame.length; at += PLAIN_BYTES) {
      const part = frame.subarray(at, at + PLAIN_BYTES)
      this.chunk(ChunkType.PLAIN, Buffer.concat([Buffer.alloc(HEAD_BYTES), part]), 1)
    }
  }

  private chunk(type: ChunkType, chunk: Buffer, stream: number): void {
    chunk.writeUInt32LE(chunk.length - HEAD_BYTES, 4)
    chunk.writeUInt32LE(this.chunks++, 8)
    chunk[12] = type
    chunk[13] = 1
    chunk.writeUInt16LE(stream, 14)
    chunk.writeUInt32LE(crc32(type === ChunkType.PLAIN ? chunk.subarray(4, HEAD_BYTES) : chunk.subarray(4)), 0)
    this.socket.write(chunk)
  }

  private head(at: Buffer, offset: number, kind: SessionKind): void {
    at.writeUInt32LE(kind | (1 << 8), offset)
    at.writeUInt32LE(this.life, offset + 4)
    at.writeUInt32LE(this.peerLife, offset + 8)
    at.writeDoubleLE(kind === SessionKind.ACK ? 0 : this.isRepeating ? 1 : this.sequence++, offset + 16)
    at.writeDoubleLE(this.ack, offset + 24)
  }

  private read(bytes: Buffer, handshake: Handshake, purpose: string, isKnownEnough: boolean): void {
    const { reader } = this
    this.got.bytes += bytes.length
    reader.push(bytes)
    for (let got = reader.next(); got !== null; got = reader.next()) {
      if (!(got instanceof ControlChunk)) {
        this.got.frames++
        const head = purpose === 'session' ? sessionHead(got) : null
        if (head !== null && head.seq > this.ack) this.ack = head.seq
      } else if (got.type === ChunkType.HANDSHAKE) {
        const { send, done } = handshake.receive(got.body)
        if (send !== null) this.control(ChunkType.HANDSHAKE, send)
        if (done === null) continue
        reader.admit()
        if (purpose !== 'session' || isKnownEnough) this.onAttach?.()
        const resume = Buffer.alloc(12)
        resume.writeUInt32LE(this.life, 0)
        if (purpose === 'session') this.control(ChunkType.RESUME, resume)
      } else if (got.type === ChunkType.PING) this.control(ChunkType.PONG)
      else if (got.type === ChunkType.RESUME) this.peerLife = got.body.readUInt32LE(0)
      else if (got.type === ChunkType.ATTACH) this.onAttach?.()
      else if (got.type === ChunkType.BYE) this.bye = `${got.body[0]} ${got.body.toString('utf8', 1)}`
    }
  }
}

const align8 = (bytes: number): number => (bytes + 7) & ~7

/** The offset of the request id, or -1. */
function requestIn(message: Uint8Array): number {
  const mark = Buffer.alloc(5)
  mark[0] = 0xce
  mark.writeUInt32BE(ANY_REQUEST, 1)
  const at = Buffer.from(message.buffer, message.byteOffset, message.length).indexOf(mark)
  return at < 0 ? -1 : at + 1
}
