/**
 * What waits in the mailbox of a worker, and the peer that it came from with everything that is kept of it. `rpc-agent.ts` makes both; this knows only
 * that somebody takes what has its turn.
 */
import type { Source } from '@postgrad/actor/internal'
import type { WorkerId } from '@postgrad/base'
import type { Link } from '@postgrad/transport'
import type { Message, MessageType, PassHead, RequestHead } from '@postgrad/wire/internal'
import type { PendingCalls } from '../calls/pending-calls.js'
import type { PeerLedger } from '../core/peer-ledger.js'
import type { RequestTable } from '../core/request-table.js'
import type { ServedCall } from '../core/served-call.js'
import type { WorkerInfo } from '../core/worker-info.js'
import type { Metrics } from '../observe/metrics.js'
import type { CodecEnv, ReceivedFork } from '../references/rref-context.js'

/** Anything that waits in the mailbox. */
export interface Runnable {
  run(): void
}

export interface Peer {
  readonly info: WorkerInfo
  /** Null: this worker itself, reached through encode, mailbox, decode like any other. */
  link: Link | null
  readonly pending: PendingCalls
  /** Its calls to this worker, by request id, from when they are received until they have ended. */
  readonly served: RequestTable<ServedCall>
  readonly env: CodecEnv
  readonly source: Source
  /** It calls and is called, and no group counts it. */
  readonly isGuest: boolean
  /** What passes between it and this worker. */
  readonly ledger: PeerLedger
  /** It has said that it will close its link and that this is no accident. */
  isLeaving: boolean
  /** It serves no more calls; see `leave.ts`. */
  takesNoCalls: boolean
  /** The whole group ends; see `shutdown.ts`. */
  endExpected: boolean
  /** The worker that has its name now. */
  restartedAs: WorkerId | null
}

/** Takes what has its turn. */
interface Taker {
  deliver(delivery: Delivery): void
  begun(item: Unreadable): void
  onUnreadable(unreadable: Unreadable): void
}

/** One message in the mailbox. */
export class Delivery implements Runnable {
  readonly agent: Taker
  readonly message: Message
  readonly peer: Peer
  /** When its sender gives up, on this worker's clock; time in the mailbox counts. Infinity: never. */
  readonly expiresMs: number
  /** References in it. */
  readonly received: readonly ReceivedFork[] | null
  /** Null for what is no call. */
  readonly served: ServedCall | null
  /** Of a call or fetch that has not begun: what it counts in its sender's account; 0 for all else. */
  callBytes: number
  /** Its sender had no room for it. */
  isRefused = false
  /** See `Inspected`. */
  receivedMs = -1
  begunMs = -1
  countedBy: Metrics | null = null
  /** For those that their owner has not confirmed yet, from its turn on. See `RRefContext.accept`. */
  unconfirmed: readonly Promise<unknown>[] | null = null

  constructor(
    agent: Taker,
    message: Message,
    peer: Peer,
    expiresMs: number,
    received: readonly ReceivedFork[] | null,
    served: ServedCall | null,
    callBytes: number,
  ) {
    this.agent = agent
    this.served = served
    this.callBytes = callBytes
    this.message = message
    this.peer = peer
    this.expiresMs = expiresMs
    this.received = received
  }

  get type(): MessageType {
    return this.message.type
  }

  run(): void {
    this.agent.deliver(this)
  }
}

/** A request or reply that could not be read, in its turn. */
export class Unreadable implements Runnable {
  readonly agent: Taker
  readonly peer: Peer
  readonly head: RequestHead
  /** If it was about a pass. */
  readonly pass: PassHead | null
  readonly error: unknown
  /** See `Delivery`. */
  callBytes: number

  constructor(agent: Taker, peer: Peer, head: RequestHead, pass: PassHead | null, error: unknown, callBytes: number) {
    this.agent = agent
    this.peer = peer
    this.head = head
    this.pass = pass
    this.error = error
    this.callBytes = callBytes
  }

  get type(): MessageType {
    return this.head.type
  }

  run(): void {
    this.agent.begun(this)
    this.agent.onUnreadable(this)
  }
}
