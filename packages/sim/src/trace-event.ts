/** The kinds of events of a simulated world, as its trace keeps them. */
export type TraceKind =
  /** A frame was delivered in a step of its own, or after another of its pair. */
  | 'frame'
  /** A frame was delivered because its receiver looked (`poll`). */
  | 'poll'
  /** The notice of a closed link was delivered; without `to`, to the end that had closed it. */
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

/** One event of a run: a frame was delivered, dropped or delayed, a timer fired, a turn ran, a worker crashed. */
export interface TraceEvent {
  /** The step of the world in which it happened, from 1. Several frames may be delivered in one step. */
  readonly step: number
  /** The virtual time, in ms. */
  readonly timeMs: number
  /** The kind of event. */
  readonly kind: TraceKind
  /** The sender, or the worker of the timer or turn; '' for the world's own. */
  readonly from: string
  /** The receiver; '' if there is none. */
  readonly to: string
  /** The frame's size: header and segments. */
  readonly bytes: number
  /** A hash of the frame's bytes; 32 bits. */
  readonly hash: number
}

/** An event with a name for its frame, for readers. */
export interface NamedEvent extends TraceEvent {
  /** The frame's name: "call add #3"; '' if the event is not about a frame. */
  readonly label: string
  /** The frame's family, which decides its colour in a diagram; '' if the event is not about a frame. */
  readonly family: string
}
