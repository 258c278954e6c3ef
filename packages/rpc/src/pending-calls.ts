/**
 * The calls of one worker that wait for a reply, each with its deadline. A deadline costs no timer of its own: calls wait in buckets of
 * `TICK_MS`, one timer runs for the earliest bucket, so that 300,000 calls a second leave nothing behind but empty sets.
 */
import type { PostgradError } from '@postgrad/base'
import type { Clock, Timer } from '@postgrad/transport'
import type { Message } from '@postgrad/wire/internal'

/** Deadlines are kept to this grain, in ms; a call may end so much later than asked, never earlier. */
export const TICK_MS = 10

export interface PendingCall {
  /** Takes the reply (RESULT, REMOTE_RET, …). A throw rejects the call. */
  onReply(message: Message): void
  onError(error: unknown): void
  /** Called when the deadline passes, to make the error. */
  timedOut(): PostgradError
}

interface Waiting {
  readonly call: PendingCall
  readonly bucket: Set<number> | null
}

/** Calls to one peer; `Deadlines` is shared by all peers of a worker. */
export class PendingCalls {
  private readonly waiting = new Map<number, Waiting>()
  private readonly deadlines: Deadlines

  constructor(deadlines: Deadlines) {
    this.deadlines = deadlines
  }

  get size(): number {
    return this.waiting.size
  }

  /** `timeoutMs` Infinity: no deadline. */
  add(requestId: number, call: PendingCall, timeoutMs: number): void {
    const bucket = timeoutMs === Number.POSITIVE_INFINITY ? null : this.deadlines.add(requestId, timeoutMs, this)
    this.waiting.set(requestId, { call, bucket })
  }

  /** The call that a reply belongs to; undefined if it has ended (timed out, failed) before. */
  take(requestId: number): PendingCall | undefined {
    const entry = this.waiting.get(requestId)
    if (entry === undefined) return undefined
    this.waiting.delete(requestId)
    entry.bucket?.delete(requestId)
    return entry.call
  }

  expire(requestId: number): void {
    const call = this.take(requestId)
    call?.onError(call.timedOut())
  }

  /** Ends every call with an error of its own. */
  failAll(makeError: () => unknown): void {
    for (const requestId of [...this.waiting.keys()]) this.take(requestId)?.onError(makeError())
  }
}

interface Bucket {
  readonly ids: Map<PendingCalls, Set<number>>
}

/** Buckets of deadlines by tick, with one timer for the earliest. */
export class Deadlines {
  private readonly clock: Clock
  private readonly buckets = new Map<number, Bucket>()
  private timer: Timer | null = null
  private armedTick = Number.POSITIVE_INFINITY
  private lastTick = -1
  private lastBucket: Bucket | null = null

  constructor(clock: Clock) {
    this.clock = clock
  }

  add(requestId: number, timeoutMs: number, owner: PendingCalls): Set<number> {
    const tick = Math.ceil((this.clock.now() + timeoutMs) / TICK_MS)
    let bucket = tick === this.lastTick ? this.lastBucket : this.buckets.get(tick)
    if (bucket == null) {
      bucket = { ids: new Map() }
      this.buckets.set(tick, bucket)
      if (tick < this.armedTick) this.arm(tick)
    }
    this.lastTick = tick
    this.lastBucket = bucket
    let ids = bucket.ids.get(owner)
    if (ids === undefined) {
      ids = new Set()
      bucket.ids.set(owner, ids)
    }
    ids.add(requestId)
    return ids
  }

  close(): void {
    this.timer?.cancel()
    this.timer = null
    this.armedTick = Number.POSITIVE_INFINITY
    this.buckets.clear()
    this.lastTick = -1
    this.lastBucket = null
  }

  private arm(tick: number): void {
    this.timer?.cancel()
    this.armedTick = tick
    this.timer = this.clock.setTimer(Math.max(0, tick * TICK_MS - this.clock.now()), () => this.fire())
  }

  private fire(): void {
    this.timer = null
    this.armedTick = Number.POSITIVE_INFINITY
    const now = this.clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const [tick, bucket] of [...this.buckets]) {
      if (tick * TICK_MS <= now) {
        this.buckets.delete(tick)
        if (bucket === this.lastBucket) this.lastTick = -1
        for (const [owner, ids] of bucket.ids) for (const id of ids) owner.expire(id)
      } else if (![...bucket.ids.values()].some((ids) => ids.size > 0)) {
        // Every call of this bucket has ended: without this, an idle worker would keep waking up for nothing.
        this.buckets.delete(tick)
        if (bucket === this.lastBucket) this.lastTick = -1
      } else if (tick < next) next = tick
    }
    if (next < this.armedTick) this.arm(next)
  }
}
