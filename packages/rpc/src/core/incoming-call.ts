/**
 * The messages of peers that wait in the mailbox of a worker. A call is known here from when it is received until it has ended, and
 * `state` says how far it is:
 *
 *   queued ──→ running ──→ answered, or abandoned when nobody waited for it any more
 *     │         │    ↑
 *     │         ↓    │
 *     │        waiting  for its turn at a serial actor: it has not begun
 *     ↓         ↓
 *   refused  nobody takes it (no room, the worker ends, the actor has ended): it is answered with an error, and nobody has the references in it
 *
 * `givenUp` (nobody waits for it any more) can be set in each of these states, and is checked when the next begins.
 */
import type { Span } from '@postgrad/base/internal'
import { type Message, MessageType, type PassHead, type RequestHead } from '@postgrad/wire/internal'
import type { Peer } from './peer.js'
import { type SerialActor, ServedCall } from './served-call.js'

/** Anything that waits in the mailbox. */
export interface Runnable {
  run(): void
}

/** A message in the mailbox. */
export interface Incoming extends Runnable {
  readonly message: Message
  readonly peer: Peer
  /** The notes of the references in it. */
  readonly received: readonly unknown[] | null
  /** Its bytes in its sender's `Inflow` until it has its turn; 0: none. */
  inflowBytes: number
}

/** Takes what has its turn. */
export interface Taker {
  deliver(item: Incoming): void
  deliverCall(call: IncomingCall): void
  deliverUnreadable(unreadable: Unreadable): void
  /** A serial actor puts a call off that has begun, … */
  putOff(call: IncomingCall): void
  /** … and lets it begin once more. */
  begun(call: IncomingCall): void
}

/** A message that is not a call. */
export class IncomingMessage implements Incoming {
  readonly message: Message
  readonly peer: Peer
  readonly received: readonly unknown[] | null
  inflowBytes = 0
  private readonly taker: Taker

  constructor(taker: Taker, message: Message, peer: Peer, received: readonly unknown[] | null) {
    this.taker = taker
    this.message = message
    this.peer = peer
    this.received = received
  }

  run(): void {
    this.taker.deliver(this)
  }
}

/** How one kind of request is served. One object per kind, none per request. */
export interface Work {
  /** Whether its caller waits for the answer no longer than until the deadline. */
  readonly endsAtDeadline: boolean
  /** Whether `run` runs a function of the program, which may enter stores of its own. */
  readonly runsProgram: boolean
  run(call: IncomingCall): unknown
  done(call: IncomingCall, value: unknown): void
  failed(call: IncomingCall, error: unknown): void
}

/** Noted of a call while somebody looks. */
export interface CallTimes {
  /** On the worker's clock, as the next; -1: before anybody looked. */
  receivedMs: number
  begunMs: number
  /** The `Metrics` that count it; null: none, or they have stopped. */
  countedBy: object | null
  /** It is served, and the worker's tracer is read. */
  span: Span | null
}

export class IncomingCall extends ServedCall implements Incoming {
  state: 'queued' | 'refused' | 'waiting' | 'running' | 'answered' | 'abandoned' = 'queued'
  readonly peer: Peer
  readonly received: readonly unknown[] | null
  /** Its bytes in its sender's account until it begins; 0 from then on. */
  callBytes: number
  inflowBytes = 0
  work: Work | null = null
  /** Of the references in it, those that their owner has not confirmed when it has its turn: promises of null or of what went wrong. */
  unconfirmed: readonly Promise<unknown>[] | null = null
  /** Null while nobody looks. */
  times: CallTimes | null = null
  private readonly taker: Taker
  private read: Message
  private actor: SerialActor | null = null

  constructor(
    taker: Taker,
    message: Message,
    peer: Peer,
    received: readonly unknown[] | null,
    expiresMs: number,
    functionName: string,
    callBytes: number,
  ) {
    super(peer.info, message.requestId, expiresMs, functionName)
    this.taker = taker
    this.read = message
    this.peer = peer
    this.received = received
    this.callBytes = callBytes
  }

  get message(): Message {
    return this.read
  }

  get type(): MessageType {
    return this.read.type
  }

  override get turnAt(): SerialActor | null {
    return this.state === 'waiting' ? this.actor : null
  }

  run(): void {
    this.taker.deliverCall(this)
  }

  override putOff(actor: SerialActor): void {
    this.state = 'waiting'
    this.actor = actor
    this.taker.putOff(this)
  }

  override begin(): void {
    if (this.state !== 'waiting') return
    this.state = 'running'
    this.taker.begun(this)
  }

  override refuse(): void {
    this.state = 'refused'
  }

  /** It has ended. A scope may outlive its call by far, and with it this; so what the message holds is let go of. */
  end(isAnswered = this.givenUp === null): void {
    this.state = isAnswered ? 'answered' : 'abandoned'
    this.actor = null
    this.read = ENDED
  }
}

/** Replaces the message of a call that has ended. */
const ENDED: Message = Object.freeze({
  ...{ type: MessageType.CALL, requestId: 0, body: [], tensors: [], requiresGrad: [] },
  ...{ context: null, autogradId: null, pass: null, deadlineMs: null, trace: null, lineage: null },
})

/** A request or reply that could not be read, in its turn. */
export class Unreadable implements Runnable {
  readonly peer: Peer
  readonly head: RequestHead
  /** If it was about a pass. */
  readonly pass: PassHead | null
  readonly error: unknown
  /** See `IncomingCall`. */
  callBytes: number
  /** Its sender could not have its values, and says so in its place; null: it cannot be read. */
  readonly failed: Message | null
  inflowBytes = 0
  private readonly taker: Taker

  constructor(
    taker: Taker,
    peer: Peer,
    head: RequestHead,
    pass: PassHead | null,
    error: unknown,
    callBytes: number,
    failed: Message | null = null,
  ) {
    this.taker = taker
    this.peer = peer
    this.head = head
    this.pass = pass
    this.error = error
    this.callBytes = callBytes
    this.failed = failed
  }

  get type(): MessageType {
    return this.head.type
  }

  run(): void {
    this.taker.deliverUnreadable(this)
  }
}
