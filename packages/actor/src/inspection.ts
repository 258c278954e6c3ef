/** What a worker is doing, as plain values that survive the wire: depths, counts, what it waits for. For dashboards and hang reports. */
import type { DeadLetter, DeadLetterReason, DeadLetters } from './dead-letters.js'
import { LANE_NAMES, Lane, type LaneName } from './lanes.js'
import type { Pump } from './pump.js'

/** Something that the worker waits for: a reply, an acknowledgement, the end of a pass. The packages above list theirs. */
export interface Wait {
  /** As the user called it: `call`, `toHere`, `backward`. */
  readonly op: string
  /** The worker that has to answer; null when nobody in particular. */
  readonly on: string | null
  readonly sinceMs: number
  /** Infinity: none. */
  readonly deadlineMs: number
}

export interface Inspection {
  readonly atMs: number
  readonly stopped: boolean
  /** How many items wait, per lane; `held` are notices of closed links that stand behind earlier messages. */
  readonly depth: Readonly<Record<LaneName | 'held', number>>
  readonly taken: Readonly<Record<LaneName, number>>
  readonly runs: number
  readonly deferrals: number
  readonly polls: number
  readonly bugs: number
  readonly deadLetters: Readonly<Record<DeadLetterReason, number>>
  readonly lastDeadLetters: readonly DeadLetter[]
  readonly waits: readonly Wait[]
}

export function inspect<T extends NonNullable<unknown>>(
  pump: Pump<T>,
  deadLetters: DeadLetters,
  waits: readonly Wait[],
  atMs: number,
): Inspection {
  const { mailbox } = pump
  const perLane = (of: (lane: Lane) => number) =>
    Object.fromEntries(LANE_NAMES.map((name) => [name, of(Lane[name])])) as Record<LaneName, number>
  return {
    atMs,
    stopped: pump.stopped,
    depth: { ...perLane((lane) => mailbox.depth(lane)), held: mailbox.held },
    taken: perLane((lane) => mailbox.takenCounts[lane]!),
    ...pump.counts,
    deadLetters: { ...deadLetters.counts },
    lastDeadLetters: deadLetters.last(),
    waits,
  }
}
