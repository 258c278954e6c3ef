/**
 * A process group as one of its members sees it: numbers its collectives, carries their parts, and ends what cannot come about any more. `collective.ts` below
 * runs one of them; `process-groups.ts` above has all groups of a worker and gives each its messages.
 *
 *     open ──→ broken    a member has died, or a collective has failed: what runs may end, nothing begins
 *       │         │
 *       └─────────┴──→ destroyed
 *
 * Note [How a group breaks]
 *
 * A collective fails where somebody sees that it cannot come about: its deadline, its cancellation, a mismatch, a death among those that it waits for. On that
 * rank nothing begins any more, as ranks that have lost count of each other must not go on. It tells all others FAILED with the smallest number that it will
 * not bring to its end: of the collective, or of the next one that it would have begun. Who hears that fails what has this number or a greater one, begins nothing
 * more, and, once, says the same of itself: it may be behind, and then others wait for it in collectives of smaller numbers. A death is such an end, too.
 *
 * So every wait ends. Say that a rank waits in number n for another. That one brings n to its end, and sends its part; or it fails n, or will never begin it, and says so
 * to all; or it is gone, and its end is noticed behind everything that it has sent. What could still be had is not given up: FAILED comes behind the parts of its
 * sender, and collectives with smaller numbers go on.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { callCancelled, checkSignal, currentScope, onAbort, timeLimit } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WaitAbout, WorkerRuntime } from '@postgrad/rpc/internal'
import { outsideOfScopes } from '@postgrad/tensor/internal'
import { MessageType } from '@postgrad/wire/internal'
import { collectiveTimedOut, destroyed, groupAborted, groupBroken, mismatch, notMember, rankText } from '../common/errors.js'
import { type Body, NOTHING, type Values, What } from '../common/protocol.js'
import { type Algorithm, LIMITS, LIMITS_IN_ONE_HEAP, type Place, type ReduceLimits } from '../common/step.js'
import { Collective, type CollectiveHost } from './collective.js'
import { dropValues } from './drop-values.js'
import { PointToPoint, type Receiver } from './point-to-point.js'
import { Work } from './work.js'

/** How much a group checks and says. PyTorch: `TORCH_DISTRIBUTED_DEBUG`. */
export type DebugLevel = 'off' | 'info' | 'detail'

/** Of every collective, and of `recv`. */
export interface CollectiveOptions {
  /** Default: the default group. */
  readonly group?: ProcessGroup
  /** How long it may take in ms; default the group's; 0 is no limit. */
  readonly timeoutMs?: number
  /** Gives it up, which breaks the group for all: the others cannot have it either. */
  readonly signal?: AbortSignal
  /** Of no effect: each function gives its `Work` at once, which may be awaited or not. For programs that come from PyTorch. */
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
  /** By rank, see `Place`; as all members have said. */
  readonly heaps: readonly number[]
  readonly onDestroyed: (group: ProcessGroup) => void
}

/** @internal What a collective is made of. */
export interface CollectiveSpec<T> {
  readonly op: string
  /** See Note [Heads]. */
  readonly head: string
  readonly algorithm: (place: Place) => Algorithm<T>
  /** It begins when all that were called before it have ended here. */
  readonly isBehindAll?: boolean
  /** The error of its deadline, if it has its own. */
  readonly timedOut?: (missing: readonly number[], timeoutMs: number, sequence: number) => PostgradError
}

/** Heads of so many collectives that have ended are kept, for errors. */
const RECENT = 64
/** Of these, errors of a group with debug 'info' show so many. */
const SHOWN = 5

/** Workers that call collectives together, each by its rank. `initProcessGroup` and `newGroup` make one. PyTorch: `ProcessGroup`. */
export class ProcessGroup implements CollectiveHost {
  /** @internal */
  readonly id: bigint
  /** As it was given; of `newGroup` one that is made from its ranks. */
  readonly name: string
  /** This worker's; -1 where it is no member. */
  readonly rank: number
  /** The members, by rank. */
  readonly workers: readonly WorkerInfo[]
  /** Their ranks in the default group, by rank: what `src` and `dst` name. */
  readonly ranks: readonly number[]
  /** Default deadline of its collectives in ms; 0 is none. */
  readonly timeoutMs: number
  /** See `initProcessGroup`. */
  readonly debug: DebugLevel
  /** @internal Others only in tests, of all ranks. */
  limits: ReduceLimits
  /** @internal By rank. Others only in tests, of all ranks. */
  heaps: readonly number[]
  /** @internal */
  readonly runtime: WorkerRuntime
  private readonly onDestroyed: (group: ProcessGroup) => void
  private state: 'open' | 'broken' | 'destroyed' = 'open'
  private brokenBy: Pick<Gone, 'why' | 'cause'> | null = null
  private next = 0
  private readonly running = new Map<number, Collective>()
  /** Parts of collectives that this rank has not called yet, by number. */
  private readonly ahead = new Map<number, Ahead[]>()
  private readonly recent: string[] = []
  /** Members that send nothing more. */
  private readonly gone = new Map<number, Gone>()
  /** The others know that this rank brings none to its end from here on. */
  private toldFrom = Number.POSITIVE_INFINITY
  private readonly direct = new PointToPoint()

  /** @internal */
  constructor(runtime: WorkerRuntime, { id, name, workers, ranks, timeoutMs, debug, heaps, onDestroyed }: GroupSpec) {
    this.heaps = heaps
    this.limits = heaps.every((heap) => heap === heaps[0]) ? LIMITS_IN_ONE_HEAP : LIMITS
    this.runtime = runtime
    this.id = id
    this.name = name
    this.workers = workers
    this.ranks = ranks
    this.timeoutMs = timeoutMs
    this.debug = debug
    this.onDestroyed = onDestroyed
    this.rank = this.rankOf(runtime.info.id)
  }

  /** How many members it has. */
  get size(): number {
    return this.workers.length
  }

  /** Why nothing can be called any more: GROUP_BROKEN; null: it can. */
  get error(): PostgradError | null {
    return this.brokenBy === null ? null : this.broken('processGroup')
  }

  /**
   * Ends everything that is under way in this group, on all ranks, with GROUP_BROKEN, whose cause is `reason`; nothing can be called any more. Works that wait
   * anywhere are free. PyTorch: `ProcessGroup.abort`.
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

  /** @internal How many collectives run here, and how many receivers wait. */
  get pending(): number {
    return this.running.size + this.direct.waiting.length
  }

  /** @internal What has come and this rank has not come to take. */
  get unread(): number {
    let count = this.direct.arrived
    for (const parts of this.ahead.values()) count += parts.length
    return count
  }

  /** @internal The number of the next collective. */
  get sequence(): number {
    return this.next
  }

  // --- what this rank calls

  /** @internal @throws nothing: the work has the error */
  start<T>(spec: CollectiveSpec<T>, options: CollectiveOptions): Work<T> {
    const { op, head } = spec
    const work = new Work<T>()
    try {
      const timeoutMs = this.admit(op, options)
      const sequence = this.next++
      const algorithm = this.algorithmOf(spec)
      const collective = new Collective(this, { sequence, head, op, work: work as Work<unknown>, algorithm, timeoutMs })
      const { signal } = options
      const waiting = {
        deadlineMs: Number.POSITIVE_INFINITY,
        parent: null,
        op,
        about: () => this.about(collective),
        onReply: () => {},
        onError: (error: unknown) => this.onFailed(collective, error),
        timedOut: () => this.timedOut(collective, spec),
      }
      const endWait = this.runtime.requests.wait(waiting, timeoutMs, op)
      this.running.set(sequence, collective)
      const canceller = { cancel: (reason: unknown) => this.onFailed(collective, callCancelled(op, null, reason)) }
      const unlisten = signal && onAbort(signal, () => canceller.cancel(signal.reason))
      collective.endWait = () => {
        unlisten?.()
        endWait()
      }
      work.cancelWith(canceller)
      this.takeAhead(collective)
      if (spec.isBehindAll !== true || this.isNext(collective)) this.begin(collective)
    } catch (error) {
      work.reject(error)
    }
    return work
  }

  /** @internal Gives a tensor to another rank, which asks for it by the tag, now or later. @throws what the codec does, GROUP_BROKEN */
  sendTo(op: string, to: number, tag: number, head: string, values: Values): void {
    this.check(op)
    const gone = this.gone.get(to)
    if (gone !== undefined) throw groupBroken(op, this, gone.why, gone.cause)
    this.say(to, What.send, tag, 0, head, values)
  }

  /** @internal `read` makes the value of what has come, and may throw. */
  receive<T>(
    op: string,
    from: number | null,
    tag: number,
    options: CollectiveOptions,
    read: (from: number, head: string, values: Values) => T,
  ): Work<T> {
    const work = new Work<T>()
    try {
      const timeoutMs = this.admit(op, options)
      let endWait = () => {}
      const receiver: Receiver = {
        from,
        tag,
        take: (arrival) => {
          endWait()
          try {
            work.resolve(read(arrival.from, arrival.head, arrival.values))
          } catch (error) {
            work.reject(error)
          }
        },
        fail: (error) => {
          endWait()
          work.reject(error)
        },
      }
      const giveUp = (error: unknown) => {
        if (this.direct.forget(receiver)) receiver.fail(error)
      }
      this.direct.receive(receiver)
      if (work.done) return work
      const awaited = from === null ? this.others() : [from]
      const lost = awaited.every((rank) => this.gone.has(rank)) ? this.gone.get(awaited[0]!) : undefined
      if (lost !== undefined) {
        giveUp(groupBroken(op, this, lost.why, lost.cause))
        return work
      }
      const head = `${op}(${from === null ? 'any' : `rank ${from}`}, tag ${tag})`
      const waiting = {
        deadlineMs: Number.POSITIVE_INFINITY,
        parent: null,
        op,
        about: (): WaitAbout => ({
          kind: 'collective',
          what: `${head} of group '${this.name}'`,
          on: awaited.map((rank) => this.workers[rank]!),
        }),
        onReply: () => {},
        onError: giveUp,
        timedOut: () => collectiveTimedOut(op, this, { sequence: tag, head, missing: awaited, timeoutMs, recent: [] }),
      }
      const end = this.runtime.requests.wait(waiting, timeoutMs, op)
      const { signal } = options
      const canceller = { cancel: (reason: unknown) => giveUp(callCancelled(op, null, reason)) }
      const unlisten = signal && onAbort(signal, () => canceller.cancel(signal.reason))
      endWait = () => {
        unlisten?.()
        end()
      }
      work.cancelWith(canceller)
    } catch (error) {
      work.reject(error)
    }
    return work
  }

  /** Gives the time that it may take. @throws PROCESS_GROUP_NOT_MEMBER, PROCESS_GROUP_DESTROYED, GROUP_BROKEN, TIMEOUT_INVALID, CALL_CANCELLED */
  private admit(op: string, { timeoutMs, signal }: CollectiveOptions): number {
    this.check(op)
    const limitMs = timeLimit(op, timeoutMs ?? this.timeoutMs)
    checkSignal(signal, op, null)
    return Math.min(limitMs, Math.max(0, currentScope().deadlineMs - this.runtime.clock.now()))
  }

  /** @internal @throws as `admit` */
  check(op: string): void {
    if (this.rank < 0) throw notMember(op, this, this.runtime.info.name)
    if (this.state === 'destroyed') throw destroyed(op, this)
    if (this.brokenBy !== null) throw this.broken(op)
  }

  private broken(op: string): PostgradError {
    const { why, cause } = this.brokenBy!
    return groupBroken(op, this, why, cause)
  }

  private algorithmOf<T>({ head, algorithm }: CollectiveSpec<T>): Algorithm<T> {
    return this.debug === 'detail' && this.size > 1 ? this.agreed(head, algorithm) : algorithm(this)
  }

  /** Before anything begins all say what they call. Each sees the same, so all fail or none, and the group goes on. */
  private *agreed<T>(head: string, algorithm: (place: Place) => Algorithm<T>): Algorithm<T> {
    const sequence = this.next - 1
    const said = yield { send: this.others().map((to) => [to, [head]] as const), from: this.others() }
    const calls = this.workers.map((_, rank) => [rank, rank === this.rank ? head : String(said[rank]?.[0])] as const)
    if (calls.some(([, call]) => call !== head)) throw new Disagreement(mismatch(this, sequence, calls))
    return yield* algorithm(this)
  }

  private begin(collective: Collective): void {
    this.runtime.run(() => outsideOfScopes(() => collective.begin()))
  }

  private others(): number[] {
    return this.workers.flatMap((_, rank) => (rank === this.rank ? [] : [rank]))
  }

  private isNext({ sequence }: Collective): boolean {
    for (const earlier of this.running.keys()) if (earlier < sequence) return false
    return true
  }

  // --- what a collective asks

  /** @internal */
  sendPart({ sequence, head }: Collective, to: number, step: number, values: Values): void {
    this.say(to, What.part, sequence, step, this.debug === 'detail' && step === 0 ? DETAIL : head, values)
  }

  /** @internal */
  goneAmong(ranks: Iterable<number>): unknown {
    for (const rank of ranks) {
      const gone = this.gone.get(rank)
      if (gone !== undefined) return gone
    }
    return null
  }

  /** @internal */
  onEnded(collective: Collective): void {
    this.forget(collective)
    this.recent[collective.sequence % RECENT] = collective.head
    for (const parts of collective.unread) for (const values of parts) if (values !== undefined) dropValues(values)
    this.beginNext()
  }

  /** @internal */
  onFailed(collective: Collective, thrown: unknown): void {
    const { sequence, work } = collective
    if (this.running.get(sequence) !== collective) return
    if (thrown instanceof Disagreement) {
      this.onEnded(collective)
      work.reject(thrown.error)
      return
    }
    if (thrown instanceof Gone) {
      this.break(sequence, thrown.why, thrown.cause)
      return
    }
    this.forget(collective)
    work.reject(thrown)
    this.break(sequence, `${rankText(this, this.rank)} has given up ${collective.head}, number ${sequence}`, thrown)
  }

  private forget(collective: Collective): void {
    this.running.delete(collective.sequence)
    collective.endWait()
  }

  private beginNext(): void {
    for (const collective of this.running.values()) {
      if (collective.hasBegun) continue
      if (this.isNext(collective)) this.begin(collective)
      return
    }
  }

  private timedOut(collective: Collective, { timedOut }: CollectiveSpec<unknown>): PostgradError {
    const { op, sequence, head, timeoutMs, missing } = collective
    if (timedOut !== undefined) return timedOut(missing, timeoutMs, sequence)
    const recent = this.debug === 'off' ? [] : this.lastHeads(sequence)
    return collectiveTimedOut(op, this, { sequence, head, missing, timeoutMs, recent })
  }

  private lastHeads(before: number): string[] {
    const heads: string[] = []
    for (let at = Math.max(0, before - SHOWN); at < before; at++) heads.push(`${at}: ${this.recent[at % RECENT] ?? 'under way'}`)
    return heads
  }

  private about({ sequence, head, missing, hasBegun }: Collective): WaitAbout {
    const what = `${head}, number ${sequence} of group '${this.name}'${hasBegun ? '' : ', which waits for earlier ones'}`
    return { kind: 'collective', what, on: missing.map((rank) => this.workers[rank]!) }
  }

  // --- what others say

  /** @internal One of its messages, of a member. Null: it has been taken; else why it cannot be right. */
  onMessage(from: number, body: Body): string | null {
    const [, what, sequence, step, head, values, error] = body
    switch (what) {
      case What.part:
        return this.onPart(from, sequence, step, head, values)
      case What.send:
        if (this.brokenBy === null) this.direct.onArrival({ from, tag: sequence, head, values })
        else dropValues(values)
        return null
      case What.failed:
        this.break(sequence, `${rankText(this, from)} has given up number ${sequence}`, error)
        return null
      case What.left:
        this.onGone(from, `${rankText(this, from)} has destroyed it`, null)
        return null
      case What.unknown:
        this.onGone(from, `${rankText(this, from)} does not know it any more`, null)
        return null
      default:
        return `there is no ${what}`
    }
  }

  private onPart(from: number, sequence: number, step: number, head: string, values: Values): string | null {
    const collective = this.running.get(sequence)
    if (collective !== undefined) {
      if (head !== collective.head && !(head === DETAIL && this.debug === 'detail')) this.onMismatch(sequence, collective.head, from, head)
      else if (!collective.take(from, step, values)) return 'it was sent before, or nobody waits for it'
      return null
    }
    if (sequence >= this.next) {
      if (this.brokenBy !== null) {
        dropValues(values)
        return null
      }
      const parts = this.ahead.get(sequence)
      if (parts === undefined) this.ahead.set(sequence, [{ from, step, head, values }])
      else parts.push({ from, step, head, values })
      return null
    }
    dropValues(values)
    // What has failed here may go on elsewhere for a moment.
    if (this.brokenBy === null) this.onMismatch(sequence, this.recent[sequence % RECENT] ?? 'something else', from, head)
    return null
  }

  private onMismatch(sequence: number, own: string, from: number, head: string): void {
    const calls = [[this.rank, own] as const, [from, head] as const].sort(([a], [b]) => a - b)
    this.break(sequence, 'ranks have called different collectives', mismatch(this, sequence, calls))
  }

  private takeAhead(collective: Collective): void {
    const parts = this.ahead.get(collective.sequence)
    if (parts === undefined) return
    this.ahead.delete(collective.sequence)
    for (const { from, step, head, values } of parts) {
      const why = this.onPart(from, collective.sequence, step, head, values)
      if (why !== null) this.runtime.refuseInvalid(this.workers[from]!, MessageType.COLLECTIVE, why)
    }
  }

  /** @internal Something of a member is lost, and nobody knows of which of the groups that it is in. */
  onUnreadable(worker: number, error: unknown): void {
    const rank = this.rankOf(worker)
    if (rank < 0 || rank === this.rank) return
    const lost = [...this.running.values()].find((collective) => collective.isWaitingFor(rank))
    this.break(lost?.sequence ?? this.next, `a message of ${rankText(this, rank)} could not be read`, error)
  }

  /** @internal A member has died. */
  onDeath(worker: number, error: PostgradError): void {
    const rank = this.rankOf(worker)
    if (rank < 0 || this.state === 'destroyed') return
    const why = `${rankText(this, rank)} has ended`
    this.onGone(rank, why, error)
    this.break(this.next, why, error)
  }

  /** It will send nothing more; what it has sent has come. What does not need it goes on. */
  private onGone(rank: number, why: string, cause: PostgradError | null): void {
    if (this.gone.has(rank) || this.state === 'destroyed') return
    this.gone.set(rank, new Gone(why, cause))
    const lost = [...this.running.values()].find((collective) => collective.isWaitingFor(rank))
    if (lost !== undefined) this.break(lost.sequence, why, cause)
    const isLost = ({ from }: Receiver) => from === rank || (from === null && this.others().every((other) => this.gone.has(other)))
    this.direct.fail(isLost, () => groupBroken('recv', this, why, cause))
  }

  // --- ends

  /** See Note [How a group breaks]. */
  private break(number: number, why: string, cause: unknown): void {
    if (this.state === 'destroyed') return
    if (this.state === 'open') {
      this.state = 'broken'
      this.brokenBy = { why, cause }
    }
    const sequence = Math.min(number, this.next)
    const failed = [...this.running.values()].filter((collective) => collective.sequence >= sequence)
    for (const collective of failed) this.forget(collective)
    this.dropAhead()
    if (sequence < this.toldFrom) {
      this.toldFrom = sequence
      this.tell(What.failed, sequence, cause ?? groupBroken('collective', this, why, null))
    }
    const isMismatch = isPostgradError(cause, 'COLLECTIVE_MISMATCH')
    for (const { op, work } of failed) work.reject(isMismatch ? cause : groupBroken(op, this, why, cause))
    this.direct.fail(ALL, () => groupBroken('recv', this, why, cause))
    this.beginNext()
  }

  /** What will not be asked for any more. */
  private dropAhead(): void {
    for (const { values } of this.direct.clear()) dropValues(values)
    for (const parts of this.ahead.values()) for (const { values } of parts) dropValues(values)
    this.ahead.clear()
  }

  /** @internal Nothing of it can be called here any more. What is under way here ends with PROCESS_GROUP_DESTROYED, and the others learn that this rank has gone. */
  destroy(): void {
    if (this.state === 'destroyed') return
    this.end((op) => destroyed(op, this))
    if (this.rank >= 0) this.tell(What.left, 0, null)
    this.onDestroyed(this)
  }

  /** @internal The worker closes: nobody is told, as all see that. */
  close(error: PostgradError): void {
    if (this.state !== 'destroyed') this.end(() => error)
  }

  private end(error: (op: string) => PostgradError): void {
    this.state = 'destroyed'
    const running = [...this.running.values()]
    for (const collective of running) this.forget(collective)
    this.dropAhead()
    for (const { op, work } of running) work.reject(error(op))
    this.direct.fail(ALL, () => error('recv'))
  }

  private tell(what: What, sequence: number, error: unknown): void {
    for (const to of this.others()) if (!this.gone.has(to)) this.say(to, what, sequence, 0, '', NOTHING, error)
  }

  /** Not to who has died: that is seen behind what it has sent. */
  private say(to: number, what: What, sequence: number, step: number, head: string, values: Values, error: unknown = null): void {
    const body: Body = [this.id, what, sequence, step, head, values, error]
    this.runtime.messages.postIfReachable(this.workers[to]!.id, MessageType.COLLECTIVE, body)
  }
}

/** A part of a collective that this rank has not called yet. */
interface Ahead {
  readonly from: number
  readonly step: number
  readonly head: string
  readonly values: Values
}

/** The head of the parts in which ranks say what they call: these cannot disagree themselves. */
const DETAIL = 'detail'

/** All ranks have seen it alike, so that the group goes on. */
class Disagreement {
  readonly error: PostgradError

  constructor(error: PostgradError) {
    this.error = error
  }
}

/** A member that sends nothing more. */
class Gone {
  readonly why: string
  readonly cause: unknown

  constructor(why: string, cause: unknown) {
    this.why = why
    this.cause = cause
  }
}

const ALL = (): boolean => true
