/** Losses of rows of scores, one for each class: the negative log-likelihood of the classes that are right. */

import { contiguous } from '../../raw/copy.js'
import { checkedIndices } from '../../raw/indices.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../../values/errors.js'
import type { Reduction } from '../../values/options-neural.js'
import { rawOperations } from '../define/define.js'

/** @throws INVALID_ARGUMENT */
export function checkReduction(op: string, reduction: string): void {
  if (reduction !== 'mean' && reduction !== 'sum' && reduction !== 'none') {
    throw invalidArgument(op, "'mean', 'sum' or 'none' as the reduction", reduction)
  }
}

/**
 * Minus the log-probability at each class: x [N, C] has these, or scores of which it takes logSoftmax. 'mean' over no rows is NaN.
 * @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export function classLoss(op: 'nllLoss' | 'crossEntropy', x: Tensor, target: Tensor, reduction: Reduction = 'mean'): Tensor {
  checkReduction(op, reduction)
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'floating point scores', x.dtype, "Convert with to('float32') first.")
  if (x.shape.length !== 2 || target.shape.length !== 1 || x.shape[0] !== target.shape[0]) {
    throw shapeMismatch(
      op,
      'scores [N, C] and a target [N]',
      `${shapeText(x.shape)} and ${shapeText(target.shape)}`,
      'Flatten leading dimensions with reshape().',
    )
  }
  const at = checkedIndices(op, target, x.shape[1]!)
  const each = Tensor.uninitialized(x.dtype, at.shape, x.storage.memory)
  kernelsFor(x)[op === 'nllLoss' ? 'nll' : 'classLoss'][x.dtype](contiguous(x), at, each)
  return reduction === 'none' ? each : rawOperations[reduction](each)
}

/** The gradient of crossEntropy with 'none' (grad [N]) or 'sum' (grad []) for logits [N, C]. For 'mean', pass grad / N. @throws INDEX_OUT_OF_RANGE */
export function classLossBackward(grad: Tensor, logits: Tensor, target: Tensor): Tensor {
  const at = checkedIndices('crossEntropy', target, logits.shape[1]!)
  const out = Tensor.uninitialized(logits.dtype, logits.shape, logits.storage.memory)
  kernelsFor(logits).classLossBackward[logits.dtype](contiguous(grad), contiguous(logits), at, out)
  return out
}

/**
 * The gradient of nllLoss with 'none' (grad [N]) or 'sum' (grad []) for logp: [N, classes]. For 'mean', pass grad / N.
 * @throws SHAPE_MISMATCH, INDEX_OUT_OF_RANGE
 */
export function nllLossBackward(grad: Tensor, target: Tensor, classes: number): Tensor {
  if (grad.numel !== 1 && (grad.shape.length !== 1 || grad.shape[0] !== target.shape[0])) {
    throw shapeMismatch(
      'nllLossBackward',
      `a gradient [] or ${shapeText(target.shape)}`,
      shapeText(grad.shape),
      'Pass the gradient of the loss.',
    )
  }
  const at = checkedIndices('nllLossBackward', target, classes)
  const out = Tensor.uninitialized(grad.dtype, [at.numel, classes], grad.storage.memory)
  kernelsFor(grad).nllBackward[grad.dtype](contiguous(grad), at, out)
  return out
}
