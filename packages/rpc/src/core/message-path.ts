/**
 * The path of every message of a worker: prepared, intercepted, encoded, sent; received, decoded, put into the mailbox, and, when it has its turn,
 * given to the one handler of its type. `requests.ts` pairs requests with their replies; this file uses the codec, the links and the pump.
 *
 *   prepare → intercept → send ─ link ─→ receive → mailbox → deliver → handler
 *
 * Note [What counts when]. Nothing is noted of a message before it can be sent, so a refusal in `prepare` or `send` leaves no trace. At the receiver it
 * counts in the order of arrival (credits, blocks, lineage, the table of calls), whatever becomes of it; its references count when it has its turn.
 */

import { types } from 'node:util'
import type { DeadLetterReason, Pump } from '@postgrad/actor/internal'
import { isPostgradError, type PostgradError, type WorkerId } from '@postgrad/base'
import { currentScope, Lane, type MessageLane, plainText, type Scope } from '@postgrad/base/internal'
import { outsideOfScopes } from '@postgrad/tensor/internal'
import type { Clock, Frame, FrameOrder, OnFlushed } from '@postgrad/transport'
import { EVERY_ORDER } from '@postgrad/transport/internal'
import {
  Codec,
  MESSAGE_TABLE,
  type Message,
  MessageType,
  type OutgoingMessage,
  passHead,
  requestHead,
  SentFailure,
  type ValueExtension,
} from '@postgrad/wire/internal'
import { functionOf } from '../common/built-in-names.js'
import { drainingError, shutDownError } from '../common/rpc-errors.js'
import type { WorkerInfo } from '../common/worker-info.js'
import { mailboxFull } from './call-credits.js'
import { type Gate, type Handler, type Interceptor, NOT_NUMBERED, type Observer, type ReferenceHooks } from './hooks.js'
import { type Incoming, IncomingCall, IncomingMessage, type Runnable, type Taker, Unreadable } from './incoming-call.js'
import type { Inflow } from './inflow.js'
import { isLargeFrame, orderOf } from './message-order.js'
import type { LateMessage, Outbox } from './outbox.js'
import { type CodecEnv, type Peer, Standing } from './peer.js'
import { bytesOf, isCall } from './peer-ledger.js'
import type { Peers } from './peers.js'
import type { Activity } from './pending-calls.js'
import { Progress } from './progress.js'

/** Envelope fields of a one-way message; see `Message`. */
export interface Envelope {
  readonly context?: bigint | null
  readonly autogradId?: bigint | null
  readonly pass?: bigint | null
  readonly lineage?: readonly number[] | null
}

/** The state that the parts of the core share: the worker's info, its peers, and whether it still runs. */
export interface CoreHost {
  readonly info: WorkerInfo
  readonly clock: Clock
  readonly pump: Pump<Runnable>
  readonly peers: Peers
  readonly activity: Activity
  /** Null while nobody looks. */
  readonly observer: Observer | null
  /** Calls of other workers are refused: what waits is served, then this worker closes. */
  readonly isDraining: boolean
  readonly isClosed: boolean
  /** The peer with this id, unless it is unknown, dead or closed, or this worker is. */
  reachable(id: WorkerId): Peer | undefined
  /** A dead letter; null: it arose here. */
  letter(reason: DeadLetterReason, what: string, from: WorkerInfo | null): void
  /** A message of this worker came to nothing. */
  idle(id: WorkerId): void
  /** A message of this worker was refused. */
  refused(id: WorkerId): void
  onHandlerError(error: unknown): void
  readonly options: { readonly remoteStacks?: boolean | undefined }
}

const NO_REFERENCES: ReferenceHooks = {
  subjectOf: () => null,
  sent: () => {},
  numbered: () => {},
  accept: () => null,
  isShared: () => false,
  discard: () => {},
  decline: () => {},
  isHeld: () => false,
  areHeld: () => true,
  forgetSubject: () => {},
}

export class MessagePath implements Taker {
  readonly codec: Codec
  readonly progress: Progress
  readonly interceptors: Interceptor[] = []
  references = NO_REFERENCES
  /** Null: every linked worker may do everything. */
  gate: Gate | null = null
  private readonly host: CoreHost
  private readonly extensions: ValueExtension[] = []
  private readonly handlers = new Map<MessageType, Handler>()
  private readonly callHandlers = new Map<MessageType, (call: IncomingCall) => void>()
  private readonly unreadableHandlers = new Map<MessageType, (unreadable: Unreadable) => void>()
  private readonly refusedHandlers = new Map<MessageType, (message: Message, from: WorkerInfo, error: PostgradError) => void>()

  constructor(host: CoreHost) {
    this.host = host
    this.codec = new Codec({
      extensions: this.extensions,
      remoteStacks: host.options.remoteStacks ?? true,
      deviceOf: (device, env) => (env as CodecEnv).devices.at(device),
    })
    this.progress = new Progress(host.clock, this)
    this.handle(MessageType.PROGRESS, ({ body }, _from, { peer }) => this.progress.onProgress(peer, body))
    this.handle(MessageType.DEVICE_MAP, ({ body }, _from, { peer }) => peer.env.devices.setInverse(body[0] as [string, string][]))
  }

  /** Allows one more kind of values in messages. */
  carry(extension: ValueExtension): void {
    this.extensions.push(extension)
  }

  // --- sending: prepare, intercept, send, without a turn in between

  /**
   * Looks for what can never be sent before anything is noted of the message.
   * @throws RPC_SHUT_DOWN, WORKER_DIED, MAILBOX_FULL, and what `Codec.prepare` throws
   */
  prepare(peer: Peer, type: MessageType, body: readonly unknown[], op: string): OutgoingMessage {
    this.checkOpen(peer, op)
    if (peer.standing === Standing.closed && SERVED.has(type)) throw this.host.peers.diedError(peer, op)
    const account = peer.ledger.outgoingOf(type)
    if (account?.isFull) {
      this.host.observer?.noCredit('mailbox-full', peer.info.name, op, account)
      throw mailboxFull(op, peer.info, account)
    }
    const { env } = peer
    env.sending = null
    const out = this.codec.prepare(type, body, env)
    // Noted with the message itself: an interceptor may send others to this peer before that.
    if (env.sending !== null) out.note = env.sending
    return out
  }

  /** @throws RPC_SHUT_DOWN, WORKER_DIED */
  checkOpen(peer: Peer, op: string): void {
    const { isClosed, info, peers } = this.host
    if (isClosed) throw shutDownError(op, info)
    if (peer.link?.closed) throw peers.diedError(peer, op)
  }

  /** Runs the interceptors over a message that is about to be sent. `scope` is the current one. */
  intercept(out: OutgoingMessage, peer: Peer, scope: Scope): void {
    for (const interceptor of this.interceptors) interceptor.outgoing?.(out, peer.info, scope)
  }

  /** It is not sent after all. */
  unsent(out: OutgoingMessage): void {
    for (const interceptor of this.interceptors) interceptor.unsent?.(out)
  }

  /** @throws WIRE_TOO_LARGE, and what the link refuses it with */
  send(peer: Peer, out: OutgoingMessage, onFlushed: OnFlushed | null = null): void {
    const { link, env, ledger, outbox } = peer
    const { observer, activity } = this.host
    const outer = ledger.onWriting()
    try {
      const frame = this.codec.encode(out, env, ledger.transport ?? undefined)
      if (this.mustWait(outbox, out, frame)) {
        this.place(peer, out, frame, onFlushed)
        return
      }
      const bytes = bytesOf(frame)
      // First: what the link refuses, since no peer would take so much, the peer will not count either.
      if (link !== null) link.send(frame, link.neverOvertakes === true ? EVERY_ORDER : orderOf(out, frame), onFlushed)
      if (observer !== null) observer.sent(peer.info.name, out)
      const number = ledger.onSent(out.type, bytes)
      if (out.note !== null) this.references.sent(out.note as readonly unknown[], peer.info, number)
      if (link === null) this.sendSelf(peer, frame, onFlushed)
      if (out.type !== MessageType.GROUP_UPDATE) activity.changed()
    } catch (error) {
      ledger.onUnsent()
      this.unsent(out)
      throw error
    } finally {
      if (outer !== null) ledger.resume(outer)
      // For messages read while this one was written.
      if (ledger.isDue) this.progress.tell(peer)
    }
  }

  /** To this worker itself. */
  private sendSelf(peer: Peer, frame: Frame, onFlushed: OnFlushed | null): void {
    // Arriving tensors are the callee's, though they were sent within a memoryScope.
    outsideOfScopes(() => this.receive(peer, frame))
    this.host.pump.wake()
    onFlushed?.(true)
  }

  private mustWait(outbox: Outbox, out: OutgoingMessage, frame: Frame): boolean {
    if (out.late !== null) return true
    // Its totals are right at any time, and a worker may wait for them.
    if (outbox.size === 0 || out.type === MessageType.PROGRESS) return false
    return outbox.holds(orderOf(out, frame), isLargeFrame(frame))
  }

  /** Sends a message as soon as its bytes are there: Note [Late messages]. */
  private place(peer: Peer, out: OutgoingMessage, encoded: Frame, onFlushed: OnFlushed | null): void {
    const { ledger, outbox, info } = peer
    const { observer, activity } = this.host
    // A cancellation arrives after its call (ORD-3): so the call needs the order of calls.
    if (out.late !== null) out.isUnordered = false
    const order = orderOf(out, encoded)
    let failure: Frame | null = null
    if (observer !== null) observer.sent(info.name, out)
    const placed = ledger.onPlaced(out.type, bytesOf(encoded))
    const note = out.note as readonly unknown[] | null
    if (note !== null) this.references.sent(note, info, NOT_NUMBERED)
    const drop = () => {
      ledger.onDropped(placed)
      onFlushed?.(false)
    }
    const message: LateMessage = {
      order,
      isLarge: isLargeFrame(encoded),
      isReady: out.late === null,
      leave: () => {
        let failureBytes: number | null
        try {
          failureBytes = this.leave(peer, out, encoded, failure, order, onFlushed)
        } catch (error) {
          // If the link has closed, the peer's death is on its way.
          if (peer.link?.closed !== true) this.host.onHandlerError(error)
          drop()
          return
        }
        const number = ledger.onLeft(out.type, placed, failureBytes)
        if (note !== null) this.references.numbered(note, number)
        if (out.type !== MessageType.GROUP_UPDATE) activity.changed()
      },
      drop,
    }
    outbox.add(message)
    out.late?.then(
      () => outbox.onReady(message),
      (error: unknown) => {
        failure = this.failureOf(peer, out, error)
        outbox.onReady(message)
      },
    )
    if (out.type !== MessageType.GROUP_UPDATE) activity.changed()
  }

  /** Returns the bytes of the failure that was sent in place of the frame; null: the frame was sent. @throws LINK_CLOSED */
  private leave(
    peer: Peer,
    out: OutgoingMessage,
    frame: Frame,
    failure: Frame | null,
    order: FrameOrder,
    onFlushed: OnFlushed | null,
  ): number | null {
    const { link } = peer
    // A link takes buffers away.
    const failureBytes = failure === null ? null : bytesOf(failure)
    if (link === null) {
      this.sendSelf(peer, failure ?? frame, onFlushed)
      return failureBytes
    }
    try {
      link.send(failure ?? frame, order, onFlushed)
      return failureBytes
    } catch (error) {
      if (link.closed || failure !== null) throw error
      // The link refuses a frame of that size.
      return this.leave(peer, out, frame, this.failureOf(peer, out, error), order, onFlushed)
    }
  }

  /** If the message is a request, its own worker has the error at once: the receiver does not answer a failure. */
  private failureOf(peer: Peer, out: OutgoingMessage, error: unknown): Frame {
    if (MESSAGE_TABLE[out.type].reply !== null) peer.pending.take(out.requestId)?.onError(error)
    return this.codec.encodeFailure(out, error)
  }

  /** One way, outside of calls, past the interceptors. @throws as `prepare` and `send` */
  post(peer: Peer, type: MessageType, body: readonly unknown[], envelope?: Envelope, onFlushed: OnFlushed | null = null): void {
    const out = this.prepare(peer, type, body, nameOf(type))
    if (envelope !== undefined) {
      out.context = envelope.context ?? null
      out.autogradId = envelope.autogradId ?? null
      out.pass = envelope.pass ?? null
      out.lineage = envelope.lineage ?? null
    }
    this.send(peer, out, onFlushed)
  }

  /** The same if the peer can be reached: not if it is unknown, dead or closed, or this worker is. */
  postIfReachable(id: WorkerId, type: MessageType, body: readonly unknown[], onFlushed: OnFlushed | null = null): void {
    const peer = this.host.reachable(id)
    if (peer === undefined) onFlushed?.(false)
    else this.post(peer, type, body, undefined, onFlushed)
  }

  /** Sends what belongs to a request of the peer: its answer, an item. @throws as `prepare` and `send` */
  sendFor(peer: Peer, requestId: number, type: MessageType, body: readonly unknown[], op: string): void {
    const out = this.prepare(peer, type, body, op)
    out.requestId = requestId
    if (INTERCEPTED.has(type)) this.intercept(out, peer, currentScope())
    this.send(peer, out)
  }

  /** Answers a request, with an error if the answer cannot be sent. */
  answer(peer: Peer, requestId: number, type: MessageType, body: readonly unknown[]): void {
    // Nobody gets the answer: the caller has died or this worker has shut down.
    if (this.host.reachable(peer.info.id) === undefined) {
      this.host.letter('link-closed', nameOf(type), peer.info)
      return
    }
    try {
      this.sendFor(peer, requestId, type, body, 'reply')
    } catch (error) {
      if (type === MessageType.EXCEPTION) throw error
      this.answerError(peer, requestId, error)
    }
  }

  /** Does not fail, whatever the error is: the codec takes of it what can be sent. */
  answerError(peer: Peer, requestId: number, error: unknown, ofCleanUp = false): void {
    this.answer(peer, requestId, MessageType.EXCEPTION, [error, ofCleanUp])
  }

  // --- receiving

  /** One handler per type of message. */
  handle(type: MessageType, handler: Handler): void {
    this.claim(type)
    this.handlers.set(type, handler)
  }

  /** The same for requests that are served: such a message is an `IncomingCall`, known to its peer's table until it has ended. */
  handleCalls(type: MessageType, handler: (call: IncomingCall) => void): void {
    this.claim(type)
    this.callHandlers.set(type, handler)
  }

  private claim(type: MessageType): void {
    if (this.handlers.has(type) || this.callHandlers.has(type)) throw new Error(`two handlers for ${nameOf(type)}`)
  }

  /** `handler` gets messages of a type that could not be read, in their turn. */
  handleUnreadable(type: MessageType, handler: (unreadable: Unreadable) => void): void {
    this.unreadableHandlers.set(type, handler)
  }

  /** `handler` gets one-way messages that the authority refused, so that their sender, which waits for more than a reply, learns it. */
  handleRefused(type: MessageType, handler: (message: Message, from: WorkerInfo, error: PostgradError) => void): void {
    this.refusedHandlers.set(type, handler)
  }

  receive(peer: Peer, frame: Frame): void {
    const { env, ledger } = peer
    const number = ledger.onReading(frame)
    env.received = null
    let message: Message
    try {
      message = this.codec.decode(frame, env, ledger.transport ?? undefined)
    } catch (error) {
      if (error instanceof SentFailure) {
        const { message: failed } = error
        // Its sender has noted that this worker knows the lineage.
        if (failed.lineage !== null && (this.gate === null || this.gate.mayBring(failed, peer))) this.arrived(failed, peer)
        this.host.refused(peer.info.id)
        this.receiveUnreadable(peer, frame, number, error.error, failed)
        return
      }
      // It was sent before its sender ended, and names a block that went with it.
      const hasEnded = isPostgradError(error, 'HEAP_BLOCK_STALE') && error.values.hasEnded === true
      const problem = hasEnded ? this.host.peers.diedError(peer, 'receive') : error
      this.host.letter('unreadable', plainText(problem), peer.info)
      this.receiveUnreadable(peer, frame, number, problem)
      return
    }
    const { type } = message
    const bytes = ledger.onRead(type, frame, true)
    if (message.lineage !== null && (this.gate === null || this.gate.mayBring(message, peer))) this.arrived(message, peer)
    const { received } = env
    const item = SERVED.has(type) ? this.call(message, peer, received, bytes) : new IncomingMessage(this, message, peer, received)
    // A call that is refused is answered without waiting for its turn among the calls.
    let { lane }: { lane: MessageLane } = MESSAGE_TABLE[type]
    if (item instanceof IncomingCall) {
      if (item.state === 'refused') lane = Lane.control
      else if (peer.source.isHeld) lane = Lane.call
    }
    const rrefId = aboutRRef(message) ?? this.references.subjectOf(message)
    const { observer, pump } = this.host
    if (peer.inflow !== null && (item instanceof IncomingMessage || item.state === 'refused')) countIn(peer.inflow, item, bytesOf(frame))
    if (observer !== null) observer.received(item)
    pump.mailbox.pushFrom(peer.source, lane, item, message.context, rrefId)
  }

  /** Known from here on, and not only from its turn on: a cancellation waits in a higher lane. */
  private call(message: Message, peer: Peer, received: readonly unknown[] | null, bytes: number): IncomingCall {
    const { type, deadlineMs, requestId, body } = message
    const expiresMs = deadlineMs === null ? Number.POSITIVE_INFINITY : this.host.clock.now() + deadlineMs
    const functionName = type === MessageType.RREF_FETCH ? '' : functionOf(body)
    const call = new IncomingCall(this, message, peer, received, expiresMs, functionName, bytes)
    const isWithin = peer.ledger.incomingOf(type)!.onReceived(bytes)
    if (!isWithin || this.isDrainingFor(call)) call.refuse()
    else if (peer.served.get(requestId) === undefined) peer.served.set(requestId, call)
    return call
  }

  private isDrainingFor({ peer, type }: IncomingCall): boolean {
    return this.host.isDraining && peer.link !== null && isCall(type)
  }

  private arrived(message: Message, peer: Peer): void {
    try {
      for (const interceptor of this.interceptors) interceptor.arrived?.(message, peer.info)
    } catch (error) {
      this.noteFailure(peer, message.type, error)
    }
  }

  /** If its head can be read, `deliverUnreadable` gets it in its turn. */
  private receiveUnreadable(peer: Peer, frame: Frame, number: number, error: unknown, failed: Message | null = null): void {
    const { host } = this
    const head = requestHead(frame)
    const bytes = peer.ledger.onRead(head?.type, frame, false)
    // In a turn of its own: this may be a pause in the middle of writing another message to the peer.
    const { inflow } = peer
    inflow?.onReceived(0)
    const tell = () => {
      inflow?.onTurn(0)
      this.postIfReachable(peer.info.id, MessageType.UNREADABLE, [number])
    }
    host.pump.mailbox.pushFrom(peer.source, Lane.control, { run: tell })
    if (head === null) return
    const isWithin = peer.ledger.incomingOf(head.type)?.onReceived(bytes) ?? false
    const pass = passHead(frame)
    const isAllowed = pass === null || this.gate === null || this.gate.mayBring({ type: head.type, autogradId: null, ...pass }, peer)
    const unreadable = new Unreadable(this, peer, head, isAllowed ? pass : null, error, bytes, failed)
    if (inflow !== null && !isWithin) countIn(inflow, unreadable, bytesOf(frame))
    host.pump.mailbox.pushFrom(peer.source, MESSAGE_TABLE[head.type].lane, unreadable)
  }

  // --- delivering: an error of a handler ends what the message was about, but neither the worker nor later messages

  deliver(item: Incoming): void {
    const { message, peer, received, inflowBytes } = item
    if (inflowBytes > 0) peer.inflow?.onTurn(inflowBytes)
    try {
      const refusal = this.gate === null ? null : this.gate.refusal(item)
      if (refusal !== null) {
        this.refuse(item, refusal)
        return
      }
      if (received !== null) this.references.accept(received, peer.info)
      const handler = this.handlers.get(message.type)
      if (handler !== undefined) handler(message, peer.info, item)
      else this.discard(item, 'unreadable', `${nameOf(message.type)}: nothing handles it here`)
    } catch (error) {
      this.onThrown(message, item, 0, error)
    }
  }

  deliverCall(call: IncomingCall): void {
    const { message, peer, received, requestId, inflowBytes } = call
    if (peer.inflow !== null) {
      if (inflowBytes > 0) peer.inflow.onTurn(inflowBytes)
      peer.inflow.onCall()
    }
    try {
      const refusal = this.gate === null || call.state === 'refused' ? null : this.gate.refusal(call)
      if (refusal !== null) {
        this.refuseCall(call, refusal)
        return
      }
      if (received !== null) call.unconfirmed = this.references.accept(received, peer.info)
      if (call.state === 'refused') this.turnAway(call)
      else if (peer.served.get(requestId) !== call) {
        // An answer would be taken for that of the other.
        this.discardCall(call, 'invalid', `${nameOf(message.type)}: a second request ${requestId}`)
      } else this.callHandlers.get(message.type)!(call)
    } catch (error) {
      const { callBytes } = call
      call.callBytes = 0
      peer.served.take(requestId)
      this.onThrown(message, call, callBytes, error)
    }
  }

  /** Its sender had no room for it, or this worker is about to end. */
  private turnAway(call: IncomingCall): void {
    const { type, message, peer } = call
    const op = isCall(type) ? String(message.body[0]) : 'toHere'
    const isDraining = this.host.isDraining && isCall(type)
    const error = isDraining ? drainingError(op, this.host.info) : mailboxFull(op, this.host.info, peer.ledger.incomingOf(type)!)
    this.discardCall(call, isDraining ? 'draining' : 'mailbox-full', `${nameOf(type)} ${op}`)
    this.answerError(peer, call.requestId, error)
  }

  /** The authority has refused it. The worker that waits for it (for a reply this one) gets the error; for a pass nobody does. */
  private refuse(item: Incoming, error: PostgradError): void {
    const { message, peer, received } = item
    if (received !== null) this.references.decline(received, peer.info)
    this.host.letter('invalid', `${nameOf(message.type)}: not permitted to the role '${peer.role}'`, peer.info)
    new Unreadable(this, peer, message, null, error, 0).run()
    this.refusedHandlers.get(message.type)?.(message, peer.info, error)
  }

  private refuseCall(call: IncomingCall, error: PostgradError): void {
    const { peer, requestId, type, received, functionName } = call
    call.refuse()
    this.notBegun(call)
    if (received !== null) this.references.decline(received, peer.info)
    this.host.letter('invalid', `${nameOf(type)} ${functionName}: not permitted to the role '${peer.role}'`, peer.info)
    // Under the number of another that is served: an answer would be taken for that one's.
    if (peer.served.get(requestId) !== call) return
    peer.served.take(requestId)
    this.answerError(peer, requestId, error)
  }

  private onThrown({ type, requestId, context, pass }: Message, { peer, received }: Incoming, callBytes: number, error: unknown): void {
    this.noteFailure(peer, type, error)
    try {
      if (received !== null) this.references.discard(received)
      const about = context === null || pass === null ? null : { context, pass }
      new Unreadable(this, peer, { type, requestId }, about, error, callBytes).run()
    } catch (second) {
      this.noteFailure(peer, type, second)
    }
  }

  deliverUnreadable(unreadable: Unreadable): void {
    this.progress.begun(unreadable)
    const { peer, type, head, error, inflowBytes } = unreadable
    if (inflowBytes > 0) peer.inflow?.onTurn(inflowBytes)
    const handler = this.unreadableHandlers.get(type)
    if (handler !== undefined) handler(unreadable)
    else if (MESSAGE_TABLE[type].reply !== null && unreadable.failed === null) this.answerError(peer, head.requestId, error)
  }

  putOff(call: IncomingCall): void {
    this.host.observer?.putOff(call)
  }

  begun(call: IncomingCall): void {
    this.progress.begun(call)
    this.host.observer?.begun(call)
  }

  // --- what nobody gets

  private noteFailure({ info }: Peer, type: MessageType, error: unknown): void {
    const what = isPostgradError(error)
      ? `${error.code}: ${error.message}`
      : `${types.isNativeError(error) ? `${error.name}: ` : ''}${plainText(error)}`
    this.host.letter('failed', `${nameOf(type)}: ${what}`, info)
    this.host.onHandlerError(error)
  }

  idle(from: WorkerId): void {
    this.host.idle(from)
  }

  /** A message that can be read and cannot be right. */
  refuseInvalid(from: WorkerInfo, type: MessageType, why: string): void {
    this.host.letter('invalid', `${nameOf(type)}: ${why}`, from)
  }

  /** Nobody gets this message, nor the references in it. */
  discard({ peer, received }: Pick<Incoming, 'peer' | 'received'>, reason: DeadLetterReason, what: string): void {
    if (received !== null) this.references.discard(received)
    this.host.letter(reason, what, peer.info)
  }

  /** A call ends before it has begun. */
  discardCall(call: IncomingCall, reason: DeadLetterReason, what: string): void {
    this.notBegun(call)
    this.discard(call, reason, what)
  }

  notBegun(call: IncomingCall): void {
    this.progress.begun(call)
    // It keeps no entry for the value whose method it was for.
    this.references.forgetSubject(call.message)
    this.host.observer?.notBegun(call)
  }

  /** This worker closes: calls that have not begun are answered. */
  stopped(item: Runnable): void {
    if (!(item instanceof IncomingMessage) && !(item instanceof IncomingCall)) return
    const { message, peer } = item
    this.host.letter('stopped', nameOf(message.type), peer.info)
    if (item instanceof IncomingCall && peer.link !== null) {
      this.answerError(peer, item.requestId, drainingError(String(message.body[0]), this.host.info))
    }
  }
}

/** Requests that are served: no worker begins these with one that leaves. */
const SERVED: ReadonlySet<MessageType> = new Set([MessageType.CALL, MessageType.REMOTE_CALL, MessageType.RREF_FETCH])

/** Messages that interceptors see at their sender. */
export const INTERCEPTED: ReadonlySet<MessageType> = new Set([...SERVED, MessageType.RESULT, MessageType.STREAM_ITEM])

/** It waits beyond the windows until it has its turn. */
function countIn(inflow: Inflow, item: { inflowBytes: number }, bytes: number): void {
  item.inflowBytes = bytes
  inflow.onReceived(bytes)
}

/** The RRef that a message is about, if its kind is about one: no message overtakes an earlier one about the same. */
function aboutRRef({ type, body }: Message): bigint | null {
  const field = MESSAGE_TABLE[type].rrefField
  return field === null ? null : (body[field] as bigint)
}

export function nameOf(type: MessageType): string {
  return MESSAGE_TABLE[type].name
}
