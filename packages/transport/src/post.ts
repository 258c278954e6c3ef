/**
 * A post is what crosses a MessagePort at once: many frames in one Uint8Array, and the buffers of large segments beside it. This file
 * writes and reads posts; `message-port-link.ts` decides when. Both ends are threads of one process, so words are in the machine's order.
 *
 *     word 0: number of frames, word 1: 0
 *     then per frame, each part starting at a multiple of 8 bytes:
 *     ┌───────────────┬──────────────────┬───────────────────────────────┬──────────────┬─────────────────────┐
 *     │ header length │ segments (count) │ per segment: length, −1: moved │ header bytes │ segments not moved… │
 *     └───────────────┴──────────────────┴───────────────────────────────┴──────────────┴─────────────────────┘
 *     The moved segments are the buffers beside the array, in order.
 *
 * Measured on Node 20, 2 cores, posting and receiving on one thread (µs, post + receive), which led to this form:
 *
 *     payload                        64 B         4 KiB        16 KiB
 *     string (Latin-1)               0.23+0.19    0.32+0.50    0.58+1.51     cheapest, but bytes ⇄ string costs more than it saves
 *     Uint8Array, one kept, cloned   0.50+0.55    0.96+0.81    1.55+1.25     chosen for the frames
 *     Uint8Array, fresh, cloned      0.87+0.55    2.39+1.62    3.39+2.10     fresh memory is the cost
 *     ArrayBuffer, fresh, moved      0.93+0.48    1.77+0.67    2.65+0.68     chosen for large segments: they exist already
 *     [Uint8Array, Uint8Array] 64 B  0.69+0.61
 *
 * A clone copies the whole buffer below a view, so frames are gathered in a buffer that is about as large as they are: it starts at 256
 * bytes and quadruples, at most 64 KiB. The buffers are kept, and what an earlier post left behind the frames goes along, to the same peer that has
 * seen it already. One message per post and not one per frame: an event costs 0.6 µs at the receiver whatever it holds.
 */
import { strict as assert } from 'node:assert'
import type { Frame } from './link.js'

/** From this size on a segment is moved, if it owns its buffer, or copied into a fresh buffer that is moved. Below, a copy is cheaper. */
export const SEGMENT_MOVED_BYTES_MIN = 8192
/** The sizes of the buffers in which frames are gathered. */
const GATHER_BYTES = [256, 1024, 4096, 16384, 65536] as const
/** A post that is longer (one very long header) has a buffer of its own. */
export const GATHER_BYTES_MAX = GATHER_BYTES[GATHER_BYTES.length - 1] as number
const START_BYTES = 8
const WORD_BYTES = 4
const MOVED = -1

const align8 = (n: number): number => (n + 7) & ~7

/** Gathers frames into posts. Keeps one set of buffers for its life; a post must be cloned (posted) before the next frame is added. */
export class PostWriter {
  /** Frames gathered since the last `take`. */
  frames = 0
  /** Bytes gathered since the last `take`, without those of moved segments. */
  used = START_BYTES
  /** The buffers to move, in order; empty for most posts. */
  moved: ArrayBuffer[] = []
  private level = 0
  private readonly levels: Uint8Array[] = [new Uint8Array(GATHER_BYTES[0])]
  private bytes: Uint8Array = this.levels[0] as Uint8Array
  private words = new Int32Array(this.bytes.buffer)

  /** Copies the frame's bytes, or takes the buffers of large segments. */
  add(frame: Frame): void {
    const { header, segments } = frame
    const count = segments.length
    let at = this.used
    let end = at + align8((2 + count) * WORD_BYTES) + align8(header.length)
    for (let i = 0; i < count; i++) {
      const length = (segments[i] as Uint8Array).length
      if (length < SEGMENT_MOVED_BYTES_MIN) end += align8(length)
    }
    if (end > this.bytes.length) this.grow(end)
    let word = at >> 2
    this.words[word++] = header.length
    this.words[word++] = count
    at += align8((2 + count) * WORD_BYTES)
    this.bytes.set(header, at)
    at += align8(header.length)
    for (let i = 0; i < count; i++) {
      const segment = segments[i] as Uint8Array
      if (segment.length < SEGMENT_MOVED_BYTES_MIN) {
        this.words[word++] = segment.length
        this.bytes.set(segment, at)
        at += align8(segment.length)
      } else {
        this.words[word++] = MOVED
        this.moved.push(this.owned(segment))
      }
    }
    this.used = end
    this.frames++
  }

  /** The bytes of the post, and the writer is ready for the next one. The caller takes `moved` first. */
  take(): Uint8Array {
    const { bytes } = this
    this.words[0] = this.frames
    this.frames = 0
    this.used = START_BYTES
    if (this.moved.length > 0) this.moved = []
    if (this.level > 0) this.use(0)
    return bytes
  }

  /** The segment's buffer if the segment fills it, it can be moved and it is not already on its way; a fresh copy else. */
  private owned(segment: Uint8Array): ArrayBuffer {
    const { buffer } = segment
    if (segment.length === buffer.byteLength && !isShared(buffer) && !this.moved.includes(buffer as ArrayBuffer))
      return buffer as ArrayBuffer
    const copy = new Uint8Array(segment.length)
    copy.set(segment)
    return copy.buffer
  }

  /** Continues in a larger buffer. One that is larger than all of `GATHER_BYTES` (a very long header) is made for this post alone. */
  private grow(end: number): void {
    const before = this.bytes
    let level = this.level
    while (level < GATHER_BYTES.length && (GATHER_BYTES[level] as number) < end) level++
    if (level < GATHER_BYTES.length) {
      this.levels[level] ??= new Uint8Array(GATHER_BYTES[level] as number)
      this.use(level)
    } else {
      this.level = level
      this.bytes = new Uint8Array(Math.max(align8(end), 2 * before.length))
      this.words = new Int32Array(this.bytes.buffer)
    }
    this.bytes.set(before)
  }

  private use(level: number): void {
    this.level = level
    this.bytes = this.levels[level] as Uint8Array
    this.words = new Int32Array(this.bytes.buffer)
  }
}

/** By tag: `instanceof` fails across realms. */
function isShared(buffer: ArrayBufferLike): boolean {
  return Object.prototype.toString.call(buffer) === '[object SharedArrayBuffer]'
}

// Shared by all frames without segments, frozen so that sharing is safe.
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

class ReceivedFrame implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]

  constructor(header: Uint8Array, segments: readonly Uint8Array[]) {
    this.header = header
    this.segments = segments
  }
}

/** Reads a post frame by frame. Its cursor is on the object, so a receiver that polls while it is called continues behind the frame it is in. */
export class PostReader {
  /** Frames of the current post that `next` has not returned. */
  left = 0
  private buffer = new ArrayBuffer(0)
  private words = new Int32Array(this.buffer)
  private moved: readonly ArrayBuffer[] = []
  private movedAt = 0
  private at = 0

  /** Begins a post. The one before must have been read to its end. */
  start(bytes: Uint8Array, moved: readonly ArrayBuffer[]): void {
    assert(this.left === 0, 'a post began before the one in front of it was read')
    this.buffer = bytes.buffer as ArrayBuffer
    this.words = new Int32Array(this.buffer)
    this.moved = moved
    this.movedAt = 0
    this.at = START_BYTES
    this.left = this.words[0] as number
  }

  next(): Frame {
    this.left--
    let word = this.at >> 2
    const length = this.words[word++] as number
    const count = this.words[word++] as number
    let at = this.at + align8((2 + count) * WORD_BYTES)
    const header = new Uint8Array(this.buffer, at, length)
    at += align8(length)
    let segments = NO_SEGMENTS
    if (count > 0) {
      const list: Uint8Array[] = []
      for (let i = 0; i < count; i++) {
        const bytes = this.words[word++] as number
        if (bytes === MOVED) {
          list.push(new Uint8Array(this.moved[this.movedAt++] as ArrayBuffer))
        } else {
          list.push(new Uint8Array(this.buffer, at, bytes))
          at += align8(bytes)
        }
      }
      segments = list
    }
    this.at = at
    return new ReceivedFrame(header, segments)
  }

  /** Forgets the rest of the current post. */
  drop(): void {
    this.left = 0
  }
}
