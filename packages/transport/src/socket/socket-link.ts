/**
 * A link over one connected socket, TCP, TLS or Unix: decides when chunks leave and when frames are delivered, and judges by heartbeats
 * whether the other end lives. `chunk-writer.ts` and `chunk-reader.ts` write and read the bytes. A socket neither loses nor reorders while it
 * lasts, so nothing is acknowledged here; `Session`, above it, survives that it breaks.
 *
 * Note [The end of a socket]. An end that closes sends BYE after all frames, then FIN, and continues to read until the other end's FIN: a
 * socket that is closed with unread bytes sends RST, and the peer's kernel may throw away bytes that it has not read yet. A connection that
 * ends without BYE was cut, and is reported so: a kernel sends only FIN for a process that was killed.
 *
 * Note [Quiet is counted in ticks]. A thread that computed for a minute, or a process that was stopped, has received nothing in that time
 * because it did not look. So the link counts not time but heartbeat ticks of this thread before which nothing arrived.
 *
 * Note [Reading goes first]. Node destroys a socket at the first write that fails, and unread bytes that have arrived there are lost. So a thread that
 * has not looked for a while, since it computed or slept, first reads and then writes: it receives the last frames of a peer that died. Two turns
 * later one whole phase of reading has passed, wherever in a turn of the loop it began. A burst leaves in its own turn (`EARLY_BYTES`), as long as that is short.
 */
import { strict as assert } from 'node:assert'
import type { Socket } from 'node:net'
import { Allowance } from '../allowance.js'
import type { Clock, Timer } from '../clock.js'
import { EndOfTurn } from '../end-of-turn.js'
import type { FrameRoom } from '../frame-room.js'
import type { Frame, FrameOrder, Link, LinkClosed, LinkReceiver, OnFlushed } from '../link.js'
import { CLOSED_BY_SELF, linkClosedError } from '../link-errors.js'
import type { StayAwake } from '../stay-awake.js'
import { BYE_BYTES_MAX, Bye, ChunkType, chunkInvalid } from './chunk.js'
import { ChunkReader, ControlChunk, type Place } from './chunk-reader.js'
import { ChunkWriter } from './chunk-writer.js'
import { NODE_READ_BYTES, READ_BYTES, type ReadBuffer, type Reads } from './read-buffer.js'
import { SOCKET_LIMITS, type SocketLimits } from './socket-limits.js'

/** The socket was looked at less than this ago, ms: little has arrived since, and hardly ever a peer's last frame. */
const LOOKED_MS = 1
/**
 * So many bytes of small frames do not wait for the end of the turn: the other end begins while this one continues. That made 200,000 calls a second of 150,000
 * when each turn sends a thousand. Nothing is read within a turn, so the last look may be longer ago.
 */
const EARLY_BYTES = 4096
const EARLY_LOOKED_MS = 5

/** A peer may send so many chunks and frames that bring nothing at once, and then so many a second. Twice the window of a session, which is sent again when a connection has broken. */
const IDLE_MAX = 2048
const IDLE_PER_SECOND = 1000
/** Beyond, nothing is read for so long. */
const REST_MS = 100

/** How a link behaves once its other end is known. */
export interface Admission {
  /** Frames are only lent to the link: it takes no buffer away and copies none, and they stay as they are until it is closed. So `close` drops all that has not left. */
  readonly isLent?: boolean
  /** False: the bytes of large frames are sent without a checksum, as TLS or the kernel guards them. Default true. */
  readonly checksBytes?: boolean
  /** Only one kernel is between the two ends, and it reports the end of each: a quiet end is stopped, not dead. */
  readonly isOfMachine?: boolean
  /** For large frames that come. Default: as much as each needs. */
  readonly room?: FrameRoom | null
}

export interface SocketLinkOptions extends Admission {
  readonly clock: Clock
  readonly limits?: SocketLimits
  /** Appears in errors: who is at the other end. */
  readonly name?: string
  /** Where large segments are read to. Default: fresh memory. */
  readonly place?: Place | undefined
  /** The buffer of plain sockets. Default: a buffer for each read. */
  readonly reads?: Pick<ReadBuffer, 'take'> | undefined
  /** This thread's, called when frames leave or arrive. Default: it sleeps in between. */
  readonly stayAwake?: StayAwake | undefined
  /** False: the other end is not known yet, and nothing but a handshake is taken before `admit`, which then has the `Admission`. Default true. */
  readonly isAdmitted?: boolean
  /** Chunks of the handshake and of a session's connections. If it throws, the link ends. */
  readonly onControl?: (type: ChunkType, body: Buffer) => void
  /** Once, at once when the end is known, before the receiver's `onClose`. */
  readonly onEnd?: (end: SocketEnd) => void
  /** Nothing was received for `suspectMs`; and false when something was again. */
  readonly onSuspected?: (isSuspected: boolean) => void
}

export interface SocketEnd extends LinkClosed {
  /** The other end's BYE; null if there was none, or this end closed. */
  readonly bye: Bye | null
  /** Nothing was received for `deadMs`. */
  readonly isDead: boolean
  /** This end could not read a chunk. */
  readonly isUnreadable: boolean
  /** Of the socket, or of the unreadable chunk. */
  readonly error: unknown
}

export class SocketLink implements Link {
  name: string
  private readonly socket: Socket
  private readonly clock: Clock
  private readonly limits: SocketLimits
  private readonly writer: ChunkWriter
  private readonly reader: ChunkReader
  private readonly endOfTurn = new EndOfTurn(() => this.flush())
  private onControl: (type: ChunkType, body: Buffer) => void
  private onEnd: (end: SocketEnd) => void
  private onSuspected: (isSuspected: boolean) => void
  private readonly stayAwake: StayAwake | null
  private isAdmitted: boolean
  /** See `Admission`. */
  isOfMachine = false
  /** A read of less has left nothing in the socket. */
  private readonly readBytes: number
  private receiver: LinkReceiver | null = null
  private reason: LinkClosed | null = null
  /** A frame that came before `open`. Nothing after it is read. */
  private held: Frame | null = null
  /** The BYE to send after all frames are written. */
  private byeDue: { readonly bye: Bye; readonly detail: string } | null = null
  private isByeSaid = false
  private isSocketClosed = false
  private isCloseScheduled = false
  private isCloseDelivered = false
  private isDelivering = false
  /** See `setPaused`. */
  private isPaused = false
  private room: FrameRoom | null = null
  private readonly idling: Allowance
  /** Runs while too much has brought nothing. */
  private rest: Timer | null = null
  /** A receiver threw, and `deliverRest` will continue after the frame that it threw at. */
  private isRestDue = false
  /** A frame is to leave, whose answer may be near. */
  private isFrameDue = false
  private isPongDue = false
  private isPingDue = false
  private lookedMs = Number.NEGATIVE_INFINITY
  private isLooking = false
  private hasSent = false
  private hasReceived = false
  private quietTicks = 0
  private isSuspected = false
  private beat: Timer | null = null
  private linger: Timer | null = null

  /** The socket is connected, and belongs to the link from then on. */
  constructor(socket: Socket, options: SocketLinkOptions) {
    this.socket = socket
    this.clock = options.clock
    this.idling = new Allowance(this.clock, IDLE_MAX, IDLE_PER_SECOND)
    this.limits = options.limits ?? SOCKET_LIMITS
    this.name = options.name ?? 'socket'
    this.writer = new ChunkWriter(socket, this.limits)
    this.reader = new ChunkReader(this.limits, options.place)
    this.onControl = options.onControl ?? refuseControl
    this.onEnd = options.onEnd ?? (() => {})
    this.onSuspected = options.onSuspected ?? (() => {})
    this.stayAwake = options.stayAwake ?? null
    this.isAdmitted = false
    // A small frame is worth nothing late.
    socket.setNoDelay(true)
    const reads: Reads = {
      onBytes: (bytes) => this.onLent(bytes),
      nextPlace: () => (this.isRestDue || this.held !== null || this.isStill ? null : this.reader.nextPlace()),
      onPlaced: (bytes, isAll) => this.onPlaced(bytes, isAll),
    }
    const isLent = options.reads?.take(socket, reads) === true
    this.readBytes = isLent ? READ_BYTES : NODE_READ_BYTES
    if (!isLent) socket.on('data', (bytes: Buffer) => this.onData(bytes))
    socket.on('drain', () => this.pump())
    socket.on('end', () => this.fail('the connection ended without a goodbye: its process has ended, or something on the way has cut it'))
    socket.on('error', (error: NodeJS.ErrnoException) => this.fail(`the connection broke (${error.code ?? error.message})`, { error }))
    socket.on('close', () => this.onSocketClose())
    if (options.isAdmitted ?? true) this.admit(options)
  }

  get closed(): boolean {
    return this.reason !== null
  }

  /** Bytes that wait here, in front of the socket. */
  get queuedBytes(): number {
    return this.writer.queuedBytes
  }

  /** Takes the place of the hooks that the constructor was given. */
  hook(hooks: Pick<SocketLinkOptions, 'onControl' | 'onEnd' | 'onSuspected'>): void {
    this.onControl = hooks.onControl ?? refuseControl
    this.onEnd = hooks.onEnd ?? (() => {})
    this.onSuspected = hooks.onSuspected ?? (() => {})
  }

  /** The other end is known: frames are taken from now on, and heartbeats begin. */
  admit({ isLent = false, checksBytes = true, isOfMachine = false, room = null }: Admission): void {
    if (this.isAdmitted || this.reason !== null) return
    this.room = room
    if (room !== null) room.onFree = () => this.deliverRest()
    this.isAdmitted = true
    this.isOfMachine = isOfMachine
    this.writer.isLent = isLent
    this.writer.checksBytes = checksBytes
    this.reader.admit(room)
    this.beat = this.clock.setTimer(this.limits.heartbeatMs, this.onBeat)
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.receiver = receiver
    this.clock.defer(() => this.deliverRest())
  }

  /** @throws LINK_CLOSED, FRAME_TOO_LARGE; the frame is then still the caller's */
  send(frame: Frame, order?: FrameOrder, onFlushed?: OnFlushed | null): void {
    if (this.reason !== null) throw linkClosedError(this.name, this.reason)
    const { writer } = this
    // The session that lends frames bounds them.
    if (writer.queuedBytes > this.limits.queuedBytesMax && !writer.isLent) {
      this.fail(`the other end has left ${writer.queuedBytes} bytes unread, and the limit is ${this.limits.queuedBytesMax}`)
      throw linkClosedError(this.name, this.reason as unknown as LinkClosed)
    }
    writer.add(frame, order, onFlushed)
    this.isFrameDue = true
    if (writer.gatheredBytes >= EARLY_BYTES && this.clock.now() - this.lookedMs < EARLY_LOOKED_MS) this.write()
    else if (!this.isDelivering) this.endOfTurn.arm()
  }

  /** A chunk of stream 0, ahead of the frames that wait. */
  control(type: ChunkType, body: Uint8Array): void {
    if (this.reason !== null || this.isSocketClosed) return
    this.hasSent = true
    this.writer.control(type, body)
  }

  flush(): void {
    this.pump()
  }

  /** Delivers frames that were read from the socket; only the event loop reads from it. */
  poll(): number {
    if (this.receiver === null || this.isCloseDelivered || this.reason?.by === 'self') return 0
    return this.deliver()
  }

  setPaused(isPaused: boolean): void {
    if (this.reason !== null || this.isPaused === isPaused) return
    this.isPaused = isPaused
    if (isPaused) this.socket.pause()
    else this.clock.defer(() => this.deliverRest())
  }

  abandon(detail: string): void {
    if (this.reason === null) this.fail(detail)
  }

  idle(): void {
    if (this.idling.spend() === 0 || this.rest !== null || this.reason !== null) return
    this.socket.pause()
    this.rest = this.clock.setTimer(REST_MS, () => {
      this.rest = null
      this.deliverRest()
    })
  }

  /** `bye` and `detail` are for the other end. */
  close(bye: Bye = Bye.CLOSED, detail = ''): void {
    if (this.reason !== null) return
    this.byeDue = { bye, detail }
    this.end(CLOSED_BY_SELF)
    this.reader.drop()
    this.held = null
    const { writer } = this
    // The owner may overwrite lent frames from now on, and the other end must not get the new bytes.
    if (writer.isLent) writer.drop()
    if (writer.isLentOut) {
      this.socket.destroy()
      return
    }
    // Later bytes are read and dropped, see Note [The end of a socket].
    this.socket.resume()
    this.pump()
  }

  /** As `close`, but drops all that has not left. */
  abort(bye: Bye, detail = ''): void {
    if (this.reason !== null) return
    this.writer.drop()
    this.close(bye, detail)
  }

  /** Ends the link here and now, as if the connection had broken. It sends nothing to the other end. */
  fail(detail: string, end: Partial<SocketEnd> = {}): void {
    this.byeDue = null
    this.writer.drop()
    this.end({ by: 'peer', detail }, end)
    this.socket.destroy()
  }

  // --- writing

  private pump(): void {
    if (this.isByeSaid || this.isSocketClosed) return
    // An end that has closed does not read any more.
    if (this.byeDue !== null || this.hasLooked()) this.write()
  }

  private write(): void {
    const { writer } = this
    this.writePings()
    if (writer.flush()) {
      this.hasSent = true
      if (this.isFrameDue) this.stayAwake?.onSend(0)
      this.isFrameDue = false
    }
    if (this.byeDue !== null && !writer.isWaiting) this.sayBye(this.byeDue.bye, this.byeDue.detail)
  }

  /** False: it is pumped again when it has, see Note [Reading goes first]. */
  private hasLooked(): boolean {
    const { clock } = this
    if (clock.now() - this.lookedMs < LOOKED_MS) return true
    if (!this.isLooking) {
      this.isLooking = true
      clock.defer(() => clock.defer(this.onLooked))
    }
    return false
  }

  private readonly onLooked = (): void => {
    this.isLooking = false
    this.lookedMs = this.clock.now()
    this.pump()
  }

  /** An answer never goes beyond what the other end takes: it could let us hoard answers else. */
  private writePings(): void {
    if (this.isPingDue && !this.hasSent) this.control(ChunkType.PING, NO_BODY)
    if (this.isPongDue && this.socket.writableLength < this.limits.handedBytesMax) this.control(ChunkType.PONG, NO_BODY)
    this.isPingDue = this.isPongDue = false
  }

  private sayBye(bye: Bye, detail: string): void {
    this.isByeSaid = true
    const sentence = Buffer.from(detail).subarray(0, BYE_BYTES_MAX - 1)
    this.writer.control(ChunkType.BYE, Buffer.concat([Buffer.from([bye]), sentence]))
    this.socket.end()
    this.linger ??= this.clock.setTimer(this.limits.lingerMs, () => this.socket.destroy())
  }

  // --- reading

  /** The bytes are another's when this returns, however it does. */
  private onLent(bytes: Buffer): void {
    try {
      this.onData(bytes)
    } finally {
      this.reader.keep()
    }
  }

  /** Bytes of the frame that is coming lie where they belong. @param isAll as many as there was place for */
  private onPlaced(bytes: number, isAll: boolean): void {
    this.hasReceived = true
    if (this.reason !== null) return
    this.looked(isAll)
    this.reader.placed(bytes)
    if (isAll) this.onRead()
  }

  /** @param isMore there may be more to read */
  private looked(isMore: boolean): void {
    const nowMs = this.clock.now()
    if (!isMore || nowMs - this.lookedMs < LOOKED_MS) this.lookedMs = nowMs
  }

  private onData(bytes: Buffer): void {
    this.hasReceived = true
    if (this.reason !== null) return
    this.looked(bytes.length >= this.readBytes)
    const { reader } = this
    reader.push(bytes)
    if (!this.isAdmitted && reader.bytesPushed > this.limits.handshakeBytesMax) {
      this.fail(`more than ${this.limits.handshakeBytesMax} bytes came before it was known who sends them`)
      return
    }
    this.onRead()
  }

  private onRead(): void {
    if (this.isRestDue) return
    this.stayAwake?.onArrival()
    this.isDelivering = true
    let frames = 0
    try {
      frames = this.deliver()
      if (frames > 0) this.receiver?.onTurnEnd()
    } finally {
      this.isDelivering = false
      this.pump()
      if (frames > 0) this.stayAwake?.onRead()
    }
  }

  private deliver(): number {
    let frames = 0
    let isThrown = true
    try {
      for (;;) {
        const got = this.isPaused || this.rest !== null ? null : this.next()
        if (got === null) {
          if (this.reader.isWaiting) this.socket.pause()
          break
        }
        if (this.receiver === null) {
          this.held = got
          this.socket.pause()
          break
        }
        frames++
        this.receiver.onFrame(got)
      }
      isThrown = false
    } finally {
      if (isThrown) {
        // The receiver's thread handles what the receiver throws; it still gets the frames after the one that it threw at.
        this.isRestDue = true
        this.clock.defer(() => this.deliverRest())
      }
    }
    return frames
  }

  /** The next frame. Handles the control chunks before it. */
  private next(): Frame | null {
    const { held } = this
    if (held !== null) {
      if (this.receiver === null) return null
      this.held = null
      return held
    }
    try {
      while (this.rest === null) {
        const got = this.reader.next()
        if (!(got instanceof ControlChunk)) return got
        this.onControlChunk(got)
      }
      return null
    } catch (error) {
      this.reader.drop()
      this.fail((error as Error).message, { error, isUnreadable: true })
      return null
    }
  }

  private onControlChunk({ type, body }: ControlChunk): void {
    if (type === ChunkType.PING || type === ChunkType.PONG) this.idle()
    if (type === ChunkType.PING) this.isPongDue = true
    else if (type === ChunkType.BYE) this.onBye(body)
    else if (type !== ChunkType.PONG) this.onControl(type, body)
  }

  private onBye(body: Buffer): void {
    const bye = body[0]
    if (bye !== Bye.CLOSED && bye !== Bye.REPLACED && bye !== Bye.STRANGER) throw chunkInvalid(`goodbye ${bye}`, 'a known reason')
    const sentence = body.toString('utf8', 1)
    this.reader.drop()
    this.writer.drop()
    this.end({ by: 'peer', detail: `the other end has closed the link${sentence === '' ? '' : `: ${sentence}`}` }, { bye })
    this.byeDue = null
    this.isByeSaid = true
    this.socket.end()
    this.linger ??= this.clock.setTimer(this.limits.lingerMs, () => this.socket.destroy())
  }

  /** For frames from before `open` or after a throw. */
  private deliverRest(): void {
    this.isRestDue = false
    if (this.isCloseDelivered) return
    if (this.poll() > 0) this.receiver?.onTurnEnd()
    this.pump()
    if (this.reason !== null) this.scheduleClose()
    else if (!this.isStill) this.socket.resume()
  }

  /** Nothing is read, and that is this end's doing. */
  private get isStill(): boolean {
    return this.isPaused || this.rest !== null || this.reader.isWaiting
  }

  // --- the other end's health

  private readonly onBeat = (): void => {
    this.beat = null
    if (this.isSocketClosed) return
    const { heartbeatMs, suspectMs, deadMs } = this.limits
    // While this end does not read, silence means nothing.
    if (this.hasReceived || this.held !== null || this.isStill) {
      this.quietTicks = 0
      if (this.isSuspected) this.onSuspected(false)
      this.isSuspected = false
    } else {
      this.quietTicks++
    }
    this.hasReceived = false
    const quietMs = this.quietTicks * heartbeatMs
    if (quietMs >= deadMs && !this.isOfMachine) {
      this.fail(`nothing came from the other end for ${deadMs} ms: it has stopped, its machine is gone, or the way to it is cut`, {
        isDead: true,
      })
      return
    }
    if (quietMs >= suspectMs && !this.isSuspected) {
      this.isSuspected = true
      this.onSuspected(true)
    }
    this.isPingDue = !this.hasSent
    this.hasSent = false
    if (this.isPingDue) this.pump()
    this.beat = this.clock.setTimer(heartbeatMs, this.onBeat)
  }

  // --- ends

  private end(reason: LinkClosed, { bye = null, error = null, isDead = false, isUnreadable = false }: Partial<SocketEnd> = {}): void {
    if (this.reason !== null) return
    this.reason = reason
    if (this.isPaused || this.rest !== null) {
      // Frames already read come before the end.
      this.isPaused = false
      this.rest?.cancel()
      this.rest = null
      this.isRestDue = reason.by === 'peer' && this.receiver !== null
      if (this.isRestDue) this.clock.defer(() => this.deliverRest())
    }
    this.scheduleClose()
    this.onEnd({ ...reason, bye, error, isDead, isUnreadable })
  }

  private onSocketClose(): void {
    this.isSocketClosed = true
    this.room?.close()
    this.writer.drop()
    this.beat?.cancel()
    this.linger?.cancel()
    this.end({ by: 'peer', detail: 'the connection was closed' })
  }

  private scheduleClose(): void {
    if (this.isCloseScheduled || this.receiver === null) return
    this.isCloseScheduled = true
    this.clock.defer(() => this.deliverClose())
  }

  private deliverClose(): void {
    this.isCloseScheduled = false
    // A receiver threw in the middle: the rest is due first.
    if (this.isRestDue || this.isCloseDelivered) return
    this.isCloseDelivered = true
    this.receiver?.onClose(this.reason as LinkClosed)
  }
}

const NO_BODY = new Uint8Array(0)

const refuseControl = (type: ChunkType): void => {
  throw chunkInvalid(`type ${type}`, 'frames')
}
