/**
 * Tensors that one rank sends another of its own accord: those that have come and nobody has asked for yet, and who waits for one that has not come. They meet by
 * sender and tag, each in order.
 */
import type { Values } from '../common/protocol.js'

/** A tensor that has come. */
export interface Arrival {
  readonly from: number
  readonly tag: number
  readonly head: string
  readonly values: Values
}

/** Who waits for one. */
export interface Receiver {
  /** Null: from anybody. */
  readonly from: number | null
  readonly tag: number
  take(arrival: Arrival): void
  fail(error: unknown): void
}

export class PointToPoint {
  private readonly arrivals: Arrival[] = []
  private readonly receivers: Receiver[] = []

  get arrived(): number {
    return this.arrivals.length
  }

  get waiting(): readonly Receiver[] {
    return this.receivers
  }

  onArrival(arrival: Arrival): void {
    const at = this.receivers.findIndex((receiver) => fits(receiver, arrival))
    if (at < 0) this.arrivals.push(arrival)
    else this.receivers.splice(at, 1)[0]!.take(arrival)
  }

  /** Takes what has come first, or waits. */
  receive(receiver: Receiver): void {
    const at = this.arrivals.findIndex((arrival) => fits(receiver, arrival))
    if (at < 0) this.receivers.push(receiver)
    else receiver.take(this.arrivals.splice(at, 1)[0]!)
  }

  /** It waits no more. Returns whether it did. */
  forget(receiver: Receiver): boolean {
    const at = this.receivers.indexOf(receiver)
    if (at >= 0) this.receivers.splice(at, 1)
    return at >= 0
  }

  /** Those for whom `isLost` holds will get nothing. */
  fail(isLost: (receiver: Receiver) => boolean, error: (receiver: Receiver) => unknown): void {
    for (const receiver of this.receivers.filter(isLost)) {
      this.forget(receiver)
      receiver.fail(error(receiver))
    }
  }

  /** What nobody will ask for any more. */
  clear(): readonly Arrival[] {
    return this.arrivals.splice(0)
  }
}

function fits(receiver: Receiver, { from, tag }: Arrival): boolean {
  return (receiver.from === null || receiver.from === from) && receiver.tag === tag
}
