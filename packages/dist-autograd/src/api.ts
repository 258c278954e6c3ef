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
 * Makes a distributed context, runs `fn` with it as the current context, and resolves with the result of `fn`. When `fn` has settled, the context is released
 * on all workers. The calls of `fn`, and the calls that these make, are recorded on both ends. A context inside a context is independent of the outer one.
 * PyTorch: `with torch.distributed.autograd.context() as context_id`.
 * @throws CONTEXT_RELEASED if a pass that `fn` began, and did not await, is still running when `fn` has settled
 * @throws INVALID_ARGUMENT if `fn` is not a function, or if an option is wrong
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 */
export async function context<T>(fn: (ctx: DistAutogradContext) => T | Promise<T>, options: ContextOptions = {}): Promise<T> {
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
}

/** Releases it. @returns the passes of its program that were under way. `context` rejects because of them or of an error before, so none is an unhandled rejection. */
function end(ctx: DistAutogradContext): RootPass[] {
  const left = ctx.passes.ownUnderWay()
  for (const { given } of left) given.catch(() => {})
  ctx.release()
  return left
}

/**
 * Runs `ctx.backward(roots, options)` of a context that this worker knows. `context` is the context or its id. Also rejects as `ctx.backward` does.
 * PyTorch: `torch.distributed.autograd.backward`.
 * @throws CONTEXT_NOT_FOUND if this worker does not know the context
 */
export function backward(context: ContextOrId, roots: readonly Tensor[], options: DistBackwardOptions = {}): Promise<void> {
  try {
    // Not by an async function: the context knows the promise that the program has.
    return currentDistAutograd().container.retrieve(idOf(context), 'backward').backward(roots, options)
  } catch (error) {
    return Future.rejected(error)
  }
}

/**
 * Returns `ctx.gradients()` of a context that this worker knows: its leaves with their gradients. `context` is the context or its id.
 * PyTorch: `torch.distributed.autograd.get_gradients`.
 * @throws CONTEXT_NOT_FOUND if this worker does not know the context
 * @throws CONTEXT_RELEASED if the context was released
 * @throws PASS_UNDER_WAY if a pass that the same program began on this worker has not ended
 */
export function getGradients(context: ContextOrId): Map<Tensor, Tensor> {
  return currentDistAutograd().container.retrieve(idOf(context), 'getGradients').gradients()
}

/**
 * Releases a context that this worker knows, on all workers, as `ctx.release()` does. `context` is the context or its id; any worker may have made it.
 * PyTorch: `torch.distributed.autograd._release_context`.
 * @throws CONTEXT_NOT_FOUND if this worker does not know the context
 * @throws CONTEXT_RELEASED if the context was released already
 */
export function releaseContext(context: ContextOrId): void {
  currentDistAutograd().container.release(idOf(context))
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

/**
 * Distributed autograd: runs a forward pass in a context, and the backward pass through all of its workers. PyTorch: `torch.distributed.autograd`.
 *
 * - `context(fn, options)`: runs `fn` with a new context, which records the calls of `fn`, and resolves with its result. Releases the context at the end.
 * - `backward(context, roots, options)`: runs a pass, as `ctx.backward` does.
 * - `getGradients(context)`: returns this worker's leaves and their gradients in a `Map`, as `ctx.gradients` does.
 * - `releaseContext(context)`: releases a context, as `ctx.release` does.
 * - `currentContext()`: returns the context of the running code, or null.
 *
 * Except for the first, `context` is a context or its id, as in PyTorch.
 * @example await distAutograd.context(async (ctx) => ctx.backward([await call('worker1', addOne, [x]).then((y) => y.sum())]))
 */
export const distAutograd = { context, backward, getGradients, releaseContext, currentContext } as const
