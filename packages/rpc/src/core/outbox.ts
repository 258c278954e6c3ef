/**
 * The messages to one peer that wait for bytes of a device's memory, and those that must not overtake them. `message-path.ts` puts them in and sends them. Rules
 * LATE-1 to LATE-6 in SPEC.md.
 *
 *     encode ──▸ place ─ the device's bytes arrive ─ earlier ones of its orders have left ──▸ leave ──▸ link
 *
 * Note [Late messages]. A message takes its place when the program sends it. Then everything is copied but the bytes of tensors on devices, whose reads are queued,
 * so later writes change nothing. For credits, references, the end of a group and the end of a pass it is sent from then on. It leaves later, and messages that need not
 * keep its order go ahead of it. The number by which both ends know it (blocks, references, UNREADABLE) is that of its arrival, so it gets that number when it leaves.
 *
 * A message whose values cannot be had leaves as a failure (`Codec.encodeFailure`). So both ends have still counted the same messages, and its receiver does what
 * it does about a message that it cannot read. The worker that has made a request learns its failure at once, from its own outbox.
 */
import type { FrameOrder } from '@postgrad/transport'
import { EVERY_ORDER, NO_ORDER, staysBehind } from '@postgrad/transport/internal'

export interface LateMessage {
  readonly order: FrameOrder
  /** As on a socket, a large message overtakes nothing (ORD-3). */
  readonly isLarge: boolean
  /** Whether its bytes are there. */
  isReady: boolean
  /** Sends it. Does not throw. */
  leave(): void
  /** It will not be sent: the peer has died, or this worker closes. */
  drop(): void
}

export class Outbox {
  /** In the order of their places. */
  private waiting: LateMessage[] = []
  /** The orders of those that wait, and of some that have left meanwhile. */
  private orders: FrameOrder = NO_ORDER

  get size(): number {
    return this.waiting.length
  }

  /** Whether a message must wait for one that waits. */
  holds(order: FrameOrder, isLarge: boolean): boolean {
    return this.waiting.length > 0 && (isLarge || staysBehind(order, this.orders))
  }

  add(message: LateMessage): void {
    this.waiting.push(message)
    this.orders |= message.order
  }

  /** The bytes of one have arrived: it leaves, and so do those that waited for it alone. */
  onReady(message: LateMessage): void {
    message.isReady = true
    const { waiting } = this
    const leaving: LateMessage[] = []
    const staying: LateMessage[] = []
    let before = NO_ORDER
    let i = 0
    // Nothing goes ahead of a message that has every order.
    for (; i < waiting.length && before !== EVERY_ORDER; i++) {
      const each = waiting[i]!
      const mustStay = staying.length > 0 && (each.isLarge || staysBehind(each.order, before))
      if (each.isReady && !mustStay) leaving.push(each)
      else {
        staying.push(each)
        before |= each.order
      }
    }
    if (leaving.length === 0) return
    this.waiting = staying.concat(waiting.slice(i))
    this.orders = this.waiting.reduce((all, { order }) => all | order, NO_ORDER)
    for (const each of leaving) each.leave()
  }

  close(): void {
    for (const message of this.waiting.splice(0)) message.drop()
    this.orders = NO_ORDER
  }
}
