/**
 * Gathers small frames into the bodies of FRAMES and AHEAD chunks, one after another in one piece of memory: `chunk.ts` has the format,
 * `chunk-writer.ts` decides which frames go together and when they leave.
 */
import { Flushes } from '../flushes.js'
import type { Frame, FrameOrder, OnFlushed } from '../link.js'
import { align8 } from '../post.js'
import { BATCH_BYTES_MAX, type ChunkType, HEAD_BYTES } from './chunk.js'

/** Batches are gathered here one after another. Written memory is not used again: a socket may still hold it. */
const ARENA_BYTES = 128 * 1024

/** A batch that waits: its bytes, with room for the chunk's head in front, and every order of its frames. */
export class Batch {
  readonly bytes: Buffer
  readonly order: FrameOrder
  readonly onFlushed: OnFlushed | null

  constructor(bytes: Buffer, order: FrameOrder, onFlushed: OnFlushed | null) {
    this.bytes = bytes
    this.order = order
    this.onFlushed = onFlushed
  }
}

export class Batcher {
  readonly type: typeof ChunkType.FRAMES | typeof ChunkType.AHEAD
  /** Every order of the frames in the open batch. */
  order: FrameOrder = 0
  /** The callbacks of its frames; taken when it is sealed. */
  readonly flushes = new Flushes()
  private arena: Buffer = Buffer.alloc(0)
  /** The open batch: from `start` (its head) to `used`. Equal when there is none. */
  private start = 0
  private used = 0

  constructor(type: typeof ChunkType.FRAMES | typeof ChunkType.AHEAD) {
    this.type = type
  }

  /** Bytes of the open batch. */
  get bytes(): number {
    return this.used - this.start
  }

  /** Whether so much more goes into the open batch; there is one. */
  hasRoom(size: number): boolean {
    return this.used + size <= this.arena.length && this.used + size - this.start <= HEAD_BYTES + BATCH_BYTES_MAX
  }

  /** `size`: of the frame in the batch, all its parts aligned. There is room, or no batch is open. */
  add({ header, segments }: Frame, size: number, order: FrameOrder): void {
    if (this.used === this.start) this.begin(size)
    const { arena } = this
    const count = segments.length
    const length = header.length
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
    this.order |= order
  }

  /** Ends the open batch and gives its bytes. */
  seal(): Buffer {
    const batch = this.arena.subarray(this.start, this.used)
    this.start = this.used
    this.order = 0
    return batch
  }

  /** Forgets the open batch. */
  drop(): void {
    this.start = this.used
    this.order = 0
  }

  private begin(size: number): void {
    if (this.used + HEAD_BYTES + size > this.arena.length) {
      // Not zeroed: gaps between parts are written as they are, so they must not hold what others left there.
      this.arena = Buffer.from(new ArrayBuffer(ARENA_BYTES))
      this.used = 0
    }
    this.start = this.used
    this.used += HEAD_BYTES
  }
}
