/**
 * Autograd's half of a tensor: the object in its `autograd` slot. Only tensors in a graph have one; a tensor without is a leaf that needs
 * no gradient. PyTorch: `AutogradMeta` in `torch/csrc/autograd/variable.h`.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import type { RemovableHandle, Tensor } from '@postgrad/tensor'
import { type AutogradMeta, checkFunction } from '@postgrad/tensor/internal'
import { AccumulateGrad } from './accumulate-grad.js'
import type { TensorHook } from './hooks.js'
import type { Edge, Node } from './node.js'

export class VariableMeta implements AutogradMeta {
  requiresGrad: boolean
  grad: Tensor | null
  isGradUnseen: boolean
  /** The node that made the tensor; null for a leaf. */
  gradFn: Node | null
  /** Which of the node's outputs it is. */
  outputNr: number
  /** The tensor's one AccumulateGrad, made when it first enters a graph as a leaf. */
  accumulateGrad: AccumulateGrad | null
  /**
   * The version that the last recorded write into the tensor, or into a view of it, gave to its storage; 0 before the first. Views without a way back compare
   * with it. It is not the storage's: a detached alias has the same one, and a history of its own.
   */
  recordedAt: number

  constructor(requiresGrad: boolean, gradFn: Node | null, outputNr: number) {
    this.requiresGrad = requiresGrad
    this.grad = null
    this.isGradUnseen = false
    this.gradFn = gradFn
    this.outputNr = outputNr
    this.accumulateGrad = null
    this.recordedAt = 0
  }
}

/** The slot, narrowed: only this package fills it. A view's meta has the same fields (`views.ts`), which follow its base. */
export function metaOf(t: Tensor): VariableMeta | null {
  return t.autograd as VariableMeta | null
}

/** Whether `t` is a leaf that was made with, or given, `requiresGrad` (also if that was switched off since): a parameter, say. */
export function isVariable(t: Tensor): boolean {
  return t.autograd instanceof VariableMeta && t.autograd.gradFn === null
}

/** Makes `t` a non-leaf: output `outputNr` of `node`. It then requires grad. */
export function setHistory(t: Tensor, node: Node, outputNr: number): void {
  t.autograd = new VariableMeta(true, node, outputNr)
}

/**
 * Gives `t` another history: null makes it a leaf that requires no grad. Its `.grad` stays, and its AccumulateGrad: graphs that were recorded while it was a
 * leaf lead there, and so must those that come when it is one again.
 */
export function replaceHistory(t: Tensor, node: Node | null, outputNr: number): void {
  // Another object, since saved variables hold on to the history that the old one has.
  const meta = new VariableMeta(node !== null, node, outputNr)
  const before = metaOf(t)
  if (before !== null) {
    meta.grad = before.grad
    // Both refer to it now.
    before.isGradUnseen = false
    meta.accumulateGrad = before.accumulateGrad
    meta.recordedAt = before.recordedAt
  }
  t.autograd = meta
}

/** Where the gradient of `t` goes: into the node that made it, or its AccumulateGrad; null if it needs none. PyTorch: `gradient_edge`. */
export function gradientEdge(t: Tensor): Edge | null {
  const meta = t.autograd as VariableMeta | null
  if (meta === null || !meta.requiresGrad) return null
  if (meta.gradFn !== null) return { node: meta.gradFn, inputNr: meta.outputNr }
  meta.accumulateGrad ??= new AccumulateGrad(t)
  return { node: meta.accumulateGrad, inputNr: 0 }
}

/** The edge of a root that `validateRoots` has passed. */
export function rootEdge(t: Tensor): Edge {
  const edge = gradientEdge(t)
  if (edge === null) assert.fail('a root requires grad')
  return edge
}

/**
 * Switches recording for a leaf on or off.
 * @throws REQUIRES_GRAD_NEEDS_FLOAT, REQUIRES_GRAD_ON_NON_LEAF (only a leaf may be switched off)
 */
export function setRequiresGrad(t: Tensor, flag: boolean): void {
  const meta = metaOf(t)
  if (meta?.gradFn) {
    if (flag) return
    throw new PostgradError('REQUIRES_GRAD_ON_NON_LEAF', {
      op: 'requiresGrad_',
      expected: 'a leaf',
      got: `an output of ${meta.gradFn.name}`,
      remedy: 'Use detach() to get a tensor that does not require grad.',
    })
  }
  if (flag && t.dtype !== 'float32' && t.dtype !== 'float64') {
    throw new PostgradError('REQUIRES_GRAD_NEEDS_FLOAT', {
      op: 'requiresGrad_',
      expected: 'a tensor of dtype float32 or float64',
      got: t.dtype,
      remedy: "Convert it first: x.to('float32').",
    })
  }
  if (flag) t.storage.isKept = true
  // A view that becomes a leaf stops being a view (Note [Views and writes]).
  if (meta instanceof VariableMeta) meta.requiresGrad = flag
  else if (flag) t.autograd = new VariableMeta(true, null, 0)
}

/** Makes `t` a leaf that requires no grad; `.grad` stays. @throws DETACH_VIEW */
export function detachInPlace(t: Tensor): void {
  const meta = metaOf(t)
  if (meta === null) return
  if (!(meta instanceof VariableMeta)) {
    throw new PostgradError('DETACH_VIEW', {
      op: 'detach_',
      expected: 'a tensor with a history of its own',
      got: 'a view, which shares the history of its base',
      remedy: 'Use detach(), which makes a new tensor.',
    })
  }
  replaceHistory(t, null, 0)
}

/**
 * Calls `fn` with the gradient of `t` in every backward pass that reaches it; what it returns takes the gradient's place. Runs before the
 * gradient is used further or accumulated. PyTorch: `Tensor.register_hook`.
 * @throws HOOK_NEEDS_GRAD
 */
export function registerTensorHook(t: Tensor, fn: TensorHook): RemovableHandle {
  checkFunction('registerHook', 'the hook', fn)
  const edge = gradientEdge(t)
  if (edge === null) {
    throw new PostgradError('HOOK_NEEDS_GRAD', {
      op: 'registerHook',
      expected: 'a tensor that requires grad',
      got: 'one that does not',
      remedy: 'Call requiresGrad_() on the leaf before the forward pass.',
    })
  }
  return edge.node.registerTensorHook(edge.inputNr, fn)
}
