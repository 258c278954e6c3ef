/**
 * Counts every message of a simulation, at the worker that sends and at the one that receives, by pair of lives and kind, and how often each
 * request began. `simulate` keeps one; the checkers (`check/expect-conserved.ts`, `check/expect-sound.ts`) read what it counted.
 */
import type { InspectEvent } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { FrameCounts, SimWorld } from '@postgrad/sim'
import { DAMAGED } from '../faults/message-kind.js'

/** The counts of one kind of message from one worker to another, or to itself. Each life of a worker has its own counts. */
export interface MessageCount {
  /** The sender's name. */
  readonly from: string
  /** The sender's id. Each life of a worker has its own id. */
  readonly fromId: number
  /** The receiver's name. */
  readonly to: string
  /** The receiver's id. */
  readonly toId: number
  /** The kind of message: `CALL`, `RREF_ACK`, …. `DAMAGED`: messages that arrived and could not be read. */
  readonly kind: string
  /** How many were sent. */
  readonly sent: number
  /** How many arrived, dead letters included. */
  readonly received: number
  /** How many of the received messages became dead letters. */
  readonly deadLetters: number
  /** Whether both workers were alive at the end of the run. Then no message between them may have been lost. */
  readonly bothLive: boolean
}

/** A request (call, remote call or fetch) that arrived or began more than once. */
export interface RepeatedRequest {
  /** The name of the worker that sent the request. */
  readonly from: string
  /** The name of the worker that received the request. */
  readonly to: string
  /** The kind of request: `CALL`, `REMOTE_CALL` or `RREF_FETCH`. */
  readonly kind: string
  /** The function's name. '' for a fetch. */
  readonly what: string
  /** The number of the request at the worker that sent it. */
  readonly requestId: number
  /** How often the request arrived. */
  readonly received: number
  /** How often the request began to run. */
  readonly begun: number
}

/**
 * One worker's *window* at another: how many of its calls, or of its fetches of references, may wait there. Both workers count the window, and these are the counts
 * at the end of the run.
 */
export interface CreditCount {
  /** The sender's name. */
  readonly from: string
  /** The receiver's name. */
  readonly to: string
  /** The window for calls, or the window for fetches. */
  readonly window: 'calls' | 'fetches'
  /** How many calls or fetches the sender has sent. */
  readonly sent: number
  /** The bytes of the calls or fetches that were sent. */
  readonly sentBytes: number
  /** How many calls or fetches have begun at the receiver, or were refused there. */
  readonly begun: number
  /** The bytes of the calls or fetches that have begun or were refused. */
  readonly begunBytes: number
  /** How many calls or fetches wait at the receiver. */
  readonly waiting: number
  /** How many the sender counts as waiting. Without messages under way, equal to `untold`. */
  readonly counted: number
  /** How many have begun that the receiver has not reported to the sender yet. Without messages under way, equal to `counted`. */
  readonly untold: number
}

/** The counts of all messages of a run, at their senders and receivers: `simulation.messages`. */
export interface Messages {
  /** The counts, by sender, receiver and kind. */
  readonly counts: readonly MessageCount[]
  /** How many requests arrived: calls, remote calls and fetches. */
  readonly requests: number
  /** The requests that arrived or began more than once. In a sound run this list is empty. */
  readonly repeated: readonly RepeatedRequest[]
  /** The windows between workers that were alive at the end of the run. */
  readonly credits: readonly CreditCount[]
  /** The counts of all frames. A frame that a session sends again counts again. sent + repeated = delivered + dropped + lost + putOff + inFlight. */
  readonly frames: Readonly<FrameCounts> & { readonly inFlight: number }
}

interface Count {
  sent: number
  received: number
  deadLetters: number
}

interface Request {
  readonly from: string
  readonly kind: string
  readonly what: string
  received: number
  begun: number
}

/** The counts of one life of a worker, by the other end's id and the kind. */
class Book {
  readonly runtime: WorkerRuntime
  readonly sent = new Map<number, Map<string, Count>>()
  readonly received = new Map<number, Map<string, Count>>()
  readonly requests = new Map<number, Map<number, Request>>()

  constructor(runtime: WorkerRuntime) {
    this.runtime = runtime
    runtime.inspect((event) => this.note(event))
  }

  private note(event: InspectEvent): void {
    switch (event.kind) {
      case 'sent':
        this.count(this.sent, event.to, event.type).sent++
        return
      case 'received':
        this.count(this.received, event.from, event.type).received++
        if (REQUESTS.has(event.type)) this.request(event).received++
        return
      case 'begun':
        if (REQUESTS.has(event.type)) this.request(event).begun++
        return
      case 'put-off':
        if (REQUESTS.has(event.type)) this.request(event).begun--
        return
      case 'dead-letter': {
        // It arose here, without a message.
        if (event.from === null) return
        const isUnreadable = event.reason === 'unreadable'
        const count = this.count(this.received, event.from, isUnreadable ? DAMAGED : event.what.split(/[ :]/, 1)[0]!)
        count.deadLetters++
        if (isUnreadable) count.received++
      }
    }
  }

  private count(table: Map<number, Map<string, Count>>, peer: string, kind: string): Count {
    const id = this.idOf(peer)
    let kinds = table.get(id)
    if (kinds === undefined) {
      kinds = new Map()
      table.set(id, kinds)
    }
    let count = kinds.get(kind)
    if (count === undefined) {
      count = { sent: 0, received: 0, deadLetters: 0 }
      kinds.set(kind, count)
    }
    return count
  }

  private request({ from, type, what, requestId }: InspectEvent & { kind: 'received' | 'begun' | 'put-off' }): Request {
    const id = this.idOf(from)
    let requests = this.requests.get(id)
    if (requests === undefined) {
      requests = new Map()
      this.requests.set(id, requests)
    }
    let request = requests.get(requestId)
    if (request === undefined) {
      request = { from, kind: type, what, received: 0, begun: 0 }
      requests.set(requestId, request)
    }
    return request
  }

  /** Which life: once its end is known here, a name means the next one, and nothing of the former comes any more. */
  private idOf(name: string): number {
    return name === this.runtime.info.name ? this.runtime.info.id : this.runtime.resolve(name).id
  }
}

const REQUESTS: ReadonlySet<string> = new Set(['CALL', 'REMOTE_CALL', 'RREF_FETCH'])

export class MessageLedger {
  private readonly books: Book[] = []

  attach(runtime: WorkerRuntime): void {
    this.books.push(new Book(runtime))
  }

  /** @param isLive whether this life of a worker has neither crashed nor closed */
  read({ frames, framesInFlight: inFlight }: SimWorld, isLive: (runtime: WorkerRuntime) => boolean): Messages {
    const live = new Set(this.books.filter(({ runtime }) => isLive(runtime)).map(({ runtime }) => runtime.info.id))
    return {
      counts: this.counts(live),
      requests: this.books.reduce((sum, { requests }) => sum + [...requests.values()].reduce((each, { size }) => each + size, 0), 0),
      repeated: this.repeated(),
      credits: this.credits(live),
      frames: { ...frames, inFlight },
    }
  }

  private counts(live: ReadonlySet<number>): MessageCount[] {
    const out: MessageCount[] = []
    const byId = new Map(this.books.map((book) => [book.runtime.info.id, book]))
    for (const sender of this.books) {
      const { name: from, id: fromId } = sender.runtime.info
      for (const receiver of this.books) {
        const { name: to, id: toId } = receiver.runtime.info
        const sent = byId.get(fromId)!.sent.get(toId)
        const received = receiver.received.get(fromId)
        for (const kind of new Set([...(sent?.keys() ?? []), ...(received?.keys() ?? [])])) {
          const came = received?.get(kind)
          out.push({
            ...{ from, fromId, to, toId, kind },
            sent: sent?.get(kind)?.sent ?? 0,
            received: came?.received ?? 0,
            deadLetters: came?.deadLetters ?? 0,
            bothLive: live.has(fromId) && live.has(toId),
          })
        }
      }
    }
    return out
  }

  private repeated(): RepeatedRequest[] {
    const out: RepeatedRequest[] = []
    for (const { runtime, requests } of this.books) {
      for (const ofPeer of requests.values()) {
        for (const [requestId, request] of ofPeer) {
          if (request.begun > 1 || request.received > 1) out.push({ ...request, to: runtime.info.name, requestId })
        }
      }
    }
    return out
  }

  private credits(live: ReadonlySet<number>): CreditCount[] {
    const out: CreditCount[] = []
    const runtimes = this.books.map(({ runtime }) => runtime).filter(({ info }) => live.has(info.id))
    for (const sender of runtimes) {
      for (const receiver of runtimes) {
        const there = [...sender.peers].find(({ info }) => info.id === receiver.info.id)
        const here = [...receiver.peers].find(({ info }) => info.id === sender.info.id)
        if (there === undefined || here === undefined || there.link?.closed || here.link?.closed) continue
        const ends = [
          ['calls', there.ledger.outgoing, here.ledger.incoming] as const,
          ['fetches', there.ledger.outgoingFetches, here.ledger.incomingFetches] as const,
        ]
        for (const [window, outgoing, incoming] of ends) {
          if (outgoing.sent === 0 && incoming.begun === 0) continue
          out.push({
            ...{ from: sender.info.name, to: receiver.info.name, window },
            ...{ sent: outgoing.sent, sentBytes: outgoing.sentBytes, begun: incoming.begun, begunBytes: incoming.begunBytes },
            ...{ waiting: incoming.calls, counted: outgoing.calls, untold: incoming.untold },
          })
        }
      }
    }
    return out
  }
}
