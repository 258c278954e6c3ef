/**
 * A link between two threads of one process over a MessagePort: decides when posts leave and when they are delivered; `post.ts` below it
 * knows their bytes. Since a port can neither lose nor reorder, nothing is numbered or acknowledged here.
 *
 * Waking the other thread costs most (5 to 40 µs, as the scheduler's mood is), so the link saves wake-ups first: frames of one turn leave in
 * one post. Then instructions: an event costs 0.59 µs with `port.on('message')`, 0.67 with `onmessage` or `addEventListener`; replacing the
 * hidden dispatch method saves 0.03 more and is not worth a dependency on Node's insides. Fetching further posts by `receiveMessageOnPort`
 * costs 0.45 µs instead of 0.59, but a call that finds nothing costs 0.15 on the way of every single round trip, so only `poll` does it.
 * Frames that a receiver sends while it is called leave when it returns, without a tick.
 *
 * Note [The end of a port]. Node queues the peer's close (also the end of its thread) after everything that the peer has posted, and emits
 * `close` when it gets there, also if it was `receiveMessageOnPort` that got there. Between the two `receiveMessageOnPort` returns
 * undefined; called from inside a `close` listener it crashes the process (Node 20.20, the port's data is gone), so `isClosed` is set first thing there.
 * A thread that is born with a port may load for long before it listens to it. A `close` that comes meanwhile is emitted to nobody.
 * If a thread is terminated while a port is on its way to it, the other end may never close (Node 20.20, twice in 240 kills under load): `abandon` is for that.
 */

import { strict as assert } from 'node:assert'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { setImmediate } from '@postgrad/base/internal'
import { EndOfTurn } from './end-of-turn.js'
import { Flushes } from './flushes.js'
import type { Frame, FrameOrder, Link, LinkClosed, LinkReceiver, OnFlushed } from './link.js'
import { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
import { type Post, PostReader, PostWriter } from './post.js'
import type { StayAwake } from './stay-awake.js'

export interface MessagePortLinkOptions {
  /** Appears in errors. */
  readonly name?: string
  /** Does not keep the thread alive while it is open; it does by default. */
  readonly unref?: boolean
  /** Called at every post, so that the thread does not fall asleep between two of them. Shared by the links of a thread; default: it may sleep. */
  readonly stayAwake?: StayAwake
  /** A post leaves before the end of the turn when it holds this many frames, so that the receiver works while the sender still does. */
  readonly postFramesMax?: number
  /** As `postFramesMax`, in bytes (without those of moved segments). */
  readonly postBytesMax?: number
}

/** One way, 24-byte frames, µs-grained noise aside: 2.2 million a second at 16, 2.3 to 5 at 32 to 64 frames, 8 at 256, where the receiver begins to wait. */
const POST_FRAMES_MAX = 48
const POST_BYTES_MAX = 32 * 1024

/** Node's types of version 20 lack it. */
type RefPort = MessagePort & { hasRef(): boolean }

class MessagePortLink implements Link {
  readonly name: string
  readonly neverOvertakes = true
  private readonly port: MessagePort
  private readonly unref: boolean
  private readonly stayAwake: StayAwake | null
  private readonly postFramesMax: number
  private readonly postBytesMax: number
  private readonly writer = new PostWriter()
  private readonly reader = new PostReader()
  private readonly endOfTurn = new EndOfTurn(() => this.flush())
  private readonly flushes = new Flushes()
  /** Posts that arrived while the one before was half read, which only a receiver that threw can cause. */
  private readonly behind: Post[] = []
  private receiver: LinkReceiver | null = null
  /** Set when the end is known, caused by either side. */
  private reason: LinkClosed | null = null
  /** The port has emitted `close`: it must not be touched any more. */
  private isClosed = false
  private isCloseDelivered = false
  /** The receiver is being called by an event, which posts at its end what was sent meanwhile. */
  private isDelivering = false

  constructor(port: MessagePort, options: MessagePortLinkOptions) {
    this.port = port
    this.name = options.name ?? 'message port'
    this.unref = options.unref ?? false
    this.stayAwake = options.stayAwake ?? null
    this.writer.sender = this.stayAwake?.word ?? 0
    this.postFramesMax = options.postFramesMax ?? POST_FRAMES_MAX
    this.postBytesMax = options.postBytesMax ?? POST_BYTES_MAX
    port.on('close', () => this.onPortClose())
    // A port that closed before this listener emits nothing any more; but it cannot keep a thread alive.
    port.ref()
    const isOpen = (port as RefPort).hasRef()
    port.unref()
    if (!isOpen) this.onPortClose()
  }

  get closed(): boolean {
    return this.reason !== null
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.receiver = receiver
    if (this.isClosed) {
      // The port closed before anything could be read from it; keep the promise that nothing is called inside `open`.
      setImmediate(() => this.deliverClose())
      return
    }
    this.port.on('messageerror', (error: Error) => this.onUnreadable(error))
    this.port.on('message', (post: Post) => this.onPost(post))
    if (this.unref) this.port.unref()
  }

  send(frame: Frame, _order?: FrameOrder, onFlushed?: OnFlushed | null): void {
    if (this.reason !== null) throw linkClosedError(this.name, this.reason)
    const { writer } = this
    writer.add(frame)
    if (onFlushed != null) this.flushes.add(onFlushed)
    if (writer.frames >= this.postFramesMax || writer.used >= this.postBytesMax) this.flush()
    else if (writer.frames === 1 && !this.isDelivering) this.endOfTurn.arm()
  }

  flush(): void {
    const { writer } = this
    if (writer.frames === 0 || this.isClosed) return
    this.stayAwake?.onSend(this.reader.sender)
    this.post(writer.take(), writer.transfer)
    this.flushes.run(true)
  }

  private post(post: Post, transfer: ArrayBuffer[] | null): void {
    if (transfer === null) {
      this.port.postMessage(post)
      return
    }
    try {
      this.port.postMessage(post, transfer)
    } catch (error) {
      // A buffer that cannot be moved (Node ≥ 21 says so for pool buffers and WebAssembly memories) is cloned, as views of it are. Nothing has left yet.
      if ((error as { name?: unknown }).name !== 'DataCloneError') throw error
      this.port.postMessage(post)
    }
  }

  poll(): number {
    if (this.receiver === null || this.isCloseDelivered) return 0
    let frames = this.deliverCurrent()
    while (this.reason?.by !== 'self') {
      const post = this.behind.shift() ?? this.receive()
      if (post === undefined) break
      this.reader.start(post)
      frames += this.deliverCurrent()
    }
    return frames
  }

  abandon(detail: string): void {
    if (this.reason !== null || this.isClosed) return
    // The peer's posts are all here by now.
    if (this.poll() > 0) this.receiver?.onTurnEnd()
    this.reason ??= { by: 'peer', detail }
    this.port.close()
  }

  close(): void {
    if (this.reason !== null) return
    this.flush()
    this.reason = CLOSED_BY_SELF
    this.reader.drop()
    this.behind.length = 0
    this.port.close()
  }

  private onPost(post: Post): void {
    // Node may still hand over what it had begun to deliver when the link was closed from here.
    if (this.reason !== null) return
    this.stayAwake?.onArrival()
    if (this.isRestDue) {
      this.behind.push(post)
      return
    }
    this.reader.start(post)
    this.isDelivering = true
    try {
      this.deliverCurrent()
      this.receiver?.onTurnEnd()
    } finally {
      this.isDelivering = false
      this.flush()
      this.stayAwake?.onRead()
    }
  }

  private receive(): Post | undefined {
    if (this.isClosed) return undefined
    try {
      return (receiveMessageOnPort(this.port) as { message: Post } | undefined)?.message
    } catch (error) {
      this.onUnreadable(error as Error)
      return undefined
    }
  }

  /** A receiver threw, and `deliverRest` will continue after the frame that it threw at. */
  private get isRestDue(): boolean {
    return this.reader.left > 0 || this.behind.length > 0
  }

  private deliverCurrent(): number {
    const { reader } = this
    const receiver = this.receiver as LinkReceiver
    let frames = 0
    try {
      while (reader.left > 0) {
        frames++
        receiver.onFrame(reader.next())
      }
    } finally {
      // The receiver's thread handles what the receiver throws; it still gets the frames after the one that it threw at.
      if (this.isRestDue) setImmediate(() => this.deliverRest())
    }
    return frames
  }

  private deliverRest(): void {
    if (this.isCloseDelivered) return
    if (this.poll() > 0) this.receiver?.onTurnEnd()
  }

  private onUnreadable(error: Error): void {
    if (this.reason !== null) return
    // Posts after the lost one would be delivered with a hole before them, so the link ends here.
    this.reason = { by: 'peer', detail: `a post could not be read: ${error.message}` }
    this.port.close()
  }

  private onPortClose(): void {
    // First thing, see Note [The end of a port].
    this.isClosed = true
    this.reason ??= CLOSED_BY_PEER
    this.flushes.run(false)
    this.deliverClose()
  }

  private deliverClose(): void {
    if (this.receiver === null || this.isCloseDelivered) return
    if (this.isRestDue) {
      // A receiver threw in the middle of a post: the rest of it is due first.
      setImmediate(() => this.deliverClose())
      return
    }
    this.isCloseDelivered = true
    this.receiver.onClose(this.reason as LinkClosed)
  }
}

/** A link over one end of a MessageChannel (or a worker's own port). The port belongs to the link from then on. */
export function messagePortLink(port: MessagePort, options: MessagePortLinkOptions = {}): Link {
  return new MessagePortLink(port, options)
}
