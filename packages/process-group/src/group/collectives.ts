/**
 * The collectives of a group on one rank: numbers them, keeps parts that come before this rank's call, and gives each its parts. `collective.ts` runs one of them;
 * the group (`process-group.ts`) carries messages and knows which ranks are gone.
 */
import type { PostgradError } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import type { WaitAbout } from '@postgrad/rpc/internal'
import { outsideOfScopes } from '@postgrad/tensor/internal'
import { MessageType } from '@postgrad/wire/internal'
import { collectiveTimedOut, mismatch, rankText } from '../common/errors.js'
import { dropValues, type Values, What } from '../common/protocol.js'
import { type Algorithm, exchange, type Place } from '../common/step.js'
import { Collective, type CollectiveHost } from './collective.js'
import { Gone, type GroupHost } from './group-host.js'
import { type WaitOptions, waitFor } from './wait-for.js'
import { Work } from './work.js'

/** Describes a collective. */
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
/** The head of the parts in which ranks say what they call: these cannot disagree themselves. */
const DETAIL = 'detail'

/** A part of a collective that this rank has not called yet. */
interface Ahead {
  readonly from: number
  readonly step: number
  readonly head: string
  readonly values: Values
}

/** All ranks have seen it alike, so the group stays open. */
class Disagreement {
  readonly error: PostgradError

  constructor(error: PostgradError) {
    this.error = error
  }
}

export class Collectives implements CollectiveHost {
  /** The number of the next one that this rank calls. */
  next = 0
  private readonly host: GroupHost
  private readonly running = new Map<number, Collective>()
  /** By number. */
  private readonly ahead = new Map<number, Ahead[]>()
  private readonly recent: string[] = []

  constructor(host: GroupHost) {
    this.host = host
  }

  get size(): number {
    return this.host.size
  }

  /** How many run here. */
  get pending(): number {
    return this.running.size
  }

  /** How many parts have come for those that this rank has not called. */
  get unread(): number {
    let count = 0
    for (const parts of this.ahead.values()) count += parts.length
    return count
  }

  // --- what this rank calls

  /** @throws nothing: the work has the error */
  start<T>(spec: CollectiveSpec<T>, options: WaitOptions): Work<T> {
    const { host } = this
    const { op, head } = spec
    const work = new Work<T>()
    try {
      const timeoutMs = host.admit(op, options)
      const sequence = this.next++
      const algorithm = this.algorithmOf(spec, sequence)
      const collective = new Collective(this, { sequence, head, op, work: work as Work<unknown>, algorithm, timeoutMs })
      collective.isBehind = spec.isBehindAll === true && !this.isNext(collective)
      collective.endWait = waitFor(host.runtime, work, {
        op,
        timeoutMs,
        signal: options.signal,
        about: (sinceMs) => this.about(collective, sinceMs),
        timedOut: () => this.timedOut(collective, spec),
        giveUp: (error) => this.onFailed(collective, error),
      })
      this.running.set(sequence, collective)
      this.takeAhead(collective)
      if (!collective.isBehind) this.begin(collective)
    } catch (error) {
      work.reject(error)
    }
    return work
  }

  private algorithmOf<T>({ head, algorithm }: CollectiveSpec<T>, sequence: number): Algorithm<T> {
    const { host } = this
    const { rank, size, limits, heaps } = host
    // As it is now: tests change it.
    const place = { rank, size, limits, heaps }
    return host.debug === 'detail' && size > 1 ? this.agreed(sequence, head, () => algorithm(place)) : algorithm(place)
  }

  /** Before anything begins all say what they call. All see the same, so all fail or none, and the group stays open. */
  private *agreed<T>(sequence: number, head: string, algorithm: () => Algorithm<T>): Algorithm<T> {
    const { host } = this
    const said = yield exchange(host, () => [head])
    const calls = host.workers.map((_, rank) => [rank, rank === host.rank ? head : plainText(said[rank]?.[0])] as const)
    if (calls.some(([, call]) => call !== head)) throw new Disagreement(mismatch(host, sequence, calls))
    return yield* algorithm()
  }

  private begin(collective: Collective): void {
    this.host.runtime.run(() => outsideOfScopes(() => collective.begin()))
  }

  /** Begins one that had to wait for others. */
  beginNext(): void {
    for (const collective of this.running.values()) {
      if (!collective.isBehind) continue
      if (this.isNext(collective)) this.begin(collective)
      return
    }
  }

  private isNext({ sequence }: Collective): boolean {
    for (const earlier of this.running.keys()) if (earlier < sequence) return false
    return true
  }

  // --- what a collective asks

  sendPart({ sequence, head }: Collective, to: number, step: number, values: Values, onFlushed: () => void): void {
    this.host.say(to, What.part, sequence, step, this.host.debug === 'detail' && step === 0 ? DETAIL : head, values, { onFlushed })
  }

  goneAmong(ranks: Iterable<number>): Gone | null {
    for (const rank of ranks) {
      const gone = this.host.goneOf(rank)
      if (gone !== undefined) return gone
    }
    return null
  }

  onEnded(collective: Collective): void {
    this.forget(collective)
    this.recent[collective.sequence % RECENT] = collective.head
    for (const parts of collective.unread) for (const values of parts) if (values !== undefined) dropValues(values)
    this.beginNext()
  }

  onFailed(collective: Collective, thrown: unknown): void {
    const { sequence, head, work } = collective
    if (this.running.get(sequence) !== collective) return
    if (thrown instanceof Disagreement) {
      this.onEnded(collective)
      work.reject(thrown.error)
      return
    }
    if (thrown instanceof Gone) {
      this.host.break(sequence, thrown.why, thrown.cause)
      return
    }
    this.forget(collective)
    work.reject(thrown)
    this.host.break(sequence, `${rankText(this.host, this.host.rank)} has given up ${head}, number ${sequence}`, thrown)
  }

  private forget(collective: Collective): void {
    this.running.delete(collective.sequence)
    collective.endWait()
  }

  private timedOut(collective: Collective, { timedOut }: CollectiveSpec<never> | CollectiveSpec<unknown>): PostgradError {
    const { op, sequence, head, timeoutMs, missing, isThrough } = collective
    if (timedOut !== undefined && !isThrough) return timedOut(missing, timeoutMs, sequence)
    const recent = this.host.debug === 'off' ? [] : this.lastHeads(sequence)
    return collectiveTimedOut(op, this.host, { sequence, head, missing, isThrough, timeoutMs, recent })
  }

  private lastHeads(before: number): string[] {
    const heads: string[] = []
    for (let at = Math.max(0, before - SHOWN); at < before; at++) heads.push(`${at}: ${this.recent[at % RECENT] ?? 'under way'}`)
    return heads
  }

  private about({ sequence, head, missing, isBehind, isThrough }: Collective, sinceMs: number): WaitAbout {
    const what = `${head}, number ${sequence} of group '${this.host.name}'${isBehind ? ', which waits for earlier ones' : ''}`
    const about = { kind: 'collective', what, on: missing.map((rank) => this.host.workers[rank]!) } as const
    return isThrough ? about : { ...about, standing: { group: this.host, number: sequence, sinceMs } }
  }

  // --- what others say

  /** Null: it has been taken; else why it cannot be right. */
  onPart(from: number, sequence: number, step: number, head: string, values: Values): string | null {
    const { host } = this
    const collective = this.running.get(sequence)
    if (collective !== undefined) {
      if (head !== collective.head && !(head === DETAIL && host.debug === 'detail')) this.onMismatch(sequence, collective.head, from, head)
      else if (!collective.take(from, step, values)) return 'it was sent before, or nobody waits for it'
      return null
    }
    if (sequence >= this.next) {
      if (host.isBroken) {
        dropValues(values)
        return null
      }
      const parts = this.ahead.get(sequence)
      if (parts === undefined) this.ahead.set(sequence, [{ from, step, head, values }])
      else parts.push({ from, step, head, values })
      return null
    }
    dropValues(values)
    // A collective that failed here may still run elsewhere.
    if (!host.isBroken) this.onMismatch(sequence, this.recent[sequence % RECENT] ?? 'something else', from, head)
    return null
  }

  private onMismatch(sequence: number, own: string, from: number, head: string): void {
    const { host } = this
    const calls = [[host.rank, own] as const, [from, head] as const].sort(([a], [b]) => a - b)
    host.break(sequence, 'ranks have called different collectives', mismatch(host, sequence, calls))
  }

  private takeAhead(collective: Collective): void {
    const { runtime, workers } = this.host
    const parts = this.ahead.get(collective.sequence)
    if (parts === undefined) return
    this.ahead.delete(collective.sequence)
    for (const { from, step, head, values } of parts) {
      const why = this.onPart(from, collective.sequence, step, head, values)
      if (why !== null) runtime.refuseInvalid(workers[from]!, MessageType.COLLECTIVE, why)
    }
  }

  // --- ends

  /** The number of the first that runs here, or else of the next. */
  get first(): number {
    for (const sequence of this.running.keys()) return sequence
    return this.next
  }

  /** The number of the first that waits for this rank; null: none does. */
  firstThatNeeds(rank: number): number | null {
    for (const collective of this.running.values()) if (collective.isWaitingFor(rank)) return collective.sequence
    return null
  }

  /** Those with this number and greater ones are not known any more; their works are still to be ended. Nothing is kept for those that were not called. */
  takeFrom(sequence: number): readonly Collective[] {
    const taken = [...this.running.values()].filter((collective) => collective.sequence >= sequence)
    for (const collective of taken) this.forget(collective)
    for (const parts of this.ahead.values()) for (const { values } of parts) dropValues(values)
    this.ahead.clear()
    return taken
  }
}
