/**
 * The kind of a trace's event.
 * - 'frame': a frame was delivered; 'poll': a frame was delivered because its receiver polled the link
 * - 'close': a worker learned that a link has ended
 * - 'timer': a timer fired; 'defer': a deferred turn ran
 * - 'time': nothing else could happen, so virtual time advanced to the next timer
 * - 'crash': a worker crashed; 'restart': a crashed worker may start again
 * - 'drop', 'duplicate', 'delay': a fault rule lost, repeated or delayed a frame
 */
export type TraceKind =
  /** A frame was delivered in a step of its own, or after another frame of its pair. */
  | 'frame'
  /** A frame was delivered because its receiver polled the link (`poll`). */
  | 'poll'
  /** The notice of a closed link was delivered; without `to`, to the end that had closed it. */
  | 'close'
  /** A timer fired. */
  | 'timer'
  /** A deferred turn ran. */
  | 'defer'
  /** Nothing else could happen: virtual time advanced to the next timer. */
  | 'time'
  /** A worker crashed. */
  | 'crash'
  /** A crashed worker may start again. */
  | 'restart'
  /** A fault rule lost a frame. */
  | 'drop'
  /** A fault rule repeated a frame. The original is delivered, too. */
  | 'duplicate'
  /** A fault rule delayed a frame. */
  | 'delay'

/** An event of a simulated run: a frame was delivered, dropped or delayed, a timer fired, a turn ran, a worker crashed. */
export interface TraceEvent {
  /** The number of the step in which it happened, from 1. Several frames may be delivered in one step. */
  readonly step: number
  /** The virtual time, in ms. */
  readonly timeMs: number
  /** The kind of event. */
  readonly kind: TraceKind
  /** The sender of the frame, or the worker whose timer or turn it is. '' if no worker is concerned. */
  readonly from: string
  /** The receiver of the frame. '' if the event has none. */
  readonly to: string
  /** The size of the frame's header and segments. 0 if the event is not about a frame. */
  readonly bytes: number
  /** A hash of the frame's bytes, 32 bits. 0 if the event is not about a frame. */
  readonly hash: number
}

/** An event with a readable name for its frame. */
export interface NamedEvent extends TraceEvent {
  /** The frame's name, such as 'call add #3'. '' if the event is not about a frame. */
  readonly label: string
  /** The family of the frame's message, such as 'call', which decides its colour in a diagram. '' if the event is not about a frame. */
  readonly family: string
}
