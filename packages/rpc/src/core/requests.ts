/**
 * The requests of this worker to others: how each request begins, the replies that end it, and how it is cancelled. `message-path.ts` carries the
 * messages; `rpc-caller.ts` and the protocol of references begin requests.
 *
 *   start: time left → signal → prepare → intercept → note → send     … RESULT, EXCEPTION, the deadline, the peer's death, cancelling, the close
 */
import { Future, isPostgradError, type PostgradError } from '@postgrad/base'
import {
  type Canceller,
  callCancelled,
  checkSignal,
  currentScope,
  markHop,
  outOfTime,
  ownEnd,
  type Scope,
  ScopedAbort,
  timeLimit,
  withHop,
} from '@postgrad/base/internal'
import { MESSAGE_TABLE, type Message, MessageType, type OutgoingMessage, setChain } from '@postgrad/wire/internal'
import type { CallOptions } from '../common/call-options.js'
import { notThereInTime, shutDownError, timedOut, wrongReply } from '../common/rpc-errors.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { CallHooks } from './hooks.js'
import type { Incoming, Unreadable } from './incoming-call.js'
import { type CoreHost, INTERCEPTED, type MessagePath, nameOf } from './message-path.js'
import type { Peer } from './peer.js'
import { Deadlines, type OwnWait, type PendingCall, PendingCalls } from './pending-calls.js'
import { cancelledByCaller, currentServing, type ServedCall, servedIn } from './served-call.js'

export interface RequestsHost extends CoreHost {
  /** Default deadline of a call in ms; 0 is none. */
  readonly rpcTimeoutMs: number
  /** The error of all that the close cuts short. */
  readonly closedBy: PostgradError
  /** Of this worker's own work. */
  readonly scope: Scope
}

/** A request of this worker. It ends by whichever comes first: the reply, the peer's death, the deadline, the cancellation or the shutdown. */
export abstract class OutgoingRequest implements PendingCall, Canceller {
  deadlineMs = Number.POSITIVE_INFINITY
  parent: ServedCall | null = null
  reply: MessageType | null = null
  /** Set by `start`, as is the next. */
  requestId = 0
  timeoutMs = Number.POSITIVE_INFINITY
  readonly peer: Peer
  readonly op: string

  constructor(peer: Peer, op: string) {
    this.peer = peer
    this.op = op
  }

  abstract onReply(message: Message): void
  abstract onError(error: unknown): void

  /** Writes into the envelope before interceptors see the message. */
  mark(_out: OutgoingMessage): void {}

  /** Returns whether it was still waiting. */
  cancel(reason: unknown): boolean {
    return this.peer.pending.cancel(this.requestId, reason)
  }

  timedOut(isInherited: boolean): PostgradError {
    return timedOut(this.op, this.peer.info, this.timeoutMs, isInherited)
  }
}

/** A request whose answer is a future: of a call that is the value, of the protocol of references the message itself. */
class FutureRequest<T> extends OutgoingRequest {
  protected readonly future: Future<T>
  private readonly read: (message: Message) => T

  constructor(peer: Peer, op: string, future: Future<T>, read: (message: Message) => T) {
    super(peer, op)
    this.future = future
    this.read = read
  }

  onReply(message: Message): void {
    this.future.resolve(this.read(message))
  }

  onError(error: unknown): void {
    this.future.reject(error)
  }
}

/** A request about a reference. Its error gives way to that of the reference, which the peer may send in the same turn, after its answer. */
class ReferenceRequest<T> extends FutureRequest<T> {
  private readonly errorOf: (error: unknown) => unknown

  constructor(peer: Peer, op: string, future: Future<T>, read: (message: Message) => T, errorOf: (error: unknown) => unknown) {
    super(peer, op, future, read)
    this.errorOf = errorOf
  }

  override onError(error: unknown): void {
    void Promise.resolve().then(() => this.future.reject(this.errorOf(error)))
  }

  onCancelled(error: unknown): void {
    this.future.reject(error)
  }
}

/** Options of a wait for something of this worker itself, without a request. */
export interface WaitOptions {
  readonly timeoutMs?: number | undefined
  readonly op: string
  readonly what: string
  /** The value that is waited for, where it is made. */
  readonly rrefId?: bigint
  /** Its maker is cancelled when the time is over. */
  readonly isCancelled?: boolean
}

export class Requests {
  /** Those of users; null while there are none. */
  around: CallHooks | null = null
  readonly deadlines: Deadlines
  /** Waits for something of this worker itself. */
  readonly waits: PendingCalls
  private readonly host: RequestsHost
  private readonly messages: MessagePath
  private nextRequest = 1
  private shutdown: ScopedAbort | null = null
  /** Served calls that were cancelled in this turn and have called others. */
  private givenUp = new Set<ServedCall>()

  constructor(host: RequestsHost, messages: MessagePath) {
    this.host = host
    this.messages = messages
    this.deadlines = new Deadlines(host)
    this.waits = this.deadlines.watch(new PendingCalls(this.deadlines, host.info, () => {}))
    messages.handle(MessageType.CALL_CANCEL, ({ body }, _from, { peer }) => this.onCancel(peer, body[0] as number, body[1] as boolean))
    for (const type of [MessageType.RESULT, MessageType.REMOTE_RET, MessageType.RREF_ACK])
      messages.handle(type, (_message, _from, item) => this.onReply(item))
    messages.handle(MessageType.EXCEPTION, (message, _from, { peer }) => this.onException(message, peer))
    for (const type of [MessageType.RESULT, MessageType.REMOTE_RET, MessageType.RREF_ACK, MessageType.EXCEPTION])
      messages.handleUnreadable(type, (unreadable) => this.onUnreadable(unreadable))
  }

  /** Requests to a peer. `deadlines` watches them for as long as the peer lives. */
  pendingFor(info: WorkerInfo): PendingCalls {
    return new PendingCalls(this.deadlines, info, (requestId) =>
      this.messages.postIfReachable(info.id, MessageType.CALL_CANCEL, [requestId, false]),
    )
  }

  // --- asking

  /** Sends a request. @throws RPC_TIMEOUT, CALL_CANCELLED, INVALID_ARGUMENT, RPC_SHUT_DOWN, WORKER_DIED, MAILBOX_FULL, what the codec and interceptors throw */
  start(request: OutgoingRequest, type: MessageType, body: readonly unknown[], { timeoutMs, signal, ordered }: CallOptions): void {
    const { messages } = this
    const { peer, op } = request
    const scope = currentScope()
    const leftMs = this.timeLeft(timeoutMs, op, peer.info, scope)
    checkSignal(signal, op, peer.info)
    const out = messages.prepare(peer, type, body, op)
    if (ordered === false) out.isUnordered = true
    request.mark(out)
    if (INTERCEPTED.has(type)) messages.intercept(out, peer, scope)
    const requestId = this.nextRequest++
    out.requestId = requestId
    request.requestId = requestId
    request.timeoutMs = leftMs
    if (leftMs !== Number.POSITIVE_INFINITY) out.deadlineMs = leftMs
    const waiting: PendingCall = this.around === null ? request : this.observed(this.around, request, out)
    waiting.reply = MESSAGE_TABLE[type].reply
    if (scope.chain !== null) setChain(out, scope.chain)
    peer.pending.add(requestId, waiting, leftMs, servedIn(scope))
    try {
      messages.send(peer, out)
    } catch (error) {
      peer.pending.take(requestId)
      waiting.unsent?.(error)
      throw error
    }
  }

  /**
   * The same with a future, which has the error as well if the request is not sent. `read` takes the answer out of the reply. `errorOf`, for a request about a
   * reference, may give another error for the one that ends the request.
   */
  ask<T>(
    peer: Peer,
    type: MessageType,
    body: readonly unknown[],
    op: string,
    options: CallOptions,
    read: (message: Message) => T,
    errorOf: ((error: unknown) => unknown) | null = null,
  ): Future<T> {
    const future = new Future<T>()
    try {
      const request = errorOf === null ? new FutureRequest(peer, op, future, read) : new ReferenceRequest(peer, op, future, read, errorOf)
      this.start(request, type, body, options)
      future.cancelWith(request)
      if (options.signal !== undefined) future.cancelOn(options.signal)
    } catch (error) {
      future.reject(errorOf === null ? error : errorOf(error))
    }
    return future
  }

  private observed(around: CallHooks, request: OutgoingRequest, out: OutgoingMessage): PendingCall {
    try {
      return around.outgoing(out, request.peer.info, request)
    } catch (error) {
      this.messages.unsent(out)
      throw error
    }
  }

  /**
   * The time that a call may take: its own, and never more than what is left to the call that is being served.
   * @throws RPC_TIMEOUT, and CALL_CANCELLED when that one has been cancelled
   */
  timeLeft(timeoutOption: number | undefined, op: string, to: WorkerInfo, scope = currentScope()): number {
    const { rpcTimeoutMs, clock, isClosed } = this.host
    const own = timeLimit(op, timeoutOption ?? rpcTimeoutMs)
    let left = own
    if (scope.deadlineMs !== Number.POSITIVE_INFINITY) {
      left = Math.min(own, scope.deadlineMs - clock.now())
      if (left <= 0) throw outOfTime(op, `worker '${to.name}' was not called`, { worker: to.name, workerId: to.id, timeoutMs: 0 })
    }
    const givenUp = servedIn(scope)?.givenUp ?? null
    if (givenUp !== null && !isClosed) throw callCancelled(op, to, givenUp)
    return left
  }

  /** Begins a wait, which is part of the call `parent`, and returns what ends it. @throws RPC_SHUT_DOWN */
  wait(wait: OwnWait, timeoutMs: number, parent = currentServing()): () => void {
    if (this.host.isClosed) throw shutDownError(wait.op, this.host.info)
    const requestId = this.nextRequest++
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op: wait.op,
      about: () => wait.about(),
      onReply: () => {},
      onError: (error) => wait.onError(error),
      timedOut: (isInherited) => wait.timedOut(isInherited),
    }
    this.waits.add(requestId, waiting, timeoutMs, parent)
    return () => {
      this.waits.take(requestId)
    }
  }

  /** The same for a value: `fail` takes the error of the deadline or the shutdown, unless the returned function was called before. @throws RPC_TIMEOUT, RPC_SHUT_DOWN */
  waitFor(fail: (error: unknown) => void, { timeoutMs, op, what, rrefId, isCancelled = false }: WaitOptions): () => void {
    const leftMs = this.timeLeft(timeoutMs, op, this.host.info)
    const wait: OwnWait = {
      op,
      about: () => ({ kind: 'value', what, ...(rrefId === undefined ? {} : { rrefId }) }),
      onError: fail,
      timedOut: (isInherited) =>
        isInherited ? outOfTime(op, `${what} is not waited for`, { timeoutMs: leftMs }) : notThereInTime(op, what, leftMs, isCancelled),
    }
    return this.wait(wait, leftMs)
  }

  // --- replies

  private onReply({ message, peer, received }: Incoming): void {
    const { references, interceptors } = this.messages
    const waiting = this.takePending(peer, message.type, message.requestId)
    if (waiting === undefined) {
      if (received !== null) references.discard(received)
      return
    }
    try {
      if (message.type === MessageType.RESULT) for (const interceptor of interceptors) interceptor.incoming?.(message, peer.info)
    } catch (error) {
      if (received !== null) references.discard(received)
      waiting.onError(error)
      return
    }
    try {
      waiting.onReply(message)
    } catch (error) {
      // It is not in the table any more: nothing else would end it.
      waiting.onError(error)
      throw error
    }
  }

  private onException({ body, type, requestId }: Message, peer: Peer): void {
    const error = body[0]
    const waiting = this.takePending(peer, type, requestId)
    addHop(error, peer.info, waiting?.op)
    // Released by its maker, in whose program this worker serves.
    if (isPostgradError(error, 'CONTEXT_RELEASED')) ownEnd(error)
    waiting?.onError(error, body[1] as boolean)
  }

  private onUnreadable({ peer, type, head, error, failed }: Unreadable): void {
    const waiting = this.takePending(peer, type, head.requestId)
    if (failed !== null) addHop(error, peer.info, waiting?.op)
    waiting?.onError(error)
  }

  /** The call that a reply belongs to. A reply to nothing that waits is a dead letter; one of a kind that does not answer the request ends it. */
  private takePending(peer: Peer, type: MessageType, requestId: number): PendingCall | undefined {
    const waiting = peer.pending.take(requestId)
    if (waiting === undefined) {
      this.host.letter('unknown-request', nameOf(type), peer.info)
      return undefined
    }
    if (type === MessageType.EXCEPTION || waiting.reply === type) return waiting
    this.messages.refuseInvalid(peer.info, type, 'it does not answer what was asked')
    waiting.onError(wrongReply(waiting.op, peer.info, nameOf(type)))
    return undefined
  }

  // --- giving up, see served-call.ts

  /** The caller waits no more; `isAwaited`: it waits for the end of a stream, but not for items. A call that has ended here is no longer known. */
  private onCancel(peer: Peer, requestId: number, isAwaited: boolean): void {
    const served = peer.served.get(requestId)
    if (served === undefined) {
      this.host.idle(peer.info.id)
      return
    }
    if (isAwaited) served.stop(cancelledByCaller(peer.info))
    else this.giveUp([served], cancelledByCaller(peer.info))
  }

  /** Nobody waits for these calls any more: their signals abort, and the calls that were made for them are cancelled as well. */
  giveUp(calls: Iterable<ServedCall>, reason: PostgradError): void {
    for (const served of calls) {
      served.giveUp(reason)
      if (!served.hasCalled) continue
      // Many may be cancelled in one turn; their calls are looked for once, after it.
      if (this.givenUp.size === 0) void Promise.resolve().then(() => this.cancelChildren())
      this.givenUp.add(served)
    }
  }

  private cancelChildren(): void {
    const parents = this.givenUp
    this.givenUp = new Set()
    for (const { pending } of this.host.peers) pending.cancelChildren(parents)
    this.waits.cancelChildren(parents)
  }

  /** Also when the call has ended for this worker, as a remote call does when its reference is confirmed. */
  tellCancelled(peer: Peer, requestId: number): void {
    this.messages.postIfReachable(peer.info.id, MessageType.CALL_CANCEL, [requestId, false])
  }

  /** Aborts when this worker shuts down. */
  get shutdownSignal(): AbortSignal {
    this.shutdown ??= new ScopedAbort(this.host.scope)
    if (this.host.isClosed) this.shutdown.abort(this.host.closedBy)
    return this.shutdown.signal
  }

  // --- ends

  /** Runs after everything received from the peer: replies that had arrived have been delivered. */
  onDeath(peer: Peer): void {
    const error = (op: string) => this.host.peers.diedError(peer, op)
    peer.pending.failAll(error)
    peer.ledger.outgoing.fail(() => error('ready'))
    this.deadlines.unwatch(peer.pending)
    this.giveUp(this.orphans(peer), error('currentSignal'))
  }

  /** Calls served for a worker that has died, except those whose values others refer to by now. */
  private *orphans({ served }: Peer): Iterable<ServedCall> {
    for (const [, call] of served.entries()) {
      if (call.owner === null || !this.messages.references.isShared(call.owner.rrefId)) yield call
    }
  }

  /**
   * This worker closes: waits for its own things are rejected with RPC_SHUT_DOWN. `failAll` does the same for one peer. A later request is not marked as an
   * end of the program's own: it is a mistake, which must be seen.
   */
  close(): void {
    this.shutdown?.abort(this.host.closedBy)
    this.waits.failAll((op) => ownEnd(shutDownError(op, this.host.info)))
    this.deadlines.close()
  }

  failAll({ served, pending }: Peer): void {
    for (const [, call] of served.entries()) call.giveUp(this.host.closedBy)
    pending.failAll((op) => ownEnd(shutDownError(op, this.host.info)))
  }

  get pendingCount(): number {
    let count = this.waits.size
    for (const { pending } of this.host.peers) count += pending.size
    return count
  }
}

/** Notes in an error that it came from `from`, and as the answer to what. The worker where it arose is first. */
function addHop(error: unknown, from: WorkerInfo, op: string | undefined): void {
  const travelled = error as { workers?: readonly { name: string; id: number }[] }
  travelled.workers = withHop(travelled.workers ?? [], from)
  markHop(error, from.name, op)
}
