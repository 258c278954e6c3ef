/**
 * The lanes in which a worker's work waits, highest first. The table of messages (wire) gives each kind its lane, the mailbox (actor) takes from
 * them. Each lane's comment says what waits in it.
 */
export const Lane = {
  /** Kill and stop. */
  signal: 0,
  /** Results, exceptions, acknowledgements, aborts, the RRef protocol, a broken link's notice. */
  control: 1,
  /** Gradients from other workers. */
  gradient: 2,
  /** The engine's own node tasks, by priority; never a message. */
  task: 3,
  /** Calls from other workers. */
  call: 4,
} as const

export type Lane = (typeof Lane)[keyof typeof Lane]

/** A lane that messages wait in: first in, first out. */
export type MessageLane = Exclude<Lane, typeof Lane.task>

export const LANE_COUNT = Object.keys(Lane).length
