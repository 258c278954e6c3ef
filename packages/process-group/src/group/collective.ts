/**
 * One collective that this rank takes part in: drives its algorithm (`common/step.ts`) from step to step, as the parts of the others come. `collectives.ts`
 * numbers them; the group (`process-group.ts`) carries parts and knows which ranks are gone.
 *
 * Note [Heads]
 *
 * Every part says what its sender calls: operation, reduction, root, dtype and shape, as far as all ranks have to agree on them. This costs some 40 bytes a
 * message and no message of its own. A part whose head is not that of the receiver's collective of the same number, or that comes for a number which has ended
 * here, shows that the ranks do not call the same. Its receiver notifies all, so all fail alike. A rank that needs nothing from any other may have ended
 * by then; it fails with its next collective.
 */
import { queueMicrotask } from '@postgrad/base/internal'
import type { Values } from '../common/protocol.js'
import type { Algorithm, Received, Step } from '../common/step.js'
import type { Work } from './work.js'

/** A collective's owner. */
export interface CollectiveHost {
  readonly size: number
  /** `onFlushed` may be called within this, or within anything that is sent later. */
  sendPart(collective: Collective, to: number, step: number, values: Values, onFlushed: () => void): void
  /** The first of these ranks that will send nothing more, with why; null: all are there. */
  goneAmong(ranks: Iterable<number>): unknown
  onEnded(collective: Collective): void
  /** It has failed here. */
  onFailed(collective: Collective, error: unknown): void
}

export class Collective {
  readonly sequence: number
  /** See Note [Heads]. */
  readonly head: string
  /** The function that was called. */
  readonly op: string
  readonly work: Work<unknown>
  readonly timeoutMs: number
  /** Ends the wait for the deadline and the signal. */
  endWait: () => void = () => {}
  /** It begins when those before it have ended. */
  isBehind = false
  /** It has done its last step. */
  isThrough = false
  private readonly host: CollectiveHost
  private readonly algorithm: Algorithm<unknown>
  private step = -1
  /** Of the step that is under way: who has not sent. */
  private readonly waiting = new Set<number>()
  private readonly parts = new Map<number, (Values | undefined)[]>()
  /** How much of what it has sent to a rank is not flushed, by rank. */
  private readonly unflushed = new Map<number, number>()
  private result: unknown

  constructor(
    host: CollectiveHost,
    {
      sequence,
      head,
      op,
      work,
      algorithm,
      timeoutMs,
    }: {
      readonly sequence: number
      readonly head: string
      readonly op: string
      readonly work: Work<unknown>
      readonly algorithm: Algorithm<unknown>
      readonly timeoutMs: number
    },
  ) {
    this.host = host
    this.sequence = sequence
    this.head = head
    this.op = op
    this.work = work
    this.algorithm = algorithm
    this.timeoutMs = timeoutMs
  }

  /** The ranks whose parts this rank waits for; after the last step, the ranks that have not read this rank's. */
  get missing(): number[] {
    return [...(this.isThrough ? this.unflushed.keys() : this.waiting)].sort((a, b) => a - b)
  }

  isWaitingFor(rank: number): boolean {
    return this.waiting.has(rank)
  }

  begin(): void {
    this.isBehind = false
    this.advance(NONE)
  }

  /** A part with this collective's head. False: its sender has sent one of this step before, or one that nobody waits for. */
  take(from: number, step: number, values: Values): boolean {
    if (step < this.step || (step === this.step && !this.waiting.has(from))) return false
    let parts = this.parts.get(step)
    if (parts === undefined) {
      parts = new Array<Values | undefined>(this.host.size).fill(undefined)
      this.parts.set(step, parts)
    } else if (parts[from] !== undefined) return false
    parts[from] = values
    if (step !== this.step) return true
    this.waiting.delete(from)
    if (this.waiting.size === 0) {
      this.parts.delete(step)
      this.advance(parts)
    }
    return true
  }

  /** Parts of steps to which it has not come. */
  get unread(): Iterable<readonly (Values | undefined)[]> {
    return this.parts.values()
  }

  private advance(first: Received): void {
    try {
      for (let received = first; ; ) {
        const { value, done } = this.algorithm.next(received)
        if (done === true) {
          this.isThrough = true
          this.result = value
          if (this.unflushed.size === 0) this.end()
          return
        }
        const arrived = this.enter(value)
        if (arrived === null) return
        received = arrived
      }
    } catch (error) {
      this.host.onFailed(this, error)
    }
  }

  private onFlushed(to: number): void {
    const left = this.unflushed.get(to)! - 1
    if (left > 0) this.unflushed.set(to, left)
    else this.unflushed.delete(to)
    // A message may be half sent now, and the next collective would send others.
    if (this.isThrough && this.unflushed.size === 0) queueMicrotask(() => this.end())
  }

  /** After its last step, when all that it has sent is flushed: the program may then compute, and no message has to leave meanwhile. */
  private end(): void {
    if (this.work.done) return
    this.host.onEnded(this)
    this.work.resolve(this.result)
  }

  /** Sends what the step sends; gives what has come, if that is all. */
  private enter({ send, from }: Step): Received | null {
    const step = ++this.step
    for (const [to, values, later = 0] of send) {
      this.unflushed.set(to, (this.unflushed.get(to) ?? 0) + 1)
      this.host.sendPart(this, to, step + later, values, () => this.onFlushed(to))
    }
    const parts = this.parts.get(step)
    for (const rank of from) if (parts?.[rank] === undefined) this.waiting.add(rank)
    if (this.waiting.size === 0) {
      this.parts.delete(step)
      return parts ?? NONE
    }
    const gone = this.host.goneAmong(this.waiting)
    if (gone !== null) throw gone
    return null
  }
}

const NONE: readonly never[] = Object.freeze([])
