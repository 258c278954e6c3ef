/**
 * The links of a simulated world: each is two directed channels. A channel with frames in it is a choice of the world. Frames of one
 * channel keep their order; the schedule decides when they arrive, one or several in a turn.
 *
 *      a: SimLink ──send──→ Channel a→b [f1 f2 f3 notice] ──the world chooses it──→ b: SimLink ─→ receiver
 *      a: SimLink ←──────── Channel b→a [      f1       ] ←──send────────────────── b: SimLink
 */
import assert from 'node:assert'
import { currentScope, type Scope } from '@postgrad/base/internal'
import type { Frame, FrameOrder, Link, LinkClosed, LinkReceiver, OnFlushed } from '@postgrad/transport'
import {
  CLOSED_BY_PEER,
  CLOSED_BY_SELF,
  EVERY_ORDER,
  FRAME_KEPT_BYTES,
  linkClosedError,
  NO_ORDER,
  staysBehind,
} from '@postgrad/transport/internal'
import { carry } from './carry.js'
import { Choice, type Choices } from './choices.js'
import type { Faults } from './faults.js'
import { FAULT_RULES, type StepObserver } from './observer.js'
import { Queue } from './queue.js'
import type { DrawKind } from './schedule.js'
import { hashBytes, type Trace } from './trace.js'
import type { TraceKind } from './trace-event.js'
import { callIn } from './virtual-time.js'

/** A channel carries these: frames, and the notice that ends it. */
type InFlight = Frame | Notice

/** A frame in a world where some overtake others. */
class Ordered implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]
  readonly order: FrameOrder
  /** When it arrives: how many that were sent before it. */
  overtook = 0

  constructor({ header, segments }: Frame, order: FrameOrder) {
    this.header = header
    this.segments = segments
    this.order = order
  }
}

/** A frame that a rule has put off or repeated: no rule is asked again. */
class Late implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]

  constructor({ header, segments }: Frame) {
    this.header = header
    this.segments = segments
  }
}

/** How many frames of a run ended in which way. sent + repeated = delivered + dropped + lost + putOff + the frames in flight. */
export interface FrameCounts {
  /** Frames that programs and sessions have sent. */
  sent: number
  /** Frames that were delivered to their receivers. */
  delivered: number
  /** Frames that fault rules dropped. */
  dropped: number
  /** Frames that fault rules added, as copies of others. */
  repeated: number
  /** Frames that were lost because a link or a worker ended. */
  lost: number
  /** Frames that fault rules have delayed, and that are not in flight again yet. */
  putOff: number
}

class Notice {
  readonly reason: LinkClosed

  constructor(reason: LinkClosed) {
    this.reason = reason
  }
}

/** The channels of a world share it. */
export interface LinkHost {
  readonly choices: Choices
  readonly trace: Trace
  readonly steps: number
  readonly nowMs: number
  /** Null: nothing happens to frames. */
  readonly faults: Faults | null
  readonly frames: FrameCounts
  readonly observer: StepObserver | null
  readonly overtaking: boolean
  /** Runs `fn` at a later virtual time; no crash prevents it. */
  later(delayMs: number, fn: () => void): void
  /** The worker crashes before the next step; with `restart` it comes back so many ms later. */
  doom(worker: string, restartMs: number | null): void
  /** Asked after a delivery and in a poll: whether the next frame, if there is one, has arrived by now. */
  hasArrived(channel: string, hasFrame: boolean): boolean
  draw(kind: DrawKind, label: string, count: number, chance?: number): number
}

/** Frames in flight from one worker to another; as a choice: the next of them, and those that arrive with it. */
class Channel extends Choice {
  readonly from: string
  readonly to: string
  readonly inFlight = new Queue<InFlight>()
  /** For each the step in which it was put there; kept for an observer. */
  private readonly causes: Queue<number> | null
  /** The step in which the receiver came. */
  private openedIn = 0
  /** The end that receives. */
  private readonly end: SimLink
  private readonly host: LinkHost
  /** Notifies the receiver of its own closing. */
  private ownEnd: OwnEnd | null = null
  /** Nothing enters any more: the receiver has closed or crashed, or the notice is in it. */
  sealed = false

  /** Null: nothing happens to its frames. */
  private readonly faults: Faults | null
  private readonly overtaking: boolean

  constructor(from: string, to: string, end: SimLink, host: LinkHost, faults: Faults | null, overtaking: boolean) {
    super(host.choices, `${from}→${to}`, to)
    this.from = from
    this.to = to
    this.end = end
    this.host = host
    this.faults = faults
    this.overtaking = overtaking
    this.causes = host.observer === null ? null : new Queue()
  }

  send(frame: Frame, order: FrameOrder): void {
    this.host.frames.sent++
    this.push(this.overtaking ? new Ordered(frame, order) : frame)
  }

  push(item: InFlight): void {
    this.host.observer?.put(this.label)
    if (this.sealed) {
      if (!(item instanceof Notice)) this.host.frames.lost++
      return
    }
    this.enter(item)
  }

  private enter(item: InFlight): void {
    if (item instanceof Notice) this.sealed = true
    this.inFlight.push(item)
    this.causes?.push(this.host.steps)
    this.update()
  }

  /**
   * The receiver has closed: drops the frames in flight, and everything to come but the notice. To an observer this counts as a put: a frame that had been
   * sent before the end might have arrived before it too.
   */
  clear(notice: LinkClosed | null): void {
    this.host.observer?.put(this.label)
    this.lose(0)
    this.sealed = true
    this.update()
    if (notice === null) this.ownEnd?.cancel()
    else this.ownEnd = new OwnEnd(this.host, this.label, this.end, notice)
  }

  /** The sender dies: a drawn number of its frames still arrives, then the notice. */
  cut(notice: LinkClosed): void {
    const { last } = this.inFlight
    // The receiver has closed, or was notified of the end already: nobody notices any of this.
    if (this.sealed && !(last instanceof Notice && last.reason.by === 'peer')) return
    this.lose(this.host.draw('cut', this.label, this.framesInFlight + 1))
    this.sealed = false
    this.push(new Notice(notice))
  }

  /** Keeps the first frames, and not the notice. */
  private lose(keep: number): void {
    this.host.frames.lost += this.framesInFlight - keep
    this.inFlight.truncate(keep)
    this.causes?.truncate(keep)
  }

  get framesInFlight(): number {
    return this.inFlight.length - (this.inFlight.last instanceof Notice ? 1 : 0)
  }

  /** Delivers one frame and those that arrive with it, then the turn ends; the notice has a step of its own. */
  override happen(): void {
    if (this.causes !== null) {
      this.host.observer!.cause(this.causes.first!)
      this.host.observer!.cause(this.openedIn)
    }
    callIn(this.end.scope as Scope, () => {
      const next = this.inFlight.first
      if (next instanceof Notice) {
        this.deliverNotice(next)
        return
      }
      this.deliverNext('frame')
      while (this.hasArrived) this.deliverNext('frame')
      this.end.receiver?.onTurnEnd()
    })
  }

  /** Delivers what has arrived; returns how many frames. */
  poll(): number {
    let frames = 0
    while (this.hasArrived) {
      this.deliverNext('poll')
      frames++
    }
    return frames
  }

  /** Only what has a receiver can be delivered. */
  update(): void {
    this.host.choices.set(this, this.inFlight.length > 0 && this.end.receiver !== null && !this.end.isPaused)
  }

  /** The receiver has come. */
  opened(): void {
    this.openedIn = this.host.steps
    this.update()
    this.ownEnd?.update()
  }

  private take(index = 0): InFlight {
    const item = this.inFlight.takeAt(index)!
    this.causes?.takeAt(index)
    this.update()
    return item
  }

  /** Takes the oldest frame, or one that may overtake all before it. A frame without an order is large, and overtakes nothing. */
  private takeFrame(): Frame {
    if (!this.overtaking) return this.take() as Frame
    const may = [0]
    let before: FrameOrder = (this.inFlight.first as Ordered).order
    for (let i = 1; i < this.framesInFlight; i++) {
      const { order } = this.inFlight.at(i) as Ordered
      if (order !== NO_ORDER && !staysBehind(order, before)) may.push(i)
      before |= order
    }
    const index = may.length === 1 ? 0 : may[this.host.draw('overtake', this.label, may.length)]!
    const frame = this.take(index) as Ordered
    frame.overtook = index
    return frame
  }

  private get hasArrived(): boolean {
    return this.host.hasArrived(this.label, this.hasFrame && !this.end.isPaused)
  }

  get hasFrame(): boolean {
    const next = this.inFlight.first
    return next !== undefined && !(next instanceof Notice)
  }

  /** The one place where a frame reaches its receiver, or meets a fault rule. */
  private deliverNext(kind: TraceKind): void {
    const { host } = this
    const frame = this.takeFrame()
    if (this.faults !== null && !(frame instanceof Late) && this.meetsFault(this.faults, frame)) return
    this.note(kind, frame)
    host.frames.delivered++
    this.end.receiver!.onFrame(frame)
  }

  /** Returns whether the frame is not to be delivered now. */
  private meetsFault(faults: Faults, frame: Frame): boolean {
    const { host } = this
    host.observer?.touch(FAULT_RULES)
    const verdict = faults.judge(
      this.from,
      this.to,
      frame,
      bytesOf(frame),
      host.nowMs,
      (chance) => host.draw('fault', this.label, 2, chance) === 1,
    )
    if (verdict === null) return false
    const { action, delayMs, worker } = verdict
    switch (action) {
      case 'duplicate':
        this.note('duplicate', frame)
        host.frames.repeated++
        this.pushLate(copyOf(frame), delayMs)
        return false
      case 'delay':
        this.note('delay', frame)
        this.pushLate(frame, delayMs)
        return true
      case 'drop':
      case 'crash':
      case 'restart':
        this.note('drop', frame)
        host.frames.dropped++
        if (action !== 'drop') host.doom(worker, action === 'restart' ? delayMs : null)
        return true
      default:
        return action satisfies never
    }
  }

  private pushLate(frame: Frame, delayMs: number): void {
    const late = new Late(frame)
    if (delayMs <= 0) {
      this.push(late)
      return
    }
    const { frames } = this.host
    frames.putOff++
    this.host.later(delayMs, () => {
      frames.putOff--
      this.push(late)
    })
  }

  private note(kind: TraceKind, frame: Frame): void {
    const { host } = this
    let hash = hashOf(0, frame.header)
    for (const segment of frame.segments) hash = hashOf(hash, segment)
    host.trace.add(host.steps, host.nowMs, kind, this.from, this.to, bytesOf(frame), hash, frame)
  }

  private deliverNotice({ reason }: Notice): void {
    const { host } = this
    this.take()
    host.trace.add(host.steps, host.nowMs, 'close', this.from, this.to, 0, 0)
    this.end.end(reason)
  }
}

/**
 * Notifies an end that it has closed itself. It is a choice of its own, since it does not wait for the frames in flight: closing made their arrival
 * impossible, which a search has to see.
 */
class OwnEnd extends Choice {
  private readonly host: LinkHost
  private readonly end: SimLink
  private readonly reason: LinkClosed
  private readonly cause: number
  private isOver = false

  constructor(host: LinkHost, channel: string, end: SimLink, reason: LinkClosed) {
    super(host.choices, `${channel} closed`, end.worker)
    this.host = host
    this.end = end
    this.reason = reason
    this.cause = host.steps
    this.update()
  }

  update(): void {
    this.host.choices.set(this, !this.isOver && this.end.receiver !== null)
  }

  cancel(): void {
    this.isOver = true
    this.update()
  }

  override happen(): void {
    const { host, end } = this
    this.cancel()
    host.observer?.cause(this.cause)
    callIn(end.scope as Scope, () => {
      host.trace.add(host.steps, host.nowMs, 'close', end.worker, '', 0, 0)
      end.end(this.reason)
    })
  }
}

function bytesOf({ header, segments }: Frame): number {
  return segments.reduce((size, segment) => size + segment.length, header.length)
}

function copyOf({ header, segments }: Frame): Frame {
  return { header: header.slice(), segments: segments.map((segment) => segment.slice()) }
}

function hashOf(seed: number, bytes: Uint8Array): number {
  return hashBytes(seed, bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export class SimLink implements Link {
  readonly worker: string
  readonly peer: string
  receiver: LinkReceiver | null = null
  /** See `Link.setPaused`. Frames in flight stay there. */
  isPaused = false
  /** The scope in which the link was opened; its receiver is called in it, as a port's listener is. */
  scope: Scope | null = null
  private readonly host: LinkHost
  private reason: LinkClosed | null = null
  private crashed = false
  private inbound: Channel | null = null
  private outbound: Channel | null = null

  constructor(worker: string, peer: string, host: LinkHost) {
    this.worker = worker
    this.peer = peer
    this.host = host
  }

  join(inbound: Channel, outbound: Channel): void {
    this.inbound = inbound
    this.outbound = outbound
  }

  get closed(): boolean {
    return this.reason !== null
  }

  /** On their way to this end. */
  get framesInFlight(): number {
    return this.inbound!.framesInFlight
  }

  /** Whether this end was not opened though frames have come. */
  get framesWaitForOpen(): boolean {
    return this.receiver === null && !this.crashed && this.inbound!.hasFrame
  }

  open(receiver: LinkReceiver): void {
    assert(this.receiver === null, 'a link is opened once')
    this.scope = currentScope()
    if (this.crashed) return
    this.receiver = receiver
    this.host.observer?.touch(this.worker)
    this.inbound!.opened()
  }

  send(frame: Frame, order = EVERY_ORDER, onFlushed: OnFlushed | null = null): void {
    // A dead worker's code may still be running to its next await; nothing of what it does is seen.
    if (this.crashed) return
    this.host.observer?.touch(this.worker)
    if (this.reason !== null) throw linkClosedError(`${this.worker}→${this.peer}`, this.reason)
    this.outbound!.send(carry(frame), order)
    onFlushed?.(true)
  }

  /** Nothing to do: a frame is in flight from `send` on, and when it arrives is up to the schedule. */
  flush(): void {}

  poll(): number {
    this.host.observer?.touch(this.worker)
    return this.receiver === null || this.reason?.by === 'self' ? 0 : this.inbound!.poll()
  }

  setPaused(isPaused: boolean): void {
    if (this.reason !== null || this.crashed) return
    this.host.observer?.touch(this.worker)
    this.isPaused = isPaused
    this.inbound!.update()
  }

  get unreadBytes(): number {
    return this.outbound!.framesInFlight * FRAME_KEPT_BYTES
  }

  close(): void {
    this.finish(CLOSED_BY_SELF)
  }

  abandon(detail: string): void {
    this.finish({ by: 'peer', detail })
  }

  private finish(reason: LinkClosed): void {
    if (this.reason !== null) return
    this.host.observer?.touch(this.worker)
    this.isPaused = false
    this.reason = reason
    this.outbound!.push(new Notice(CLOSED_BY_PEER))
    this.inbound!.clear(reason)
  }

  /** The world ends this end's worker: its peer sees a drawn part of what it sent, then the end; itself sees nothing any more. */
  crash(detail: string): void {
    this.crashed = true
    this.reason = { by: 'self', detail }
    this.receiver = null
    this.inbound!.clear(null)
    this.outbound!.cut({ by: 'peer', detail })
  }

  /** The receiver's last notification. */
  end(notice: LinkClosed): void {
    this.reason ??= notice
    this.receiver?.onClose(notice)
  }
}

/** Two ends of a link between two workers: the first is `a`'s. */
export function simLinkPair(
  a: string,
  b: string,
  host: LinkHost,
  faults = host.faults,
  overtaking = host.overtaking && faults === null,
): [SimLink, SimLink] {
  const atA = new SimLink(a, b, host)
  const atB = new SimLink(b, a, host)
  const there = new Channel(a, b, atB, host, faults, overtaking)
  const back = new Channel(b, a, atA, host, faults, overtaking)
  atA.join(back, there)
  atB.join(there, back)
  return [atA, atB]
}
