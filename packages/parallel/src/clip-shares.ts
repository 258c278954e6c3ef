/**
 * An owner's part of clipping: computes its gradients' shares of a norm, scales them, clamps them. `clip-grad.ts` asks all owners and combines the
 * shares.
 */
import { normShare } from '@postgrad/nn/internal'
import type { Tensor } from '@postgrad/tensor'
import { coalesce, invalidArgument, isSparse, raw, rawOperations } from '@postgrad/tensor/internal'

type Gradients = ReadonlyMap<Tensor, Tensor> | null

/** Each gradient's share of the norm, a tensor []; null for a parameter without one. */
export function gradShares(params: readonly Tensor[], gradients: Gradients, normType: number): (Tensor | null)[] {
  return params.map((p) => {
    const g = gradients?.get(p)
    // Rows that are not stored are zeros, which add nothing.
    return g === undefined ? null : normShare(isSparse(g) ? coalesce(g).values() : g, normType)
  })
}

/** In place. @throws INVALID_ARGUMENT for sparse gradients; nothing is scaled then */
export function scaleGrads(params: readonly Tensor[], gradients: Gradients, factor: Tensor): void {
  for (const g of dense('clipGradNorm', params, gradients)) raw.mul_(g, factor)
}

/** In place. @throws INVALID_ARGUMENT for sparse gradients; nothing is clamped then */
export function clampGrads(params: readonly Tensor[], gradients: Gradients, clipValue: number): void {
  for (const g of dense('clipGradValue', params, gradients)) rawOperations.clamp_(g, -clipValue, clipValue)
}

function dense(op: string, params: readonly Tensor[], gradients: Gradients): Tensor[] {
  const found = params.map((p) => gradients?.get(p)).filter((g) => g !== undefined)
  // The parts of sparse rows are shared and never written to.
  if (found.some(isSparse))
    throw invalidArgument(op, 'dense gradients', 'sparse ones', 'Leave the embedding out, or make it without sparse.')
  return found
}
