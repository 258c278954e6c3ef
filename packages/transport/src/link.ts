/**
 * A link carries frames between two workers in order until it breaks: the narrow waist between `wire`, which makes frames of messages,
 * and what moves bytes (a MessagePort, memory, a socket, the simulation). `link.suite.ts` holds every implementation to what is promised here.
 *
 *     worker A                                                         worker B
 *     send(f1) send(f2) send(f3) ──end of A's turn──▶ one post ──▶ onFrame(f1) onFrame(f2) onFrame(f3) onTurnEnd()
 */

/** What one worker posts to another: header bytes, and byte segments that travel beside it (a large tensor each). */
export interface Frame {
  /** Starts at a multiple of 8 in its buffer when received, so that whatever the sender aligned inside it stays aligned. */
  readonly header: Uint8Array
  /** Each starts at a multiple of 8 in its buffer when received. */
  readonly segments: readonly Uint8Array[]
  /** How many of the frames that were sent before it are still to come (`FrameOrder`); left out, or 0: it came in its turn. */
  readonly overtook?: number
}

/**
 * The orders to which a frame belongs, one to a bit of the low 16, and those that it stays behind, in the high 16. A small frame may overtake a large one that is under way, with what
 * waits behind that, where it stays behind none of their orders and the link is slow enough for it to matter (a socket). Nothing ever comes later for it than all orders would have it.
 */
export type FrameOrder = number

const BEHIND_SHIFT = 16

/** Of a frame that belongs to some orders (bits 0 to 15) and stays behind frames of some. */
export const frameOrder = (belongs: number, behind = belongs): FrameOrder => belongs | (behind << BEHIND_SHIFT)

/** Whether the frame stays behind what was sent before it, whose orders are or-ed together. */
export const staysBehind = (order: FrameOrder, before: FrameOrder): boolean => ((order >>> BEHIND_SHIFT) & before) !== 0

/** What a frame belongs to that is sent without a word about it: it overtakes nothing. */
export const EVERY_ORDER: FrameOrder = -1
/** It overtakes whatever is large. */
export const NO_ORDER: FrameOrder = 0

/** The side of a link that takes frames. Its methods must not throw: what they throw is an uncaught exception of the thread. */
export interface LinkReceiver {
  /** In the order of `send`, but see `FrameOrder`. The bytes belong to the receiver from then on; it may keep views on them. */
  onFrame(frame: Frame): void
  /** After the last frame that was ready in a turn of the event loop. Not called by `poll`: who polls knows when it returns. */
  onTurnEnd(): void
  /** Once, in a turn of its own, after every frame that was received on the link. Nothing is called after it. */
  onClose(reason: LinkClosed): void
}

/** Why a link ended. */
export interface LinkClosed {
  /** `self`: this end called `close`. `peer`: the other end did, or its thread ended, or what it posted could not be read. */
  readonly by: 'self' | 'peer'
  /** A sentence for people. */
  readonly detail: string
}

/**
 * Called once. True: the frame has left this thread, so the peer gets it though this thread computes; it was posted, or the kernel has all of its bytes. False: it never will, since the link has ended.
 * It may be called within any `send`, so it sends nothing itself, and it does not throw.
 */
export type OnFlushed = (isFlushed: boolean) => void

/** A way to one other worker, which keeps order (see `FrameOrder`) and loses nothing until it is closed. */
export interface Link {
  /** Begins delivery, in a later turn. Nothing is delivered before, and nothing that arrived before is lost. Once. */
  open(receiver: LinkReceiver): void
  /**
   * Queues a frame and takes ownership of its bytes: the caller must not write to them again (a segment that fills its whole buffer is
   * moved, and reads as empty afterwards; a large segment of shared memory may be read until the peer has had it; anything else is copied). Posts at the latest at the end of this turn's microtasks, several
   * frames to a post. May be called before `open`.
   * @throws LINK_CLOSED when either end has closed; the frame is then still the caller's.
   */
  send(frame: Frame, order?: FrameOrder, onFlushed?: OnFlushed | null): void
  /** Posts now what is queued. */
  flush(): void
  /** Delivers synchronously, in order, what has already arrived, without a turn of the event loop; returns how many frames. 0 before `open` and after the end. */
  poll(): number
  /** Flushes, then closes; the peer receives what was sent before. This end drops what it has received and not delivered. Idempotent. */
  close(): void
  /** True from `close` on, and from the moment the peer's end was noticed. */
  readonly closed: boolean
  /**
   * Paused, the link delivers nothing, in `poll` neither, and reads nothing, so that what the peer sends stays with the peer. It may be called within `onFrame`; the next
   * frame then waits. Resumed, it delivers in a later turn. Only a link whose peer may be of another process has this: threads of one process trust each other.
   */
  setPaused?(isPaused: boolean): void
  /** What came last brings nothing: an acknowledgement of nothing, a frame that was here. The peer may send so much of that, and is then not read for a while. Left out where `setPaused` is. */
  idle?(): void
  /** Ends the link as the end of its peer would: `onClose` says by peer, with this detail. What was sent may be lost. */
  abandon?(detail: string): void
  /** Bytes that were sent and that the peer has not taken yet, with 512 for what it costs to keep a frame. The frame that is under way does not count. Like `abandon` it is there where `setPaused` is. */
  readonly unreadBytes?: number
}

/** What it costs to keep a frame until the peer has taken it, apart from its bytes. */
export const FRAME_KEPT_BYTES = 512
