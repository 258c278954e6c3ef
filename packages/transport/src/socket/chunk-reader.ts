/**
 * Reads chunks from the bytes of a socket, split anywhere: each byte is copied once, to where it stays. `chunk.ts` has the format.
 * Nothing is trusted: every length and count is checked before memory is taken for it, and the first impossible chunk ends the reading.
 *
 *     push(bytes) ─→ inputs ─head→ body of a small chunk ─→ arena, shared by many; frames are views on it
 *                               └→ DATA ─→ the buffers of the frame that was announced
 */

import type { FrameRoom } from '../frame-room.js'
import type { Frame } from '../link.js'
import { align8, SEGMENT_MOVED_BYTES_MIN } from '../post.js'
import {
  bodyBytesMax,
  CHUNK_VERSION,
  ChunkType,
  type Crc,
  chunkInvalid,
  crc32Of,
  type FrameLimits,
  HEAD_BYTES,
  isChunkType,
  isData,
  nextSequence,
  streamOf,
} from './chunk.js'
import { DataSum } from './data-sum.js'

const ARENA_BYTES = 64 * 1024
/** A longer body has a buffer of its own. */
const ARENA_BODY_BYTES_MAX = 16 * 1024
/** Fewer bytes are worth no read of their own. */
const PLACED_BYTES_MIN = 4096
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])
const NO_BYTES = Buffer.alloc(0)

/** A chunk of stream 0. The caller of `next` owns the body. */
export class ControlChunk {
  readonly type: ChunkType
  readonly body: Buffer

  constructor(type: ChunkType, body: Buffer) {
    this.type = type
    this.body = body
  }
}

class ReadFrame implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]
  /** At least so many: what numbers frames (a session) knows. */
  readonly overtook: number

  constructor(header: Uint8Array, segments: readonly Uint8Array[], overtook: number) {
    this.header = header
    this.segments = segments
    this.overtook = overtook
  }
}

/** Where a large segment is read to: memory of so many bytes, at a multiple of 8, which nobody else has. Null: fresh memory. */
export type Place = (bytes: number) => Uint8Array | null

function freshMemory(bytes: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer)
}

/** A frame whose bytes are coming. */
class ComingFrame {
  readonly frame: Frame
  readonly parts: readonly Uint8Array[]
  part = 0
  offset = 0
  left: number

  constructor(headerBytes: number, segmentBytes: readonly number[], total: number, placeOf: Place) {
    // Small parts share one buffer: a peer that announces thousands of empty segments does not cause thousands of buffers.
    const isSmall = (bytes: number): boolean => bytes < SEGMENT_MOVED_BYTES_MIN
    const small = segmentBytes.reduce((sum, bytes) => (isSmall(bytes) ? sum + align8(bytes) : sum), align8(headerBytes))
    const shared = Buffer.allocUnsafeSlow(small).buffer
    let at = 0
    const place = (bytes: number): Uint8Array => {
      const view = new Uint8Array(shared, at, bytes)
      at += align8(bytes)
      return view
    }
    const header = place(headerBytes)
    const segments = segmentBytes.map((bytes) => (isSmall(bytes) ? place(bytes) : (placeOf(bytes) ?? freshMemory(bytes))))
    this.frame = new ReadFrame(header, segments, 0)
    this.parts = [header, ...segments]
    this.left = total
  }
}

export class ChunkReader {
  /** Bytes that were pushed, ever. */
  bytesPushed = 0
  private readonly limits: FrameLimits
  private readonly placeOf: Place
  private readonly crc32: Crc = crc32Of()
  private sum: DataSum | null = null
  /** Before the other end is known nothing is taken but the handshake. */
  private isAdmitted = false
  private inputs: Buffer[] = []
  private input: Buffer = NO_BYTES
  private at = 0
  private sequence = 0

  // The chunk that is being read; `type` is 0 between two.
  private readonly head = Buffer.alloc(HEAD_BYTES)
  private headBytes = 0
  private type: ChunkType | 0 = 0
  private checksum = 0
  private crc = 0
  private length = 0
  private bodyLeft = 0
  /** Where the body goes, unless it is DATA: from `targetAt`, `length` bytes. */
  private target: Buffer = NO_BYTES
  private targetAt = 0
  private arena: Buffer = NO_BYTES
  private arenaUsed = 0
  private coming: ComingFrame | null = null
  /** Makes the frame that was announced when there is room for it. */
  private begin: (() => boolean) | null = null
  private room: FrameRoom | null = null
  /** The frame whose memory `nextPlace` gave. If it is dropped, a socket may still read to it, so nobody else gets the memory. */
  private placing: ComingFrame | null = null

  // The body of FRAMES or AHEAD whose frames are being handed out.
  private batch: Buffer = NO_BYTES
  private batchOvertook = 0
  private batchAt = 0
  private batchEnd = 0

  constructor(limits: FrameLimits, place: Place = () => null) {
    this.limits = limits
    this.placeOf = place
  }

  /** The other end is known: frames are taken from now on. */
  admit(room: FrameRoom | null = null): void {
    this.isAdmitted = true
    this.room = room
  }

  /** A frame was announced and has no room yet: nothing after it is read. */
  get isWaiting(): boolean {
    return this.begin !== null
  }

  push(bytes: Buffer): void {
    this.bytesPushed += bytes.length
    if (this.at === this.input.length && this.inputs.length === 0) {
      this.input = bytes
      this.at = 0
    } else {
      this.inputs.push(bytes)
    }
  }

  /**
   * The memory for the next bytes, if known: of the rest of a chunk that goes to one place, or of the head after it. A caller that reads bytes there calls `placed`, and
   * pushes nothing in between. Null: the bytes must be pushed. The memory stays reachable until the next call.
   */
  nextPlace(): Uint8Array | null {
    const { coming } = this
    this.placing = coming
    if (coming === null || this.at < this.input.length || this.inputs.length > 0) return null
    if (this.type === 0) return this.head.subarray(this.headBytes)
    if (!isData(this.type)) return null
    const part = coming.parts[coming.part] as Uint8Array
    const bytes = Math.min(this.bodyLeft, part.length - coming.offset)
    return bytes < PLACED_BYTES_MIN ? null : view(part, coming.offset, bytes)
  }

  /** The next bytes are where `nextPlace` has said. */
  placed(bytes: number): void {
    this.bytesPushed += bytes
    const { coming } = this
    // It was dropped since.
    if (coming === null || coming !== this.placing) return
    if (this.type === 0) this.headBytes += bytes
    else this.took(coming, view(coming.parts[coming.part] as Uint8Array, coming.offset, bytes))
  }

  /** Copies the unread rest of the last push, whose bytes are its owner's again. */
  keep(): void {
    const { inputs } = this
    const last = inputs.at(-1)
    if (last !== undefined) {
      inputs[inputs.length - 1] = Buffer.from(last)
      return
    }
    this.input = this.at === this.input.length ? NO_BYTES : Buffer.from(this.input.subarray(this.at))
    this.at = 0
  }

  /** The next complete frame or chunk, in order; null if there is none. @throws CHUNK_INVALID, after which the reader must not be used any more */
  next(): Frame | ControlChunk | null {
    for (;;) {
      if (this.batchAt < this.batchEnd) return this.nextOfBatch()
      if (this.begin !== null && !this.begin()) return null
      if (this.type === 0 && !this.readHead()) return null
      if (this.bodyLeft > 0 && !this.readBody()) return null
      const complete = this.complete()
      if (complete !== null) return complete
    }
  }

  /** Forgets everything that was not returned. */
  drop(): void {
    this.inputs = []
    this.input = NO_BYTES
    this.at = 0
    this.batchAt = this.batchEnd
    this.coming = null
    this.begin = null
    this.room?.give()
  }

  private hasInput(): boolean {
    while (this.at === this.input.length) {
      const next = this.inputs.shift()
      if (next === undefined) {
        this.input = NO_BYTES
        this.at = 0
        return false
      }
      this.input = next
      this.at = 0
    }
    return true
  }

  private readHead(): boolean {
    if (this.headBytes === 0 && this.input.length - this.at >= HEAD_BYTES) {
      // Nearly always: the head is in one piece, and so is a small body after it.
      const start = this.at
      this.at += HEAD_BYTES
      this.takeHead(this.input, start)
      return true
    }
    while (this.headBytes < HEAD_BYTES) {
      if (!this.hasInput()) return false
      const take = Math.min(HEAD_BYTES - this.headBytes, this.input.length - this.at)
      this.input.copy(this.head, this.headBytes, this.at, this.at + take)
      this.headBytes += take
      this.at += take
    }
    this.headBytes = 0
    this.takeHead(this.head, 0)
    return true
  }

  private takeHead(head: Buffer, at: number): void {
    const length = head.readUInt32LE(at + 4)
    const sequence = head.readUInt32LE(at + 8)
    const type = head[at + 12] as number
    const version = head[at + 13]
    const stream = head.readUInt16LE(at + 14)
    if (version !== CHUNK_VERSION) throw chunkInvalid(`version ${version}`, `chunks of version ${CHUNK_VERSION}`, { version })
    if (!isChunkType(type)) throw chunkInvalid(`type ${type}`, 'a known type of chunk', { type })
    if (stream !== streamOf(type)) throw chunkInvalid(`stream ${stream}`, `stream ${streamOf(type)} for type ${type}`)
    if (sequence !== this.sequence)
      throw chunkInvalid(`chunk ${sequence}`, `chunk ${this.sequence}, none repeated, left out or moved`, { sequence })
    const most = bodyBytesMax(type, this.limits)
    if (length > most) throw chunkInvalid(`${length} bytes`, `at most ${most} bytes in a chunk of type ${type}`, { length, type })
    this.checkTurn(type)
    this.sequence = nextSequence(sequence)
    this.checksum = head.readUInt32LE(at)
    this.length = length
    this.bodyLeft = length
    this.type = type
    if (isData(type)) {
      const left = (this.coming as ComingFrame).left
      if (length === 0 || length > left) throw chunkInvalid(`${length} bytes`, `1 to ${left} more bytes of the frame`, { length })
    } else {
      this.findPlace(length)
      if (head === this.input && head.length - this.at >= length) {
        this.crc = this.crc32(view(head, at + 4, HEAD_BYTES - 4 + length))
        head.copy(this.target, this.targetAt, this.at, this.at + length)
        this.at += length
        this.bodyLeft = 0
        return
      }
    }
    if (type === ChunkType.DATA) {
      this.sum ??= new DataSum()
      this.sum.begin(view(head, at + 4, HEAD_BYTES - 4))
      return
    }
    this.crc = this.crc32(view(head, at + 4, HEAD_BYTES - 4))
  }

  /** Throws if this type is out of turn. */
  private checkTurn(type: ChunkType): void {
    const isLast = type === ChunkType.BYE
    if (!this.isAdmitted) {
      if (type !== ChunkType.HANDSHAKE && !isLast) throw chunkInvalid(`type ${type}`, 'a handshake first', { type })
      return
    }
    if (type === ChunkType.HANDSHAKE) throw chunkInvalid('a handshake', 'one handshake, at the beginning')
    if (isData(type)) {
      if (this.coming === null) throw chunkInvalid('bytes of a frame', 'the announcement of a frame before its bytes')
    } else if (this.coming !== null && streamOf(type) !== 0 && type !== ChunkType.AHEAD) {
      throw chunkInvalid(`type ${type}`, 'the rest of the frame that was announced', { type })
    }
  }

  private findPlace(length: number): void {
    if (length > ARENA_BODY_BYTES_MAX) {
      // Not zeroed, as the arena: only what is written is ever read.
      this.target = Buffer.from(Buffer.allocUnsafeSlow(length).buffer)
      this.targetAt = 0
      return
    }
    if (this.arenaUsed + length > this.arena.length) {
      this.arena = Buffer.from(Buffer.allocUnsafeSlow(ARENA_BYTES).buffer)
      this.arenaUsed = 0
    }
    this.target = this.arena
    this.targetAt = this.arenaUsed
    this.arenaUsed += align8(length)
  }

  /** False if more input is needed. */
  private readBody(): boolean {
    if (isData(this.type)) return this.readData()
    const { target } = this
    while (this.bodyLeft > 0) {
      if (!this.hasInput()) return false
      const take = Math.min(this.bodyLeft, this.input.length - this.at)
      this.input.copy(target, this.targetAt + this.length - this.bodyLeft, this.at, this.at + take)
      this.at += take
      this.bodyLeft -= take
    }
    this.crc = this.crc32(view(target, this.targetAt, this.length), this.crc)
    return true
  }

  private readData(): boolean {
    const coming = this.coming as ComingFrame
    while (this.bodyLeft > 0) {
      if (!this.hasInput()) return false
      const part = coming.parts[coming.part] as Uint8Array
      const take = Math.min(this.bodyLeft, this.input.length - this.at, part.length - coming.offset)
      const bytes = view(this.input, this.at, take)
      copyBytes(bytes, part, coming.offset)
      this.at += take
      this.took(coming, bytes)
    }
    return true
  }

  /** The next bytes of the frame are in their place. */
  private took(coming: ComingFrame, bytes: Uint8Array): void {
    if (this.type === ChunkType.DATA && bytes.length > 0) this.sum!.add(bytes)
    this.bodyLeft -= bytes.length
    coming.left -= bytes.length
    coming.offset += bytes.length
    if (coming.offset === (coming.parts[coming.part] as Uint8Array).length) {
      coming.part++
      coming.offset = 0
    }
  }

  /** The chunk is there: null if it brings nothing by itself. */
  private complete(): Frame | ControlChunk | null {
    const { type, length, target, targetAt } = this
    const sum = type === ChunkType.DATA ? this.sum!.end() : this.crc
    if (sum !== this.checksum) throw chunkInvalid('damaged bytes', 'bytes that fit their checksum', { type, length })
    this.type = 0
    if (type === ChunkType.FRAMES || type === ChunkType.AHEAD) {
      this.batchOvertook = type === ChunkType.AHEAD ? 1 : 0
      this.batch = target
      this.batchAt = targetAt
      this.batchEnd = targetAt + length
      if (length === 0) throw chunkInvalid('no frame', 'at least one frame in a batch')
      return null
    }
    if (type === ChunkType.LARGE) this.announce(target, targetAt, length)
    else if (!isData(type)) return new ControlChunk(type as ChunkType, target.subarray(targetAt, targetAt + length))
    const { coming } = this
    // It has no room yet, or its bytes are still to come.
    if (coming === null || coming.left > 0) return null
    this.coming = null
    this.room?.give()
    return coming.frame
  }

  private announce(body: Buffer, at: number, length: number): void {
    const { room } = this
    const frameBytesMax = Math.min(this.limits.frameBytesMax, room?.frameBytesMax ?? Number.POSITIVE_INFINITY)
    const count = length < 8 ? -1 : body.readUInt32LE(at + 4)
    if (count < 0 || length !== 8 + 4 * count)
      throw chunkInvalid(`an announcement of ${length} bytes`, 'as many lengths as it says', { length, count })
    const headerBytes = body.readUInt32LE(at)
    let total = headerBytes
    const segments: number[] = []
    for (let i = 0; i < count; i++) {
      const bytes = body.readUInt32LE(at + 8 + 4 * i)
      segments.push(bytes)
      total += bytes
    }
    if (total > frameBytesMax)
      throw chunkInvalid(`a frame of ${total} bytes`, `at most ${frameBytesMax} bytes in a frame`, { bytes: total })
    const begin = (): boolean => {
      if (room !== null && total > 0 && !room.take(total)) return false
      this.coming = new ComingFrame(headerBytes, segments, total, this.placeOf)
      this.begin = null
      return true
    }
    this.begin = begin
    begin()
  }

  private nextOfBatch(): Frame {
    const { batch } = this
    const at = this.batchAt
    const room = this.batchEnd - at
    if (room < 8) throw chunkInvalid(`${room} bytes`, 'a whole frame')
    const headerBytes = batch.readUInt32LE(at)
    const count = batch.readUInt32LE(at + 4)
    // Neither number can make the sum unsafe: each is below 2^32.
    let end = align(8 + 4 * count) + align(headerBytes)
    if (count > this.limits.segmentsMax || end > room) throw chunkInvalid(`a frame beyond the end of its chunk`, `at most ${room} bytes`)
    for (let i = 0; i < count; i++) end += align(batch.readUInt32LE(at + 8 + 4 * i))
    if (end > room) throw chunkInvalid(`a frame beyond the end of its chunk`, `at most ${room} bytes`)
    const { buffer } = batch
    let place = at + align8(8 + 4 * count)
    const header = new Uint8Array(buffer, place, headerBytes)
    place += align8(headerBytes)
    let segments = NO_SEGMENTS
    if (count > 0) {
      const list: Uint8Array[] = []
      for (let i = 0; i < count; i++) {
        const bytes = batch.readUInt32LE(at + 8 + 4 * i)
        list.push(new Uint8Array(buffer, place, bytes))
        place += align8(bytes)
      }
      segments = list
    }
    this.batchAt = at + end
    return new ReadFrame(header, segments, this.batchOvertook)
  }
}

/** As `subarray`, at half its price. */
const view = (bytes: Uint8Array, at: number, length: number): Uint8Array => new Uint8Array(bytes.buffer, bytes.byteOffset + at, length)

/**
 * As `set`. Into shared memory V8 copies byte by byte where source and target do not begin alike modulo 8, and large frames have headers of any length: 3.6 GB/s,
 * where `fill`, which is a plain copy on every Node, has 9.
 */
function copyBytes(source: Uint8Array, target: Uint8Array, at: number): void {
  const { buffer, byteOffset } = target
  if ((source.byteOffset & 7) === ((byteOffset + at) & 7)) target.set(source, at)
  else Buffer.from(buffer as ArrayBuffer, byteOffset + at, source.length).fill(source)
}

/** As `align8`, for lengths that a peer has said: up to 2^32 and beyond. */
const align = (n: number): number => Math.ceil(n / 8) * 8
