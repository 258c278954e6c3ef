/**
 * Keeps the frames of a session that the peer has not acknowledged, sent or not: `sending.ts` decides which and when, this file in what form.
 *
 * For a carrier that takes buffers away each frame is kept as a copy in one buffer, which none of its parts fills. A carrier that only borrows gets the
 * bytes themselves: large segments where they were, small ones and the header in an arena.
 */
import { structuredClone } from '@postgrad/base/internal'
import type { Frame, FrameOrder, OnFlushed } from '../link.js'
import { align8, isMovable } from '../post.js'
import { takeSegments } from '../take-segments.js'
import { SESSION_BYTES, type SessionKind } from './session-frame.js'

/** A frame that may have to be sent again. */
export class Kept implements Frame {
  readonly kind: SessionKind
  readonly order: FrameOrder
  /** Begins with `SESSION_BYTES` that the session writes before each sending. */
  readonly header: Buffer
  readonly segments: readonly Uint8Array[]
  /** Counted towards the session's limit. */
  readonly bytes: number
  /** Null: none, or it was called. */
  onFlushed: OnFlushed | null = null

  constructor(kind: SessionKind, order: FrameOrder, header: Buffer, segments: readonly Uint8Array[], bytes: number) {
    this.kind = kind
    this.order = order
    this.header = header
    this.segments = segments
    this.bytes = bytes
  }
}

/** How many bytes a frame counts for, whichever way it is kept. The 8 more keep a lone segment from filling the buffer of a copy. */
export function keptBytesOf({ header, segments }: Frame): number {
  let bytes = align8(header.length) + 8
  for (let i = 0; i < segments.length; i++) bytes += align8((segments[i] as Uint8Array).length)
  return bytes
}

export function keptCopy(kind: SessionKind, frame: Frame, order: FrameOrder): Kept {
  const bytes = keptBytesOf(frame)
  const buffer = new Uint8Array(SESSION_BYTES + bytes)
  let at = SESSION_BYTES
  const copied = (part: Uint8Array): Uint8Array => {
    const copy = buffer.subarray(at, at + part.length)
    copy.set(part)
    at += align8(part.length)
    return copy
  }
  copied(frame.header)
  const header = Buffer.from(buffer.buffer, 0, SESSION_BYTES + frame.header.length)
  const kept = new Kept(kind, order, header, frame.segments.map(copied), bytes)
  empty(frame.segments)
  return kept
}

/** As on any link: what could be moved is empty at its sender. */
function empty(segments: readonly Uint8Array[]): void {
  const moved = new Set(segments.filter(isMovable).map((segment) => segment.buffer as ArrayBuffer))
  if (moved.size === 0) return
  try {
    structuredClone(null, { transfer: [...moved] })
  } catch (error) {
    // A buffer that may not be moved (a WebAssembly memory): it has been copied, as any link would.
    if ((error as { name?: unknown }).name !== 'DataCloneError') throw error
  }
}

const ARENA_BYTES = 64 * 1024
/** A longer part has a buffer of its own. */
const ARENA_PART_BYTES_MAX = 8 * 1024

/** Keeps frames without a copy of what is large. Small parts of many frames share memory, which is free when the last of them is acknowledged. */
export class KeptArena {
  private arena: Buffer = Buffer.alloc(0)
  private used = 0

  keep(kind: SessionKind, frame: Frame, order: FrameOrder): Kept {
    const bytes = keptBytesOf(frame)
    const header = this.room(SESSION_BYTES + frame.header.length)
    header.set(frame.header, SESSION_BYTES)
    return new Kept(kind, order, header, takeSegments(frame.segments, this.copy), bytes)
  }

  private readonly copy = (part: Uint8Array): Uint8Array => {
    const copy = this.room(part.length)
    copy.set(part)
    return copy
  }

  private room(bytes: number): Buffer {
    if (bytes > ARENA_PART_BYTES_MAX) return Buffer.from(Buffer.allocUnsafeSlow(bytes).buffer)
    if (this.used + bytes > this.arena.length) {
      this.arena = Buffer.from(Buffer.allocUnsafeSlow(ARENA_BYTES).buffer)
      this.used = 0
    }
    const start = this.used
    this.used += align8(bytes)
    return this.arena.subarray(start, start + bytes)
  }
}

/** Frames by their number, from the first that is not acknowledged on. A Map of them costs 0.15 µs a frame. */
export class KeptQueue {
  bytes = 0
  private list: Kept[] = []
  private from = 0

  get size(): number {
    return this.list.length - this.from
  }

  push(kept: Kept): void {
    this.list.push(kept)
    this.bytes += kept.bytes
  }

  /** 0: the oldest. */
  at(index: number): Kept {
    return this.list[this.from + index] as Kept
  }

  /** The oldest is acknowledged. */
  shift(): void {
    const kept = this.list[this.from] as Kept
    flushed(kept, true)
    this.bytes -= kept.bytes
    this.from++
    if (this.from === this.list.length) {
      this.list.length = 0
      this.from = 0
    } else if (this.from >= 1024 && this.from * 2 >= this.list.length) {
      this.list = this.list.slice(this.from)
      this.from = 0
    }
  }

  clear(): void {
    const { list, from } = this
    this.list = []
    this.from = 0
    this.bytes = 0
    for (let at = from; at < list.length; at++) flushed(list[at] as Kept, false)
  }
}

/** Calls the frame's `onFlushed`, once. */
export function flushed(kept: Kept, isFlushed: boolean): void {
  const { onFlushed } = kept
  kept.onFlushed = null
  onFlushed?.(isFlushed)
}
