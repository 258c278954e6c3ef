/**
 * Receivers of leaves' gradients: `.grad` in a local backward, the context in a distributed one, a map in `grad(…)`. The engine hands
 * over each leaf's complete gradient once per pass.
 */
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { giveBack, lazyClone, raw, sumOfSparse } from '@postgrad/tensor/internal'

export interface GradSink {
  /**
   * Takes the gradient of a leaf; called at most once per leaf and pass. With `exclusive` nobody else holds `grad`: it may be kept without a
   * copy and written to later. Without, it must be copied before it is kept where it could change.
   */
  accumulate(variable: Tensor, grad: Tensor, exclusive: boolean): void
  /** The pass, if its nodes run in the mailbox, so that it can wait for other workers; a pass in one turn cannot. */
  readonly awaitable?: AwaitablePass
}

/** Where a pass that can wait keeps the gradients of leaves. */
export interface AwaitablePass {
  /** The context of a distributed pass, which keeps the gradients. Null: they are in `.grad`. */
  readonly contextId: bigint | null
  /** The gradient of a leaf there. */
  gradOf(leaf: Tensor): Tensor | null
  /** Puts another gradient in its place. */
  setGrad(leaf: Tensor, grad: Tensor): void
}

/** A gradient that may be kept: `grad` itself where it is ours and dense, a dense copy otherwise. */
export function keepable(grad: Tensor, exclusive: boolean): Tensor {
  // Nobody writes to sparse rows: they may be shared.
  if (grad.isSparse) return grad
  return exclusive && grad.isContiguous && grad.offset === 0 ? grad : raw.clone(grad)
}

/**
 * A gradient for the caller of `grad`, who may write to it. As in PyTorch it may be expanded, or a view. A gradient that others hold as well is copied; dense
 * elements in the heap are copied only when one of the holders writes.
 */
export function returnable(grad: Tensor, exclusive: boolean): Tensor {
  return exclusive || grad.isSparse ? grad : lazyClone(grad)
}

/**
 * Adds to `.grad`, as PyTorch's AccumulateGrad: kept if it is the first, else added in place. Under createGraph, where the gradient has a history,
 * always out of place; otherwise `.grad` never has one, even if the roots' gradients did. Either way nobody else holds what is kept.
 */
export function accumulateInto(t: { grad: Tensor | null }, grad: Tensor, exclusive: boolean): void {
  const current = t.grad
  if (current !== null && (current.isSparse || grad.isSparse)) t.grad = sumOfSparse(current, grad)
  else if (currentScope().gradEnabled) t.grad = current !== null ? current.add(grad) : exclusive && grad.isContiguous ? grad : grad.clone()
  else if (current === null) t.grad = keepable(grad, exclusive)
  else {
    raw.add_(current, grad)
    if (exclusive) giveBack(grad.storage)
  }
}

/** `.grad`, and the hooks that want to know. */
export const dotGradSink: GradSink = {
  accumulate(variable, grad, exclusive) {
    const meta = variable.autograd!
    // To be asked before accumulateInto reads `.grad`, of which it keeps nothing.
    const isUnseen = meta.grad === null || meta.isGradUnseen
    accumulateInto(variable, grad, exclusive)
    meta.isGradUnseen = isUnseen && !currentScope().gradEnabled && !meta.grad!.isSparse
    runPostAccumulateHooks(variable)
  },
}

/** Runs a leaf's hooks of `registerPostAccumulateGradHook`; every sink calls it once the gradient is where users look for it. */
export function runPostAccumulateHooks(variable: Tensor): void {
  const { accumulateGrad } = variable.autograd as { accumulateGrad?: { runPostHooks(): void } | null }
  if (accumulateGrad) accumulateGrad.runPostHooks()
}
