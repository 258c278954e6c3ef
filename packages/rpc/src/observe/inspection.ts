/**
 * The events of a worker, as plain objects in the order in which they happen: for tests that assert an order, and for dashboards. Nobody listens by
 * default, and then it costs one null check per message and wait. `message-path.ts`, `call-serving.ts` and `pending-calls.ts` report events; `metrics.ts` counts them, and
 * the worker's tracer gets its calls, waits and messages from here. Rules INS-1 to INS-6 and TRC in SPEC.md.
 */
import type { DeadLetter, Exit } from '@postgrad/actor/internal'
import type { DeathCause } from '@postgrad/base'
import { PostgradError } from '@postgrad/base'
import { plainText, type Span, type Tracer } from '@postgrad/base/internal'
import type { Clock } from '@postgrad/transport'
import { MESSAGE_TABLE, type OutgoingMessage } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Observer, Outcome } from '../core/hooks.js'
import { type Incoming, IncomingCall } from '../core/incoming-call.js'
import type { PendingCall } from '../core/pending-calls.js'
import { whatOf } from '../references/actor-name.js'
import { type ReferenceLeak, type References, referenceLeaks } from '../references/rref-table.js'
import type { Counted, Metrics } from './metrics.js'

interface Happening {
  /** Counts the events of this worker that anybody received, from 1: at a gap a listener missed some. */
  readonly seq: number
  /** On the worker's clock. */
  readonly atMs: number
}

/** About one message. `requestId` pairs a request with its reply; 0: it has none. */
interface OfMessage extends Happening {
  /** The name of its kind: `CALL`, `RESULT`, `PROPAGATE_GRADIENTS`, … */
  readonly type: string
  readonly requestId: number
  /** For a reader: the function's name, or `Observer#0.17.step` for a method of the value with that id; empty if not a call. */
  readonly what: string
}

/**
 * An event of a worker; `kind` says which:
 *
 * - `sent`: this worker sent a message to the worker `to`.
 * - `received`: a message of the worker `from` arrived, and waits in the mailbox.
 * - `begun`: this worker began to serve a request.
 * - `put-off`: a serial actor is busy, so the request waits and begins again later.
 * - `ended`: a request ended. `runMs` is the time since it began, in ms, including the time in which it awaited something.
 * - `dead-letter`: a message could not be processed; see `DeadLetter`.
 * - `death`: another worker has ended.
 * - `actor-started`: `remote` made an instance of a class, named in `what` (`Observer#0.17`).
 * - `actor-ended`: an actor has ended. `normal`: it was stopped, or no reference to it was left; else it crashed, and `reason` is the error's message.
 * - `mailbox-full`: a call of this worker was refused, since `calls` of its calls, with `bytes` bytes, wait at the worker `to`.
 * - `credit-stall`: code of this worker waits in `ready` for room at the worker `to`.
 * - `reference-leaked`: this worker closes, and a worker still holds the reference; see `ReferenceLeak`.
 *
 * Each event has its number `seq`, from 1, and its time `atMs`, in ms on the worker's clock. A gap in `seq` means that the listener missed events. An event
 * about a message also has the message's `type` (`CALL`, `RESULT`, …), its `requestId`, which pairs a request with its reply (0: it has none), and `what`:
 * the name of the function, or `Observer#0.17.step` for a method.
 */
export type InspectEvent =
  | (OfMessage & { readonly kind: 'sent'; readonly to: string })
  | (OfMessage & { readonly kind: 'received'; readonly from: string })
  | (OfMessage & { readonly kind: 'begun'; readonly from: string })
  | (OfMessage & { readonly kind: 'put-off'; readonly from: string })
  | (OfMessage & { readonly kind: 'ended'; readonly from: string; readonly runMs: number; readonly outcome: Outcome })
  | (Happening & { readonly kind: 'dead-letter'; readonly reason: string; readonly from: string | null; readonly what: string })
  | (Happening & { readonly kind: 'death'; readonly worker: string; readonly workerId: number; readonly cause: DeathCause })
  | (Happening & { readonly kind: 'actor-started'; readonly what: string })
  | (Happening & { readonly kind: 'actor-ended'; readonly what: string; readonly normal: boolean; readonly reason: string })
  | (Happening & {
      readonly kind: 'mailbox-full'
      readonly to: string
      readonly what: string
      readonly calls: number
      readonly bytes: number
    })
  | (Happening & { readonly kind: 'credit-stall'; readonly to: string; readonly calls: number; readonly bytes: number })
  | (Happening & Omit<ReferenceLeak, 'madeAt'> & { readonly kind: 'reference-leaked' })

/** A function that receives the events of a worker, one at a time; see `inspect`. */
export type InspectListener = (event: InspectEvent) => void

/** Without `seq` and `atMs`, kind by kind. */
type Bare<E> = E extends InspectEvent ? Omit<E, 'seq' | 'atMs'> : never

/** There is one per worker while anybody listens, counts or reads its tracer, and none otherwise. */
export class Inspection implements Observer {
  readonly listeners = new Set<InspectListener>()
  metrics: Metrics | null = null
  /** This worker's, while it is read. */
  tracer: Tracer | null = null
  /** The waits of this worker, by the number of the request. */
  private readonly waits = new Map<number, Span>()
  private readonly clock: Clock
  private readonly onBug: (error: unknown) => void
  private seq: number

  /** @param seq of the last event that anybody received */
  constructor(clock: Clock, onBug: (error: unknown) => void, seq: number) {
    this.clock = clock
    this.onBug = onBug
    this.seq = seq
  }

  get lastSeq(): number {
    return this.seq
  }

  get isIdle(): boolean {
    return this.listeners.size === 0 && this.metrics === null && this.tracer === null
  }

  sent(to: string, out: OutgoingMessage): void {
    if (this.tracer !== null) {
      const { name } = MESSAGE_TABLE[out.type]
      this.tracer.value('message', name, { way: 'sent', peer: to, requestId: out.requestId, what: whatOf(out) })
    }
    if (this.listeners.size === 0) return
    this.tell({ kind: 'sent', to, type: MESSAGE_TABLE[out.type].name, requestId: out.requestId, what: whatOf(out) })
  }

  received(item: Incoming): void {
    if (item instanceof IncomingCall) {
      const call = noted(item)
      call.times.receivedMs = this.clock.now()
      this.metrics?.onReceived(call)
    }
    if (this.tracer !== null) {
      const { type, from, requestId, what } = of(item)
      this.tracer.value('message', type, { way: 'received', peer: from, requestId, what })
    }
    if (this.listeners.size > 0) this.tell({ kind: 'received', ...of(item) })
  }

  begun(item: IncomingCall): void {
    const call = noted(item)
    call.times.begunMs = this.clock.now()
    this.metrics?.onBegun(call)
    if (this.tracer !== null) {
      const { from, requestId, what, type } = of(item)
      call.times.span = this.tracer.begin('serve', what || type, { from, requestId })
    }
    if (this.listeners.size > 0) this.tell({ kind: 'begun', ...of(item) })
  }

  /** It waits for its turn at a serial actor. */
  putOff(item: IncomingCall): void {
    const call = noted(item)
    this.metrics?.onPutOff(call)
    call.times.begunMs = -1
    endServe(call, 'put-off')
    if (this.listeners.size > 0) this.tell({ kind: 'put-off', ...of(item) })
  }

  firstTurnOver(item: IncomingCall): void {
    this.metrics?.onTurn(noted(item), this.clock.now())
  }

  ended(item: IncomingCall, outcome: Outcome): void {
    const call = noted(item)
    // It was cancelled while a serial actor had put it off; or it began before anybody listened.
    if (call.times.begunMs < 0) {
      this.notBegun(item)
      return
    }
    const runMs = this.clock.now() - call.times.begunMs
    this.metrics?.onEnded(call, runMs, outcome)
    endServe(call, outcome)
    if (this.listeners.size > 0) this.tell({ kind: 'ended', ...of(item), runMs, outcome })
  }

  notBegun(item: IncomingCall): void {
    this.metrics?.onNotBegun(noted(item))
  }

  waitBegan(requestId: number, waiting: PendingCall, to: WorkerInfo): void {
    if (this.tracer === null) return
    const about = waiting.about?.()
    const span =
      about === undefined
        ? this.tracer.begin('call', waiting.op, { to: to.name, requestId })
        : this.tracer.begin('wait', waiting.op, {
            for: about.kind,
            what: about.what,
            on: about.on?.map(({ name }) => name).join(', ') || null,
          })
    this.waits.set(requestId, span)
  }

  waitEnded(requestId: number): void {
    if (this.waits.size === 0) return
    this.waits.get(requestId)?.end()
    this.waits.delete(requestId)
  }

  deadLetter({ reason, from, what }: DeadLetter): void {
    if (this.listeners.size > 0) this.tell({ kind: 'dead-letter', reason, from, what })
  }

  death(worker: string, workerId: number, cause: DeathCause): void {
    if (this.listeners.size > 0) this.tell({ kind: 'death', worker, workerId, cause })
  }

  actorStarted(what: string): void {
    if (this.listeners.size > 0) this.tell({ kind: 'actor-started', what })
  }

  actorEnded(what: string, { normal, reason }: Exit): void {
    if (this.listeners.size === 0) return
    const text = reason === undefined ? '' : plainText(reason)
    this.tell({ kind: 'actor-ended', what, normal, reason: text })
  }

  /** `tables` is asked for only if anybody listens. */
  closing(worker: string, tables: () => References): void {
    if (this.listeners.size === 0) return
    for (const { madeAt: _, ...leak } of referenceLeaks({ [worker]: tables() })) this.tell({ kind: 'reference-leaked', ...leak })
  }

  noCredit(kind: 'mailbox-full' | 'credit-stall', to: string, what: string, { calls, bytes }: { calls: number; bytes: number }): void {
    if (this.listeners.size === 0) return
    this.tell(kind === 'mailbox-full' ? { kind, to, what, calls, bytes } : { kind, to, calls, bytes })
  }

  /** An error of a listener is the listener's bug: it is reported, and the others get the event. */
  private tell(bare: Bare<InspectEvent>): void {
    const event = { seq: ++this.seq, atMs: this.clock.now(), ...bare } as InspectEvent
    for (const listener of [...this.listeners]) {
      try {
        listener(event)
      } catch (error) {
        this.onBug(error)
      }
    }
  }
}

function noted(call: IncomingCall): IncomingCall & Counted {
  call.times ??= { receivedMs: -1, begunMs: -1, countedBy: null, span: null }
  return call as IncomingCall & Counted
}

function endServe({ times }: Counted, outcome: Outcome | 'put-off'): void {
  times.span?.end({ outcome })
  times.span = null
}

function of({ message, peer }: Incoming): { from: string; type: string; requestId: number; what: string } {
  return { from: peer.info.name, type: MESSAGE_TABLE[message.type].name, requestId: message.requestId, what: whatOf(message) }
}

/** Options of `inspectStream`: how many events are kept. */
export interface InspectStreamOptions {
  /** How many unread events are kept, at least 1; default 1024. If more arrive, the oldest are dropped and counted in `dropped`. */
  readonly capacity?: number
}

/**
 * The events of a worker, for a reader at its own speed: read them with `for await`. `close`, or leaving the loop, ends the stream.
 * @example
 * const events = currentWorker().inspectStream({ capacity: 100 })
 * await call('worker1', addOne, [x])
 * events.close() // those that were kept can still be read
 * for await (const event of events) console.log(event.kind)
 */
export class InspectStream implements AsyncIterableIterator<InspectEvent> {
  /** The number of events that were dropped because the reader was too slow. */
  dropped = 0
  private readonly capacity: number
  private readonly detach: () => void
  private readonly kept: InspectEvent[] = []
  /** In the order in which they asked; events and readers never wait at the same time. */
  private readonly readers: ((result: IteratorResult<InspectEvent>) => void)[] = []
  private closed = false

  /** @throws INVALID_ARGUMENT */
  constructor(attach: (listener: InspectListener) => () => void, capacity: number) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'inspectStream',
        expected: 'a capacity of at least 1 event',
        got: String(capacity),
        remedy: 'Leave it out for the default.',
      })
    }
    this.capacity = capacity
    this.detach = attach((event) => this.take(event))
  }

  /** Resolves with the next event, or with the end of the stream after `close`. */
  next(): Promise<IteratorResult<InspectEvent>> {
    const event = this.kept.shift()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    if (this.closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.readers.push(resolve)
    })
  }

  /** Ends the stream, and drops the events that were not read; leaving a `for await` loop calls it. */
  return(): Promise<IteratorResult<InspectEvent>> {
    this.close()
    this.kept.length = 0
    return this.next()
  }

  /** Ends the stream. The events that are kept can still be read. Idempotent. */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.detach()
    for (const reader of this.readers.splice(0)) reader({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  private take(event: InspectEvent): void {
    const reader = this.readers.shift()
    if (reader !== undefined) {
      reader({ done: false, value: event })
      return
    }
    if (this.kept.length === this.capacity) {
      this.kept.shift()
      this.dropped++
    }
    this.kept.push(event)
  }
}
