/**
 * What a worker does with each message of calls and references: run the function, reply, settle what waited. One function per message
 * type, registered with the agent below. PyTorch: `torch/csrc/distributed/rpc/request_callback_impl.cpp`.
 */
import type { PostgradError } from '@postgrad/base'
import { inScope, isThenable, markHop, type Scope, withHop } from '@postgrad/base/internal'
import { isWatched, MessageType } from '@postgrad/wire/internal'
import type { Actors } from '../actors/actors.js'
import { ROUNDING_MS } from '../calls/pending-calls.js'
import { type AnyClass, type FunctionRegistry, runExposed } from '../core/function-registry.js'
import type { WorkerInfo } from '../core/worker-info.js'
import type { Outcome } from '../observe/metrics.js'
import type { OwnerRRef } from '../references/rref.js'
import type { RRefContext } from '../references/rref-context.js'
import type { Delivery, Peer, Unreadable } from './delivery.js'
import { nameOf, type RpcAgent, timedOut } from './rpc-agent.js'
import { failStream } from './stream-serving.js'

/** What serving one kind of request is. One object per kind, none per request. */
interface Work {
  run(request: Request): unknown
  done(request: Request, value: unknown): void
  failed(request: Request, error: unknown): void
}

/** One request that is being served. */
class Request {
  readonly delivery: Delivery
  readonly work: Work
  /** Where the value of a remote call goes. */
  readonly owner: OwnerRRef | null

  constructor(delivery: Delivery, work: Work, owner: OwnerRRef | null) {
    this.delivery = delivery
    this.work = work
    this.owner = owner
  }
}

export interface Serving {
  readonly agent: RpcAgent
  readonly registry: FunctionRegistry
  readonly rrefs: RRefContext
  readonly actors: Actors
  /** The scope in which this message's call runs. */
  servingScope(delivery: Delivery): Scope
}

export class RequestCallback {
  private servingCount = 0
  private readonly agent: RpcAgent
  private readonly registry: FunctionRegistry
  private readonly rrefs: RRefContext
  private readonly actors: Actors
  private readonly servingScope: (delivery: Delivery) => Scope

  constructor({ agent, registry, rrefs, actors, servingScope }: Serving) {
    this.agent = agent
    this.registry = registry
    this.rrefs = rrefs
    this.actors = actors
    this.servingScope = servingScope
    agent.handle(MessageType.CALL, (delivery) => this.onCall(delivery))
    agent.handle(MessageType.REMOTE_CALL, (delivery) => this.onRemoteCall(delivery))
    agent.handle(MessageType.RREF_FETCH, (delivery) => this.onFetch(delivery))
    agent.handle(MessageType.RESULT, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.REMOTE_RET, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.RREF_ACK, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.EXCEPTION, (delivery) => this.onException(delivery))
    agent.handle(MessageType.RREF_USER_DELETE, (delivery) => this.onUserDelete(delivery))
    agent.handle(MessageType.RREF_CHILD_ACCEPT, (delivery) => this.onChildAccept(delivery))
    agent.handle(MessageType.RREF_FORK_REQUEST, (delivery) => this.onForkRequest(delivery))
    agent.onUnreadable = (unreadable) => this.onUnreadable(unreadable)
    agent.onRefused = ({ message, peer }, error) => this.replyError(peer, message.requestId, error)
  }

  /** Calls that have begun and not been answered. */
  get serving(): number {
    return this.servingCount
  }

  set serving(count: number) {
    this.servingCount = count
    if (count === 0) this.agent.activity.changed()
  }

  // --- requests

  private onCall(delivery: Delivery): void {
    this.serve(new Request(delivery, this.callWork, null))
  }

  /** The fork is registered and confirmed before the function runs; its value or error goes into the owner's entry. */
  private onRemoteCall(delivery: Delivery): void {
    const { message, peer } = delivery
    const [, , rrefId, forkId] = message.body as [string, readonly unknown[], bigint, bigint]
    const toSelf = peer.link === null
    let owner: OwnerRRef
    try {
      owner = toSelf ? this.rrefs.lookup(rrefId) : this.rrefs.admit(rrefId, forkId, peer.info.id)
    } catch (error) {
      // Its maker does not speak of such a value.
      this.refuse(delivery)
      this.replyError(peer, message.requestId, error)
      return
    }
    const served = delivery.served!
    served.owner = owner
    // The fork of one that was given up counts all the same, since its end is on its way; but nobody waits for the word.
    if (served.givenUp === null) this.reply(peer, message.requestId, MessageType.REMOTE_RET, [rrefId, forkId, null], false)
    this.serve(new Request(delivery, this.remoteWork, owner))
    if (toSelf) this.rrefs.releaseHold(rrefId)
  }

  private onFetch(delivery: Delivery): void {
    this.serve(new Request(delivery, this.fetchWork, null))
  }

  private onForkRequest({ message, peer }: Delivery): void {
    const [rrefId, forkId] = message.body as [bigint, bigint]
    try {
      this.rrefs.onForkRequest(rrefId, forkId, peer.info.id)
    } catch (error) {
      this.replyError(peer, message.requestId, error)
      return
    }
    this.reply(peer, message.requestId, MessageType.RREF_ACK, [forkId], false)
  }

  private onChildAccept({ message, peer }: Delivery): void {
    const forkId = message.body[0] as bigint
    if (!this.rrefs.onChildAccept(forkId, peer.info.id)) this.agent.letter('unknown-reference', peer, `RREF_CHILD_ACCEPT ${forkId}`)
  }

  private onUserDelete({ message, peer }: Delivery): void {
    const [rrefId, forkId] = message.body as [bigint, bigint]
    if (!this.rrefs.onUserDelete(rrefId, forkId, peer.info.id)) this.agent.letter('unknown-reference', peer, `RREF_USER_DELETE ${rrefId}`)
  }

  private readonly callWork: Work = {
    run: ({ delivery: { message } }) => {
      const exposed = this.registry.lookup(message.body[0] as string, this.agent.info.name)
      return runExposed(exposed, message.body[1] as readonly unknown[])
    },
    done: ({ delivery: { message, peer } }, value) => this.reply(peer, message.requestId, MessageType.RESULT, [value], true),
    failed: ({ delivery: { message, peer } }, error) => this.replyError(peer, message.requestId, error),
  }

  private readonly remoteWork: Work = {
    run: (request) => {
      const { message } = request.delivery
      const { target, isClass } = this.registry.lookup(message.body[0] as string, this.agent.info.name)
      if (!isClass) return this.callWork.run(request)
      return this.actors.construct(target as AnyClass, message.body[1] as readonly unknown[], request.owner!, isWatched(message))
    },
    done: ({ owner }, value) => owner?.setValue(value),
    failed: ({ owner }, error) => owner?.setError(error),
  }

  private readonly fetchWork: Work = {
    // As long as the one who asks waits, and no default of this worker's.
    run: ({ delivery: { message } }) => this.rrefs.lookup(message.body[0] as bigint).toHere({ timeoutMs: 0 }),
    done: this.callWork.done,
    failed: this.callWork.failed,
  }

  /** Runs the request's work in a scope of its own, once all references in it are confirmed. Its end, now or later, is told in that scope. */
  private serve(request: Request): void {
    const { agent } = this
    const { message, peer, expiresMs, unconfirmed, served } = request.delivery
    if (expiresMs !== Number.POSITIVE_INFINITY && agent.clock.now() > expiresMs) {
      this.drop(request, 'expired', timedOut(String(message.body[0]), peer.info, message.deadlineMs ?? 0, false))
      return
    }
    if (served!.givenUp !== null) {
      this.drop(request, 'cancelled', served!.givenUp)
      return
    }
    let scope: Scope
    try {
      for (const interceptor of agent.interceptors) interceptor.incoming?.(message, peer.info)
      scope = this.servingScope(request.delivery)
    } catch (error) {
      this.refuse(request.delivery)
      request.work.failed(request, error)
      return
    }
    this.serving++
    if (unconfirmed === null) inScope(scope, this.start, request)
    else inScope(scope, () => this.startConfirmed(request, unconfirmed))
  }

  /** It is not run; who waits for it is told by somebody else. */
  private refuse(delivery: Delivery): void {
    this.agent.notBegun(delivery)
    if (delivery.received !== null) this.rrefs.discard(delivery.received)
    delivery.peer.served.take(delivery.message.requestId)
  }

  /** It is not run, and nobody waits for it: only those hear of it who share the reference that it was to make. */
  private drop({ delivery, owner }: Request, reason: 'cancelled' | 'expired', error: PostgradError): void {
    const { message, peer } = delivery
    peer.served.take(message.requestId)
    owner?.setError(error)
    this.agent.discard(delivery, reason, `${nameOf(message.type)} ${String(message.body[0])}`)
  }

  private async startConfirmed(request: Request, unconfirmed: readonly Promise<unknown>[]): Promise<void> {
    const problem = (await Promise.all(unconfirmed)).find((failure) => failure !== null)
    const { givenUp } = request.delivery.served!
    if (givenUp !== null) {
      this.serving--
      this.drop(request, 'cancelled', givenUp)
      return
    }
    if (problem === undefined) {
      this.start(request)
      return
    }
    this.agent.notBegun(request.delivery)
    if (request.delivery.received !== null) this.rrefs.discard(request.delivery.received)
    this.abandon(request, problem)
  }

  private readonly start = (request: Request): void => {
    const { agent } = this
    const { delivery } = request
    const served = delivery.served!
    if (agent.inspection !== null) agent.inspection.begun(delivery)
    let value: unknown
    try {
      const { callInterceptors } = agent
      const { message, peer } = delivery
      value =
        callInterceptors === null ? request.work.run(request) : callInterceptors.serve(message, peer.info, () => request.work.run(request))
      if (served.isPutOff) {
        agent.inspection?.putOff(delivery)
        served.onBegin = () => {
          agent.begun(delivery)
          agent.inspection?.begun(delivery)
        }
      } else {
        agent.begun(delivery)
        if (agent.inspection !== null) agent.inspection.firstTurnOver(delivery)
      }
      // A promise is taken as it is; of anything else with a `then`, at most one of the two calls is believed.
      if (isThenable(value)) value = Promise.resolve(value)
    } catch (error) {
      this.abandon(request, error)
      return
    }
    if (value instanceof Promise) {
      value.then(
        (later) => this.finish(request, later),
        (error) => this.abandon(request, error),
      )
    } else {
      this.finish(request, value)
    }
  }

  private finish(request: Request, value: unknown): void {
    if (this.end(request, 'value')) request.work.done(request, value)
  }

  private abandon(request: Request, error: unknown): void {
    if (this.end(request, 'error') && !this.isTooLate(request)) request.work.failed(request, error)
    const { crash } = request.delivery.served!
    if (crash !== null) this.agent.giveUp([request.delivery.served!], crash)
  }

  /**
   * Whether the caller has timed out before it could hear of this error. What was served waits no longer than its caller does, so both give up in
   * the same moment, and the word of it would be a dead letter. A remote call's deadline is for its confirmation alone.
   */
  private isTooLate({ work, delivery: { expiresMs } }: Request): boolean {
    return work !== this.remoteWork && expiresMs !== Number.POSITIVE_INFINITY && this.agent.clock.now() > expiresMs - ROUNDING_MS
  }

  /** Whether anybody waits for the outcome. */
  private end({ delivery }: Request, outcome: Outcome): boolean {
    this.serving--
    const { message, peer } = delivery
    const served = delivery.served!
    served.onBegin = null
    this.agent.begun(delivery)
    if (served.isRefused && delivery.received !== null) this.rrefs.discard(delivery.received)
    peer.served.take(message.requestId)
    if (this.agent.inspection !== null) this.agent.inspection.ended(delivery, served.givenUp === null ? outcome : 'given-up')
    return served.givenUp === null
  }

  private reply(peer: Peer, requestId: number, type: MessageType, body: readonly unknown[], intercepted: boolean): void {
    const { agent } = this
    // Nobody is there to be told: the caller has died or this worker has shut down.
    if (agent.reachable(peer.info.id) === undefined) {
      agent.letter('link-closed', peer, nameOf(type))
      return
    }
    try {
      const out = agent.prepare(peer, type, body, 'reply')
      out.requestId = requestId
      if (intercepted) agent.intercept(out, peer)
      agent.send(peer, out)
    } catch (error) {
      this.replyError(peer, requestId, error)
    }
  }

  /** Never throws, whatever the error is: the codec takes of it what can be sent. */
  private replyError(peer: Peer, requestId: number, error: unknown): void {
    if (this.agent.reachable(peer.info.id) === undefined) {
      this.agent.letter('link-closed', peer, 'EXCEPTION')
      return
    }
    const out = this.agent.prepare(peer, MessageType.EXCEPTION, [error], 'reply')
    out.requestId = requestId
    this.agent.send(peer, out)
  }

  // --- replies

  private onReply(delivery: Delivery): void {
    const { message, peer, received } = delivery
    const waiting = this.agent.takePending(peer, message.type, message.requestId)
    if (waiting === undefined) {
      if (received !== null) this.rrefs.discard(received)
      return
    }
    try {
      if (message.type === MessageType.RESULT) for (const interceptor of this.agent.interceptors) interceptor.incoming?.(message, peer.info)
    } catch (error) {
      if (received !== null) this.rrefs.discard(received)
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

  private onException({ message, peer }: Delivery): void {
    const error = message.body[0]
    addHop(error, peer.info)
    this.agent.takePending(peer, message.type, message.requestId)?.onError(error)
  }

  private onUnreadable(unreadable: Unreadable): void {
    const { peer, error } = unreadable
    const { type, requestId } = unreadable.head
    if (REQUESTS.has(type)) this.replyError(peer, requestId, error)
    else if (type === MessageType.STREAM_ITEM) failStream(this.agent, peer, requestId, error)
    else if (REPLIES.has(type)) this.agent.takePending(peer, type, requestId)?.onError(error)
    else this.agent.unreadableHandlers.get(type)?.(unreadable)
  }
}

const REQUESTS: ReadonlySet<MessageType> = new Set([
  MessageType.CALL,
  MessageType.REMOTE_CALL,
  MessageType.RREF_FETCH,
  MessageType.RREF_FORK_REQUEST,
])
const REPLIES: ReadonlySet<MessageType> = new Set([MessageType.RESULT, MessageType.EXCEPTION, MessageType.REMOTE_RET, MessageType.RREF_ACK])

/** Writes into an error that came from `from` that it did; where it arose stands first. */
function addHop(error: unknown, from: WorkerInfo): void {
  const travelled = error as { workers?: readonly { name: string; id: number }[] }
  travelled.workers = withHop(travelled.workers ?? [], from)
  markHop(error, from.name)
}
