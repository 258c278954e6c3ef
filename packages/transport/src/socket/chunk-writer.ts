/**
 * Makes chunks of frames and hands them to a socket: small frames of one turn in one write, large segments without a copy, never more than a
 * budget at once. `chunk.ts` has the format, `socket-link.ts` decides when.
 *
 *     add(small) ─→ batch ─┐ sealed by its size, a large frame, or `flush`
 *     add(large) ──────────┴→ queue ──budget──→ socket        control (PING, BYE …) and `ahead` go ahead of the queue, between two chunks
 *
 * Note [What overtakes]. While a large frame waits or is under way, a small one that may overtake every order (`FrameOrder`) in the queue goes into `ahead`. Later frames go there too,
 * or into the queue, so they leave after it: nothing overtakes frames in `ahead`. Without a large frame in the queue nothing overtakes.
 */
import { EVERY_ORDER, type Frame, type FrameOrder, type OnFlushed, staysBehind } from '../link.js'
import { align8, SEGMENT_MOVED_BYTES_MIN } from '../post.js'
import { takeSegments } from '../take-segments.js'
import { Batch, Batcher } from './batch.js'
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
import { DataSum } from './data-sum.js'
import type { SocketLimits } from './socket-limits.js'

/** A socket, as the writer uses it. */
export interface ChunkSink {
  /** `onWritten`: the system has them, or there is an error. */
  write(bytes: Uint8Array, onWritten?: (error?: Error | null) => void): boolean
  cork(): void
  uncork(): void
  /** Bytes that were given to `write` and have not left. */
  readonly writableLength: number
}

/** A frame that is written in parts, and how far. */
class LargeFrame {
  readonly parts: readonly Uint8Array[]
  readonly bytes: number
  readonly order: FrameOrder
  readonly onFlushed: OnFlushed | null
  isAnnounced = false
  part = 0
  offset = 0
  left: number

  constructor(parts: readonly Uint8Array[], bytes: number, order: FrameOrder, onFlushed: OnFlushed | null) {
    this.parts = parts
    this.bytes = bytes
    this.order = order
    this.onFlushed = onFlushed
    this.left = bytes
  }
}

type Waiting = Batch | LargeFrame

export class ChunkWriter {
  /** Frames are only lent, and stay as they are until the link ends; else their bytes are taken, as by any link. */
  isLent = false
  /** The bytes of large frames have a checksum of their own. 64 MiB of them cost each end 9 ms. */
  checksBytes = true
  /** Bytes that wait for room in the socket. */
  queuedBytes = 0
  /** Bytes that were handed over, ever; and as many of them as end with the last that were only lent. */
  private handed = 0
  private lentEnd = 0
  private readonly sink: ChunkSink
  private readonly limits: SocketLimits
  private readonly crc32: Crc = crc32Of()
  private sum: DataSum | null = null
  private sequence = 0
  private queue: Waiting[] = []
  /** Of these, large frames; and every order of what is there. */
  private queuedLarge = 0
  private queuedOrder: FrameOrder = 0
  /** Full batches of overtaking frames. */
  private aheadQueue: Batch[] = []
  private readonly small = new Batcher(ChunkType.FRAMES)
  private readonly ahead = new Batcher(ChunkType.AHEAD)

  constructor(sink: ChunkSink, limits: SocketLimits) {
    this.sink = sink
    this.limits = limits
  }

  /** Bytes of the open batches. */
  get gatheredBytes(): number {
    return this.small.bytes + this.ahead.bytes
  }

  /** Something waits for `flush`, or for room. */
  get isWaiting(): boolean {
    return this.small.bytes > 0 || this.queue.length > 0 || this.isAheadWaiting
  }

  /** Bytes that were only lent lie in the socket and have not left: it would still read them. */
  get isLentOut(): boolean {
    return this.handed - this.sink.writableLength < this.lentEnd
  }

  /** @throws FRAME_TOO_LARGE; the frame is then still the caller's */
  add(frame: Frame, order = EVERY_ORDER, onFlushed: OnFlushed | null = null): void {
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
      this.addLarge(frame, bytes, order, onFlushed)
      return
    }
    const batcher = this.overtakes(order) ? this.ahead : this.small
    if (batcher.bytes > 0 && !batcher.hasRoom(size)) this.enqueueBatch(batcher)
    batcher.add(frame, size, order)
    batcher.flushes.add(onFlushed)
  }

  /** Ahead of everything that waits. */
  control(type: ChunkType, body: Uint8Array): void {
    this.hand(controlChunk(type, body, this.sequence))
    this.sequence = nextSequence(this.sequence)
  }

  /** Hands over waiting chunks, as far as the budget goes; called again when the socket has room. True if anything was handed over. */
  flush(): boolean {
    const { sink, limits } = this
    if (sink.writableLength >= limits.handedBytesMax) return false
    if (this.queue.length === 0 && !this.isAheadWaiting) {
      // Nearly always: the frames of a turn, in one write.
      if (this.small.bytes === 0) return false
      this.writeBatch(ChunkType.FRAMES, this.small.seal(), this.small.flushes.take())
      return true
    }
    if (this.small.bytes > 0) this.enqueueBatch(this.small)
    sink.cork()
    if (this.isAheadWaiting) this.writeAhead()
    let next = 0
    while (next < this.queue.length && sink.writableLength < limits.handedBytesMax) {
      const waiting = this.queue[next] as Waiting
      if (waiting instanceof LargeFrame) {
        this.writePart(waiting)
        if (waiting.left > 0) continue
        this.queuedLarge--
      } else {
        this.queuedBytes -= waiting.bytes.length
        this.writeBatch(ChunkType.FRAMES, waiting.bytes, waiting.onFlushed)
      }
      next++
    }
    if (next > 0) {
      this.queue.splice(0, next)
      this.queuedOrder = this.queue.reduce((order, waiting) => order | waiting.order, 0)
    }
    sink.uncork()
    return true
  }

  /** Forgets all that was not handed over. */
  drop(): void {
    const dropped = [...this.queue, ...this.aheadQueue]
    this.queue = []
    this.queuedLarge = 0
    this.queuedOrder = 0
    this.aheadQueue = []
    this.queuedBytes = 0
    this.small.drop()
    this.ahead.drop()
    for (const { onFlushed } of dropped) onFlushed?.(false)
    this.small.flushes.run(false)
    this.ahead.flushes.run(false)
  }

  /** See Note [What overtakes]. */
  private overtakes(order: FrameOrder): boolean {
    return this.queuedLarge > 0 && !staysBehind(order, this.queuedOrder | this.small.order)
  }

  private get isAheadWaiting(): boolean {
    return this.ahead.bytes > 0 || this.aheadQueue.length > 0
  }

  private enqueueBatch(batcher: Batcher): void {
    const { order } = batcher
    const batch = new Batch(batcher.seal(), order, batcher.flushes.take())
    this.queuedBytes += batch.bytes.length
    if (batcher === this.ahead) this.aheadQueue.push(batch)
    else this.enqueue(batch)
  }

  private enqueue(waiting: Waiting): void {
    this.queue.push(waiting)
    this.queuedOrder |= waiting.order
  }

  private writeAhead(): void {
    for (const { bytes, onFlushed } of this.aheadQueue) {
      this.queuedBytes -= bytes.length
      this.writeBatch(ChunkType.AHEAD, bytes, onFlushed)
    }
    this.aheadQueue = []
    if (this.ahead.bytes > 0) this.writeBatch(ChunkType.AHEAD, this.ahead.seal(), this.ahead.flushes.take())
  }

  private writeBatch(type: ChunkType, batch: Buffer, onFlushed: OnFlushed | null): void {
    writeHead(batch, 0, type, batch.length - HEAD_BYTES, this.sequence)
    this.sequence = nextSequence(this.sequence)
    batch.writeUInt32LE(this.crc32(batch.subarray(4)), 0)
    this.hand(batch, onFlushed)
  }

  private addLarge({ header, segments }: Frame, bytes: number, order: FrameOrder, onFlushed: OnFlushed | null): void {
    const { limits } = this
    if (bytes > limits.frameBytesMax || segments.length > limits.segmentsMax) throw frameTooLarge(bytes, segments.length, limits)
    if (this.small.bytes > 0) this.enqueueBatch(this.small)
    const parts = this.isLent ? [header, ...segments] : [header.slice(), ...takeSegments(segments)]
    this.enqueue(new LargeFrame(parts, bytes, order, onFlushed))
    this.queuedLarge++
    this.queuedBytes += bytes
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
    const sum = this.checksBytes ? this.beginSum(head) : null
    const views: Buffer[] = []
    for (let left = length; left > 0; ) {
      const part = frame.parts[frame.part] as Uint8Array
      const take = Math.min(left, part.length - frame.offset)
      if (take > 0) {
        const view = Buffer.from(part.buffer as ArrayBuffer, part.byteOffset + frame.offset, take)
        sum?.add(view)
        views.push(view)
      }
      left -= take
      frame.offset += take
      if (frame.offset === part.length) {
        frame.part++
        frame.offset = 0
      }
    }
    head.writeUInt32LE(sum === null ? this.crc32(head.subarray(4)) : sum.end(), 0)
    this.hand(head)
    frame.left -= length
    const last = frame.left === 0 ? views.pop() : undefined
    for (const view of views) this.hand(view)
    if (last !== undefined) this.hand(last, frame.onFlushed)
    if (this.isLent) this.lentEnd = this.handed
    this.queuedBytes -= length
  }

  private beginSum(head: Buffer): DataSum {
    this.sum ??= new DataSum()
    this.sum.begin(head.subarray(4))
    return this.sum
  }

  private announce({ parts, left, onFlushed }: LargeFrame): void {
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
    this.hand(chunk, left === 0 ? onFlushed : null)
  }

  private hand(bytes: Uint8Array, onFlushed: OnFlushed | null = null): void {
    this.handed += bytes.length
    if (onFlushed === null) this.sink.write(bytes)
    else this.sink.write(bytes, (error) => onFlushed(error == null))
  }
}
