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
 * Which send functions a pass waits for. `smart`: those that it reaches (Note [SMART] in `lineage.ts`). `fast`: all of the context, as PyTorch does; every
 * tensor that a call takes or returns must then enter the loss, or be detached.
 */
export type BackwardMode = 'fast' | 'smart'

/** Options of `ctx.backward` and `distAutograd.backward`. */
export interface DistBackwardOptions {
  /** Keeps the saved values of the nodes, so that another pass can use them; default `createGraph`. */
  readonly retainGraph?: boolean
  /**
   * Records the pass itself, on every worker, so that a further pass can differentiate its gradients; default false. A context of mode `fast` fails with
   * CREATE_GRAPH_NEEDS_SMART. PyTorch cannot do this for distributed passes.
   */
  readonly createGraph?: boolean
  /** Time for the whole pass in ms; default the worker's `rpcTimeoutMs`. 0: without a limit. */
  readonly timeoutMs?: number
  /** Gradients of the roots, each of its root's shape; null or left out: 1, for a scalar root. PyTorch does not take them for distributed passes. */
  readonly gradTensors?: readonly (Tensor | null)[]
  /** Aborting it ends the pass on every worker. The pass fails with DIST_BACKWARD_CANCELLED, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * Optimizers that step when the pass has ended, in this order, with the same bits as a call of `step` afterwards. Workers whose gradients are final
   * compute their part of the step while the pass still runs elsewhere. Their results are visible only after the pass has ended, and an error undoes them.
   * `backward` also rejects with the errors of `step`. Pass a `DistributedOptimizer`, or anything else with these methods.
   */
  readonly optimizer?: PassOptimizer | readonly PassOptimizer[]
}

/** An optimizer that steps with the gradients of a context. */
export interface PassOptimizer {
  /** Called before a pass after which the optimizer will step, so that the workers with the parameters can prepare. Must not throw. */
  announce(context: DistAutogradContext): void
  /** Called when the pass has ended without an error: steps with the context's gradients. */
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
 * One distributed forward and backward pass, as this worker sees it. `backward(roots)` runs the pass, `gradients()` returns this worker's gradients.
 * PyTorch: `DistAutogradContext`.
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
  /** The context's id, the same on every worker: 16 bits are the id of the worker that made it, 48 are that worker's counter. */
  readonly contextId: bigint
  /** Which send functions the context's passes wait for. */
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

  /** The context's id, the same on every worker: 16 bits are the id of the worker that made it, 48 are that worker's counter. */
  get id(): bigint {
    return this.contextId
  }

  /**
   * Runs the backward pass from `roots` through all workers of the context. The roots are on this worker, and are scalars or have their gradients in
   * `gradTensors`. Resolves when every worker has all of its gradients; each worker reads its own with `gradients()`. `.grad` does not change.
   * Rejects with NO_ROOTS, TIMEOUT_INVALID, ROOT_REQUIRES_NO_GRAD, ROOT_NOT_SCALAR, ROOT_GRADIENT_MISMATCH, ROOT_HAS_NO_GRAD_FN, GRAPH_FREED, UNUSED_SEND
   * and CREATE_GRAPH_NEEDS_SMART (mode `fast`), LINEAGE_INCOMPLETE, PLAN_TOO_LARGE, WORKER_DIED, DIST_BACKWARD_TIMEOUT, DIST_BACKWARD_CANCELLED (by
   * `signal`, or because the call that the pass is part of was cancelled), CONTEXT_RELEASED, RPC_SHUT_DOWN, or the error of a node or hook on any worker.
   * Such an error is passed on unchanged, with BACKWARD_FAILED at the end of its chain of causes, whose `values` name `worker`, `workerId` and `node`, and
   * in anomaly mode the line of `forward` and its `frames`. After an error the gradients are as before the pass. PyTorch:
   * `torch.distributed.autograd.backward`.
   */
  backward(roots: readonly Tensor[], options: DistBackwardOptions = {}): Promise<void> {
    return this.runner.backward(this, roots, options)
  }

  /**
   * Releases the context now, on this worker and on every worker that it has reached. Any of these workers may call it. Passes of the context, and calls
   * in it, fail with CONTEXT_RELEASED. Without effect on a released context. `distAutograd.context` releases its context when its function settles.
   * PyTorch: `_release_context`.
   */
  release(): void {
    if (!this.released) this.runner.release(this)
  }

  /**
   * This worker's leaves and their gradients, summed over the passes so far. The sum has the same bits in whatever order the passes ended (Note [Sums over
   * passes] in `gradient-sums.ts`). The map is a copy, the gradients are not: a write into one stays, and later passes add to it. In a hook they are the gradients so far.
   * @throws CONTEXT_RELEASED, PASS_UNDER_WAY while a pass that the same program began here has not ended: await all of them first, also those of a `Promise.all`
   * PyTorch: `torch.distributed.autograd.get_gradients`.
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
    if (currentScope().stepping !== this && this.passes.ownUnderWay().length > 0) throw passUnderWay(this.contextId, op)
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
