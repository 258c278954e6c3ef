/**
 * One distributed forward and backward pass as one worker sees it: the workers in it, the nodes recorded for messages that left and arrived, the
 * gradients. `dist-autograd-container.ts` makes contexts; the engine fills them. PyTorch: `DistAutogradContext`.
 */

import type { WorkerId } from '@postgrad/base'
import { PostgradError } from '@postgrad/base'
import { currentScope, ownEnd } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import type { RecvRpcBackward } from '../functions/recv-rpc-backward.js'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { Lineage } from '../lineage/lineage.js'
import { ContextPasses } from '../pass/context-passes.js'
import type { DistPass } from '../pass/pass.js'
import type { PassPlan } from '../pass/pass-plan.js'

/**
 * Which gradients each worker waits for in a distributed pass. 'smart': those of the calls that the pass reaches from its roots (Note [SMART] in `lineage.ts`).
 * 'fast', as in PyTorch: those of all calls of the context; then every tensor that a call takes or returns must enter the loss, or be detached.
 */
export type BackwardMode = 'fast' | 'smart'

/** Options of a distributed backward pass: of `ctx.backward` and `distAutograd.backward`. */
export interface DistBackwardOptions {
  /** Keeps the graph on every worker, so that another pass can use it; default the value of `createGraph`. */
  readonly retainGraph?: boolean
  /**
   * Records the pass itself, on every worker, so that a further pass can differentiate its gradients; default false. In a context of mode 'fast' the pass then
   * fails with CREATE_GRAPH_NEEDS_SMART. PyTorch has this for local passes only.
   */
  readonly createGraph?: boolean
  /** Time for the whole pass in ms; default the worker's `rpcTimeoutMs` (60,000). 0: without a limit. */
  readonly timeoutMs?: number
  /** The gradients of the roots, each with the shape of its root. Null, or left out: 1, for a scalar root. PyTorch has this for local passes only. */
  readonly gradTensors?: readonly (Tensor | null)[]
  /** Ends the pass on every worker when it aborts. The pass fails with DIST_BACKWARD_CANCELLED, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * Optimizers that step at the end of the pass, in this order, with the same bits as a call of `step` after `backward`. Pass a `DistributedOptimizer`, or any
   * object with the methods of `PassOptimizer`. `backward` resolves after the step, and also rejects with the errors of `step`.
   *
   * This saves time: a worker whose gradients are final computes its part of the step while the pass still runs on other workers. The results become visible
   * when the pass has ended; after an error they are undone.
   */
  readonly optimizer?: PassOptimizer | readonly PassOptimizer[]
}

/** An optimizer that `backward` can run at the end of a pass, such as `DistributedOptimizer`. */
export interface PassOptimizer {
  /** Called before the pass, so that the workers with the parameters can prepare. Must not throw. */
  announce(context: DistAutogradContext): void
  /** Called when the pass has ended without an error: updates the parameters with the context's gradients. Resolves after the update. */
  step(context: DistAutogradContext): Promise<void>
}

/** A context, or its id. */
export type ContextOrId = { readonly id: bigint } | bigint

/** The id; whatever else is given comes back as it is, for `DistAutogradContainer.retrieve` to refuse. */
export function idOf(context: ContextOrId): bigint {
  return typeof context === 'object' && context !== null ? context.id : context
}

/** Runs the passes of a context, and ends it: the worker's distributed engine and container. */
export interface BackwardRunner {
  backward(context: DistAutogradContext, roots: readonly Tensor[], options: DistBackwardOptions): Promise<void>
  release(context: DistAutogradContext): void
  /** Whether this runs in a node of a pass, or in a hook of it. */
  readonly isInNode: boolean
}

/**
 * The context of one training step: its recorded calls and its gradients, as this worker sees them. `distAutograd.context` makes one. `backward(roots)` runs
 * the pass, `gradients()` returns this worker's gradients. PyTorch: `DistAutogradContext`.
 * @example
 * const w = tensor([1, 2], { requiresGrad: true })
 * const gradients = await distAutograd.context(async (ctx) => {
 *   const y = await call('worker1', addOne, [w])
 *   await ctx.backward([y.square().sum()])
 *   return ctx.gradients()
 * })
 * gradients.get(w)! // [4, 6]
 */
export class DistAutogradContext {
  /** The same as `id`. PyTorch: `context_id`. */
  readonly contextId: bigint
  /** Which gradients the context's passes wait for: 'smart' or 'fast'. */
  readonly mode: BackwardMode
  /** The workers, other than this one, that messages of this context went to or came from. @internal */
  readonly knownWorkerIds = new Set<WorkerId>()
  /** The nodes of messages with tensors, by autograd message id, in the order in which they left. @internal */
  readonly sendFunctions = new Map<bigint, SendRpcBackward>()
  /** The same, in the order in which they arrived. @internal */
  readonly recvFunctions = new Map<bigint, RecvRpcBackward>()
  /** From which messages those tensors came; unused in a FAST context. @internal */
  readonly lineage: Lineage
  /** Its passes, and their gradients. @internal */
  readonly passes = new ContextPasses()
  /** @internal */
  released = false
  private readonly runner: BackwardRunner

  constructor(contextId: bigint, mode: BackwardMode, self: WorkerId, runner: BackwardRunner) {
    this.contextId = contextId
    this.mode = mode
    this.lineage = new Lineage(self)
    this.runner = runner
  }

  /** The context's id, the same on every worker. `workerOf` and `localOf` take it apart: the worker that made the context, and that worker's counter. */
  get id(): bigint {
    return this.contextId
  }

  /**
   * Runs the backward pass from `roots` through all workers of the context. The roots are on this worker; each is a scalar or has its gradient in
   * `gradTensors`. Resolves when every worker has all of its gradients; each worker reads its own with `gradients()`. `.grad` does not change.
   * After an error the gradients are as before the pass. PyTorch: `torch.distributed.autograd.backward`.
   *
   * If a node or hook fails on any worker, the pass rejects with that error. BACKWARD_FAILED is then the last of its causes; its `values` name the `worker`,
   * `workerId` and `node`, in anomaly mode also the line of `forward` and its `frames`.
   * @throws NO_ROOTS, ROOT_REQUIRES_NO_GRAD, ROOT_NOT_SCALAR, ROOT_GRADIENT_MISMATCH, ROOT_HAS_NO_GRAD_FN or TIMEOUT_INVALID if the arguments are wrong
   * @throws GRAPH_FREED if an earlier pass without `retainGraph` has used the graph
   * @throws UNUSED_SEND in mode 'fast', if a tensor of a call does not enter the loss
   * @throws CREATE_GRAPH_NEEDS_SMART in mode 'fast', if `createGraph` is set
   * @throws LINEAGE_INCOMPLETE in mode 'smart', if a message that the roots depend on could not be read
   * @throws PLAN_TOO_LARGE in mode 'smart', if the messages that the roots depend on are in too many separate groups
   * @throws WORKER_DIED if a worker of the pass ends
   * @throws DIST_BACKWARD_TIMEOUT if the pass takes longer than `timeoutMs`
   * @throws DIST_BACKWARD_CANCELLED if `signal` aborts, or if the call that the pass is part of is cancelled
   * @throws CONTEXT_RELEASED if the context is released
   * @throws RPC_SHUT_DOWN if this worker ends
   */
  backward(roots: readonly Tensor[], options: DistBackwardOptions = {}): Promise<void> {
    return this.runner.backward(this, roots, options)
  }

  /**
   * Releases the context now, on this worker and on every worker that the context has reached. Any of these workers may call `release`. Passes of the context,
   * and calls in it, then fail with CONTEXT_RELEASED. A second `release` does nothing. You seldom need it: `distAutograd.context` releases its context when its
   * function settles. PyTorch: `_release_context`.
   */
  release(): void {
    if (!this.released) this.runner.release(this)
  }

  /**
   * Returns this worker's leaves and their gradients, summed over the passes so far. A hook sees the gradients so far. The sum has the same bits in whatever
   * order the passes ended (Note [Sums over passes] in `gradient-sums.ts`). PyTorch: `torch.distributed.autograd.get_gradients`.
   *
   * The map is a copy, its gradients are not: if you write into a gradient, the change stays, and later passes add to it.
   * @throws CONTEXT_RELEASED if the context was released
   * @throws PASS_UNDER_WAY if a pass that the same program began on this worker has not ended: await all of its passes first
   */
  gradients(): Map<Tensor, Tensor> {
    if (!this.runner.isInNode) this.checkAwaited('gradients')
    return this.gradientsSoFar()
  }

  /** The same under a pass, too. @throws CONTEXT_RELEASED @internal */
  gradientsSoFar(): Map<Tensor, Tensor> {
    if (this.released) throw contextReleased(this.contextId, 'gradients')
    return this.passes.gradients()
  }

  /**
   * Code that needs all gradients needs the end of each pass that the running program has begun here. An optimizer of `backward` does not as it steps: its pass has
   * ended, and the caller knows that passes still running concern other parameters. @throws PASS_UNDER_WAY @internal
   */
  checkAwaited(op: string): void {
    const scope = currentScope()
    if (scope.stepping !== this && this.passes.ownUnderWay(scope).length > 0) throw passUnderWay(this.contextId, op)
  }

  /**
   * `listener` is called when all gradients of a pass that this worker will ever have are there, and at once for passes that are so far already. The
   * pass may still be aborted: what is done with them must be undone then, or be seen by nobody before the pass has ended.
   * @returns a function that ends it; the release does as well, and calls `onRelease`
   * @internal
   */
  onFinal(listener: (pass: DistPass) => void, onRelease: () => void = () => {}): () => void {
    return this.passes.onFinal(listener, onRelease)
  }

  /** The send functions that a pass of that plan waits for here; null: of a pass in FAST. @throws LINEAGE_MALFORMED @internal */
  awaitedBy(plan: PassPlan | null): SendRpcBackward[] {
    return plan === null ? [...this.sendFunctions.values()] : plan.sendsOf(this.lineage)
  }

  /** Lets go of everything that hangs on the graph. @internal */
  clear(): void {
    this.sendFunctions.clear()
    this.recvFunctions.clear()
    this.lineage.clear()
    this.passes.clear()
  }
}

function passUnderWay(contextId: bigint, op: string): PostgradError {
  return new PostgradError('PASS_UNDER_WAY', {
    op,
    message: `a backward pass of autograd context ${contextId} that was begun here is under way, so its gradients are not complete`,
    remedy: 'Write `await ctx.backward(…)` first. If several passes run at the same time, await all of them.',
    values: { contextId: String(contextId) },
  })
}

/** The error of a pass that was not awaited, or that `release` has ended. */
export function releasedUnderWay(contextId: bigint): PostgradError {
  return ownEnd(
    new PostgradError('CONTEXT_RELEASED', {
      op: 'backward',
      message: `autograd context ${contextId} was released while this backward pass was under way`,
      remedy:
        'Write `await ctx.backward(…)`, also before ctx.gradients(): the context is released when the function of distAutograd.context(…) settles.',
      values: { contextId: String(contextId) },
    }),
  )
}

export function contextReleased(contextId: bigint, op: string): PostgradError {
  return ownEnd(
    new PostgradError('CONTEXT_RELEASED', {
      op,
      message: `autograd context ${contextId} has been released`,
      remedy:
        'Await everything that belongs to a context inside of distAutograd.context(…): it is released everywhere when its function settles.',
      values: { contextId: String(contextId) },
    }),
  )
}
