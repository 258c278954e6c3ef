/**
 * A link inside one thread: two ends, two queues and a clock, for unit tests and for workers that share a thread. It treats bytes as a
 * MessagePort does (a segment that fills its buffer is moved, the rest is copied), so that code which breaks the rules of ownership breaks
 * here too.
 */

import { strict as assert } from 'node:assert'
import { structuredClone } from '@postgrad/base/internal'
import type { Clock } from './clock.js'
import { EndOfTurn } from './end-of-turn.js'
import { Flushes } from './flushes.js'
import type { Frame, FrameOrder, Link, LinkClosed, LinkReceiver, OnFlushed } from './link.js'
import { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
import { type Post, PostReader, PostWriter } from './post.js'

export interface MemoryLinkOptions {
  /** Appears in errors. */
  readonly name?: string
}

class MemoryLink implements Link {
  private readonly clock: Clock
  private readonly name: string
  private peer: MemoryLink | null = null
  private readonly writer = new PostWriter()
  private readonly reader = new PostReader()
  private readonly endOfTurn = new EndOfTurn(() => this.flush())
  private readonly flushes = new Flushes()
  private readonly inbox: Post[] = []
  private receiver: LinkReceiver | null = null
  private reason: LinkClosed | null = null
  /** The peer has closed; this end reports it after everything in the inbox. */
  private isPeerGone = false
  private isTurnDue = false
  private isCloseDelivered = false

  constructor(clock: Clock, name: string) {
    this.clock = clock
    this.name = name
  }

  get closed(): boolean {
    return this.reason !== null
  }

  join(peer: MemoryLink): void {
    this.peer = peer
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.receiver = receiver
    this.wake()
  }

  send(frame: Frame, _order?: FrameOrder, onFlushed?: OnFlushed | null): void {
    if (this.reason !== null) throw linkClosedError(this.name, this.reason)
    this.writer.add(frame)
    this.flushes.add(onFlushed)
    if (this.writer.frames === 1) this.endOfTurn.arm()
  }

  flush(): void {
    const { writer } = this
    if (writer.frames === 0) return
    const peer = this.peer as MemoryLink
    const post = clone(writer.take(), writer.transfer)
    if (peer.reason === null) {
      peer.inbox.push(post)
      peer.wake()
    }
    this.flushes.run(true)
  }

  poll(): number {
    if (this.receiver === null || this.reason?.by === 'self') return 0
    return this.deliver()
  }

  close(): void {
    if (this.reason !== null) return
    this.flush()
    this.reason = CLOSED_BY_SELF
    this.reader.drop()
    this.inbox.length = 0
    const peer = this.peer as MemoryLink
    peer.isPeerGone = true
    peer.wake()
    this.wake()
  }

  private wake(): void {
    if (this.receiver === null || this.isTurnDue) return
    this.isTurnDue = true
    this.clock.defer(() => this.turn())
  }

  private turn(): void {
    this.isTurnDue = false
    const receiver = this.receiver as LinkReceiver
    try {
      if (this.deliver() > 0) receiver.onTurnEnd()
    } finally {
      // If the receiver threw, it still gets the frames after that one, and the end.
      if (this.reader.left > 0 || this.inbox.length > 0) this.wake()
      else if (this.isPeerGone) this.reason ??= CLOSED_BY_PEER
      if (this.reason !== null && !this.isCloseDelivered) this.clock.defer(() => this.deliverClose())
    }
  }

  private deliverClose(): void {
    if (this.isCloseDelivered) return
    this.isCloseDelivered = true
    this.receiver?.onClose(this.reason as LinkClosed)
  }

  private deliver(): number {
    const { reader } = this
    const receiver = this.receiver as LinkReceiver
    let frames = 0
    for (;;) {
      while (reader.left > 0) {
        frames++
        receiver.onFrame(reader.next())
      }
      const post = this.inbox.shift()
      if (post === undefined) return frames
      reader.start(post)
    }
  }
}

/** Does what `postMessage` does: moves what a port would move, so that the sender's views become empty, and copies the rest. */
function clone(post: Post, transfer: ArrayBuffer[] | null): Post {
  if (typeof post === 'string') return post
  try {
    return structuredClone(post, transfer === null ? undefined : { transfer })
  } catch (error) {
    // As the MessagePort link: what cannot be moved is cloned.
    if ((error as { name?: unknown }).name !== 'DataCloneError') throw error
    return structuredClone(post)
  }
}

/** Two ends of one link in this thread. Posts are delivered in turns of `clock` (`defer`). */
export function memoryLinkPair(clock: Clock, options: MemoryLinkOptions = {}): [Link, Link] {
  const name = options.name ?? 'memory link'
  const a = new MemoryLink(clock, name)
  const b = new MemoryLink(clock, name)
  a.join(b)
  b.join(a)
  return [a, b]
}
