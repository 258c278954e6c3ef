/**
 * Which processes of a group are connected to rank 0, which serves their store, or to the keeper, and so which have gone without a goodbye.
 * `meeting-store.ts` and `keeper.ts` use it.
 */
import type { Clock, Link, LinkReceiver, Timer } from '@postgrad/transport'
import { ForwardingLink } from '@postgrad/transport/internal'

/** How a process dials rank 0 or the keeper. Ids may be random, so two processes may have the same; names differ. Another role is another visitor. */
export interface Visitor {
  readonly name: string
  readonly id: number
  readonly role: string
}

/** Parts of the grace. If this thread stops for a time, that counts as one part, and it then reads what came meanwhile. */
const PARTS = 4

export class Presence {
  private readonly clock: Clock
  private readonly graceMs: number
  private readonly onGone: (visitor: Visitor) => void
  private readonly connections = new Map<string, number>()
  private readonly missing = new Map<string, Timer>()
  private isClosed = false

  /** @param graceMs how long a process that has no connection may take to come back */
  constructor(clock: Clock, graceMs: number, onGone: (visitor: Visitor) => void) {
    this.clock = clock
    this.graceMs = graceMs
    this.onGone = onGone
  }

  /** The same link, whose end is noticed. */
  over(link: Link, visitor: Visitor): Link {
    const key = keyOf(visitor)
    this.connections.set(key, (this.connections.get(key) ?? 0) + 1)
    this.missing.get(key)?.cancel()
    this.missing.delete(key)
    return new WatchedLink(link, () => this.lost(visitor))
  }

  /** It lives, as far as is known: where it has no connection it has to come in time. */
  expect(visitor: Visitor): void {
    const key = keyOf(visitor)
    if (this.isClosed || this.connections.has(key) || this.missing.has(key)) return
    this.await(visitor, key, PARTS)
  }

  close(): void {
    this.isClosed = true
    for (const timer of this.missing.values()) timer.cancel()
    this.missing.clear()
  }

  private await(visitor: Visitor, key: string, parts: number): void {
    const timer = this.clock.setTimer(this.graceMs / PARTS, () => {
      if (parts > 1) {
        this.await(visitor, key, parts - 1)
        return
      }
      this.missing.delete(key)
      this.onGone(visitor)
    })
    this.missing.set(key, timer)
  }

  private lost(visitor: Visitor): void {
    const key = keyOf(visitor)
    const left = this.connections.get(key)! - 1
    if (left > 0) {
      this.connections.set(key, left)
      return
    }
    this.connections.delete(key)
    this.expect(visitor)
  }
}

const keyOf = ({ name, id, role }: Visitor): string => `${name}#${id}#${role}`

/** A link that also reports its end to its presence. */
class WatchedLink extends ForwardingLink {
  private readonly onEnd: () => void

  constructor(link: Link, onEnd: () => void) {
    super(link)
    this.onEnd = onEnd
  }

  override open(receiver: LinkReceiver): void {
    this.link.open({
      onFrame: (frame) => receiver.onFrame(frame),
      onTurnEnd: () => receiver.onTurnEnd(),
      onClose: (reason) => {
        receiver.onClose(reason)
        this.onEnd()
      },
    })
  }
}
