/**
 * A link carries frames between two workers in order until it breaks: the narrow waist between `wire`, which makes frames of messages,
 * and what moves bytes (a MessagePort, memory, a socket, the simulation). `link.suite.ts` holds every implementation to what is promised here.
 *
 *     worker A                                                         worker B
 *     send(f1) send(f2) send(f3) ──end of A's turn──▶ one post ──▶ onFrame(f1) onFrame(f2) onFrame(f3) onTurnEnd()
 */

/** A message between two workers, in bytes: a header, and segments in addition to it (one for each large tensor). */
export interface Frame {
  /** Starts at a multiple of 8 in its buffer when received, so that whatever the sender aligned inside it stays aligned. */
  readonly header: Uint8Array
  /** Each starts at a multiple of 8 in its buffer when received. */
  readonly segments: readonly Uint8Array[]
  /** How many frames that were sent earlier have not arrived yet (see `FrameOrder`). Left out or 0: the frame arrived in order. */
  readonly overtook?: number
}

/**
 * Which earlier frames a frame must not overtake. Orders are numbered 0 to 15. Bit n of the low 16 is set if the frame belongs to order n; bit n of the high 16 is set if the frame must not overtake frames of order n.
 * On a socket, a small frame may overtake a large frame that is under way, and the frames that wait after it, if none of them belongs to such an order. The small frame never arrives later than in strict order.
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

/** The side of a link that takes frames. Its methods must not throw: what they throw is an uncaught exception of the thread. */
export interface LinkReceiver {
  /** Called for each frame, in the order of `send` (except as `FrameOrder` allows). From then on the bytes belong to the receiver, which may keep views on them. */
  onFrame(frame: Frame): void
  /** Called after the last frame that was ready in a turn of the event loop. `poll` does not call it. */
  onTurnEnd(): void
  /** Called once, in a turn of its own, after every frame that was received on the link. No method is called after it. */
  onClose(reason: LinkClosed): void
}

/** Why a link ended. */
export interface LinkClosed {
  /** `self`: this end called `close`. `peer`: the other end called it, or its thread ended, or it posted something unreadable. */
  readonly by: 'self' | 'peer'
  /** A sentence for people. */
  readonly detail: string
}

/**
 * Called once for a frame. True: the frame was posted, or the kernel has all of its bytes, so the peer receives it even while this thread computes. False: the link has ended, and the frame will never leave.
 * It may be called within any `send`, so it must not send, and must not throw.
 */
export type OnFlushed = (isFlushed: boolean) => void

/** A connection to one other worker. It keeps frames in order (see `FrameOrder`) and loses nothing until it is closed. */
export interface Link {
  /** Begins delivery, in a later turn. Frames that arrived earlier are kept until then. May be called once. */
  open(receiver: LinkReceiver): void
  /**
   * Queues a frame and takes ownership of its bytes: the caller must not write to them again (a segment that fills its whole buffer is
   * moved, and reads as empty afterwards; a large segment of shared memory may be read until the peer has had it; anything else is copied). Posts at the latest at the end of this turn's microtasks, several
   * frames to a post. May be called before `open`.
   * @throws LINK_CLOSED when either end has closed; the frame is then still the caller's.
   */
  send(frame: Frame, order?: FrameOrder, onFlushed?: OnFlushed | null): void
  /** Posts all queued frames now. */
  flush(): void
  /** Delivers synchronously, in order, the frames that have already arrived, without a turn of the event loop. Returns how many: 0 before `open` and after the end. */
  poll(): number
  /** Flushes, then closes. The peer still receives every frame that was sent earlier. This end drops frames that it has received and not delivered. Idempotent. */
  close(): void
  /** True from `close` on, and from the moment the peer's end was noticed. */
  readonly closed: boolean
  /**
   * Pauses or resumes the link. While it is paused, it delivers nothing, not even in `poll`, and reads nothing, so frames stay with the peer. It may be called within `onFrame`; the next
   * frame then waits. A resumed link delivers in a later turn. Only links to other processes have this method: threads of one process trust each other.
   */
  setPaused?(isPaused: boolean): void
  /** Reports that the last frame brought nothing new: an acknowledgement of nothing, or a repeated frame. If the peer sends too many of these, the link does not read from it for a while. Left out if `setPaused` is. */
  idle?(): void
  /** Ends the link as if its peer had ended: `onClose` gets `by: 'peer'` and this detail. Frames that were sent may be lost. */
  abandon?(detail: string): void
  /** Bytes that were sent and that the peer has not taken yet, plus 512 for each frame. The frame that is under way does not count. Left out if `setPaused` is. */
  readonly unreadBytes?: number
}

/** The cost of a frame that is kept until the peer has taken it, apart from its bytes. */
export const FRAME_KEPT_BYTES = 512
