/**
 * The post office of one worker: peers and their links, requests that wait for replies, the mailbox through which all of it is taken.
 * It knows messages, not what they mean: `request-callback.ts` serves calls above it, the pump and the codec work below it.
 * PyTorch: `torch/csrc/distributed/rpc/rpc_agent.h`.
 */
import { type DeadLetterReason, DeadLetters, Liveness, type NoticedDeath, Pump, Source } from '@postgrad/actor/internal'
import { Future, isPostgradError, PostgradError, type WorkerId } from '@postgrad/base'
import {
  callCancelled,
  checkSignal,
  checkWorkerId,
  currentScope,
  inScope,
  Lane,
  type MessageLane,
  outOfTime,
  type Scope,
  workerDied,
} from '@postgrad/base/internal'
import { type HeapRoad, outsideOfScopes } from '@postgrad/tensor/internal'
import type { Clock, Frame, Link, LinkClosed } from '@postgrad/transport'
import {
  Codec,
  MESSAGE_TABLE,
  type Message,
  MessageType,
  type OutgoingMessage,
  passHead,
  requestHead,
  setChain,
} from '@postgrad/wire/internal'
import { Deadlines, type PendingCall, PendingCalls } from '../calls/pending-calls.js'
import { checkMailbox, type MailboxOptions, mailboxFull, type RoomWaiter } from '../core/call-credits.js'
import type { Interceptor } from '../core/interceptor.js'
import { isCall, PeerLedger } from '../core/peer-ledger.js'
import { Activity } from '../core/quiet.js'
import { RequestTable } from '../core/request-table.js'
import { cancelledByCaller, currentServing, ServedCall, servedIn } from '../core/served-call.js'
import { travellingExtension } from '../core/travelling.js'
import { checkWorkerName, type Target, type WorkerInfo } from '../core/worker-info.js'
import { type CallInterceptors, ObservedCall } from '../observe/call-interceptors.js'
import type { Inspection } from '../observe/inspection.js'
import { functionOf } from '../references/actor-name.js'
import type { RRefContext, SentFork } from '../references/rref-context.js'
import { Delivery, type Peer, type Runnable, Unreadable } from './delivery.js'
import { Progress } from './progress.js'
import { ownWaits, requestsTo, type Serving, servedFor, type Wait } from './waits.js'

/** Envelope fields of a one-way message; see `Message`. */
export interface Envelope {
  readonly context?: bigint | null
  readonly autogradId?: bigint | null
  readonly pass?: bigint | null
  readonly lineage?: readonly number[] | null
}

/** Stands for the link of a dead peer, whose buffers would stay for as long as this worker remembers that peer, which is for ever. */
const ENDED_LINK: Link = {
  closed: true,
  open: () => {},
  send: () => {
    throw new Error('sent on a link that has ended')
  },
  flush: () => {},
  poll: () => 0,
  close: () => {},
}

export interface AgentOptions {
  readonly info: WorkerInfo
  /** See `WorkerOptions`. */
  readonly isGuest: boolean
  readonly clock: Clock
  /** The scope in which this worker's own work runs. */
  readonly scope: Scope
  readonly rrefs: RRefContext
  readonly mailbox: MailboxOptions | undefined
  readonly onBug: (error: unknown) => void
  readonly onHandlerError: (error: unknown) => void
}

export class RpcAgent {
  readonly info: WorkerInfo
  readonly clock: Clock
  readonly codec: Codec
  readonly pump: Pump<Runnable>
  readonly deadLetters = new DeadLetters()
  readonly liveness = new Liveness()
  readonly activity = new Activity()
  readonly interceptors: Interceptor[] = []
  /** Calls of other workers are refused: what waits is served, then this worker closes. */
  isDraining = false
  /** Null while nobody looks. */
  inspection: Inspection | null = null
  /** Those of users; null while there are none. */
  callInterceptors: CallInterceptors | null = null
  /** Answers a request that could not be read, ends what waits for a reply that could not. */
  onUnreadable: (unreadable: Unreadable) => void = () => {}
  /** For one-way messages of packages above. */
  readonly unreadableHandlers = new Map<MessageType, (unreadable: Unreadable) => void>()
  /** Answers a call for which its sender had no room. */
  onRefused: (delivery: Delivery, error: PostgradError) => void = () => {}
  readonly progress: Progress
  private readonly rrefs: RRefContext
  private readonly scope: Scope
  private readonly onHandlerError: (error: unknown) => void
  private readonly peersById = new Map<WorkerId, Peer>()
  private readonly idsByName = new Map<string, WorkerId>()
  private readonly handlers = new Map<MessageType, (delivery: Delivery) => void>()
  private readonly deadlines: Deadlines
  /** Waits for something of this worker itself, which nobody is asked for. */
  private readonly waits: PendingCalls
  private shutdown: AbortController | null = null
  /** Served calls that were given up in this turn and have called others. */
  private givenUp = new Set<ServedCall>()
  private readonly window: Required<MailboxOptions>
  private nextRequest = 1
  private closed = false
  private closedError: PostgradError | null = null

  constructor({ info, isGuest, clock, scope, rrefs, mailbox, onBug, onHandlerError }: AgentOptions) {
    this.onHandlerError = onHandlerError
    this.info = info
    this.clock = clock
    this.scope = scope
    this.rrefs = rrefs
    this.window = checkMailbox(mailbox)
    this.codec = new Codec({ extensions: [rrefs.extension, travellingExtension] })
    this.deadlines = new Deadlines(clock, this.activity)
    this.waits = new PendingCalls(this.deadlines, info, () => {})
    this.pump = new Pump({
      clock,
      dispatch: (item) => (currentScope() === scope ? item.run() : inScope(scope, () => item.run())),
      onBug,
    })
    this.pump.onDrained(() => this.activity.changed())
    this.progress = new Progress(clock, {
      postIfReachable: (id, type, body) => this.postIfReachable(id, type, body),
      refuseInvalid: (from, type, why) => this.refuseInvalid(this.resolve(from.id), type, why),
    })
    this.addPeer(info, null, null, isGuest)
    this.handle(MessageType.CALL_CANCEL, ({ message: { body }, peer }) => this.onCancel(peer, body[0] as number, body[1] as boolean))
    this.handle(MessageType.PROGRESS, ({ message, peer }) => this.progress.onProgress(peer, message.body))
    this.handle(MessageType.UNREADABLE, ({ message, peer }) => rrefs.onUnread(message.body[0] as number, peer.info.id))
  }

  // --- membership

  /** A worker that was started anew has its old name and a fresh id; the name then means the new one. */
  connect(peer: WorkerInfo, link: Link, road: HeapRoad | null, isGuest: boolean): void {
    if (this.closed) throw this.shutDownError('connect')
    checkWorkerName(peer.name)
    checkWorkerId(peer.id)
    const namesake = this.namesake(peer.name)
    if (this.peersById.has(peer.id) || (namesake !== undefined && !namesake.link?.closed)) {
      throw new PostgradError('WORKER_NAME_TAKEN', {
        op: 'connect',
        message: `worker '${peer.name}' (id ${peer.id}) is not unique`,
        remedy: 'Give every worker a name and an id of its own.',
        values: { worker: peer.name, workerId: peer.id },
      })
    }
    if (namesake !== undefined) namesake.restartedAs = peer.id
    const entry = this.addPeer(peer, link, road, isGuest)
    // During a long stretch of node tasks what this worker has sent leaves as well.
    const removePoll = this.pump.addPoll(() => {
      link.flush()
      const frames = link.poll()
      // At once: it may be long until a timer comes to its turn.
      if (frames > 0) this.progress.tell(entry)
      return frames
    })
    const runNow = () => this.pump.runNow()
    link.open({
      onFrame: (frame) => this.receive(entry, frame),
      onTurnEnd: () => {
        inScope(this.scope, runNow)
        this.progress.tellSoon(entry)
      },
      onClose: (reason) => {
        removePoll()
        this.onLinkClosed(entry, reason)
      },
    })
  }

  /** The peer that has this name; undefined for a name that is known by a death alone. */
  private namesake(name: string): Peer | undefined {
    return this.peersById.get(this.idsByName.get(name) ?? -1)
  }

  isLinkedTo(name: string): boolean {
    return this.namesake(name)?.link?.closed === false
  }

  private addPeer(info: WorkerInfo, link: Link | null, road: HeapRoad | null, isGuest: boolean): Peer {
    const peer: Peer = {
      info,
      link,
      pending: new PendingCalls(this.deadlines, info, (requestId) => this.tellCancelled(peer, requestId)),
      served: new RequestTable(),
      env: { peer: info, sending: null, received: null },
      source: new Source(info.name),
      isGuest,
      ledger: new PeerLedger(this.window, this.clock, road),
      isLeaving: false,
      takesNoCalls: false,
      endExpected: false,
      restartedAs: null,
    }
    this.peersById.set(info.id, peer)
    this.idsByName.set(info.name, info.id)
    return peer
  }

  /** Self included, the dead, those that are leaving and guests excluded. */
  workers(): WorkerInfo[] {
    const here = [...this.peersById.values()].filter(
      (peer) => !peer.isGuest && !peer.isLeaving && this.liveness.deathOf(peer.info.id) === undefined,
    )
    return here.map(({ info }) => info)
  }

  /** The peer is about to end in peace: it still answers, but nobody should begin anything with it, and its end will say so. */
  onLeaving(id: WorkerId): void {
    const peer = this.peersById.get(id)
    if (peer !== undefined) peer.isLeaving = true
  }

  /** A worker that died before this one began: what is about it meets its death, and is not taken for a stranger's. */
  noteDeath(worker: WorkerInfo, detail: string): void {
    if (this.peersById.has(worker.id)) return
    this.liveness.report({ worker, cause: 'exited', detail, atMs: this.clock.now() })
    if (this.namesake(worker.name) === undefined) this.idsByName.set(worker.name, worker.id)
  }

  /** The peer leaves and has asked for no more calls: such are refused from now on. */
  refuse(id: WorkerId): void {
    this.onLeaving(id)
    const peer = this.peersById.get(id)
    if (peer !== undefined) peer.takesNoCalls = true
  }

  /** The whole group ends, so the end of this peer will be no accident; until then it is a member as before. */
  expectEnd(id: WorkerId): void {
    const peer = this.peersById.get(id)
    if (peer !== undefined) peer.endExpected = true
  }

  /** Self and the dead included. */
  peers(): Iterable<Peer> {
    return this.peersById.values()
  }

  /** @throws UNKNOWN_WORKER, WORKER_DIED for one that was never a peer because it died before (`noteDeath`) */
  resolve(target: Target, op = 'call'): Peer {
    const id = typeof target === 'string' ? this.idsByName.get(target) : typeof target === 'number' ? target : target?.id
    const peer = id === undefined ? undefined : this.peersById.get(id)
    if (peer !== undefined && (typeof target !== 'object' || target.name === peer.info.name)) return peer
    const death = peer === undefined && id !== undefined ? this.deathOf(id) : null
    if (death !== null) throw death
    const known = [...this.peersById.values()].map(({ info }) => `'${info.name}' (${info.id})`).join(', ')
    throw new PostgradError('UNKNOWN_WORKER', {
      op,
      expected: `one of the workers ${known}`,
      got:
        typeof target === 'object' && target !== null
          ? `'${target.name}' (${target.id})`
          : typeof target === 'string'
            ? `'${target}'`
            : String(target),
      remedy: 'Use the name that was given at launch, or its WorkerInfo.',
      values: { target: typeof target === 'object' && target !== null ? target.name : target },
    })
  }

  deathOf(id: WorkerId): PostgradError | null {
    const death = this.liveness.deathOf(id)
    if (death === undefined) return null
    const peer = this.peersById.get(id)
    return workerDied('worker', death, {
      restartedAs: peer === undefined ? (this.namesake(death.worker.name)?.info.id ?? null) : peer.restartedAs,
    })
  }

  isGuest(id: WorkerId): boolean {
    return this.peersById.get(id)?.isGuest === true
  }

  /** Dead or alive; undefined for one that never was a peer. */
  peerInfo(id: WorkerId): WorkerInfo | undefined {
    return this.peersById.get(id)?.info
  }

  /** The peer with this id, unless it is unknown, dead or closed, or this worker is. */
  reachable(id: WorkerId): Peer | undefined {
    const peer = this.peersById.get(id)
    return peer === undefined || this.closed || peer.link?.closed ? undefined : peer
  }

  // --- sending: prepare, intercept, send, without a turn in between

  /**
   * Looks for what can never leave before anything is noted of the message.
   * @throws RPC_SHUT_DOWN, WORKER_DIED, MAILBOX_FULL, and what `Codec.prepare` throws
   */
  prepare(peer: Peer, type: MessageType, body: readonly unknown[], op: string): OutgoingMessage {
    this.checkOpen(peer, op)
    if (peer.takesNoCalls && REFUSED.has(type)) throw this.diedError(peer, op)
    const account = peer.ledger.outgoingOf(type)
    if (account?.isFull) {
      this.inspection?.noRoom('mailbox-full', peer.info.name, op, account)
      throw mailboxFull(op, peer.info, account)
    }
    const { env } = peer
    env.sending = null
    const out = this.codec.prepare(type, body, env)
    // Noted with the message itself: an interceptor may send others to this peer before it leaves.
    if (env.sending !== null) out.note = env.sending
    return out
  }

  /** @throws RPC_SHUT_DOWN, WORKER_DIED */
  private checkOpen(peer: Peer, op: string): void {
    if (this.closed) throw this.shutDownError(op)
    if (peer.link?.closed) throw this.diedError(peer, op)
  }

  /** Runs the interceptors over a message that is about to leave. */
  intercept(out: OutgoingMessage, peer: Peer): void {
    for (const interceptor of this.interceptors) interceptor.outgoing?.(out, peer.info)
  }

  /** @throws WIRE_TOO_LARGE */
  send(peer: Peer, out: OutgoingMessage): void {
    const { link, env, ledger } = peer
    ledger.onWriting()
    try {
      const frame = this.codec.encode(out, env, ledger.road ?? undefined)
      if (this.inspection !== null) this.inspection.sent(peer.info.name, out)
      const number = ledger.onSent(out.type, frame)
      if (out.note !== null) this.rrefs.sent(out.note as readonly SentFork[], peer.info, number)
      if (link === null) {
        // What arrives is the callee's, though it was sent within a memoryScope.
        outsideOfScopes(() => this.receive(peer, frame))
        this.pump.wake()
      } else link.send(frame)
      if (out.type !== MessageType.GROUP_UPDATE) this.activity.changed()
    } catch (error) {
      ledger.onUnsent()
      for (const interceptor of this.interceptors) interceptor.unsent?.(out)
      throw error
    } finally {
      // What was read while the message was written.
      this.progress.tell(peer)
    }
  }

  /** One way, outside of calls, past the interceptors. @throws as `prepare` and `send` */
  post(peer: Peer, type: MessageType, body: readonly unknown[], envelope?: Envelope): void {
    const out = this.prepare(peer, type, body, nameOf(type))
    if (envelope !== undefined) {
      out.context = envelope.context ?? null
      out.autogradId = envelope.autogradId ?? null
      out.pass = envelope.pass ?? null
      out.lineage = envelope.lineage ?? null
    }
    this.send(peer, out)
  }

  /** The same to whom it may reach: not to who is unknown, dead or closed, and not when this worker is. */
  postIfReachable(id: WorkerId, type: MessageType, body: readonly unknown[]): void {
    const peer = this.reachable(id)
    if (peer !== undefined) this.post(peer, type, body)
  }

  /** Sends a request; `waiting` is told of the reply, the peer's death, the deadline or the shutdown, whichever comes first. Returns its number. @throws as `send` */
  request(peer: Peer, out: OutgoingMessage, waiting: PendingCall, timeoutMs: number): number {
    const requestId = this.nextRequest++
    out.requestId = requestId
    if (timeoutMs !== Number.POSITIVE_INFINITY) out.deadlineMs = timeoutMs
    const observed = this.callInterceptors === null ? waiting : this.observe(this.callInterceptors, peer, out, waiting)
    observed.reply = MESSAGE_TABLE[out.type].reply
    const scope = currentScope()
    if (scope.chain !== null) setChain(out, scope.chain)
    peer.pending.add(requestId, observed, timeoutMs, servedIn(scope))
    try {
      this.send(peer, out)
    } catch (error) {
      peer.pending.take(requestId)
      if (observed instanceof ObservedCall) observed.unsent(error)
      throw error
    }
    return requestId
  }

  private observe(interceptors: CallInterceptors, { info }: Peer, out: OutgoingMessage, waiting: PendingCall): PendingCall {
    try {
      return interceptors.leave(out, info, waiting)
    } catch (error) {
      for (const interceptor of this.interceptors) interceptor.unsent?.(out)
      throw error
    }
  }

  /** Waits for something of this worker itself; returns what ends the wait. `waiting` is told of the deadline and the shutdown. @throws RPC_SHUT_DOWN */
  wait(waiting: PendingCall, timeoutMs: number, op: string): () => void {
    if (this.closed) throw this.shutDownError(op)
    const requestId = this.nextRequest++
    this.waits.add(requestId, waiting, timeoutMs, currentServing())
    return () => {
      this.waits.take(requestId)
    }
  }

  /** Waits until a call to the peer would leave. The place is kept until the end of this turn. @throws RPC_SHUT_DOWN, WORKER_DIED, CALL_CANCELLED */
  whenReady(peer: Peer, future: Future<void>, timeoutMs: number, signal: AbortSignal | undefined): void {
    this.checkOpen(peer, 'ready')
    checkSignal(signal, 'ready', peer.info)
    const { outgoing } = peer.ledger
    if (outgoing.waiters.size === 0 && outgoing.reserve()) {
      future.resolve()
      return
    }
    const end = () => {
      endWait()
      outgoing.waiters.delete(waiter)
    }
    const waiter: RoomWaiter = {
      resolve: () => {
        end()
        future.resolve()
      },
      reject: (error) => {
        end()
        future.reject(error)
      },
    }
    const cancel = (reason: unknown) => waiter.reject(callCancelled('ready', peer.info, reason))
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op: 'ready',
      about: () => ({ kind: 'room', what: `room for a call to worker '${peer.info.name}'`, on: [peer.info] }),
      onReply: () => {},
      onError: waiter.reject,
      timedOut: () => noRoom(peer.info, timeoutMs),
    }
    const endWait = this.wait(waiting, timeoutMs, 'ready')
    this.inspection?.noRoom('credit-stall', peer.info.name, '', outgoing)
    outgoing.waiters.add(waiter)
    future.cancelWith({ cancel })
    if (signal !== undefined) future.cancelOn(signal)
  }

  /** A request whose reply is the message itself. */
  requestMessage(peer: Peer, out: OutgoingMessage, timeoutMs: number, op: string): Future<Message> {
    const future = new Future<Message>()
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op,
      onReply: (message) => future.resolve(message),
      onError: (error) => future.reject(error),
      timedOut: (isInherited) => timedOut(op, peer.info, timeoutMs, isInherited),
    }
    try {
      const requestId = this.request(peer, out, waiting, timeoutMs)
      future.cancelWith({ cancel: (reason) => peer.pending.cancel(requestId, reason) })
    } catch (error) {
      future.reject(error)
    }
    return future
  }

  // --- giving up, see served-call.ts

  /** The caller's word that it waits no more; `isAwaited`: for the end of a stream, and not for its items. What has ended here meanwhile is not known any more. */
  private onCancel(peer: Peer, requestId: number, isAwaited: boolean): void {
    const served = peer.served.get(requestId)
    if (served === undefined) return
    if (isAwaited) served.stop(cancelledByCaller(peer.info))
    else this.giveUp([served], cancelledByCaller(peer.info))
  }

  /** Nobody waits for these calls any more: their signals abort, and the calls that were made for them are given up as well. */
  giveUp(calls: Iterable<ServedCall>, reason: PostgradError): void {
    for (const served of calls) {
      served.giveUp(reason)
      if (!served.hasCalled) continue
      // Many may be given up in one turn; their calls are looked for once, behind it.
      if (this.givenUp.size === 0) void Promise.resolve().then(() => this.cancelChildren())
      this.givenUp.add(served)
    }
  }

  private cancelChildren(): void {
    const parents = this.givenUp
    this.givenUp = new Set()
    for (const { pending } of this.peersById.values()) pending.cancelChildren(parents)
    this.waits.cancelChildren(parents)
  }

  /** Also when the call has ended for this worker, as a remote call does when its reference is confirmed. */
  tellCancelled(peer: Peer, requestId: number): void {
    this.postIfReachable(peer.info.id, MessageType.CALL_CANCEL, [requestId, false])
  }

  /** Aborts when this worker shuts down. */
  get shutdownSignal(): AbortSignal {
    this.shutdown ??= new AbortController()
    if (this.closed) this.shutdown.abort(this.closedBy)
    return this.shutdown.signal
  }

  // --- receiving

  /** One handler per message type. */
  handle(type: MessageType, handler: (delivery: Delivery) => void): void {
    if (this.handlers.has(type)) throw new Error(`two handlers for ${nameOf(type)}`)
    this.handlers.set(type, handler)
  }

  private receive(peer: Peer, frame: Frame): void {
    const { env, ledger } = peer
    ledger.onReading()
    env.received = null
    let message: Message
    try {
      message = this.codec.decode(frame, env, ledger.road ?? undefined)
    } catch (error) {
      // It was sent before its sender ended, and names a block that went with it.
      const problem = isPostgradError(error, 'HEAP_BLOCK_STALE') && error.values.hasEnded === true ? this.diedError(peer, 'receive') : error
      this.receiveUnreadable(peer, frame, problem)
      return
    }
    const { type, deadlineMs, context, lineage } = message
    const bytes = ledger.onRead(type, frame, true)
    if (lineage !== null) this.arrived(message, peer)
    const expiresMs = deadlineMs === null ? Number.POSITIVE_INFINITY : this.clock.now() + deadlineMs
    const served =
      type === MessageType.CALL || type === MessageType.REMOTE_CALL || type === MessageType.RREF_FETCH
        ? new ServedCall(peer.info, message.requestId, expiresMs, type === MessageType.RREF_FETCH ? '' : functionOf(message.body))
        : null
    let lane: MessageLane = MESSAGE_TABLE[type].lane
    const account = ledger.incomingOf(type)
    const delivery = new Delivery(this, message, peer, expiresMs, env.received, served, bytes)
    if (account !== null && (!account.onReceived(bytes) || (this.isDraining && peer.link !== null && isCall(type)))) {
      delivery.isRefused = true
      // Answered without waiting for its turn among the calls.
      lane = Lane.control
    } else if (served !== null && peer.served.get(message.requestId) === undefined) {
      // From here on, and not only from its turn on: a cancellation waits in a higher lane.
      peer.served.set(message.requestId, served)
    }
    const rrefId = aboutRRef(message) ?? this.rrefs.subjectOf(message)
    if (this.inspection !== null) this.inspection.received(delivery)
    this.pump.mailbox.pushFrom(peer.source, lane, delivery, context, rrefId)
  }

  private arrived(message: Message, peer: Peer): void {
    try {
      for (const interceptor of this.interceptors) interceptor.arrived?.(message, peer.info)
    } catch (error) {
      this.noteFailure(peer, message.type, error)
    }
  }

  /** If it is known what it belonged to, somebody is told in its turn. */
  private receiveUnreadable(peer: Peer, frame: Frame, error: unknown): void {
    const head = requestHead(frame)
    const bytes = peer.ledger.onRead(head?.type, frame, false)
    this.letter('unreadable', peer, isPostgradError(error) ? error.message : String(error))
    const number = peer.ledger.received
    // In a turn of its own: this may be a pause in the middle of writing another message to the peer.
    const tell = () => {
      if (this.reachable(peer.info.id) !== undefined) this.post(peer, MessageType.UNREADABLE, [number])
    }
    this.pump.mailbox.pushFrom(peer.source, Lane.control, { run: tell })
    if (head === null) return
    const lane = MESSAGE_TABLE[head.type].lane
    peer.ledger.incomingOf(head.type)?.onReceived(bytes)
    this.pump.mailbox.pushFrom(peer.source, lane, new Unreadable(this, peer, head, passHead(frame), error, bytes))
  }

  /** An error of its handler ends what the message was about, and neither the worker nor the messages behind it. */
  deliver(delivery: Delivery): void {
    try {
      this.handleDelivery(delivery)
    } catch (error) {
      this.onThrown(delivery, error)
    }
  }

  private onThrown(delivery: Delivery, error: unknown): void {
    const { message, peer, callBytes, received } = delivery
    const { type, requestId, context, pass } = message
    this.noteFailure(peer, type, error)
    try {
      if (received !== null) this.rrefs.discard(received)
      if (delivery.served !== null) peer.served.take(requestId)
      const about = context === null || pass === null ? null : { context, pass }
      delivery.callBytes = 0
      new Unreadable(this, peer, { type, requestId }, about, error, callBytes).run()
    } catch (second) {
      this.noteFailure(peer, type, second)
    }
  }

  private noteFailure(peer: Peer, type: MessageType, error: unknown): void {
    this.letter('failed', peer, `${nameOf(type)}: ${isPostgradError(error) ? `${error.code}: ${error.message}` : String(error)}`)
    this.onHandlerError(error)
  }

  /** A message that can be read and cannot be right. */
  refuseInvalid(peer: Peer, type: MessageType, why: string): void {
    this.letter('invalid', peer, `${nameOf(type)}: ${why}`)
  }

  private handleDelivery(delivery: Delivery): void {
    const { message, peer, received, served } = delivery
    if (received !== null) delivery.unconfirmed = this.rrefs.accept(received, peer.info)
    if (delivery.isRefused) {
      const op = isCall(message.type) ? String(message.body[0]) : 'toHere'
      const isDraining = this.isDraining && isCall(message.type)
      const error = isDraining ? this.drainingError(op) : mailboxFull(op, this.info, peer.ledger.incomingOf(message.type)!)
      this.discard(delivery, isDraining ? 'draining' : 'mailbox-full', `${nameOf(message.type)} ${op}`)
      this.onRefused(delivery, error)
      return
    }
    if (served !== null && peer.served.get(message.requestId) !== served) {
      // An answer would be taken for that of the other.
      this.discard(delivery, 'invalid', `${nameOf(message.type)}: a second request ${message.requestId}`)
      return
    }
    const handler = this.handlers.get(message.type)
    if (handler !== undefined) handler(delivery)
    else this.discard(delivery, 'unreadable', `${nameOf(message.type)}: nothing handles it here`)
  }

  /** A call or fetch begins, or ends without: its place is its sender's again. Without effect for all else, and when it is said twice. */
  begun(item: { readonly peer: Peer; readonly type: MessageType; callBytes: number }): void {
    this.progress.begun(item)
  }

  /** A request ends before it has begun. */
  notBegun(delivery: Delivery): void {
    this.begun(delivery)
    this.inspection?.notBegun(delivery)
  }

  /** The call that a reply belongs to. A reply to nothing that waits is a dead letter; one of a kind that does not answer the request ends it. */
  takePending(peer: Peer, type: MessageType, requestId: number): PendingCall | undefined {
    const waiting = peer.pending.take(requestId)
    if (waiting === undefined) {
      this.letter('unknown-request', peer, nameOf(type))
      return undefined
    }
    if (type === MessageType.EXCEPTION || waiting.reply === type) return waiting
    this.refuseInvalid(peer, type, 'it does not answer what was asked')
    waiting.onError(wrongReply(waiting.op, peer.info, nameOf(type)))
    return undefined
  }

  /** Nobody gets this message, nor the references in it. */
  discard(delivery: Delivery, reason: DeadLetterReason, what: string): void {
    const { peer, received } = delivery
    this.notBegun(delivery)
    if (received !== null) this.rrefs.discard(received)
    this.letter(reason, peer, what)
  }

  /** `peer` is who it came from; null: it arose here. */
  letter(reason: DeadLetterReason, peer: Peer | null, what: string): void {
    const letter = { reason, atMs: this.clock.now(), from: peer === null ? null : peer.info.name, what }
    this.deadLetters.add(letter)
    this.inspection?.deadLetter(letter)
  }

  /** What this worker waits for and what it serves. */
  whoWaits(): { waits: Wait[]; serving: Serving[] } {
    const peers = [...this.peersById.values()]
    return {
      waits: [...ownWaits(this.waits), ...peers.flatMap((peer) => [...requestsTo(peer)])],
      serving: peers.flatMap((peer) => [...servedFor(peer)]),
    }
  }

  get pendingCount(): number {
    let count = this.waits.size
    for (const peer of this.peersById.values()) count += peer.pending.size
    return count
  }

  /** Blocks that peers have not read yet. */
  get blocksOnTheWay(): number {
    let count = 0
    for (const { ledger } of this.peersById.values()) count += ledger.road?.inFlight ?? 0
    return count
  }

  /** Who has not read them. */
  get unread(): WorkerInfo[] {
    return [...this.peersById.values()].filter(({ ledger }) => (ledger.road?.inFlight ?? 0) > 0).map(({ info }) => info)
  }

  get openLinks(): number {
    let count = 0
    for (const { link } of this.peersById.values()) if (link !== null && !link.closed) count++
    return count
  }

  // --- ends

  private onLinkClosed(peer: Peer, reason: LinkClosed): void {
    if (reason.by === 'self' || this.closed) return
    const notice: Runnable = { run: () => this.onDeath(peer, reason) }
    this.pump.mailbox.pushLast(peer.source, Lane.control, notice)
    inScope(this.scope, () => this.pump.runNow())
  }

  /** Behind everything that was received from the peer: replies that had arrived have been delivered. */
  private onDeath(peer: Peer, { detail }: LinkClosed): void {
    peer.ledger.road?.close()
    try {
      const death = this.deathBy(peer, detail)
      this.inspection?.death(peer.info.name, peer.info.id, death.cause)
      this.liveness.report(death)
    } finally {
      peer.pending.failAll(() => this.diedError(peer, 'call'))
      peer.ledger.outgoing.fail(() => this.diedError(peer, 'ready'))
      this.deadlines.unwatch(peer.pending)
      peer.link = ENDED_LINK
      this.giveUp(this.orphans(peer), this.diedError(peer, 'currentSignal'))
    }
  }

  /** What is served for a worker that has died; but a value to which others refer by now is made for them. */
  private *orphans(peer: Peer): Iterable<ServedCall> {
    for (const [, served] of peer.served.entries()) {
      if (served.owner === null || !this.rrefs.owns(served.owner.rrefId)) yield served
    }
  }

  private diedError(peer: Peer, op: string): PostgradError {
    return workerDied(op, this.liveness.deathOf(peer.info.id) ?? this.deathBy(peer, ''), peer)
  }

  private deathBy({ info, isLeaving, endExpected }: Peer, detail: string): NoticedDeath {
    const hasLeft = isLeaving || endExpected
    return { worker: info, cause: hasLeft ? 'left' : 'link-closed', detail: hasLeft ? '' : detail, atMs: this.clock.now() }
  }

  shutDownError(op: string): PostgradError {
    return new PostgradError('RPC_SHUT_DOWN', {
      op,
      message: `worker '${this.info.name}' has been shut down`,
      remedy: 'Launch a new cluster, or close this one only after its last call.',
      values: { worker: this.info.name },
    })
  }

  drain(): void {
    this.isDraining = true
  }

  /** What a caller learns whose call has not begun here and never will. */
  private drainingError(op: string): PostgradError {
    return new PostgradError('WORKER_DRAINING', {
      op,
      message: `worker '${this.info.name}' takes no more calls, it is about to end; this one was not run`,
      remedy: 'Call another worker, or this one when it has been started anew; nothing was done, so it may be repeated.',
      values: { worker: this.info.name, workerId: this.info.id },
    })
  }

  /** What waits is rejected with RPC_SHUT_DOWN, requests of others that have not begun are answered, links are closed, nothing is delivered any more; blocks that nobody has read are lost. Idempotent. */
  close(): void {
    if (this.closed) return
    this.pump.stop((item) => {
      if (!(item instanceof Delivery)) return
      this.letter('stopped', item.peer, nameOf(item.message.type))
      if (item.served !== null && item.peer.link !== null) this.onRefused(item, this.drainingError(String(item.message.body[0])))
    })
    this.closed = true
    this.shutdown?.abort(this.closedBy)
    this.waits.failAll(() => this.shutDownError('call'))
    for (const peer of this.peersById.values()) {
      for (const [, served] of peer.served.entries()) served.giveUp(this.closedBy)
      peer.ledger.telling?.cancel()
      peer.pending.failAll(() => this.shutDownError('call'))
      peer.link?.close()
      peer.ledger.road?.end()
    }
    this.deadlines.close()
  }

  /** What the close means to whom it cuts short. Made for the first of them: most workers close with nothing under way, and its stack costs 10 µs. */
  get closedBy(): PostgradError {
    this.closedError ??= this.shutDownError('close')
    return this.closedError
  }

  get isClosed(): boolean {
    return this.closed
  }
}

/** What nobody begins any more with a worker that leaves. */
const REFUSED: ReadonlySet<MessageType> = new Set([MessageType.CALL, MessageType.REMOTE_CALL, MessageType.RREF_FETCH])

export function timedOut(op: string, to: WorkerInfo, timeoutMs: number, isInherited: boolean): PostgradError {
  if (isInherited) return outOfTime(op, `the call to worker '${to.name}' was given up`, { worker: to.name, workerId: to.id, timeoutMs })
  return new PostgradError('RPC_TIMEOUT', {
    op,
    message: `the call to worker '${to.name}' ran for more than its timeout (${Math.round(timeoutMs)} ms)`,
    remedy:
      'Pass { timeoutMs } for this call (0 is no limit), or look at what keeps that worker busy; its function goes on until it looks at currentSignal().',
    values: { worker: to.name, workerId: to.id, timeoutMs },
  })
}

/** For a reply that does not answer its request. */
export function wrongReply(op: string, { name, id }: WorkerInfo, got: string): PostgradError {
  return new PostgradError('RPC_WRONG_REPLY', {
    op,
    message: `worker '${name}' has answered with ${got}, which does not belong to the request`,
    remedy: 'Run the same version of postgrad on all workers; otherwise report this as a bug.',
    values: { worker: name, workerId: id },
  })
}

function noRoom(worker: WorkerInfo, timeoutMs: number): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op: 'ready',
    message: `worker '${worker.name}' had no room for a call within ${Math.round(timeoutMs)} ms`,
    remedy: 'Pass { timeoutMs } (0 is no limit), or look at what keeps that worker busy.',
    values: { worker: worker.name, workerId: worker.id, timeoutMs },
  })
}

/** The RRef that a message is about, if its kind is about one: no message overtakes an earlier one about the same. */
function aboutRRef({ type, body }: Message): bigint | null {
  const field = MESSAGE_TABLE[type].rrefField
  return field === null ? null : (body[field] as bigint)
}

export function nameOf(type: MessageType): string {
  return MESSAGE_TABLE[type].name
}
