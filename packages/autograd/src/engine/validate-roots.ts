/**
 * Checks the roots of a backward pass, and refuses others with a remedy. `dist-autograd` uses it too, with one rule more. PyTorch:
 * `DistEngine::validateRootsAndRetrieveEdges`, `torch/autograd/__init__.py` (`_make_grads`).
 */
import { PostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, CPU, checkTensor, invalidArgument, sameShape } from '@postgrad/tensor/internal'
import { metaOf } from '../graph/variable.js'

export interface RootRules {
  /** The call, for the messages; default `backward`. */
  readonly op?: string
  /** Gradients of the roots, as far as the caller gives them: a root that has one need not be scalar. */
  readonly grads?: readonly (Tensor | null)[]
  /** Whether each root must have been made by an operation (a distributed pass asks for that); default false. */
  readonly needGradFn?: boolean
}

/** @throws INVALID_ARGUMENT, NO_ROOTS, ROOT_REQUIRES_NO_GRAD, ROOT_NOT_SCALAR, ROOT_HAS_NO_GRAD_FN, ROOT_GRADIENT_MISMATCH; in PyTorch's order */
export function validateRoots(roots: readonly Tensor[], { op = 'backward', grads, needGradFn = false }: RootRules = {}): void {
  if (!Array.isArray(roots))
    throw invalidArgument(op, 'a list of roots', argumentText(roots), `Pass a list, also for one loss: ${op}([loss]).`)
  if (roots.length === 0) {
    const remedy = op === 'grad' ? 'Pass the outputs: grad([y], inputs).' : 'Pass the loss: backward([loss]).'
    throw new PostgradError('NO_ROOTS', { op, expected: 'at least one root', got: 'none', remedy })
  }
  if (grads !== undefined && grads.length !== roots.length) {
    throw new PostgradError('ROOT_GRADIENT_MISMATCH', {
      op,
      expected: `one gradient (or null) for each of ${roots.length} roots`,
      got: String(grads.length),
      remedy: 'Pass null for a scalar root whose gradient is 1.',
    })
  }
  for (let i = 0; i < roots.length; i++) checkRoot(roots[i]!, i, grads?.[i] ?? null, op, needGradFn)
}

function checkRoot(root: Tensor, index: number, grad: Tensor | null, op: string, needGradFn: boolean): void {
  checkTensor(op, `root ${index}`, root)
  if (grad !== null && Object.getPrototypeOf(grad) === Object.prototype) {
    const remedy = 'Options come after the gradient, as in loss.backward(null, { retainGraph: true }).'
    throw invalidArgument(op, `a tensor as the gradient of root ${index}`, argumentText(grad), remedy)
  }
  if (grad !== null) checkTensor(op, `the gradient of root ${index}`, grad)
  const { shape } = root
  if (!root.requiresGrad) {
    throw new PostgradError('ROOT_REQUIRES_NO_GRAD', {
      op,
      expected: `root ${index} to require grad`,
      got: 'a tensor that does not, and that no recorded operation made',
      remedy:
        'Compute it from tensors with requiresGrad, outside of noGrad. The result of a call has a history only within distAutograd.context(…): call there, and use ctx.backward().',
      values: valuesOf(root, index),
    })
  }
  if (grad === null && root.numel !== 1) {
    throw new PostgradError('ROOT_NOT_SCALAR', {
      op,
      expected: `root ${index} to be a scalar`,
      got: `shape [${shape.join(', ')}]`,
      remedy: 'Reduce it first, as in loss.sum(), or pass its gradient.',
      values: valuesOf(root, index),
    })
  }
  if (grad !== null && !sameShape(grad.shape, root.shape)) {
    throw new PostgradError('ROOT_GRADIENT_MISMATCH', {
      op,
      expected: `a gradient of shape [${shape.join(', ')}] for root ${index}`,
      got: `[${grad.shape.join(', ')}]`,
      remedy: 'Pass a gradient of the shape of the root.',
      values: valuesOf(root, index),
    })
  }
  if (grad !== null && grad.storage.memory !== root.storage.memory && !(grad.storage.memory === CPU && grad.ndim === 0)) {
    throw new PostgradError('DEVICE_MISMATCH', {
      op,
      expected: `the gradient of root ${index} on device '${root.device}', where the root is`,
      got: `one on '${grad.device}'`,
      remedy: `Make it there: { device: '${root.device}' }.`,
      values: { ...valuesOf(root, index), devices: [String(root.device), String(grad.device)] },
    })
  }
  if (needGradFn && metaOf(root)!.gradFn === null) {
    throw new PostgradError('ROOT_HAS_NO_GRAD_FN', {
      op,
      expected: `root ${index} to be made by a recorded operation`,
      got: 'a leaf',
      remedy: 'Pass the result of a computation, not a parameter.',
      values: valuesOf(root, index),
    })
  }
}

function valuesOf(root: Tensor, index: number): { readonly root: number; readonly shape: readonly number[] } {
  return { root: index, shape: [...root.shape] }
}
