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

/** Options of `distAutograd.context`. */
export interface ContextOptions {
  /**
   * Which send functions the passes of the context wait for. `smart`, the default: those that the roots depend on, so that unused results do no harm.
   * `fast`, PyTorch's: all of the context; what no root depends on ends in UNUSED_SEND.
   */
  readonly mode?: BackwardMode
}

/**
 * Makes a distributed context, runs `fn` with it as the current one, and releases it on all workers when `fn` has settled. Calls made inside are
 * recorded at both ends, whatever they call in turn. A context inside a context is one of its own. If passes that `fn` has begun are still under way
 * then, which it should have awaited, this rejects as the first of them does, with CONTEXT_RELEASED. @throws RPC_NOT_INITIALIZED, INVALID_ARGUMENT
 * PyTorch: `with torch.distributed.autograd.context() as context_id`.
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
 * `ctx.backward(roots, options)` for a context, or for its id, by which this worker knows it. Rejects as that does, and with CONTEXT_NOT_FOUND.
 * PyTorch: `torch.distributed.autograd.backward`.
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
 * The gradients that this worker's leaves have in a context. @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED, PASS_UNDER_WAY, as `ctx.gradients`
 * PyTorch: `torch.distributed.autograd.get_gradients`.
 */
export function getGradients(context: ContextOrId): Map<Tensor, Tensor> {
  return currentDistAutograd().container.retrieve(idOf(context), 'getGradients').gradients()
}

/**
 * `ctx.release()` for a context, or for its id, by which this worker knows it, whoever made it. @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED
 * PyTorch: `torch.distributed.autograd._release_context`.
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
 * Distributed autograd: `context` runs a function with a context of its own, in which calls are recorded; `backward`, `getGradients` and
 * `releaseContext` take it or its id. PyTorch: `torch.distributed.autograd`.
 * @example await distAutograd.context(async (ctx) => ctx.backward([await call('worker1', addOne, [x]).then((y) => y.sum())]))
 */
export const distAutograd = { context, backward, getGradients, releaseContext, currentContext } as const
