/**
 * What a worker does with each message of calls and references: run the function, reply, settle what waited. One function per message
 * type, registered with the agent below. PyTorch: `torch/csrc/distributed/rpc/request_callback_impl.cpp`.
 */
import { isPostgradError } from '@postgrad/base'
import { inScope, type Scope } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import type { AnyClass, AnyFunction, FunctionRegistry } from './function-registry.js'
import type { Delivery, Peer, RpcAgent } from './rpc-agent.js'
import type { OwnerRRef } from './rref.js'
import type { RRefContext } from './rref-context.js'
import type { WorkerInfo } from './worker-info.js'

/** An error keeps the first and the last so many workers of its way. */
const HOPS_KEPT = 16

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
  /** The scope in which this message's call runs. */
  servingScope(message: Message): Scope
}

export class RequestCallback {
  /** Calls that have begun and not been answered. */
  serving = 0
  private readonly agent: RpcAgent
  private readonly registry: FunctionRegistry
  private readonly rrefs: RRefContext
  private readonly servingScope: (message: Message) => Scope

  constructor({ agent, registry, rrefs, servingScope }: Serving) {
    this.agent = agent
    this.registry = registry
    this.rrefs = rrefs
    this.servingScope = servingScope
    agent.handle(MessageType.CALL, (delivery) => this.onCall(delivery))
    agent.handle(MessageType.REMOTE_CALL, (delivery) => this.onRemoteCall(delivery))
    agent.handle(MessageType.RREF_FETCH, (delivery) => this.onFetch(delivery))
    agent.handle(MessageType.RESULT, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.REMOTE_RET, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.RREF_ACK, (delivery) => this.onReply(delivery))
    agent.handle(MessageType.EXCEPTION, (delivery) => this.onException(delivery))
    agent.handle(MessageType.RREF_USER_DELETE, ({ message }) => rrefs.onUserDelete(message.body[0] as bigint, message.body[1] as bigint))
    agent.handle(MessageType.RREF_CHILD_ACCEPT, ({ message }) => rrefs.onChildAccept(message.body[0] as bigint))
    agent.handle(MessageType.RREF_FORK_REQUEST, (delivery) => this.onForkRequest(delivery))
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
    const owner = toSelf ? this.rrefs.lookup(rrefId) : this.rrefs.admit(rrefId, forkId, peer.info.id)
    this.reply(peer, message.requestId, MessageType.REMOTE_RET, [rrefId, forkId, null], false)
    this.serve(new Request(delivery, this.remoteWork, owner))
    if (toSelf) this.rrefs.releaseHold(rrefId)
  }

  private onFetch(delivery: Delivery): void {
    this.serve(new Request(delivery, this.fetchWork, null))
  }

  private onForkRequest({ message, peer }: Delivery): void {
    const [rrefId, forkId] = message.body as [bigint, bigint]
    this.rrefs.onForkRequest(rrefId, forkId, peer.info.id)
    this.reply(peer, message.requestId, MessageType.RREF_ACK, [forkId], false)
  }

  private readonly callWork: Work = {
    run: ({ delivery: { message } }) => {
      const { target, isClass } = this.registry.lookup(message.body[0] as string, this.agent.info.name)
      const args = message.body[1] as readonly unknown[]
      return isClass ? new (target as AnyClass)(...args) : (target as AnyFunction)(...args)
    },
    done: ({ delivery: { message, peer } }, value) => this.reply(peer, message.requestId, MessageType.RESULT, [value], true),
    failed: ({ delivery: { message, peer } }, error) => this.replyError(peer, message.requestId, error),
  }

  private readonly remoteWork: Work = {
    run: this.callWork.run,
    done: ({ owner }, value) => owner?.setValue(value),
    failed: ({ owner }, error) => owner?.setError(error),
  }

  private readonly fetchWork: Work = {
    run: ({ delivery: { message } }) => this.rrefs.lookup(message.body[0] as bigint).toHere(),
    done: this.callWork.done,
    failed: this.callWork.failed,
  }

  /** Runs the request's work in a scope of its own, once all references in it are confirmed. Its end, now or later, is told in that scope. */
  private serve(request: Request): void {
    const { message, peer, unconfirmed } = request.delivery
    let scope: Scope
    try {
      for (const interceptor of this.agent.interceptors) interceptor.incoming?.(message, peer.info)
      scope = this.servingScope(message)
    } catch (error) {
      request.work.failed(request, error)
      return
    }
    this.serving++
    if (unconfirmed === null) inScope(scope, this.start, request)
    else inScope(scope, () => Promise.all(unconfirmed).then(() => this.start(request)))
  }

  private readonly start = (request: Request): void => {
    try {
      const value = request.work.run(request)
      if (isThenable(value)) {
        value.then(
          (later) => this.finish(request, later),
          (error) => this.abandon(request, error),
        )
      } else {
        this.finish(request, value)
      }
    } catch (error) {
      this.abandon(request, error)
    }
  }

  private finish(request: Request, value: unknown): void {
    this.serving--
    request.work.done(request, value)
  }

  private abandon(request: Request, error: unknown): void {
    this.serving--
    request.work.failed(request, error)
  }

  private reply(peer: Peer, requestId: number, type: MessageType, body: readonly unknown[], intercepted: boolean): void {
    const { agent } = this
    try {
      const out = agent.codec.prepare(type, body, peer.env)
      out.requestId = requestId
      if (intercepted) agent.intercept(out, peer)
      agent.send(peer, out, 'reply')
    } catch (error) {
      this.replyError(peer, requestId, error)
    }
  }

  private replyError(peer: Peer, requestId: number, error: unknown): void {
    const { agent } = this
    // Nobody is there to be told: the caller has died or this worker is shutting down.
    if (agent.isClosed || peer.link?.closed) {
      agent.letter('link-closed', peer, `reply: ${error instanceof Error ? error.message : String(error)}`)
      return
    }
    const out = agent.codec.prepare(MessageType.EXCEPTION, [error], peer.env)
    out.requestId = requestId
    agent.send(peer, out, 'reply')
  }

  // --- replies

  private onReply(delivery: Delivery): void {
    const waiting = this.agent.takePending(delivery)
    if (waiting === undefined) return
    const { message, peer } = delivery
    try {
      if (message.type === MessageType.RESULT) for (const interceptor of this.agent.interceptors) interceptor.incoming?.(message, peer.info)
      waiting.onReply(message)
    } catch (error) {
      waiting.onError(error)
    }
  }

  private onException(delivery: Delivery): void {
    const error = delivery.message.body[0]
    addHop(error, delivery.peer.info)
    this.agent.takePending(delivery)?.onError(error)
  }
}

/** Writes into an error that came from `from` that it did; where it arose stands first. */
function addHop(error: unknown, from: WorkerInfo): void {
  if (!(error instanceof Error) && !isPostgradError(error)) return
  const travelled = error as { workers?: readonly { name: string; id: number }[] }
  const workers = [...(travelled.workers ?? []), { name: from.name, id: from.id }]
  if (workers.length > 2 * HOPS_KEPT) workers.splice(HOPS_KEPT, workers.length - 2 * HOPS_KEPT)
  travelled.workers = workers
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
