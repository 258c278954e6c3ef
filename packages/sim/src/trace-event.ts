/** What can happen in a simulated world, as its trace keeps it. */
export type TraceKind =
  /** A frame was delivered in a step of its own, or behind another of its pair. */
  | 'frame'
  /** A frame was delivered because its receiver looked (`poll`). */
  | 'poll'
  /** The notice of a closed link was delivered; without `to` it was the end that had closed it which heard so. */
  | 'close'
  /** A timer fired. */
  | 'timer'
  /** A deferred turn ran. */
  | 'defer'
  /** Nothing else was to be done: virtual time jumped to the next timer. */
  | 'time'
  /** A worker was crashed. */
  | 'crash'
  /** A crashed worker may be started again. */
  | 'restart'
  /** A fault rule lost a frame. */
  | 'drop'
  /** A fault rule repeated a frame, which is delivered as well. */
  | 'duplicate'
  /** A fault rule put off a frame. */
  | 'delay'

/** One event of a run: something sent, delivered, lost or put off, a timer, a turn, an end. */
export interface TraceEvent {
  /** The step of the world that it happened in, from 1. Several frames may be delivered in one. */
  readonly step: number
  /** Virtual time. */
  readonly timeMs: number
  /** What happened. */
  readonly kind: TraceKind
  /** The sender, or whose timer or turn it was; '' for the world's own. */
  readonly from: string
  /** The receiver; '' where there is none. */
  readonly to: string
  /** Of the frame, header and segments. */
  readonly bytes: number
  /** Of a frame's bytes; 32 bits. */
  readonly hash: number
}

/** An event as a reader sees it. */
export interface NamedEvent extends TraceEvent {
  /** What the frame was: "call add #3"; '' for what is no frame. */
  readonly label: string
  /** What kind of thing it was, by which a diagram draws it; '' for what is no frame. */
  readonly family: string
}
