/**
 * The calls of one worker that wait for a reply, each with its deadline. A deadline costs no timer of its own: one timer is set to the earliest
 * known deadline. When it fires, all calls are checked and it is set again. Calls mostly end long before their deadline, so that
 * is rare, and it never happens more often than every `GRAIN_MS`. The rules RPC-25 and RPC-26 are in SPEC.md.
 */

import type { PostgradError, WorkerId } from '@postgrad/base'
import { callCancelled } from '@postgrad/base/internal'
import type { Clock, Timer } from '@postgrad/transport'
import type { Message, MessageType } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import { RequestTable } from './request-table.js'
import type { ServedCall } from './served-call.js'

/** A call may end so much later than its deadline, in ms; never earlier. */
export const GRAIN_MS = 10
/** A deadline is a sum of times, which may be rounded. */
export const ROUNDING_MS = 1e-3
/**
 * The timer is set at most so far ahead, in ms. So the last deadline keeps a process that has nothing left to do alive for no longer, and no
 * delay comes near 2^31, which Node takes for 1.
 */
export const STAND_MS = 1000

/** Notifies a listener, if any, of what may have made a worker quiet (`quiet.ts`). */
export class Activity {
  private listener: (() => void) | null = null

  listen(listener: (() => void) | null): void {
    this.listener = listener
  }

  changed(): void {
    if (this.listener !== null) this.listener()
  }
}

/** A wait for the reply to one request. None of its methods throws: the other calls have deadlines too. */
export interface PendingCall {
  /** On the worker's clock; Infinity is never. Set by `PendingCalls.add`. */
  deadlineMs: number
  /** The call that was being served when this one was made: cancelled with that one. Set by `PendingCalls.add`. */
  parent: ServedCall | null
  /** The kind of message that answers it, other than EXCEPTION. Set by `Requests.start`. */
  reply?: MessageType | null
  /** The operation, for errors. */
  readonly op: string
  /** For an `OwnWait`: what is waited for, for a reader. */
  about?(): WaitAbout
  /** Takes the reply (RESULT, REMOTE_RET, …). */
  onReply(message: Message): void
  /** `ofCleanUp` is that of an EXCEPTION; of every other error (a death, the deadline, the shutdown) it is left out. */
  onError(error: unknown, ofCleanUp?: boolean): void
  /** It was not sent after all: its maker gets an exception. */
  unsent?(error: unknown): void
  /** Takes the error of a cancellation, if that is another matter than any error. */
  onCancelled?(error: unknown): void
  /** Called when the deadline passes, to make the error. `isInherited`: that of the call which it is part of has passed. */
  timedOut(isInherited: boolean): PostgradError
  /** Of a stream: takes what comes before the reply. */
  onItem?(item: { readonly value: unknown; readonly received: unknown }): boolean
}

/** A wait for something of this worker itself, without a request: it has the deadlines of calls, and ends with the call that it is part of. */
export interface OwnWait {
  readonly op: string
  /** The awaited thing, for a reader. */
  about(): WaitAbout
  /** Takes what ended the wait: a death, the deadline, a cancellation, the shutdown. */
  onError(error: unknown): void
  /** Called when the deadline passes, to make the error. `isInherited`: the deadline of the call that the wait is part of has passed. */
  timedOut(isInherited: boolean): PostgradError
}

/** The awaited thing, and the workers that would end the wait. */
export interface WaitAbout {
  readonly kind: 'value' | 'room' | 'pass' | 'collective'
  readonly what: string
  /** Workers that would end the wait; default: none is known. */
  readonly on?: readonly WorkerInfo[]
  /** The value that is waited for, where it is made. */
  readonly rrefId?: bigint
  /** Only the programs of the other members can end it, by what they call. */
  readonly standing?: Standing
}

/** A wait of which Note [Programs that are over] in `groups/standstill.ts` speaks. */
export interface Standing {
  readonly group: StandingGroup
  /** The number of the awaited operation in its group: later ones have higher. */
  readonly number: number
  readonly sinceMs: number
}

/** Workers whose operations end when all of them call the same. */
export interface StandingGroup {
  /** The same on all members, and never given again. */
  readonly key: string
  /** By rank. */
  readonly workers: readonly WorkerInfo[]
  /** After so many ms of waiting the first rank that waits prints who is missing; 0: never. */
  readonly warnAfterMs: number
  /** The program of a member, which somebody waits for, is over: what waits here never ends otherwise. */
  onOver(worker: WorkerId): void
}

/** Calls to one peer; `Deadlines` is shared by all peers of a worker, and watches them: those of a peer that is dead and forgotten need nobody. */
export class PendingCalls {
  private readonly waiting = new RequestTable<PendingCall>()
  private readonly deadlines: Deadlines
  private readonly to: WorkerInfo
  private readonly onGivenUp: (requestId: number) => void

  /** `onGivenUp` gets each call that has ended here while the callee may still serve it: cancelled, or out of time. */
  constructor(deadlines: Deadlines, to: WorkerInfo, onGivenUp: (requestId: number) => void) {
    this.deadlines = deadlines
    this.to = to
    this.onGivenUp = onGivenUp
  }

  get size(): number {
    return this.waiting.size
  }

  /** The waits, by the number of the request. */
  entries(): Iterable<[id: number, call: PendingCall]> {
    return this.waiting.entries()
  }

  /** `timeoutMs` Infinity: no deadline. */
  add(requestId: number, call: PendingCall, timeoutMs: number, parent: ServedCall | null = null): void {
    call.deadlineMs = this.deadlines.after(timeoutMs)
    call.parent = parent
    if (parent !== null) parent.hasCalled = true
    this.waiting.set(requestId, call)
    const { observer } = this.deadlines.host
    if (observer !== null) observer.waitBegan(requestId, call, this.to)
  }

  /** The call that an item of a stream belongs to. */
  peek(requestId: number): PendingCall | undefined {
    return this.waiting.get(requestId)
  }

  /** The call that a reply belongs to; undefined if it has ended (timed out, failed) before. */
  take(requestId: number): PendingCall | undefined {
    const call = this.waiting.take(requestId)
    if (call !== undefined) {
      const { activity, observer } = this.deadlines.host
      if (observer !== null) observer.waitEnded(requestId)
      activity.changed()
    }
    return call
  }

  /** Ends a call with CALL_CANCELLED. Returns whether it was still waiting. */
  cancel(requestId: number, reason: unknown): boolean {
    const call = this.take(requestId)
    if (call === undefined) return false
    const error = callCancelled(call.op, this.to, reason)
    if (call.onCancelled === undefined) call.onError(error)
    else call.onCancelled(error)
    this.onGivenUp(requestId)
    return true
  }

  /** Ends the calls that were made while one of `parents` was served, which has been cancelled. */
  cancelChildren(parents: ReadonlySet<ServedCall>): void {
    for (const [requestId, { parent }] of this.waiting.entries()) {
      if (parent !== null && parents.has(parent)) this.cancel(requestId, parent.givenUp)
    }
  }

  /** Ends every call with an error of its own, which says what was called. */
  failAll(makeError: (op: string) => unknown): void {
    for (const [requestId, { op }] of this.waiting.entries()) this.take(requestId)?.onError(makeError(op))
  }

  /** Ends the calls whose deadline has passed; gives the earliest of the others. */
  expire(nowMs: number): number {
    let earliestMs = Number.POSITIVE_INFINITY
    for (const [requestId, call] of this.waiting.entries()) {
      if (call.deadlineMs > nowMs) {
        if (call.deadlineMs < earliestMs) earliestMs = call.deadlineMs
      } else {
        this.take(requestId)
        const isInherited = call.parent !== null && call.parent.expiresMs <= nowMs + ROUNDING_MS
        call.onError(call.timedOut(isInherited))
        this.onGivenUp(requestId)
      }
    }
    return earliestMs
  }
}

/** The worker whose calls they are. */
export interface DeadlinesHost {
  readonly clock: Clock
  readonly activity: Activity
  /** Null while nobody looks. */
  readonly observer: WaitObserver | null
}

/** Is notified of each request and each `OwnWait`. */
export interface WaitObserver {
  /** For the reply of another worker (`to`), or for something of this one. */
  waitBegan(requestId: number, waiting: PendingCall, to: WorkerInfo): void
  /** However it ended. */
  waitEnded(requestId: number): void
}

/** The one timer of a worker's calls. */
export class Deadlines {
  readonly host: DeadlinesHost
  private readonly clock: Clock
  private readonly watched: PendingCalls[] = []
  private timer: Timer | null = null
  private armedMs = Number.POSITIVE_INFINITY

  constructor(host: DeadlinesHost) {
    this.host = host
    this.clock = host.clock
  }

  /** From now on their deadlines pass, until `unwatch`. */
  watch(calls: PendingCalls): PendingCalls {
    this.watched.push(calls)
    return calls
  }

  /** Of a peer that has died: nothing is added to its calls any more. */
  unwatch(calls: PendingCalls): void {
    const at = this.watched.indexOf(calls)
    if (at >= 0) this.watched.splice(at, 1)
  }

  /** The time `timeoutMs` from now; the timer will fire then or earlier. */
  after(timeoutMs: number): number {
    if (timeoutMs === Number.POSITIVE_INFINITY) return timeoutMs
    const nowMs = this.clock.now()
    const deadlineMs = nowMs + timeoutMs
    if (deadlineMs < this.armedMs) this.arm(deadlineMs, nowMs)
    return deadlineMs
  }

  close(): void {
    this.timer?.cancel()
    this.timer = null
    this.armedMs = Number.POSITIVE_INFINITY
  }

  private arm(deadlineMs: number, nowMs: number): void {
    this.timer?.cancel()
    const delayMs = Math.min(deadlineMs - nowMs, STAND_MS)
    this.armedMs = nowMs + delayMs
    this.timer = this.clock.setTimer(delayMs, this.fire)
  }

  private readonly fire = (): void => {
    this.timer = null
    this.armedMs = Number.POSITIVE_INFINITY
    const nowMs = this.clock.now()
    let earliestMs = Number.POSITIVE_INFINITY
    const isHeld = this.clock.isHeld?.() === true
    // Looked again soon: the debugger may have gone by then.
    if (isHeld) earliestMs = nowMs + STAND_MS
    else for (const calls of this.watched) earliestMs = Math.min(earliestMs, calls.expire(nowMs))
    // Expired calls may have called again, and armed the timer.
    if (earliestMs < this.armedMs) this.arm(Math.max(earliestMs, nowMs + GRAIN_MS), nowMs)
  }
}
