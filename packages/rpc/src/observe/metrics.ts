/**
 * How long calls wait at a worker and how long they run, for the worker and for each actor: counters, nothing is kept per call. `inspection.ts` reports
 * events to it; it exists only after a first `worker.metrics()`. Rules MET-1 to MET-4 in SPEC.md.
 */

import type { Outcome } from '../core/hooks.js'
import type { CallTimes, IncomingCall } from '../core/incoming-call.js'
import { actorName, actorOf } from '../references/actor-name.js'

/** Counts and times of the calls, remote calls and fetches that one actor or a whole worker serves. Times are in ms. */
export interface CallMetrics {
  /** The number of calls that wait now: received and not begun. */
  readonly depth: number
  /** The largest `depth` so far. */
  readonly depthMax: number
  /** The number of calls that have begun. */
  readonly messages: number
  /** The number of calls that ended with an error. */
  readonly failed: number
  /** The total time that calls waited, from receipt to begin. */
  readonly waitMs: number
  /** The longest time that a call waited. */
  readonly waitMaxMs: number
  /** The total time that ended calls ran, from begin to end, including the time in which they awaited something. */
  readonly runMs: number
  /** The longest time that a call ran. */
  readonly runMaxMs: number
  /** The total time in which calls kept the worker busy, from begin to their first await. Calls that a serial actor put off do not count. */
  readonly turnMs: number
  /** The longest time that a call kept the worker busy, from begin to its first await. */
  readonly turnMaxMs: number
}

/** How busy a worker is: its calls, its mailbox, its actors. `WorkerRuntime.metrics` returns it. */
export interface WorkerMetrics extends CallMetrics {
  /** When counting began, in ms on the worker's clock. */
  readonly sinceMs: number
  /** When these metrics were read, in ms on the worker's clock. */
  readonly atMs: number
  /** The number of entries that wait in the mailbox now, by lane, from the highest priority to the lowest. All ready nodes of passes count as one task. */
  readonly lanes: {
    readonly signal: number
    readonly control: number
    readonly gradient: number
    readonly task: number
    readonly call: number
  }
  /** The metrics of each actor whose methods were called, by class and id (`Observer#0.17`). At most 4096 actors are counted singly. */
  readonly actors: Readonly<Record<string, CallMetrics>>
}

/** So many actors are counted singly; calls of further ones count for the worker only. */
export const ACTORS_MAX = 4096

class Counts implements CallMetrics {
  depth = 0
  depthMax = 0
  messages = 0
  failed = 0
  waitMs = 0
  waitMaxMs = 0
  runMs = 0
  runMaxMs = 0
  turnMs = 0
  turnMaxMs = 0
}

/** A call on its way through a worker, with what is noted of it while somebody looks. */
export type Counted = Pick<IncomingCall, 'message'> & { readonly times: CallTimes }

export class Metrics {
  readonly sinceMs: number
  private readonly all = new Counts()
  private readonly actors = new Map<bigint, { name: string; readonly counts: Counts }>()

  constructor(sinceMs: number) {
    this.sinceMs = sinceMs
  }

  onReceived(call: Counted): void {
    call.times.countedBy = this
    enter(this.all)
    const actor = this.actor(call)
    if (actor !== null) enter(actor)
  }

  onBegun(call: Counted): void {
    const { times } = call
    if (times.countedBy !== this) return
    const waitMs = times.begunMs - times.receivedMs
    begin(this.all, waitMs)
    const actor = this.actor(call)
    if (actor !== null) begin(actor, waitMs)
  }

  onPutOff(call: Counted): void {
    const { times } = call
    if (times.countedBy !== this) return
    const waitMs = times.begunMs - times.receivedMs
    putOff(this.all, waitMs)
    const actor = this.actor(call)
    if (actor !== null) putOff(actor, waitMs)
  }

  onNotBegun(call: Counted): void {
    if (call.times.countedBy !== this) return
    call.times.countedBy = null
    this.all.depth--
    const actor = this.actor(call)
    if (actor !== null) actor.depth--
  }

  onTurn(call: Counted, nowMs: number): void {
    if (call.times.countedBy !== this) return
    const turnMs = nowMs - call.times.begunMs
    turn(this.all, turnMs)
    const actor = this.actor(call)
    if (actor !== null) turn(actor, turnMs)
  }

  onEnded(call: Counted, runMs: number, outcome: Outcome): void {
    if (call.times.countedBy !== this) return
    end(this.all, runMs, outcome)
    const actor = this.actor(call)
    if (actor !== null) end(actor, runMs, outcome)
  }

  read(atMs: number, lanes: WorkerMetrics['lanes']): WorkerMetrics {
    const actors = Object.fromEntries([...this.actors.values()].map(({ name, counts }) => [name, { ...counts }]))
    return { sinceMs: this.sinceMs, atMs, lanes, ...this.all, actors }
  }

  private actor({ message }: Counted): Counts | null {
    const rref = actorOf(message)
    if (rref === null) return null
    const known = this.actors.get(rref.rrefId)
    if (known !== undefined) {
      // Its class is known once it has been made.
      if (known.name.startsWith('#')) known.name = actorName(rref)
      return known.counts
    }
    if (this.actors.size === ACTORS_MAX) return null
    const counts = new Counts()
    this.actors.set(rref.rrefId, { name: actorName(rref), counts })
    return counts
  }
}

function enter(counts: Counts): void {
  counts.depth++
  if (counts.depth > counts.depthMax) counts.depthMax = counts.depth
}

function begin(counts: Counts, waitMs: number): void {
  counts.depth--
  counts.messages++
  counts.waitMs += waitMs
  if (waitMs > counts.waitMaxMs) counts.waitMaxMs = waitMs
}

/** Takes back what `begin` noted; the longest wait will be longer by then. */
function putOff(counts: Counts, waitMs: number): void {
  counts.depth++
  counts.messages--
  counts.waitMs -= waitMs
}

function turn(counts: Counts, turnMs: number): void {
  counts.turnMs += turnMs
  if (turnMs > counts.turnMaxMs) counts.turnMaxMs = turnMs
}

function end(counts: Counts, runMs: number, outcome: Outcome): void {
  if (outcome === 'error') counts.failed++
  counts.runMs += runMs
  if (runMs > counts.runMaxMs) counts.runMaxMs = runMs
}
