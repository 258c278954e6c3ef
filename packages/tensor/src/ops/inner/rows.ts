/** Primitives that public operations are made of: rows, pads and running sums. */

import { contiguous } from '../../raw/copy.js'
import { checkedIndices } from '../../raw/indices.js'
import { arange } from '../../tensor/create.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../../values/errors.js'
import type { Reduction } from '../../values/options-neural.js'
import type { Shape } from '../../values/shape.js'
import { type Functional, type Ops, primitive, rawOperations } from '../define/define.js'
import { formula, ofTensor } from '../define/formula.js'
import { classLoss, classLossBackward, nllLossBackward } from '../parts/classes.js'
import { checkPads } from '../parts/common.js'
import { scan } from '../parts/fibres.js'
import { logSoftmaxSlope } from '../parts/slopes.js'

/**
 * x between `value`s: `pads` holds how many before and after, from the last dimension on, two numbers each; negative ones cut.
 * @throws INVALID_ARGUMENT, SHAPE_MISMATCH when more is cut than there is
 */
export const constantPad: Functional<(x: Tensor, pads: readonly number[], value?: number) => Tensor> = primitive('constantPad', {
  raw: (x, pads, value = 0) => {
    checkPads('constantPad', x.shape, pads)
    const ndim = x.shape.length
    const shape = new Array<number>(ndim)
    // The part of x that stays.
    const kept = new Array<number>(ndim)
    let from = x.offset
    for (let d = 0; d < ndim; d++) {
      const at = 2 * (ndim - 1 - d)
      const [before, behind] = at < pads.length ? [pads[at]!, pads[at + 1]!] : [0, 0]
      const extent = x.shape[d]!
      shape[d] = extent + before + behind
      kept[d] = extent + Math.min(before, 0) + Math.min(behind, 0)
      if (kept[d]! < 0) {
        throw shapeMismatch('constantPad', 'to cut no more than there is', `${shapeText(pads)} for ${shapeText(x.shape)}`, 'Cut less.')
      }
      if (before < 0) from -= before * x.strides[d]!
    }
    const out = Tensor.empty(x.dtype, shape, x.storage.memory)
    if (value !== 0) rawOperations.fill_(out, value)
    let to = 0
    for (let d = 0; d < ndim; d++) to += Math.max(pads[2 * (ndim - 1 - d)] ?? 0, 0) * out.strides[d]!
    kernelsFor(x).copy[x.dtype](Tensor.view(x, kept, x.strides, from), Tensor.view(out, kept, out.strides, to))
    return out
  },
  // g without the pads
  grad: {
    reads: [[]],
    grads: ([g], s, ops) => {
      const without = s.attrs[0].map((n) => -n)
      return [ops.constantPad(g!, without)]
    },
  },
})

/** As cumsum, from the end. Not in PyTorch: it is what the derivative of cumsum needs. */
export const reverseCumsum: Functional<(x: Tensor, dim: number) => Tensor> = primitive('reverseCumsum', {
  raw: (x, dim) => scan('reverseCumsum', x, dim),
  grad: formula([], (g, s, ops) => ops.to(ops.cumsum(g, s.attrs[0]), s.dtypeA)),
})

/** weight [V, D], indices int32 of any shape → […indices, D]. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE */
export const embeddingAt: Functional<(weight: Tensor, indices: Tensor) => Tensor> = primitive('embeddingAt', {
  raw: (weight, indices) => {
    if (weight.shape.length !== 2)
      throw shapeMismatch('embedding', 'a weight [rows, width]', shapeText(weight.shape), 'Reshape the weight.')
    const at = checkedIndices('embedding', indices, weight.shape[0]!)
    const w = contiguous(weight)
    const [rows, width] = weight.shape as [number, number]
    const out = Tensor.uninitialized(weight.dtype, [...indices.shape, width], weight.storage.memory)
    kernelsFor(weight).indexSelect[weight.dtype](w, at, out, 1, rows, at.numel, width)
    return out
  },
  // rows of g added up by index
  grad: { x: formula(['index'], (g, s, ops) => ops.embeddingBackward(g, s.index, s.shapeA[0]!)) },
  node: 'embedding',
})

/** grad […indices, D] → [V, D]: rows of grad added up by index. @throws as embeddingAt */
export const embeddingBackward: Functional<(grad: Tensor, indices: Tensor, rows: number) => Tensor> = primitive('embeddingBackward', {
  raw: (grad, indices, rows) => {
    const width = grad.shape[grad.shape.length - 1]
    const fits = grad.shape.length === indices.shape.length + 1 && indices.shape.every((n, i) => n === grad.shape[i])
    if (width === undefined || !fits) {
      throw shapeMismatch(
        'embeddingBackward',
        `a gradient ${shapeText(indices.shape)} with the width last`,
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
  },
  // rows of g picked by index
  grad: { x: formula(['index'], (g, s, ops) => ops.embeddingAt(g, s.index)) },
})

/** logp [N, C], target int32 [N] → [] or, with 'none', [N]. No class weights, no ignored index. */
export const nllLossRows: Functional<(logp: Tensor, target: Tensor, reduction?: Reduction) => Tensor> = primitive('nllLossRows', {
  raw: (logp, target, reduction) => classLoss('nllLoss', logp, target, reduction),
  // −g / N at the target
  grad: { x: formula(['index'], (g, s, ops) => nllGrad(g, s.index, s.shapeA, s.attrs[0], ops)) },
  node: 'nllLoss',
})

/** logits [N, C], target int32 [N]: nllLossRows of logSoftmax. */
export const crossEntropyRows: Functional<(logits: Tensor, target: Tensor, reduction?: Reduction) => Tensor> = primitive(
  'crossEntropyRows',
  {
    raw: (logits, target, reduction) => classLoss('crossEntropy', logits, target, reduction),
    // of logSoftmax a, from that of nllLoss: as PyTorch, which has two nodes; a kernel computes both
    grad: {
      x: ofTensor(['a', 'index'], (g, s, ops) => {
        const [reduction] = s.attrs
        if (ops === rawOperations) return classLossBackward(shareOfRow(g, s.shapeA[0]!, reduction), s.a, s.index)
        return logSoftmaxSlope(nllGrad(g, s.index, s.shapeA, reduction, ops), ops.logSoftmax(s.a, 1), 1, ops)
      }),
    },
    node: 'crossEntropy',
  },
)

/** The gradient of nllLoss for logp [N, C]: minus the row's factor at the target, 0 elsewhere. */
function nllGrad(g: Tensor, target: Tensor, shape: Shape, reduction: Reduction | undefined, ops: Ops): Tensor {
  const [rows, classes] = shape as [number, number]
  if (!g.requiresGrad) return nllLossBackward(shareOfRow(g, rows, reduction), target, classes)
  const oneHot = ops.to(ops.eq(ops.unsqueeze(target, 1), arange(0, classes, 1, { dtype: 'int32', device: g.device })), g.dtype)
  return ops.mul(oneHot, ops.neg(perRow(g, shape, reduction, ops)))
}

/** The gradient of a row's loss, or one for all rows. */
function shareOfRow(g: Tensor, rows: number, reduction: Reduction | undefined): Tensor {
  return reduction === 'none' || reduction === 'sum' || rows === 1 ? g : rawOperations.div(g, rows)
}

/** The gradient of a loss as a factor for each row of [N, C]; 'mean' is the default of all losses. */
function perRow(g: Tensor, shape: Shape, reduction: Reduction | undefined, ops: Ops): Tensor {
  if (reduction === 'none') return ops.unsqueeze(g, 1)
  return reduction === 'sum' ? g : ops.div(g, shape[0]!)
}
