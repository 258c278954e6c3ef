/**
 * How the main thread learns what happens at workers. A worker gathers events and posts them in batches through its control port. The cluster hands
 * these, and events that it sees itself, to its listeners. Without a listener, workers gather nothing. Rules CLU-50 to CLU-54 in SPEC.md.
 *
 * A main thread that is too busy to read its port must not fill the memory: a shared counter says how many batches it has taken, and a worker that
 * is too far ahead drops events and counts them.
 */
import { now, timeOriginMs } from '@postgrad/base/internal'
import type { InspectEvent, WorkerInfo, WorkerRuntime } from '@postgrad/rpc'
import type { Timer } from '@postgrad/transport'
import type { Counter } from '../host/worker-host.js'
import type { InspectPost } from './protocol.js'

/** How long events wait for others to travel with, in ms. */
const BATCH_MS = 10
const BATCH_EVENTS_MAX = 1024
/** So many batches may be on the way. */
const AHEAD_MAX = 16

/** The worker's side. */
export class InspectSender {
  private readonly runtime: WorkerRuntime
  private readonly post: (message: InspectPost) => void
  private detach: (() => void) | null = null
  private readonly taken: Counter
  private posted = 0
  private events: InspectEvent[] = []
  private dropped = 0
  private timer: Timer | null = null

  /** @param taken how many batches the other side has taken */
  constructor(runtime: WorkerRuntime, taken: Counter, post: (message: InspectPost) => void) {
    this.runtime = runtime
    this.taken = taken
    this.post = post
  }

  /** First posts the events gathered for earlier listeners. @param isWanted whether anybody listens from now on */
  listen(isWanted: boolean): void {
    this.flush(true)
    this.detach?.()
    this.posted = this.taken.value
    this.detach = isWanted ? this.runtime.inspect((event) => this.take(event)) : null
  }

  /** Called before this worker's next message to the main thread. @param isLast post even if this worker is too far ahead */
  flush(isLast = false): void {
    this.timer?.cancel()
    this.timer = null
    if (this.detach === null || (this.events.length === 0 && this.dropped === 0)) return
    if (!isLast && this.posted - this.taken.value >= AHEAD_MAX) {
      this.dropped += this.events.length
      this.events = []
      return
    }
    this.posted++
    this.post({ event: 'inspect', events: this.events, dropped: this.dropped, originMs: timeOriginMs })
    this.events = []
    this.dropped = 0
  }

  private take(event: InspectEvent): void {
    this.events.push(event)
    if (this.events.length >= BATCH_EVENTS_MAX) this.flush()
    else this.timer ??= this.runtime.clock.setTimer(BATCH_MS, () => this.flush())
  }
}

/** What the main thread sees of a worker. */
type Seen =
  /** It is a member from here on, … */
  | { readonly kind: 'joined' }
  /** … and no more: it left, … */
  | { readonly kind: 'left' }
  /** … or it died (`values.cause` of WORKER_DIED). */
  | { readonly kind: 'died'; readonly cause: string }
  | { readonly kind: 'stalled'; readonly silentMs: number }
  | { readonly kind: 'recovered' }
  /** So many events of this worker were dropped here, because the main thread did not take them in time. */
  | { readonly kind: 'dropped'; readonly count: number }

/**
 * An event of a worker, for `cluster.inspect`: its own (`InspectEvent`), or one that the main thread sees, such as its death. `on` is the worker's name, `onId`
 * its id. `atMs` is the time on the main thread's clock (`performance.now()`), in ms.
 */
export type ClusterEvent = { readonly on: string; readonly onId: number } & (InspectEvent | (Seen & { readonly atMs: number }))
/** A function that receives the events of all workers. */
export type ClusterEventListener = (event: ClusterEvent) => void

/** Somebody who listens. */
export interface Inspector {
  readonly listener: ClusterEventListener
  /** Ids of workers that do not know of it yet: their events were gathered for others. */
  readonly unasked: Set<number>
  /** It waits only for events that have happened already. */
  isLeaving: boolean
}

/** The main thread's side, of all workers. */
export class ClusterInspection {
  private readonly inspectors = new Set<Inspector>()
  /** Hands a listener its event; what that throws is the cluster's to report. */
  private readonly call: (fn: () => void) => void

  constructor(call: (fn: () => void) => void) {
    this.call = call
  }

  get isWanted(): boolean {
    return [...this.inspectors].some(({ isLeaving }) => !isLeaving)
  }

  /** @param unasked workers that are about to be asked for it; newcomers need not be */
  add(listener: ClusterEventListener, unasked: Iterable<number> = []): Inspector {
    const inspector = { listener, unasked: new Set(unasked), isLeaving: false }
    this.inspectors.add(inspector)
    return inspector
  }

  remove(inspector: Inspector): void {
    this.inspectors.delete(inspector)
  }

  /** A batch has come from a worker. */
  onPost({ name, id }: WorkerInfo, { events, dropped, originMs }: InspectPost): void {
    const shiftMs = originMs - timeOriginMs
    for (const event of events) this.tell({ ...event, on: name, onId: id, atMs: event.atMs + shiftMs }, id)
    if (dropped > 0) this.tell({ kind: 'dropped', count: dropped, on: name, onId: id, atMs: now() }, id)
  }

  saw({ name, id }: WorkerInfo, seen: Seen): void {
    this.tell({ ...seen, on: name, onId: id, atMs: now() })
  }

  /** @param by the worker that posted it; null: this thread */
  private tell(event: ClusterEvent, by: number | null = null): void {
    for (const { listener, unasked, isLeaving } of [...this.inspectors]) {
      const isHis = by === null ? !isLeaving : !unasked.has(by)
      if (isHis) this.call(() => listener(event))
    }
  }
}
