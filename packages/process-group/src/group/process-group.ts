/**
 * A process group as one of its members sees it: its members, which of them are gone, whether it is broken, and the messages between them. `collectives.ts` and
 * `point-to-point.ts` do the work; `process-groups.ts` has all groups of a worker and gives each its messages.
 *
 *     open ──→ broken    a member has died, or a collective has failed: what runs may end, nothing begins
 *       │         │
 *       └─────────┴──→ destroyed
 *
 * Note [How a group breaks]
 *
 * A collective fails on the rank that sees that it cannot succeed: by its deadline, its cancellation, a mismatch, or a death among the ranks that it waits for. That
 * rank begins nothing any more, as ranks that have lost count of each other must not continue. It sends FAILED to all others, with the smallest number that it will
 * not complete: of the collective, or of the next one that it would have begun. A rank that receives FAILED fails its collectives from this number on, begins nothing
 * more, and, once, sends FAILED itself: if it is late, others wait for it in collectives of smaller numbers. A death is such an end, too.
 *
 * So every wait ends. Say that a rank waits in number n for another. The other completes n, and sends its part; or it fails n, or will never begin it, and says so
 * to all; or it is gone, and its end is noticed after all its messages. No result is lost that could still come: FAILED arrives after its sender's parts,
 * and collectives with smaller numbers continue. A `recv`, or a `send` that waits for room, waits for a call that another rank's program may never make: it ends with its
 * deadline, with that rank, or with the group. So does a work whose messages are not flushed: a stopped process reads nothing, and is not gone.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { checkSignal, currentScope, timeLimit } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { MessageType } from '@postgrad/wire/internal'
import { destroyed, groupAborted, groupBroken, notMember, overText, programOver, rankText } from '../common/errors.js'
import { type Body, NOTHING, type Values, What } from '../common/protocol.js'
import { limitsFor, others, type ReduceLimits } from '../common/step.js'
import { type CollectiveSpec, Collectives } from './collectives.js'
import { type DebugLevel, Gone, type GroupHost, type SayOptions } from './group-host.js'
import { PointToPoint } from './point-to-point.js'
import type { WaitOptions } from './wait-for.js'
import type { Work } from './work.js'

export type { DebugLevel } from './group-host.js'

/** Options of every collective, and of `send` and `recv`. */
export interface CollectiveOptions {
  /** The group whose ranks take part; default: the default group. */
  readonly group?: ProcessGroup
  /** The deadline of the operation in ms; default that of the group; 0: without a limit. */
  readonly timeoutMs?: number
  /**
   * Ends the operation if it aborts. Aborting a collective breaks the group on all ranks, since no other rank can complete it either. Aborting `send` or `recv`
   * breaks nothing.
   */
  readonly signal?: AbortSignal
  /** Has no effect, and exists for programs that come from PyTorch: each function returns its `Work` at once, and you may await it or not. */
  readonly asyncOp?: boolean
}

/** @internal How a group is made. */
export interface GroupSpec {
  readonly id: bigint
  readonly name: string
  /** By rank. */
  readonly workers: readonly WorkerInfo[]
  /** Their ranks in the default group, by rank. */
  readonly ranks: readonly number[]
  readonly timeoutMs: number
  readonly debug: DebugLevel
  readonly warnAfterMs: number
  /** By rank, see `Place`; as all members have said. */
  readonly heaps: readonly number[]
  readonly onDestroyed: (group: ProcessGroup) => void
}

/**
 * Workers that call collectives together, each with its rank. `initProcessGroup` and `newGroup` make one. PyTorch: `ProcessGroup`.
 * @example
 * const group: ProcessGroup = await initProcessGroup()
 * group.rank // rank 0: 0, rank 1: 1
 * group.workers.map(({ name }) => name) // ['worker0', 'worker1']
 */
export class ProcessGroup implements GroupHost {
  /** @internal */
  readonly id: bigint
  /** The name that was given to `initProcessGroup`; a group of `newGroup` has a name made from its ranks. */
  readonly name: string
  /** This worker's rank in the group; -1 if it is not a member. */
  readonly rank: number
  /** The members, in the order of their ranks. */
  readonly workers: readonly WorkerInfo[]
  /** The ranks of the members in the default group, which `src` and `dst` use, in the order of their ranks in this group. */
  readonly ranks: readonly number[]
  /** The default deadline of the group's collectives, in ms. 0: without a limit. */
  readonly timeoutMs: number
  /** How much the group checks and reports: see `initProcessGroup`. */
  readonly debug: DebugLevel
  /** After how many ms of waiting the group prints a line: see `initProcessGroup`. */
  readonly warnAfterMs: number
  /** @internal Others only in tests, of all ranks. */
  limits: ReduceLimits
  /** @internal By rank. Others only in tests, of all ranks. */
  heaps: readonly number[]
  /** @internal */
  readonly runtime: WorkerRuntime
  /** @internal */
  readonly collectives: Collectives
  /** @internal */
  readonly direct: PointToPoint
  private readonly onDestroyed: (group: ProcessGroup) => void
  private state: 'open' | 'broken' | 'destroyed' = 'open'
  private brokenBy: Gone | null = null
  private readonly gone = new Map<number, Gone>()
  /** The others know that this rank brings none to its end from here on. */
  private toldFrom = Number.POSITIVE_INFINITY

  /** @internal */
  constructor(runtime: WorkerRuntime, { id, name, workers, ranks, timeoutMs, debug, warnAfterMs, heaps, onDestroyed }: GroupSpec) {
    this.heaps = heaps
    this.limits = limitsFor(heaps)
    this.runtime = runtime
    this.id = id
    this.name = name
    this.workers = workers
    this.ranks = ranks
    this.timeoutMs = timeoutMs
    this.debug = debug
    this.warnAfterMs = warnAfterMs
    this.onDestroyed = onDestroyed
    this.rank = this.rankOf(runtime.info.id)
    this.collectives = new Collectives(this)
    this.direct = new PointToPoint(this)
  }

  /** The number of members. */
  get size(): number {
    return this.workers.length
  }

  /** The GROUP_BROKEN error if the group is broken; null if it can be used. */
  get error(): PostgradError | null {
    return this.brokenBy === null ? null : this.broken('processGroup')
  }

  /**
   * Breaks the group on all ranks: operations under way and later ones fail with GROUP_BROKEN, whose cause is `reason`. No rank waits any longer. PyTorch:
   * `ProcessGroup.abort`.
   */
  abort(reason?: unknown): void {
    if (this.rank >= 0 && this.state !== 'destroyed') {
      this.break(0, `it was aborted by ${rankText(this, this.rank)}`, reason ?? groupAborted(this))
    }
  }

  /** @internal -1: no member. */
  rankOf(worker: number): number {
    return this.workers.findIndex(({ id }) => id === worker)
  }

  /** @internal StandingGroup */
  get key(): string {
    return String(this.id)
  }

  /** @internal The number of the next collective of this rank. */
  get next(): number {
    return this.collectives.next
  }

  /** @internal How many works wait here. */
  get pending(): number {
    return this.collectives.pending + this.direct.waiting
  }

  /** @internal What has come and this rank has not come to take. */
  get unread(): number {
    return this.collectives.unread + this.direct.arrived
  }

  // --- what this rank calls

  /** @internal @throws nothing: the work has the error */
  start<T>(spec: CollectiveSpec<T>, options: CollectiveOptions): Work<T> {
    return this.collectives.start(spec, options)
  }

  /** @internal */
  admit(op: string, { timeoutMs, signal }: WaitOptions): number {
    this.check(op)
    const limitMs = timeLimit(op, timeoutMs ?? this.timeoutMs)
    checkSignal(signal, op, null)
    return Math.min(limitMs, Math.max(0, currentScope().deadlineMs - this.runtime.clock.now()))
  }

  /** @internal @throws PROCESS_GROUP_NOT_MEMBER, PROCESS_GROUP_DESTROYED, GROUP_BROKEN */
  check(op: string): void {
    if (this.rank < 0) throw notMember(op, this, this.runtime.info.name)
    if (this.state === 'destroyed') throw destroyed(op, this)
    if (this.brokenBy !== null) throw this.broken(op)
  }

  private broken(op: string): PostgradError {
    const { why, cause } = this.brokenBy!
    return groupBroken(op, this, why, cause)
  }

  /** @internal */
  get isBroken(): boolean {
    return this.brokenBy !== null
  }

  /** @internal */
  goneOf(rank: number): Gone | undefined {
    return this.gone.get(rank)
  }

  // --- what others say

  /** @internal One of its messages, of a member. Null: it has been taken; else why it cannot be right. */
  onMessage(from: number, body: Body): string | null {
    const [, what, sequence, step, head, values, error] = body
    switch (what) {
      case What.part:
        return this.collectives.onPart(from, sequence, step, head, values)
      case What.send:
        return this.direct.onArrival({ from, tag: sequence, head, values })
      case What.taken:
        return this.direct.onTaken(from, sequence, step)
      case What.failed:
        this.break(sequence, this.whyFailed(from, sequence, error), error)
        return null
      case What.left:
        this.onGone(from, `${rankText(this, from)} has destroyed it`, null)
        return null
      case What.unknown:
        this.onGone(from, `${rankText(this, from)} does not know it any more`, null)
        return null
      default:
        return `a message of kind ${what} does not exist`
    }
  }

  private whyFailed(from: number, sequence: number, error: unknown): string {
    const rank = isPostgradError(error, 'PROGRAM_OVER') ? Number(error.values.rank) : Number.NaN
    return rank < this.size ? overText(this, rank) : `${rankText(this, from)} has given up number ${sequence}`
  }

  /** @internal Something of a member is lost, and nobody knows of which of the groups that it is in. */
  onUnreadable(worker: number, error: unknown): void {
    const rank = this.rankOf(worker)
    if (rank < 0 || rank === this.rank) return
    const { collectives } = this
    this.break(collectives.firstThatNeeds(rank) ?? collectives.next, `a message of ${rankText(this, rank)} could not be read`, error)
  }

  /** @internal A member has died. */
  onDeath(worker: number, error: PostgradError): void {
    const rank = this.rankOf(worker)
    if (rank < 0 || this.state === 'destroyed') return
    const why = `${rankText(this, rank)} has ended`
    this.onGone(rank, why, error)
    this.break(this.collectives.next, why, error)
  }

  /** @internal StandingGroup. All that runs here waits for ever: for that rank, or for one that waits for it. */
  onOver(worker: number): void {
    const rank = this.rankOf(worker)
    this.break(this.collectives.first, overText(this, rank), programOver(this, rank))
  }

  /** The rank sends nothing more; all it has sent has come. Works without it continue. */
  private onGone(rank: number, why: string, cause: PostgradError | null): void {
    if (this.gone.has(rank) || this.state === 'destroyed') return
    this.gone.set(rank, new Gone(why, cause))
    const lost = this.collectives.firstThatNeeds(rank)
    if (lost !== null) this.break(lost, why, cause)
    this.direct.onGone(rank, (op) => groupBroken(op, this, why, cause))
  }

  // --- ends

  /** @internal See Note [How a group breaks]. */
  break(number: number, why: string, cause: unknown): void {
    if (this.state === 'destroyed') return
    if (this.state === 'open') {
      this.state = 'broken'
      this.brokenBy = new Gone(why, cause)
    }
    const sequence = Math.min(number, this.collectives.next)
    const failed = this.collectives.takeFrom(sequence)
    if (sequence < this.toldFrom) {
      this.toldFrom = sequence
      this.tell(What.failed, sequence, cause ?? groupBroken('collective', this, why, null))
    }
    const isMismatch = isPostgradError(cause, 'COLLECTIVE_MISMATCH')
    for (const { op, work } of failed) work.reject(isMismatch ? cause : groupBroken(op, this, why, cause))
    this.direct.end((op) => groupBroken(op, this, why, cause))
    this.collectives.beginNext()
  }

  /** @internal Nothing of it can be called here any more. Works under way here fail with PROCESS_GROUP_DESTROYED, and the others learn that this rank has gone. */
  destroy(): void {
    if (this.state === 'destroyed') return
    this.end((op) => destroyed(op, this))
    if (this.rank >= 0) this.tell(What.left, 0, null)
    this.onDestroyed(this)
  }

  /** @internal The worker closes. It sends no LEFT: all see that. */
  close(error: PostgradError): void {
    if (this.state !== 'destroyed') this.end(() => error)
  }

  private end(error: (op: string) => PostgradError): void {
    this.state = 'destroyed'
    for (const { op, work } of this.collectives.takeFrom(0)) work.reject(error(op))
    this.direct.end(error)
  }

  private tell(what: What, sequence: number, error: unknown): void {
    for (const to of others(this)) if (!this.gone.has(to)) this.say(to, what, sequence, 0, '', NOTHING, { error })
  }

  /** @internal */
  say(to: number, what: What, sequence: number, step: number, head: string, values: Values, how: SayOptions = {}): void {
    const body: Body = [this.id, what, sequence, step, head, values, how.error ?? null]
    this.runtime.messages.postIfReachable(this.workers[to]!.id, MessageType.COLLECTIVE, body, how.onFlushed)
  }
}
