/**
 * Gives a worker distributed autograd: registers handlers and an interceptor with rpc, and attaches container and engine to the
 * runtime. rpc never names autograd; only this file knows both.
 */

import { type PostgradError, workerOf } from '@postgrad/base'
import type { AnyFunction, WorkerInfo } from '@postgrad/rpc'
import type { FunctionRegistry, WorkerRuntime } from '@postgrad/rpc/internal'
import { currentRuntime } from '@postgrad/rpc/internal'
import { arange, eye, full, ones, rand, randint, randn, Tensor, zeros } from '@postgrad/tensor'
import { entries } from '@postgrad/tensor/internal'
import * as operations from '@postgrad/tensor/operations'
import { type Message, MessageType, type PassHead } from '@postgrad/wire/internal'
import { DistAutogradContainer } from './context/dist-autograd-container.js'
import type { DistAutogradContext } from './context/dist-autograd-context.js'
import { postIfAlive, releaseNotice, tellLineage } from './context/notices.js'
import { AutogradInterceptor, isReply } from './engine/attach.js'
import { DistEngine } from './engine/dist-engine.js'
import { objection, reportObjection } from './engine/message-check.js'
import { installRRefBackward } from './engine/rref-backward.js'

/** This package's parts at a worker. */
export interface DistAutograd {
  readonly container: DistAutogradContainer
  readonly engine: DistEngine
}

const SLOT = Symbol('postgrad.distAutograd')

/**
 * Makes distributed autograd work on a worker: call it once per runtime, before its links open. Idempotent. All workers of a cluster need it, since
 * each takes part in the passes of the others.
 */
export function installDistAutograd(runtime: WorkerRuntime): DistAutograd {
  return runtime.slot(SLOT, () => make(runtime))
}

/** Gives a worker the container and engine of another: an inlined program has one for all of its workers. */
export function shareDistAutograd(runtime: WorkerRuntime, first: WorkerRuntime): void {
  runtime.slot(SLOT, () => {
    const shared = installDistAutograd(first)
    installRRefBackward(runtime, shared.container)
    return shared
  })
}

/** The container and engine of the current worker. @throws RPC_NOT_INITIALIZED */
export function currentDistAutograd(): DistAutograd {
  return installDistAutograd(currentRuntime())
}

function make(runtime: WorkerRuntime): DistAutograd {
  exposeOperations(runtime.registry)
  const self = runtime.info.id
  const container: DistAutogradContainer = new DistAutogradContainer({
    workerId: self,
    ids: runtime.ids,
    get runner() {
      return engine.roots
    },
    deathOf: (worker) => runtime.deathOf(worker),
    onRelease: (context, error, except) => {
      engine.abandon(context, error)
      releaseNotice(runtime, context, except)
    },
  })
  const engine: DistEngine = new DistEngine(runtime, container)

  runtime.takesPart = ({ context: contextId, autogradId, pass, type }, worker) => {
    const context = contextId === null ? undefined : container.find(contextId)
    // A release that comes after another changes nothing, nor does a plain reply that comes after it.
    if (context === undefined) return type === MessageType.CLEANUP_CONTEXT || (isReply(type) && autogradId === null)
    return context.knownWorkerIds.has(worker) || (pass !== null && context.passes.get(pass)?.plan?.has(worker) === true)
  }
  runtime.intercept(new AutogradInterceptor(self, runtime.ids, container, engine, (...told) => tellLineage(runtime, ...told)))
  installRRefBackward(runtime, container)
  const take = (type: MessageType, handler: (message: Message, from: WorkerInfo, context: DistAutogradContext | undefined) => void) =>
    runtime.handle(type, (message, from) => {
      const context = message.context === null ? undefined : container.find(message.context)
      const problem = objection(message, from, context, self)
      if (problem === null) handler(message, from, context)
      else runtime.refuseInvalid(from, type, problem)
    })
  take(MessageType.PROPAGATE_GRADIENTS, (message, from, context) => engine.onGradients(message, from, context))
  take(MessageType.PASS_REPORT, (message, from, context) => {
    const problem = reportObjection(message, context)
    if (problem === null) engine.roots.onReport(message, from, context)
    else {
      runtime.refuseInvalid(from, MessageType.PASS_REPORT, problem)
      // Its sender takes part, and says it once: nothing else would end the pass before its deadline.
      engine.onUnreadable(message as PassHead, new Error(problem), from, false)
    }
  })
  take(MessageType.PASS_ERROR, (message, from, context) => {
    acquaint(runtime, message.context, context, from.id)
    engine.roots.onError(message, context)
  })
  take(MessageType.PASS_ABORT, (message, from, context) => engine.onAbort(message, from, context))
  take(MessageType.PASS_COMMIT, (message, _from, context) => engine.onCommit(message, context))
  // Read where it arrives, before its turn (AutogradInterceptor).
  take(MessageType.LINEAGE, () => {})
  for (const type of [MessageType.PROPAGATE_GRADIENTS, MessageType.PASS_REPORT, MessageType.PASS_ERROR, MessageType.PASS_ABORT]) {
    runtime.handleUnreadable(type, (pass, error, from, isFailure) => engine.onUnreadable(pass, error, from, isFailure))
  }
  take(MessageType.CLEANUP_CONTEXT, (_message, from, context) => {
    // Unknown here: released before, or never joined. No news (DA-10).
    if (context === undefined) runtime.idle(from.id)
    else container.release(context.contextId, null, from.id)
  })
  runtime.onPeerConnect((peer) => engine.onPeerConnect(peer))
  runtime.onPeerDeath((peer, error) => {
    engine.onPeerDeath(peer, error)
    releaseOrphans(container, peer.id, error)
    askForRelease(runtime, container, peer.id, error)
  })
  runtime.onClose((closedBy) => engine.onClose(closedBy))
  runtime.contribute(() => ({
    currentBackwardPasses: engine.currentBackwardPasses,
    autogradContexts: container.size,
    gradientsHeldBack: engine.heldBack.now,
    gradientsHeldBackPeak: engine.heldBack.peak,
  }))
  return { container, engine }
}

/** The contexts of a dead maker: nobody is left to release them (DA-12). */
function releaseOrphans(container: DistAutogradContainer, maker: number, error: PostgradError): void {
  for (const { contextId } of [...container.values()]) if (workerOf(contextId) === maker) container.release(contextId, error, maker)
}

/**
 * A release might have come here only by way of the dead worker, now or while it died: this worker notifies the maker that
 * it has the context (DA-31).
 */
function askForRelease(runtime: WorkerRuntime, container: DistAutogradContainer, dead: number, error: PostgradError): void {
  for (const { contextId, knownWorkerIds } of container.values()) {
    const maker = workerOf(contextId)
    if (maker === runtime.info.id || maker === dead || !knownWorkerIds.has(dead)) continue
    postIfAlive(runtime, maker, MessageType.PASS_ERROR, [error], contextId, null)
  }
}

/** The maker's side of that: it will release the worker too, or has released the context already and says so. */
function acquaint(runtime: WorkerRuntime, contextId: bigint | null, context: DistAutogradContext | undefined, from: number): void {
  if (contextId === null || workerOf(contextId) !== runtime.info.id) return
  if (context !== undefined) context.knownWorkerIds.add(from)
  else postIfAlive(runtime, from, MessageType.CLEANUP_CONTEXT, [], contextId, null)
}

/** Workers of one thread share their registry, and a simulation makes many of them: naming some hundred functions again was a fifth of its time. */
const withOperations = new WeakSet<FunctionRegistry>()

/**
 * The tensor operations are callable from the start, as in PyTorch, under names that no program takes by accident. In-place ones are not:
 * a call has value semantics, so what they wrote would be lost.
 */
function exposeOperations(registry: FunctionRegistry): void {
  if (withOperations.has(registry)) return
  withOperations.add(registry)
  const named: Record<string, AnyFunction> = {}
  for (const [name, fn] of Object.entries({ ...operations, zeros, ones, full, rand, randn, randint, arange, eye })) {
    if (!name.endsWith('_')) named[`tensor.${name}`] = fn as AnyFunction
  }
  registry.expose(named)
  exposeTensorMethods(registry)
}

/** Through a reference (`rref.rpcSync().add(t)`) the operations are methods of the value itself; what is written in place there stays. */
function exposeTensorMethods(registry: FunctionRegistry): void {
  registry.exposeMethods(
    Tensor,
    entries.map(({ name }) => name).filter((name) => name in Tensor.prototype),
  )
}
