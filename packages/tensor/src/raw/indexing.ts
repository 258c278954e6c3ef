/** Operations that look up rows or classes: embedding, and the negative log-likelihood of classes. Beside: `gather.ts`. */

import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { Reduction } from '../values/options-neural.js'
import { contiguous } from './copy.js'
import { checkedIndices } from './indices.js'
import { logSoftmax, mean, sum } from './reduce.js'

/** weight [V, D], indices int32 of any shape → […indices, D]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE */
export function embedding(weight: Tensor, indices: Tensor): Tensor {
  if (weight.shape.length !== 2) throw shapeMismatch('embedding', 'a weight [rows, width]', shapeText(weight.shape), 'Reshape the weight.')
  const at = checkedIndices('embedding', indices, weight.shape[0]!)
  const w = contiguous(weight)
  const [rows, width] = weight.shape as [number, number]
  const out = Tensor.uninitialized(weight.dtype, [...indices.shape, width], weight.storage.memory)
  kernelsFor(weight).indexSelect[weight.dtype](w, at, out, 1, rows, at.numel, width)
  return out
}

/** grad […indices, D] → [rows, D]: each row of grad added to the row that its index names. @throws as embedding */
export function embeddingBackward(grad: Tensor, indices: Tensor, rows: number): Tensor {
  const width = grad.shape[grad.shape.length - 1]
  const fits = grad.shape.length === indices.shape.length + 1 && indices.shape.every((n, i) => n === grad.shape[i])
  if (width === undefined || !fits) {
    throw shapeMismatch(
      'embeddingBackward',
      `a gradient ${shapeText(indices.shape)} with the width behind`,
      shapeText(grad.shape),
      'Pass the gradient of the output of embedding().',
    )
  }
  if (!Number.isSafeInteger(rows) || rows < 0) throw invalidArgument('embeddingBackward', 'a number of rows ≥ 0', rows)
  const at = checkedIndices('embeddingBackward', indices, rows)
  const g = contiguous(grad)
  const out = Tensor.empty(grad.dtype, [rows, width], grad.storage.memory)
  kernelsFor(grad).indexAdd[grad.dtype](g, at, out, 1, rows, at.numel, width)
  return out
}

/** @throws INVALID_ARGUMENT */
export function checkReduction(op: string, reduction: string): void {
  if (reduction !== 'mean' && reduction !== 'sum' && reduction !== 'none') {
    throw invalidArgument(op, "'mean', 'sum' or 'none' as the reduction", reduction)
  }
}

function checkClasses(op: string, x: Tensor, target: Tensor): void {
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'floating point scores', x.dtype, "Convert with to('float32') first.")
  if (x.shape.length !== 2 || target.shape.length !== 1 || x.shape[0] !== target.shape[0]) {
    throw shapeMismatch(
      op,
      'scores [N, C] and a target [N]',
      `${shapeText(x.shape)} and ${shapeText(target.shape)}`,
      'Flatten leading dimensions with reshape().',
    )
  }
}

/** 'mean' over no rows is NaN. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE, INVALID_ARGUMENT */
export function nllLoss(logp: Tensor, target: Tensor, reduction: Reduction = 'mean'): Tensor {
  checkReduction('nllLoss', reduction)
  checkClasses('nllLoss', logp, target)
  return picked(logp, checkedIndices('nllLoss', target, logp.shape[1]!), reduction)
}

/** Minus the log-probability at each class; `at` is checked. */
function picked(logp: Tensor, at: Tensor, reduction: Reduction): Tensor {
  const each = Tensor.uninitialized(logp.dtype, at.shape, logp.storage.memory)
  kernelsFor(logp).nll[logp.dtype](contiguous(logp), at, each)
  return reduction === 'none' ? each : reduction === 'sum' ? sum(each) : mean(each)
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

/** @throws as nllLoss */
export function crossEntropy(logits: Tensor, target: Tensor, reduction: Reduction = 'mean'): Tensor {
  checkReduction('crossEntropy', reduction)
  checkClasses('crossEntropy', logits, target)
  return picked(logSoftmax(logits, 1), checkedIndices('crossEntropy', target, logits.shape[1]!), reduction)
}
