/**
 * The node of a leaf, where a variable's gradient arrives. There is one per variable, however many operations use it, so that all
 * contributions meet in one InputBuffer. PyTorch: `torch/csrc/autograd/functions/accumulate_grad.h`.
 */
import assert from 'node:assert'
import type { RemovableHandle, Tensor } from '@postgrad/tensor'
import { append } from './hooks.js'
import { HIGHEST_PRIORITY, metaOfOutput, Node } from './node.js'

type PostHook = (variable: Tensor) => void

/**
 * Called when a pass is done with a leaf: its gradient, if one came, is where the pass's sink puts it. `task` is the GraphTask of the pass. A hook of `Tensor` sees
 * one gradient; this hook is for code that gathers those of many leaves and makes a pass wait (`GraphTask.waitFor`).
 */
export type LeafHook = (task: object, grad: Tensor | null) => void

export class AccumulateGrad extends Node {
  readonly variable: Tensor
  /** Called when `.grad` has grown; null until the first. */
  private postHooks: PostHook[] | null = null
  private leafHooks: LeafHook[] | null = null

  constructor(variable: Tensor) {
    super([], [metaOfOutput(variable)], HIGHEST_PRIORITY)
    this.variable = variable
  }

  get name(): string {
    return 'AccumulateGrad'
  }

  /** The engine hands (variable, gradient) to the task's GradSink instead: where a gradient goes is the pass's business, not the leaf's. */
  apply(): never {
    assert.fail('AccumulateGrad is not applied: the engine gives its gradient to the GradSink')
  }

  addPostHook(hook: PostHook): RemovableHandle {
    this.postHooks ??= []
    // Wrapped, so that one function registered twice gives two handles that remove one registration each.
    return append(this.postHooks, (variable) => hook(variable))
  }

  addLeafHook(hook: LeafHook): RemovableHandle {
    this.leafHooks ??= []
    return append(this.leafHooks, hook)
  }

  /** By the engine, at most once per pass. */
  runLeafHooks(task: object, grad: Tensor | null): void {
    if (this.leafHooks === null) return
    const { autograd } = this.variable
    if (autograd !== null) autograd.isGradUnseen = false
    for (const hook of [...this.leafHooks]) hook(task, grad)
  }

  runPostHooks(): void {
    // A copy of the list: a hook may remove itself while it runs.
    if (this.postHooks !== null) for (const hook of [...this.postHooks]) hook(this.variable)
  }
}
