/** A group as its two halves see it, `collectives.ts` and `point-to-point.ts`. `process-group.ts` implements it. */
import type { WorkerInfo } from '@postgrad/rpc'
import type { StandingGroup, WorkerRuntime } from '@postgrad/rpc/internal'
import type { Values, What } from '../common/protocol.js'
import type { Place } from '../common/step.js'
import type { WaitOptions } from './wait-for.js'

/**
 * How much a group checks and reports. 'info': errors list earlier calls. 'detail': in addition, the ranks compare their calls before each collective. PyTorch:
 * `TORCH_DISTRIBUTED_DEBUG`.
 */
export type DebugLevel = 'off' | 'info' | 'detail'

/** A member that sends nothing more. */
export class Gone {
  readonly why: string
  readonly cause: unknown

  constructor(why: string, cause: unknown) {
    this.why = why
    this.cause = cause
  }
}

export interface SayOptions {
  readonly error?: unknown
  /** Once, when it is flushed or never will be (`OnFlushed`). */
  readonly onFlushed?: () => void
}

export interface GroupHost extends Place, StandingGroup {
  readonly name: string
  readonly workers: readonly WorkerInfo[]
  readonly runtime: WorkerRuntime
  readonly debug: DebugLevel
  /** The number of the next collective of this rank. */
  readonly next: number
  /** Nothing begins any more. */
  readonly isBroken: boolean
  /** Gives the time in ms that it may take. @throws where nothing may begin, and TIMEOUT_INVALID, CALL_CANCELLED */
  admit(op: string, options: WaitOptions): number
  goneOf(rank: number): Gone | undefined
  /** See Note [How a group breaks]. */
  break(number: number, why: string, cause: unknown): void
  /** Not to a dead rank: its end is seen after its messages. */
  say(to: number, what: What, sequence: number, step: number, head: string, values: Values, how?: SayOptions): void
}
