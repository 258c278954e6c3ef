/**
 * A post is one message of a MessagePort: many frames gathered in one string or Uint8Array, and the buffers of large segments next to
 * it. This file writes and reads posts; `message-port-link.ts` decides when. Both ends are threads of one process, so words are in the
 * machine's order.
 *
 *     word 0: number of frames, word 1: the sender's word among the threads that are awake (awake-threads.ts), 0 if it has none
 *     then per frame, each part starting at a multiple of 8 bytes:
 *     ┌───────────────┬──────────────────┬────────────────────────────────┬──────────────┬─────────────────────┐
 *     │ header length │ segments (count) │ per segment: length, −1: moved │ header bytes │ segments not moved… │
 *     └───────────────┴──────────────────┴────────────────────────────────┴──────────────┴─────────────────────┘
 *     The moved segments are the buffers next to it, in order.
 *
 * Measured on Node 20, posting + receiving on one thread (µs), which led to this form:
 *
 *     payload                               64 B         1 KiB        4 KiB        16 KiB
 *     bytes → Latin-1 string → bytes        0.31+0.32    0.38+0.43    0.88+0.73                    up to STRING_BYTES_MAX
 *     Uint8Array, one kept, cloned          0.50+0.68    0.57+0.80    0.96+0.81    1.55+1.25       above
 *     Uint8Array, fresh, cloned             0.87+0.55                 2.39+1.62    3.39+2.10       fresh memory is the cost
 *     ArrayBuffer, fresh, moved             0.93+0.48                 1.77+0.67    2.65+0.68       large segments: they exist already
 *     [Uint8Array, Uint8Array]              0.69+0.61
 *
 * A string wins while it is short because it needs no ArrayBuffer on the other side: the bytes go into a chunk that many posts share.
 * A clone copies the whole buffer below a view, so the writer clones a kept buffer of about the right size. (Its bytes after the frames are of
 * earlier posts, which the same peer has seen already.)
 */
import { strict as assert } from 'node:assert'
import type { Frame } from './link.js'

/** The argument of `postMessage`. */
export type Post = string | Uint8Array | readonly [Uint8Array, ...ArrayBuffer[]]

/** From this size on a segment is moved, if it owns its buffer, or copied into a fresh buffer that is moved. Below, a copy is cheaper. */
export const SEGMENT_MOVED_BYTES_MIN = 8192
/** Between processes a frame with such a segment is large: small ones may overtake it. */
export const isLargeSegment = ({ length }: Uint8Array): boolean => length >= SEGMENT_MOVED_BYTES_MIN
const STRING_BYTES_MAX = 2048
/** Frames are gathered here; more bytes (a very long header, many segments) get a buffer of their own for one post. */
const GATHER_BYTES = 65536
/** The kept buffers that are cloned. The second has room for 4 KiB of elements and their frame's head. */
const CLONED_BYTES = [4096, 5120, 16384, GATHER_BYTES] as const
/** The memory that short posts are received into, a few hundred to a chunk. A view keeps its whole chunk alive. */
const CHUNK_BYTES = 32768
const START_BYTES = 8
const WORD_BYTES = 4
const MOVED = -1
/** Parts begin at multiples of 8. */
const ROUND = 7
const SHARED_TAG = '[object SharedArrayBuffer]'

export const align8 = (n: number): number => (n + 7) & ~7

/** Gathers frames into posts. The result of `take` must be posted (cloned) before the next `take`. */
export class PostWriter {
  /** Said in every post. */
  sender = 0
  /** Frames gathered since the last `take`. */
  frames = 0
  /** Bytes gathered since the last `take`, without those of moved segments. */
  used = START_BYTES
  /** The buffers to move with the post that `take` returned; null for most posts. */
  transfer: ArrayBuffer[] | null = null
  private moved: ArrayBuffer[] | null = null
  private readonly kept: Buffer = Buffer.from(new ArrayBuffer(GATHER_BYTES))
  private readonly keptWords = new Int32Array(this.kept.buffer)
  private bytes: Buffer = this.kept
  private words: Int32Array = this.keptWords
  private readonly cloned: (Uint8Array | undefined)[] = []

  /** Copies the frame's bytes, or takes the buffers of large segments. */
  add(frame: Frame): void {
    const { header, segments } = frame
    const count = segments.length
    const length = header.length
    let at = this.used + (((2 + count) * WORD_BYTES + ROUND) & ~ROUND)
    let end = at + ((length + ROUND) & ~ROUND)
    for (let i = 0; i < count; i++) {
      const bytes = (segments[i] as Uint8Array).length
      if (bytes < SEGMENT_MOVED_BYTES_MIN) end += align8(bytes)
    }
    if (end > this.bytes.length) this.grow(end)
    let word = this.used >> 2
    this.words[word++] = length
    this.words[word++] = count
    this.bytes.set(header, at)
    if (count > 0) {
      at += align8(length)
      for (let i = 0; i < count; i++) {
        const segment = segments[i] as Uint8Array
        if (segment.length < SEGMENT_MOVED_BYTES_MIN) {
          this.words[word++] = segment.length
          this.bytes.set(segment, at)
          at += align8(segment.length)
        } else {
          this.words[word++] = MOVED
          this.move(segment)
        }
      }
    }
    this.used = end
    this.frames++
  }

  /** The next post; `transfer` has the buffers to move. The writer is ready for the next frames. */
  take(): Post {
    const { used, moved, bytes } = this
    this.words[0] = this.frames
    this.words[1] = this.sender
    this.frames = 0
    this.used = START_BYTES
    this.transfer = moved
    if (moved === null && used <= STRING_BYTES_MAX) return bytes.toString('latin1', 0, used)
    this.moved = null
    let whole: Uint8Array
    if (bytes === this.kept) {
      const size = used <= CLONED_BYTES[0] ? 0 : used <= CLONED_BYTES[1] ? 1 : used <= CLONED_BYTES[2] ? 2 : 3
      this.cloned[size] ??= new Uint8Array(CLONED_BYTES[size])
      whole = this.cloned[size] as Uint8Array
      whole.set(bytes.subarray(0, used))
    } else {
      whole = bytes
      this.bytes = this.kept
      this.words = this.keptWords
      this.transfer = moved === null ? [bytes.buffer as ArrayBuffer] : [bytes.buffer as ArrayBuffer, ...moved]
    }
    return moved === null ? whole : [whole, ...moved]
  }

  /** Takes the segment's buffer if the segment fills it, it can be moved and it is not already on its way; a fresh copy else. */
  private move(segment: Uint8Array): void {
    const { buffer } = segment
    this.moved ??= []
    if (isMovable(segment) && !this.moved.includes(buffer as ArrayBuffer)) {
      this.moved.push(buffer as ArrayBuffer)
    } else {
      const copy = new Uint8Array(segment.length)
      copy.set(segment)
      this.moved.push(copy.buffer)
    }
  }

  private grow(end: number): void {
    const before = this.bytes
    this.bytes = Buffer.from(new ArrayBuffer(Math.max(align8(end), 2 * before.length)))
    this.words = new Int32Array(this.bytes.buffer)
    this.bytes.set(before)
  }
}

/** Whether a segment's buffer is moved and not copied: it is large, fills its buffer, and the buffer is not shared (by tag: `instanceof` fails across realms). */
export function isMovable(segment: Uint8Array): boolean {
  const { length, buffer } = segment
  return length >= SEGMENT_MOVED_BYTES_MIN && length === buffer.byteLength && Object.prototype.toString.call(buffer) !== SHARED_TAG
}

// Shared by all frames without segments, frozen so that sharing is safe.
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])
const NO_BUFFERS: readonly ArrayBuffer[] = Object.freeze([])

/** Reads posts frame by frame. Its cursor is on the object, so a receiver that polls while it is called continues after the frame it is in. */
export class PostReader {
  /** Of the post that was begun last; 0 before the first. */
  sender = 0
  /** Frames of the current post that `next` has not returned. */
  left = 0
  private words: Int32Array = new Int32Array(0)
  private moved: readonly ArrayBuffer[] = NO_BUFFERS
  private movedAt = 0
  private at = 0
  private chunk: Buffer = Buffer.from(new ArrayBuffer(0))
  private chunkWords: Int32Array = new Int32Array(0)
  private chunkUsed = 0

  /** Begins a post. The one before must have been read to its end, or dropped. */
  start(post: Post): void {
    if (this.left !== 0) assert.fail('a post began before the one in front of it was read')
    if (typeof post === 'string') {
      this.startString(post)
    } else if (ArrayBuffer.isView(post)) {
      this.startBytes(post, NO_BUFFERS)
    } else {
      this.startBytes(post[0], post.slice(1) as ArrayBuffer[])
    }
  }

  private startString(post: string): void {
    const { length } = post
    if (this.chunkUsed + length > this.chunk.length) {
      // Not zeroed: only what is written is ever read.
      this.chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES)
      this.chunkWords = new Int32Array(this.chunk.buffer)
      this.chunkUsed = 0
    }
    const start = this.chunkUsed
    this.chunk.write(post, start, length, 'latin1')
    this.chunkUsed = (start + length + ROUND) & ~ROUND
    this.words = this.chunkWords
    this.moved = NO_BUFFERS
    this.at = start + START_BYTES
    this.left = this.words[start >> 2] as number
    this.sender = this.words[(start >> 2) + 1] as number
  }

  private startBytes(bytes: Uint8Array, moved: readonly ArrayBuffer[]): void {
    this.words = new Int32Array(bytes.buffer)
    this.moved = moved
    this.movedAt = 0
    this.at = START_BYTES
    this.left = this.words[0] as number
    this.sender = this.words[1] as number
  }

  next(): Frame {
    this.left--
    const { words } = this
    const buffer = words.buffer
    let word = this.at >> 2
    const length = words[word++] as number
    const count = words[word++] as number
    let at = this.at + (((2 + count) * WORD_BYTES + ROUND) & ~ROUND)
    const header = new Uint8Array(buffer, at, length)
    at += (length + ROUND) & ~ROUND
    let segments = NO_SEGMENTS
    if (count > 0) {
      const list: Uint8Array[] = []
      for (let i = 0; i < count; i++) {
        const bytes = words[word++] as number
        if (bytes === MOVED) {
          list.push(new Uint8Array(this.moved[this.movedAt++] as ArrayBuffer))
        } else {
          list.push(new Uint8Array(buffer, at, bytes))
          at += align8(bytes)
        }
      }
      segments = list
    }
    this.at = at
    return { header, segments }
  }

  /** Forgets the rest of the current post. */
  drop(): void {
    this.left = 0
  }
}
