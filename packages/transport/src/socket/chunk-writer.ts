/**
 * Makes chunks of frames and hands them to a socket: small frames of one turn in one write, large segments without a copy, never more than a
 * budget at once. `chunk.ts` knows the format, `socket-link.ts` decides when.
 *
 *     add(small) ─→ batch ─┐ sealed by its size, a large frame, or `flush`
 *     add(large) ──────────┴→ queue ──budget──→ socket        control (PING, BYE …) goes ahead of the queue, between two chunks
 */
import type { Frame } from '../link.js'
import { align8, SEGMENT_MOVED_BYTES_MIN } from '../post.js'
import { takeSegments } from '../take-segments.js'
import {
  BATCH_BYTES_MAX,
  ChunkType,
  type Crc,
  controlChunk,
  crc32Of,
  DATA_BYTES_MAX,
  frameTooLarge,
  HEAD_BYTES,
  nextSequence,
  writeHead,
} from './chunk.js'
import type { SocketLimits } from './socket-limits.js'

/** What the writer uses of a socket. */
export interface ChunkSink {
  write(bytes: Uint8Array): boolean
  cork(): void
  uncork(): void
  /** Bytes that were given to `write` and have not left. */
  readonly writableLength: number
}

/** Batches are gathered here one behind another. Written memory is not used again: a socket may still hold it. */
const ARENA_BYTES = 128 * 1024

/** A frame that is written in parts, and how far. */
class LargeFrame {
  readonly parts: readonly Uint8Array[]
  readonly bytes: number
  isAnnounced = false
  part = 0
  offset = 0
  left: number

  constructor(parts: readonly Uint8Array[], bytes: number) {
    this.parts = parts
    this.bytes = bytes
    this.left = bytes
  }
}

/** A batch of small frames, with room for its head in front, or a large frame. */
type Waiting = Buffer | LargeFrame

export class ChunkWriter {
  /** Frames are only lent, and stay as they are until the link ends; else their bytes are taken, as by any link. */
  isLent = false
  /** The bytes of large frames have a checksum of their own. 64 MiB of them cost each end 14 ms. */
  checksBytes = true
  /** Bytes that wait for room in the socket. */
  queuedBytes = 0
  /** Bytes that were handed over, ever; and as many of them as end with the last that were only lent. */
  private handed = 0
  private lentEnd = 0
  private readonly sink: ChunkSink
  private readonly limits: SocketLimits
  private readonly crc32: Crc = crc32Of()
  private sequence = 0
  private queue: Waiting[] = []
  private arena: Buffer = Buffer.alloc(0)
  /** The open batch: from `start` (its head) to `used`. Equal when there is none. */
  private start = 0
  private used = 0

  constructor(sink: ChunkSink, limits: SocketLimits) {
    this.sink = sink
    this.limits = limits
  }

  /** Bytes of the open batch. */
  get gatheredBytes(): number {
    return this.used - this.start
  }

  /** Something waits for `flush`, or for room. */
  get isWaiting(): boolean {
    return this.used > this.start || this.queue.length > 0
  }

  /** Bytes that were only lent lie in the socket and have not left: it would still read them. */
  get isLentOut(): boolean {
    return this.handed - this.sink.writableLength < this.lentEnd
  }

  /** @throws FRAME_TOO_LARGE; the frame is then still the caller's */
  add(frame: Frame): void {
    const { header, segments } = frame
    const count = segments.length
    const length = header.length
    let bytes = length
    let size = align8(8 + 4 * count) + align8(length)
    let isLarge = false
    for (let i = 0; i < count; i++) {
      const { length } = segments[i] as Uint8Array
      bytes += length
      size += align8(length)
      if (length >= SEGMENT_MOVED_BYTES_MIN) isLarge = true
    }
    if (isLarge || size > BATCH_BYTES_MAX) {
      this.addLarge(frame, bytes)
      return
    }
    if (this.used === this.start || this.used + size > this.arena.length || this.used + size - this.start > HEAD_BYTES + BATCH_BYTES_MAX) {
      this.begin(size)
    }
    const { arena } = this
    let at = this.used
    arena.writeUInt32LE(length, at)
    arena.writeUInt32LE(count, at + 4)
    at += 8
    for (let i = 0; i < count; i++) {
      arena.writeUInt32LE((segments[i] as Uint8Array).length, at)
      at += 4
    }
    at = align8(at)
    arena.set(header, at)
    at += align8(length)
    for (let i = 0; i < count; i++) {
      const segment = segments[i] as Uint8Array
      arena.set(segment, at)
      at += align8(segment.length)
    }
    this.used = at
  }

  /** Ahead of everything that waits. */
  control(type: ChunkType, body: Uint8Array): void {
    this.hand(controlChunk(type, body, this.sequence))
    this.sequence = nextSequence(this.sequence)
  }

  /** Hands over what waits, as far as the budget goes; called again when the socket has room. True if anything was handed over. */
  flush(): boolean {
    const { sink, limits } = this
    if (sink.writableLength >= limits.handedBytesMax) return false
    if (this.queue.length === 0) {
      // Nearly always: what was gathered in a turn, in one write.
      if (this.used === this.start) return false
      this.writeBatch(this.seal())
      return true
    }
    if (this.used > this.start) this.enqueue(this.seal())
    sink.cork()
    let next = 0
    while (next < this.queue.length && sink.writableLength < limits.handedBytesMax) {
      const waiting = this.queue[next] as Waiting
      if (waiting instanceof LargeFrame) {
        this.writePart(waiting)
        if (waiting.left === 0) next++
      } else {
        this.queuedBytes -= waiting.length
        this.writeBatch(waiting)
        next++
      }
    }
    this.queue.splice(0, next)
    sink.uncork()
    return true
  }

  /** Forgets what has not been handed over. */
  drop(): void {
    this.queue = []
    this.queuedBytes = 0
    this.start = this.used
  }

  private begin(size: number): void {
    if (this.used > this.start) this.enqueue(this.seal())
    if (this.used + HEAD_BYTES + size > this.arena.length) {
      // Not zeroed: gaps between parts are written as they are, so they must not hold what others left there.
      this.arena = Buffer.from(new ArrayBuffer(ARENA_BYTES))
      this.used = 0
    }
    this.start = this.used
    this.used += HEAD_BYTES
  }

  private seal(): Buffer {
    const batch = this.arena.subarray(this.start, this.used)
    this.start = this.used
    return batch
  }

  private enqueue(waiting: Waiting): void {
    this.queue.push(waiting)
    this.queuedBytes += waiting instanceof LargeFrame ? waiting.bytes : waiting.length
  }

  private writeBatch(batch: Buffer): void {
    writeHead(batch, 0, ChunkType.FRAMES, batch.length - HEAD_BYTES, this.sequence)
    this.sequence = nextSequence(this.sequence)
    batch.writeUInt32LE(this.crc32(batch.subarray(4)), 0)
    this.hand(batch)
  }

  private addLarge({ header, segments }: Frame, bytes: number): void {
    const { limits } = this
    if (bytes > limits.frameBytesMax || segments.length > limits.segmentsMax) throw frameTooLarge(bytes, segments.length, limits)
    if (this.used > this.start) this.enqueue(this.seal())
    const parts = this.isLent ? [header, ...segments] : [header.slice(), ...takeSegments(segments)]
    this.enqueue(new LargeFrame(parts, bytes))
  }

  private writePart(frame: LargeFrame): void {
    if (!frame.isAnnounced) {
      frame.isAnnounced = true
      this.announce(frame)
      if (frame.left === 0) return
    }
    const length = Math.min(frame.left, DATA_BYTES_MAX)
    const head = Buffer.allocUnsafe(HEAD_BYTES)
    writeHead(head, 0, this.checksBytes ? ChunkType.DATA : ChunkType.PLAIN, length, this.sequence)
    this.sequence = nextSequence(this.sequence)
    let crc = this.crc32(head.subarray(4))
    const views: Buffer[] = []
    for (let left = length; left > 0; ) {
      const part = frame.parts[frame.part] as Uint8Array
      const take = Math.min(left, part.length - frame.offset)
      if (take > 0) {
        const view = Buffer.from(part.buffer as ArrayBuffer, part.byteOffset + frame.offset, take)
        if (this.checksBytes) crc = this.crc32(view, crc)
        views.push(view)
      }
      left -= take
      frame.offset += take
      if (frame.offset === part.length) {
        frame.part++
        frame.offset = 0
      }
    }
    head.writeUInt32LE(crc, 0)
    this.hand(head)
    for (const view of views) this.hand(view)
    if (this.isLent) this.lentEnd = this.handed
    frame.left -= length
    this.queuedBytes -= length
  }

  private announce({ parts }: LargeFrame): void {
    const count = parts.length - 1
    const chunk = Buffer.allocUnsafe(HEAD_BYTES + 8 + 4 * count)
    let at = HEAD_BYTES
    chunk.writeUInt32LE((parts[0] as Uint8Array).length, at)
    chunk.writeUInt32LE(count, at + 4)
    at += 8
    for (let i = 1; i <= count; i++, at += 4) chunk.writeUInt32LE((parts[i] as Uint8Array).length, at)
    writeHead(chunk, 0, ChunkType.LARGE, chunk.length - HEAD_BYTES, this.sequence)
    this.sequence = nextSequence(this.sequence)
    chunk.writeUInt32LE(this.crc32(chunk.subarray(4)), 0)
    this.hand(chunk)
  }

  private hand(bytes: Uint8Array): void {
    this.handed += bytes.length
    this.sink.write(bytes)
  }
}
