/**
 * A link between two threads of one process over a MessagePort: decides when posts leave and when they are delivered; `post.ts` below it
 * knows their bytes. Since a port can neither lose nor reorder, nothing is numbered or acknowledged here.
 *
 * What it costs is waking the other thread (5 to 40 µs, as the machine's mood is), so it saves wake-ups, not instructions: frames of one
 * turn leave in one post, and a message event delivers all posts that have arrived by then (`receiveMessageOnPort`, 0.45 µs a post
 * against 0.6 for an event of its own). `port.on('message')` costs 0.59 µs an event, `onmessage` and `addEventListener` 0.67; replacing
 * the hidden dispatch method saves 0.03 more and is not worth a dependency on Node's insides.
 *
 * Note [The end of a port]. Node puts the peer's close (also the end of its thread) behind everything that the peer has posted, and emits
 * `close` when it gets there, also if it was `receiveMessageOnPort` that got there. Between the two `receiveMessageOnPort` returns
 * undefined; called from inside a `close` listener it crashes the process (Node 20.20, the port's data is gone), so `isClosed` is set first thing there.
 */
import { strict as assert } from 'node:assert'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { EndOfTurn } from './end-of-turn.js'
import type { Frame, Link, LinkClosed, LinkReceiver } from './link.js'
import { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
import { GATHER_BYTES_MAX, PostReader, PostWriter } from './post.js'

export interface MessagePortLinkOptions {
  /** Appears in errors. */
  readonly name?: string
  /** Does not keep the thread alive while it is open; it does by default. */
  readonly unref?: boolean
  /** A post leaves before the end of the turn when it holds this many frames, so that the receiver works while the sender still does. */
  readonly postFramesMax?: number
  /** As `postFramesMax`, in bytes (without those of moved segments). */
  readonly postBytesMax?: number
}

/** See `apps/bench` for the figures behind the two limits; between 32 and 64 frames they are flat. */
const POST_FRAMES_MAX = 48
const POST_BYTES_MAX = 32 * 1024
/** Posts delivered in one message event; more wait for the next one, so that a flood does not starve timers and other ports. */
const POSTS_PER_TURN_MAX = 32

type Post = Uint8Array | readonly [Uint8Array, ...ArrayBuffer[]]

class MessagePortLink implements Link {
  readonly name: string
  private readonly port: MessagePort
  private readonly unref: boolean
  private readonly postFramesMax: number
  private readonly postBytesMax: number
  private readonly writer = new PostWriter()
  private readonly reader = new PostReader()
  private readonly endOfTurn = new EndOfTurn(() => this.flush())
  /** Posts that arrived while the one before was half read, which only a receiver that threw can cause. */
  private readonly behind: Post[] = []
  private receiver: LinkReceiver | null = null
  /** Set when the end is known, whoever caused it. */
  private reason: LinkClosed | null = null
  /** The port has emitted `close`: it must not be touched any more. */
  private isClosed = false
  private isCloseDelivered = false

  constructor(port: MessagePort, options: MessagePortLinkOptions) {
    this.port = port
    this.name = options.name ?? 'message port'
    this.unref = options.unref ?? false
    this.postFramesMax = options.postFramesMax ?? POST_FRAMES_MAX
    this.postBytesMax = options.postBytesMax ?? POST_BYTES_MAX
    port.on('close', () => this.onPortClose())
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

  send(frame: Frame): void {
    if (this.reason !== null) throw linkClosedError(this.name, this.reason)
    const { writer } = this
    writer.add(frame)
    if (writer.frames >= this.postFramesMax || writer.used >= this.postBytesMax) this.flush()
    else if (writer.frames === 1) this.endOfTurn.arm()
  }

  flush(): void {
    const { writer } = this
    if (writer.frames === 0 || this.isClosed) return
    const { moved } = writer
    const bytes = writer.take()
    const isLong = bytes.length > GATHER_BYTES_MAX
    if (moved.length === 0 && !isLong) {
      this.port.postMessage(bytes)
      return
    }
    const post = [bytes, ...moved]
    try {
      this.port.postMessage(post, isLong ? [bytes.buffer as ArrayBuffer, ...moved] : moved)
    } catch (error) {
      // A buffer that cannot be moved (Node ≥ 21 says so for pool buffers and WebAssembly memories) is cloned, as views of it are. Nothing has left yet.
      if ((error as { name?: unknown }).name !== 'DataCloneError') throw error
      this.port.postMessage(post)
    }
  }

  poll(): number {
    if (this.receiver === null || this.isCloseDelivered) return 0
    return this.deliver(Number.POSITIVE_INFINITY)
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
    if (this.reader.left > 0) this.behind.push(post)
    else this.start(post)
    this.deliver(POSTS_PER_TURN_MAX)
    this.receiver?.onTurnEnd()
  }

  /** Frames of the current post, then of those that have arrived, at most `postsMax`. */
  private deliver(postsMax: number): number {
    let frames = this.deliverCurrent()
    for (let posts = 1; posts < postsMax && this.reason?.by !== 'self'; posts++) {
      const post = this.behind.shift() ?? this.receive()
      if (post === undefined) break
      this.start(post)
      frames += this.deliverCurrent()
    }
    return frames
  }

  private receive(): Post | undefined {
    if (this.isClosed) return undefined
    return (receiveMessageOnPort(this.port) as { message: Post } | undefined)?.message
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
      // What a receiver throws is its thread's to handle; the frames behind the one that threw are delivered all the same.
      if (reader.left > 0) setImmediate(() => this.deliverRest())
    }
    return frames
  }

  private deliverRest(): void {
    if (this.isCloseDelivered) return
    if (this.deliver(POSTS_PER_TURN_MAX) > 0) this.receiver?.onTurnEnd()
  }

  private start(post: Post): void {
    if (ArrayBuffer.isView(post)) this.reader.start(post, [])
    else this.reader.start(post[0], post.slice(1) as ArrayBuffer[])
  }

  private onUnreadable(error: Error): void {
    if (this.reason !== null) return
    // What follows the lost post would be delivered with a hole in front of it, so the link ends here.
    this.reason = { by: 'peer', detail: `a post could not be read: ${error.message}` }
    this.port.close()
  }

  private onPortClose(): void {
    // First thing, see Note [The end of a port].
    this.isClosed = true
    this.reason ??= CLOSED_BY_PEER
    this.deliverClose()
  }

  private deliverClose(): void {
    if (this.receiver === null || this.isCloseDelivered) return
    if (this.reader.left > 0 || this.behind.length > 0) {
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
