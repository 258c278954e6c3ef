/** Losses. PyTorch: `torch.nn.functional`. `crossEntropy` and `nllLoss` are operations with derivatives of their own, and live in autograd. */
import { PostgradError } from '@postgrad/base'
import type { Reduction, Tensor } from '@postgrad/tensor'
import { checkReduction, sameShape } from '@postgrad/tensor/internal'

export { crossEntropy, nllLoss } from '@postgrad/autograd'

/**
 * (input − target)², reduced. Both of the same shape.
 * @throws SHAPE_MISMATCH: a target that would broadcast is nearly always a mistake; INVALID_ARGUMENT
 */
export function mseLoss(input: Tensor, target: Tensor, reduction: Reduction = 'mean'): Tensor {
  checkReduction('mseLoss', reduction)
  if (!sameShape(input.shape, target.shape)) {
    throw new PostgradError('SHAPE_MISMATCH', {
      op: 'mseLoss',
      expected: `a target of the input's shape [${input.shape.join(', ')}]`,
      got: `[${target.shape.join(', ')}]`,
      remedy: 'Use reshape() or expand() so that both have one shape.',
      values: { input: [...input.shape], target: [...target.shape] },
    })
  }
  const difference = input.sub(target)
  const squares = difference.mul(difference)
  return reduction === 'none' ? squares : reduction === 'sum' ? squares.sum() : squares.mean()
}
