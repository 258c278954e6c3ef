/**
 * Gradients that stay: `.grad` of a non-leaf (`retainGrad`), and hooks that run when `.grad` of a leaf has grown. PyTorch: `Tensor.retain_grad`,
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
  if (!t.isLeaf) hooksOf(edge.node).retain(edge.inputNr, (grad) => accumulateInto(t, grad, false))
}

export function retainsGrad(t: Tensor): boolean {
  if (t.isLeaf) return false
  const { node, inputNr } = gradientEdge(t)!
  return node.hooks?.retains(inputNr) === true
}

/** After an in-place operation on a tensor, or on what it is a view of: what was retained of its old value is retained of the new one. */
export function moveRetained(from: Node | null, fromNr: number, to: Node, toNr: number): void {
  const keep = from?.hooks?.release(fromNr) ?? null
  if (keep !== null) hooksOf(to).retain(toNr, keep)
}

function hooksOf(node: Node): NodeHooks {
  node.hooks ??= new NodeHooks()
  return node.hooks
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
