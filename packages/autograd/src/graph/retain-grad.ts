/**
 * Gradients that stay: `.grad` of a non-leaf (`retainGrad`), and what is called when `.grad` of a leaf has grown. PyTorch: `Tensor.retain_grad`,
 * `Tensor.register_post_accumulate_grad_hook`.
 */
import { PostgradError } from '@postgrad/base'
import type { RemovableHandle, Tensor } from '@postgrad/tensor'
import { checkFunction } from '@postgrad/tensor/internal'
import { AccumulateGrad } from './accumulate-grad.js'
import { accumulateInto } from './grad-sink.js'
import { NodeHooks } from './hooks.js'
import type { Node } from './node.js'
import { gradientEdge } from './variable.js'

/** @throws RETAIN_GRAD_NEEDS_GRAD */
export function retainGrad(t: Tensor): void {
  const edge = gradientEdge(t)
  if (edge === null) {
    throw new PostgradError('RETAIN_GRAD_NEEDS_GRAD', {
      op: 'retainGrad',
      expected: 'a tensor that requires grad',
      got: 'one that does not',
      remedy: 'Compute it from tensors with requiresGrad, outside of noGrad.',
    })
  }
  if (!t.isLeaf) retainAt(edge.node, edge.inputNr, t)
}

export function retainsGrad(t: Tensor): boolean {
  if (t.isLeaf) return false
  const { node, inputNr } = gradientEdge(t)!
  return node.hooks?.retains(inputNr) === true
}

/** After an in-place operation on `t`: what was retained of its old value is retained of the new one. */
export function moveRetained(t: Tensor, from: Node | null, fromNr: number, to: Node, toNr: number): void {
  if (from?.hooks?.release(fromNr)) retainAt(to, toNr, t)
}

function retainAt(node: Node, slot: number, t: Tensor): void {
  node.hooks ??= new NodeHooks()
  node.hooks.retain(slot, (grad) => accumulateInto(t, grad, false))
}

/** @throws HOOK_NEEDS_LEAF */
export function registerPostAccumulateGradHook(t: Tensor, hook: (leaf: Tensor) => void): RemovableHandle {
  checkFunction('registerPostAccumulateGradHook', 'the hook', hook)
  const edge = gradientEdge(t)
  if (edge === null || !(edge.node instanceof AccumulateGrad)) {
    throw new PostgradError('HOOK_NEEDS_LEAF', {
      op: 'registerPostAccumulateGradHook',
      expected: 'a leaf that requires grad',
      got: edge === null ? 'a tensor that requires none' : `an output of ${edge.node.name}`,
      remedy: 'Only leaves accumulate; for the gradient of another tensor use registerHook().',
    })
  }
  return edge.node.addPostHook(hook)
}
