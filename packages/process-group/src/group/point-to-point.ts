/**
 * Tensors of `send` and `recv`: those that have come and that no `recv` has taken, the `recv`s that wait for a tensor, and the `send`s that wait for room
 * at the receiver. Tensors and `recv`s are matched by sender and tag, each in order. `send-window.ts` counts; the group (`process-group.ts`) carries.
 */
import type { PostgradError } from '@postgrad/base'
import { isTensor } from '@postgrad/tensor/internal'
import { bytesOf } from '../algorithms/parts.js'
import { directTimedOut, groupBroken } from '../common/errors.js'
import { dropValues, NOTHING, type Values, What } from '../common/protocol.js'
import { others } from '../common/step.js'
import type { GroupHost } from './group-host.js'
import { IncomingSends, OutgoingSends, SEND_WINDOW, type SendWindow } from './send-window.js'
import { GROUP_TIMEOUT_MS, type WaitOptions, waitFor } from './wait-for.js'
import { Work } from './work.js'

/** A tensor that has come. */
interface Arrival {
  readonly from: number
  readonly tag: number
  readonly head: string
  readonly values: Values
}

/** A work that ends when it is given something: a receiver a tensor, a sender room. */
class Waiter<Given, T> {
  readonly op: string
  /** On whom it waits; null: on anybody. */
  readonly rank: number | null
  readonly tag: number
  readonly work = new Work<T>()
  /** It waits until its tensor is flushed. */
  isSent = false
  endWait: () => void = () => {}
  private readonly make: (given: Given) => T

  constructor(op: string, rank: number | null, tag: number, make: (given: Given) => T) {
    this.op = op
    this.rank = rank
    this.tag = tag
    this.make = make
  }

  give(given: Given): void {
    this.endWait()
    try {
      this.work.resolve(this.make(given))
    } catch (error) {
      this.work.reject(error)
    }
  }

  fail(error: unknown): void {
    this.endWait()
    this.work.reject(error)
  }
}

type Receiver = Waiter<Arrival, unknown>

/** Waits for room at the receiver, and then until its tensor is flushed. */
class Sender extends Waiter<void, void> {
  readonly say: (onFlushed: () => void) => void

  constructor(op: string, rank: number, tag: number, say: (onFlushed: () => void) => void) {
    super(op, rank, tag, () => {})
    this.say = say
  }
}

/** A rank sends it to another. */
export interface Parcel {
  readonly tag: number
  /** Shape and dtype. */
  readonly head: string
  readonly values: Values
}

export class PointToPoint {
  /** Others only in tests, of all ranks, before the first tensor. */
  window: SendWindow = SEND_WINDOW
  private readonly host: GroupHost
  private readonly arrivals: Arrival[] = []
  private readonly receivers: Receiver[] = []
  private readonly senders: Sender[] = []
  /** By rank. */
  private readonly outgoing = new Map<number, OutgoingSends>()
  private readonly incoming = new Map<number, IncomingSends>()

  constructor(host: GroupHost) {
    this.host = host
  }

  /** How many have come and nobody has taken. */
  get arrived(): number {
    return this.arrivals.length
  }

  get waiting(): number {
    return this.receivers.length + this.senders.length
  }

  // --- what this rank calls

  /** Ends when the tensor is flushed, which waits while as much as the window has waits at the receiver. */
  send(op: string, to: number, { tag, head, values }: Parcel, options: WaitOptions): Work<void> {
    const { host } = this
    const account = madeIn(this.outgoing, to, () => new OutgoingSends(this.window))
    const sender = new Sender(op, to, tag, (onFlushed) => {
      host.say(to, What.send, tag, 0, head, values, { onFlushed })
      account.onSent(bytesOfValues(values))
    })
    try {
      const timeoutMs = host.admit(op, options)
      const gone = host.goneOf(to)
      if (gone !== undefined) throw groupBroken(op, host, gone.why, gone.cause)
      const hasRoom = !account.isFull && this.senders.every(({ rank, isSent }) => rank !== to || isSent)
      if (hasRoom) this.begin(sender)
      const what = () => `${op}(rank ${to}, tag ${tag}), which ${sender.isSent ? 'nobody has read' : 'waits for room there'}`
      if (!sender.work.done) this.wait(sender, this.senders, timeoutMs, options, what)
    } catch (error) {
      sender.fail(error)
    }
    return sender.work
  }

  /** There is room for it. */
  private begin(sender: Sender): void {
    sender.isSent = true
    try {
      sender.say(() => {
        if (sender.work.done) return
        forget(this.senders, sender)
        sender.give()
      })
    } catch (error) {
      forget(this.senders, sender)
      sender.fail(error)
    }
  }

  /** `read` makes the value of what has come, and may throw. */
  receive<T>(
    op: string,
    from: number | null,
    tag: number,
    options: WaitOptions,
    read: (from: number, head: string, values: Values) => T,
  ): Work<T> {
    const { host } = this
    const receiver = new Waiter(op, from, tag, (arrival: Arrival) => read(arrival.from, arrival.head, arrival.values))
    try {
      const timeoutMs = host.admit(op, options)
      const at = this.arrivals.findIndex((arrival) => fits(receiver, arrival))
      if (at >= 0) {
        this.hand(this.arrivals.splice(at, 1)[0]!, receiver)
        return receiver.work
      }
      const awaited = this.awaitedBy(receiver)
      const gone = awaited.every((rank) => host.goneOf(rank) !== undefined) ? host.goneOf(awaited[0]!) : undefined
      if (gone !== undefined) throw groupBroken(op, host, gone.why, gone.cause)
      this.wait(receiver, this.receivers, timeoutMs, options, () => `${op}(${from === null ? 'any' : `rank ${from}`}, tag ${tag})`)
    } catch (error) {
      receiver.fail(error)
    }
    return receiver.work
  }

  private wait<Given, T>(
    waiter: Waiter<Given, T>,
    among: Waiter<Given, unknown>[],
    timeoutMs: number,
    { signal }: WaitOptions,
    what: () => string,
  ): void {
    const { host } = this
    const { op, tag, work } = waiter
    const missing = this.awaitedBy(waiter)
    waiter.endWait = waitFor(host.runtime, work, {
      ...{ op, timeoutMs, signal },
      about: (sinceMs) => ({
        kind: 'collective',
        what: `${what()} of group '${host.name}'`,
        on: missing.map((rank) => host.workers[rank]!),
        // One that ends by itself breaks no group: its program continues.
        ...(signal !== undefined || timeoutMs < GROUP_TIMEOUT_MS || waiter.isSent
          ? {}
          : { standing: { group: host, number: host.next, sinceMs } }),
      }),
      timedOut: (): PostgradError => directTimedOut(op, host, { call: what(), tag, missing, timeoutMs }),
      giveUp: (error) => {
        if (forget(among, waiter)) waiter.fail(error)
      },
    })
    among.push(waiter)
  }

  private awaitedBy({ rank }: { readonly rank: number | null }): readonly number[] {
    return rank === null ? others(this.host) : [rank]
  }

  // --- what others say

  /** Null: it has been taken, or is kept or dropped; else why it cannot be right. */
  onArrival(arrival: Arrival): string | null {
    const { from, values } = arrival
    const isWithin = this.incomingFrom(from).onReceived(bytesOfValues(values))
    if (!isWithin || this.host.isBroken) {
      dropValues(values)
      return isWithin ? null : 'its sender had no room left for it'
    }
    const at = this.receivers.findIndex((receiver) => fits(receiver, arrival))
    if (at < 0) this.arrivals.push(arrival)
    else this.hand(arrival, this.receivers.splice(at, 1)[0]!)
    return null
  }

  /** So much of what this rank has sent was taken in total. Null, or why that cannot be right. */
  onTaken(by: number, tensors: number, bytes: number): string | null {
    const account = this.outgoing.get(by)
    if (account === undefined || !account.onTaken(tensors, bytes)) return 'more was taken there than has left here'
    for (const sender of this.senders.filter(({ rank, isSent }) => rank === by && !isSent)) {
      if (account.isFull) break
      this.begin(sender)
    }
    return null
  }

  private hand(arrival: Arrival, receiver: Receiver): void {
    const { from, values } = arrival
    const account = this.incomingFrom(from)
    const isDue = account.onTaken(bytesOfValues(values))
    receiver.give(arrival)
    if (isDue && this.host.goneOf(from) === undefined) this.host.say(from, What.taken, account.taken, account.takenBytes, '', NOTHING)
  }

  private incomingFrom(rank: number): IncomingSends {
    return madeIn(this.incoming, rank, () => new IncomingSends(this.window))
  }

  // --- ends

  /** All that waits ends, and what has come is dropped. */
  end(error: (op: string) => unknown): void {
    for (const { values } of this.arrivals.splice(0)) dropValues(values)
    for (const waiter of [...this.receivers.splice(0), ...this.senders.splice(0)]) waiter.fail(error(waiter.op))
  }

  /** This rank sends and takes nothing any more; what it has sent can still be had. */
  onGone(gone: number, error: (op: string) => unknown): void {
    const areAllGone = others(this.host).every((rank) => this.host.goneOf(rank) !== undefined)
    const isLost = ({ rank }: { readonly rank: number | null }): boolean => rank === gone || (rank === null && areAllGone)
    for (const receiver of this.receivers.filter(isLost)) {
      forget(this.receivers, receiver)
      receiver.fail(error(receiver.op))
    }
    for (const sender of this.senders.filter((each) => !each.isSent && isLost(each))) {
      forget(this.senders, sender)
      sender.fail(error(sender.op))
    }
  }
}

function fits(receiver: Receiver, { from, tag }: Arrival): boolean {
  return (receiver.rank === null || receiver.rank === from) && receiver.tag === tag
}

/** Returns whether it waited. */
function forget<W>(among: W[], waiter: W): boolean {
  const at = among.indexOf(waiter)
  if (at >= 0) among.splice(at, 1)
  return at >= 0
}

function madeIn<V>(map: Map<number, V>, key: number, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/** Both ends count alike. */
function bytesOfValues(values: Values): number {
  return bytesOf(values.filter(isTensor))
}
