/**
 * What users write: `distAutograd.context(async (ctx) => …)`, and PyTorch's functions on context ids beside it.
 */
import type { Tensor } from '@postgrad/tensor'
import { currentContext, withContext } from './context-scope.js'
import type { DistAutogradContext, DistBackwardOptions } from './dist-autograd-context.js'
import { currentDistAutograd } from './install.js'

/**
 * Makes a distributed context, runs `fn` with it as the current one, and releases it on all workers when `fn` has settled. Calls made inside are
 * recorded at both ends, whatever they call in turn. A context inside a context is one of its own. @throws RPC_NOT_INITIALIZED
 * PyTorch: `with torch.distributed.autograd.context() as context_id`.
 */
export async function context<T>(fn: (ctx: DistAutogradContext) => T | Promise<T>): Promise<T> {
  const ctx = currentDistAutograd().container.newContext()
  try {
    return await withContext(ctx, () => fn(ctx))
  } finally {
    ctx.release()
  }
}

/**
 * `ctx.backward(roots, options)` for a context that this worker knows by its id. Rejects as that does, and with CONTEXT_NOT_FOUND.
 * PyTorch: `torch.distributed.autograd.backward`.
 */
export async function backward(contextId: bigint, roots: readonly Tensor[], options: DistBackwardOptions = {}): Promise<void> {
  await currentDistAutograd().container.retrieve(contextId, 'backward').backward(roots, options)
}

/**
 * The gradients that this worker's leaves have in a context. @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED
 * PyTorch: `torch.distributed.autograd.get_gradients`.
 */
export function getGradients(contextId: bigint): Map<Tensor, Tensor> {
  return currentDistAutograd().container.retrieve(contextId, 'getGradients').gradients()
}

/**
 * `ctx.release()` for a context that this worker knows by its id, whoever made it. @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED
 * PyTorch: `torch.distributed.autograd._release_context`.
 */
export function releaseContext(contextId: bigint): void {
  currentDistAutograd().container.release(contextId)
}

export const distAutograd = { context, backward, getGradients, releaseContext, currentContext } as const
