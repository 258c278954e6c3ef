/** Primitives that public operations are made of: rows, pads and running sums. */

import * as indexing from '../../raw/indexing.js'
import * as join from '../../raw/join.js'
import { scan } from '../../raw/scan.js'
import { arange } from '../../tensor/create.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { Reduction } from '../../values/options-neural.js'
import type { Shape } from '../../values/shape.js'
import { type Functional, type Ops, primitive, rawOperations } from '../define/define.js'
import { formula, ofTensor } from '../define/formula.js'
import { logSoftmaxSlope } from '../parts/slopes.js'

/** `pads`: before and after, from the last dimension on, two numbers each; negative ones cut. */
export const constantPad: Functional<(x: Tensor, pads: readonly number[], value?: number) => Tensor> = primitive('constantPad', {
  raw: join.constantPad,
  // g without the pads
  grad: {
    reads: [[]],
    grads: ([g], s, ops) => [
      ops.constantPad(
        g!,
        s.attrs[0].map((n) => -n),
      ),
    ],
  },
})

/** As cumsum, from the end. Not in PyTorch: it is what the derivative of cumsum needs. */
export const reverseCumsum: Functional<(x: Tensor, dim: number) => Tensor> = primitive('reverseCumsum', {
  raw: (x, dim) => scan('reverseCumsum', x, dim),
  grad: formula([], (g, s, ops) => ops.to(ops.cumsum(g, s.attrs[0]), s.dtypeA)),
})

/** weight [V, D], indices int32 of any shape → […indices, D]. */
export const embeddingAt: Functional<(weight: Tensor, indices: Tensor) => Tensor> = primitive('embeddingAt', {
  raw: indexing.embedding,
  // rows of g added up by index
  grad: { x: formula(['index'], (g, s, ops) => ops.embeddingBackward(g, s.index, s.shapeA[0]!)) },
  node: 'embedding',
})

/** grad […indices, D] → [V, D]: rows of grad added up by index. */
export const embeddingBackward: Functional<(grad: Tensor, indices: Tensor, rows: number) => Tensor> = primitive('embeddingBackward', {
  raw: indexing.embeddingBackward,
  // rows of g picked by index
  grad: { x: formula(['index'], (g, s, ops) => ops.embeddingAt(g, s.index)) },
})

/** logp [N, C], target int32 [N] → [] or, with 'none', [N]. No class weights, no ignored index. */
export const nllLossRows: Functional<(logp: Tensor, target: Tensor, reduction?: Reduction) => Tensor> = primitive('nllLossRows', {
  raw: indexing.nllLoss,
  // −g / N at the target
  grad: { x: formula(['index'], (g, s, ops) => nllGrad(g, s.index, s.shapeA, s.attrs[0], ops)) },
  node: 'nllLoss',
})

/** logits [N, C], target int32 [N]: nllLossRows of logSoftmax. */
export const crossEntropyRows: Functional<(logits: Tensor, target: Tensor, reduction?: Reduction) => Tensor> = primitive(
  'crossEntropyRows',
  {
    raw: indexing.crossEntropy,
    // of logSoftmax a, from that of nllLoss: as PyTorch, which has two nodes
    grad: {
      x: ofTensor(['a', 'index'], (g, s, ops) =>
        logSoftmaxSlope(nllGrad(g, s.index, s.shapeA, s.attrs[0], ops), ops.logSoftmax(s.a, 1), 1, ops),
      ),
    },
    node: 'crossEntropy',
  },
)

/** The gradient of nllLoss for logp [N, C]: minus the row's factor at the target, 0 elsewhere. */
function nllGrad(g: Tensor, target: Tensor, shape: Shape, reduction: Reduction | undefined, ops: Ops): Tensor {
  const [rows, classes] = shape as [number, number]
  if (!g.requiresGrad) {
    const each = reduction === 'none' || reduction === 'sum' || rows === 1 ? g : rawOperations.div(g, rows)
    return indexing.nllLossBackward(each, target, classes)
  }
  const oneHot = ops.to(ops.eq(ops.unsqueeze(target, 1), arange(0, classes, 1, { dtype: 'int32', device: g.device })), g.dtype)
  return ops.mul(oneHot, ops.neg(perRow(g, shape, reduction, ops)))
}

/** The gradient of a loss as a factor for each row of [N, C]; 'mean' is the default of all losses. */
function perRow(g: Tensor, shape: Shape, reduction: Reduction | undefined, ops: Ops): Tensor {
  if (reduction === 'none') return ops.unsqueeze(g, 1)
  return reduction === 'sum' ? g : ops.div(g, shape[0]!)
}
