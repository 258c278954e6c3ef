/**
 * A link carries frames between two workers in order until it breaks: the narrow waist between `wire`, which makes frames of messages,
 * and what moves bytes (a MessagePort, memory, a socket, the simulation). `link.suite.ts` holds every implementation to what is promised here.
 *
 *     worker A                                                         worker B
 *     send(f1) send(f2) send(f3) ──end of A's turn──▶ one post ──▶ onFrame(f1) onFrame(f2) onFrame(f3) onTurnEnd()
 */

/** A message between two workers, as bytes: a header, and one segment for each large tensor. */
export interface Frame {
  /** The message without its large tensors. In a received frame it starts at a multiple of 8 bytes in its buffer, so that values which the sender aligned stay aligned. */
  readonly header: Uint8Array
  /** The bytes of the large tensors. In a received frame each segment starts at a multiple of 8 bytes in its buffer. */
  readonly segments: readonly Uint8Array[]
  /** How many frames that were sent earlier have not arrived yet (see `FrameOrder`). Left out or 0: the frame arrived in order. */
  readonly overtook?: number
}

/**
 * Which earlier frames a frame must not overtake. There are 16 orders, numbered from 0. Bit n is set if the frame belongs to order n. Bit 16 + n is set if the
 * frame must not overtake frames of order n. On a socket, a small frame may overtake a large frame that is being sent, and frames that wait after the large frame,
 * if the small frame's bits allow it for all of them.
 */
export type FrameOrder = number

const BEHIND_SHIFT = 16

/** The order of a frame: the orders it belongs to (bits 0 to 15), and those it does not overtake. */
export const frameOrder = (belongs: number, behind = belongs): FrameOrder => belongs | (behind << BEHIND_SHIFT)

/** Whether the frame must not overtake the frames before it, whose orders are or-ed together. */
export const staysBehind = (order: FrameOrder, before: FrameOrder): boolean => ((order >>> BEHIND_SHIFT) & before) !== 0

/** The order of a frame that is sent without one: it overtakes nothing. */
export const EVERY_ORDER: FrameOrder = -1
/** It overtakes every large frame. */
export const NO_ORDER: FrameOrder = 0

/** Receives the frames of a link. If one of its methods throws, the error is an uncaught exception of the thread. */
export interface LinkReceiver {
  /** Called for each frame, in the order of `send`, except where `FrameOrder` allows another order. The receiver owns the bytes, and may keep views on them. */
  onFrame(frame: Frame): void
  /** Called after the last frame that was ready in a turn of the event loop. `poll` does not call it. */
  onTurnEnd(): void
  /** Called once, in a turn of its own, after the link's last frame. No method of the receiver is called after `onClose`. */
  onClose(reason: LinkClosed): void
}

/** Why a link ended. */
export interface LinkClosed {
  /** `self`: this end called `close`. `peer`: the other end called `close`, its thread ended, or it sent something unreadable. */
  readonly by: 'self' | 'peer'
  /** The reason, as a sentence for a human reader. */
  readonly detail: string
}

/**
 * A function that is called once for a frame. True: the frame was posted, or the operating system has all of its bytes, so the peer receives the frame even while
 * this thread computes. False: the link has ended, and the frame will never be sent. The function may be called within any `send`: it must not send, nor throw.
 */
export type OnFlushed = (isFlushed: boolean) => void

/** A connection to one other worker. A link keeps frames in order (see `FrameOrder`), and loses no frame until it is closed. */
export interface Link {
  /** Begins to deliver frames to `receiver`, in a later turn. Frames that arrived earlier were kept, and are delivered, too. May be called once. */
  open(receiver: LinkReceiver): void
  /**
   * Queues a frame and takes ownership of its bytes: the caller must not write to them again. A segment that fills its whole buffer is moved, and its array is
   * empty afterwards. A large segment in shared memory may be read until the peer has received it. All other bytes are copied. The link posts queued frames
   * together, at the latest at the end of this turn's microtasks. `send` may be called before `open`.
   * @throws LINK_CLOSED if either end has closed. Then the caller still owns the frame.
   */
  send(frame: Frame, order?: FrameOrder, onFlushed?: OnFlushed | null): void
  /** Posts all queued frames now. */
  flush(): void
  /** Delivers the frames that have already arrived, synchronously and in order. Returns their number, which is 0 before `open` and after the link's end. */
  poll(): number
  /** Posts all queued frames, then closes. The peer still receives every frame that was sent. Frames that this end has received and not delivered are dropped. Idempotent. */
  close(): void
  /** Whether this end has called `close`, or has noticed that the peer's end is closed. */
  readonly closed: boolean
  /**
   * Pauses or resumes the link. A paused link delivers nothing, not even in `poll`, and reads nothing, so frames wait at the peer. If `onFrame` calls `setPaused(true)`,
   * the next frame waits. A resumed link delivers in a later turn. Only links to other processes have this method, because threads of one process trust each other.
   */
  setPaused?(isPaused: boolean): void
  /**
   * Reports that the last frame brought nothing new: an acknowledgement of nothing, or a repeated frame. If the peer sends too many such frames, the link stops
   * reading from it for a while. Only links with `setPaused` have this method.
   */
  idle?(): void
  /** Ends the link as if the peer had ended: `onClose` receives `by: 'peer'` and this detail. Frames that were sent may be lost. */
  abandon?(detail: string): void
  /** True: it delivers all frames in the order of `send`, whatever their `FrameOrder` is, so none needs one. */
  readonly neverOvertakes?: boolean
  /** The bytes of sent frames that the peer has not taken yet, plus 512 for each frame. The frame that is being sent does not count. Only links with `setPaused` have it. */
  readonly unreadBytes?: number
}

/** The cost of a frame that is kept until the peer has taken it, apart from its bytes. */
export const FRAME_KEPT_BYTES = 512
