/**
 * The API for users: `distAutograd.context(async (ctx) => …)`, and PyTorch's functions on context ids.
 */

import { PostgradError } from '@postgrad/base'
import { Future } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions } from '@postgrad/tensor/internal'
import { currentContext, withContext } from './context/context-scope.js'
import {
  type BackwardMode,
  type ContextOrId,
  type DistAutogradContext,
  type DistBackwardOptions,
  idOf,
} from './context/dist-autograd-context.js'
import { currentDistAutograd } from './install.js'
import type { RootPass } from './pass/pass.js'

/** Options of `distAutograd.context`: which gradients its passes wait for. */
export interface ContextOptions {
  /**
   * Which gradients each worker waits for in a pass. 'smart', the default: those of the calls that the roots depend on, so that unused results do no harm.
   * 'fast', as in PyTorch: those of all calls of the context. If a tensor of one of them does not enter the loss, the pass fails with UNUSED_SEND.
   */
  readonly mode?: BackwardMode
}

/**
 * Distributed autograd: runs a forward pass in a context, and the backward pass through all of its workers. PyTorch: `torch.distributed.autograd`.
 * @example await distAutograd.context(async (ctx) => ctx.backward([await call('worker1', addOne, [x]).then((y) => y.sum())]))
 */
export const distAutograd = {
  /**
   * Makes a distributed context, runs `fn` with it as the current context, and resolves with the result of `fn`. When `fn` has settled, the context is released
   * on all workers. The calls of `fn`, and the calls that these make, are recorded on both ends. A context inside a context is independent of the outer one.
   * PyTorch: `with torch.distributed.autograd.context() as context_id`.
   * @throws CONTEXT_RELEASED if a pass that `fn` began, and did not await, is still running when `fn` has settled
   * @throws INVALID_ARGUMENT if `fn` is not a function, or if an option is wrong
   * @throws RPC_NOT_INITIALIZED if no worker runs this code
   */
  async context<T>(fn: (ctx: DistAutogradContext) => T | Promise<T>, options: ContextOptions = {}): Promise<T> {
    checkOptions('distAutograd.context', options, ['mode'])
    const { mode } = options
    if (typeof fn !== 'function') throw noFunction(fn)
    if (mode !== undefined && mode !== 'fast' && mode !== 'smart') throw noMode(mode)
    const { container } = currentDistAutograd()
    const ctx = container.newContext(mode)
    try {
      const result = await withContext(ctx, () => fn(ctx))
      const [left] = end(ctx)
      if (left !== undefined) await left.ended
      return result
    } catch (error) {
      end(ctx)
      throw error
    }
  },

  /**
   * Runs `ctx.backward(roots, options)` of a context that this worker knows. `context` is the context or its id. Also rejects as `ctx.backward` does.
   * PyTorch: `torch.distributed.autograd.backward`.
   * @throws CONTEXT_NOT_FOUND if this worker does not know the context
   */
  backward(context: ContextOrId, roots: readonly Tensor[], options: DistBackwardOptions = {}): Promise<void> {
    try {
      // Not by an async function: the context knows the promise that the program has.
      return currentDistAutograd().container.retrieve(idOf(context), 'backward').backward(roots, options)
    } catch (error) {
      return Future.rejected(error)
    }
  },

  /**
   * Returns `ctx.gradients()` of a context that this worker knows: its leaves with their gradients. `context` is the context or its id.
   * PyTorch: `torch.distributed.autograd.get_gradients`.
   * @throws CONTEXT_NOT_FOUND if this worker does not know the context
   * @throws CONTEXT_RELEASED if the context was released
   * @throws PASS_UNDER_WAY if a pass that the same program began on this worker has not ended
   */
  getGradients(context: ContextOrId): Map<Tensor, Tensor> {
    return currentDistAutograd().container.retrieve(idOf(context), 'getGradients').gradients()
  },

  /**
   * Releases a context that this worker knows, on all workers, as `ctx.release()` does. `context` is the context or its id; any worker may have made it.
   * PyTorch: `torch.distributed.autograd._release_context`.
   * @throws CONTEXT_NOT_FOUND if this worker does not know the context
   * @throws CONTEXT_RELEASED if the context was released already
   */
  releaseContext(context: ContextOrId): void {
    currentDistAutograd().container.release(idOf(context))
  },

  /** Returns the distributed context of the running code, or null if it runs in none. A function that serves a call runs in the context of its caller. */
  currentContext: (): DistAutogradContext | null => currentContext(),
} as const

/** Releases it. @returns the passes of its program that were under way. `context` rejects because of them or of an error before, so none is an unhandled rejection. */
function end(ctx: DistAutogradContext): readonly RootPass[] {
  const left = ctx.passes.ownUnderWay()
  for (const { given } of left) given.catch(() => {})
  ctx.release()
  return left
}

function noFunction(got: unknown): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'context',
    expected: 'a function of the context',
    got: String(got),
    remedy: 'distAutograd.context(async (ctx) => { …; await ctx.backward([loss]) }): the context lives as long as its function runs.',
  })
}

function noMode(mode: unknown): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'context',
    expected: "mode: 'smart' or 'fast'",
    got: String(mode),
    remedy: "Leave it out for 'smart'; 'fast' counts every message of the context, as PyTorch does.",
  })
}
