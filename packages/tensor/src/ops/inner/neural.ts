/** Primitives of neural networks. Tensors come first (null: left out), then attributes, all of them given: composites fill in what users leave out. */

import type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from '../../kernels/table/neural.js'
import { embedding } from '../../raw/indexing.js'
import * as rawConvolution from '../../raw/neural/convolution.js'
import * as normalization from '../../raw/neural/normalization.js'
import { batchNormTrainingBackward, layerNormRowsBackward } from '../../raw/neural/normalization.js'
import * as pooling from '../../raw/neural/pooling.js'
import { SparseTensor } from '../../sparse/sparse-tensor.js'
import { tensor } from '../../tensor/create.js'
import type { Device } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { type Functional, type Ops, primitive, rawOperations } from '../define/define.js'
import { type ManySaved, result } from '../define/formula.js'

/** x [N, C, H, W], weight [O, C / groups, kH, kW] → [N, O, oH, oW]: what `conv2d` and its siblings stand on. */
export const convolution: Functional<(x: Tensor, weight: Tensor, bias: Tensor | null, geometry: ConvGeometry) => Tensor> = primitive(
  'convolution',
  {
    raw: rawConvolution.convolution,
    grad: {
      reads: [[1], [0], []],
      grads: ([g], s, ops) => [
        s.needs(0) ? ops.convolutionInput(g!, s.tensor(1), s.attrs[0]) : null,
        s.needs(1) ? ops.convolutionWeight(s.tensor(0), g!, s.attrs[0]) : null,
        s.needs(2) ? ops.sum(g!, [0, 2, 3]) : null,
      ],
    },
  },
)

/** Its adjoint in x, from grad [N, O, oH, oW] and weight: a transposed convolution. */
export const convolutionInput: Functional<(grad: Tensor, weight: Tensor, geometry: ConvGeometry) => Tensor> = primitive(
  'convolutionInput',
  {
    raw: rawConvolution.convolutionInput,
    grad: {
      reads: [[1], [0]],
      grads: ([g], s, ops) => [
        s.needs(0) ? ops.convolution(g!, s.tensor(1), null, s.attrs[0]) : null,
        s.needs(1) ? ops.convolutionWeight(g!, s.tensor(0), s.attrs[0]) : null,
      ],
    },
  },
)

/** Its adjoint in the weight. */
export const convolutionWeight: Functional<(x: Tensor, grad: Tensor, geometry: ConvGeometry) => Tensor> = primitive('convolutionWeight', {
  raw: rawConvolution.convolutionWeight,
  grad: {
    reads: [[1], [0]],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.convolutionInput(s.tensor(1), g!, s.attrs[0]) : null,
      s.needs(1) ? ops.convolution(s.tensor(0), g!, null, s.attrs[0]) : null,
    ],
  },
})

/** x […, H, W] → maxima and their places (int32 y · W + x) […, oH, oW]. */
export const maxPoolPlanes: Functional<(x: Tensor, geometry: PoolGeometry) => readonly [Tensor, Tensor]> = primitive('maxPoolPlanes', {
  raw: pooling.maxPoolPlanes,
  grad: {
    reads: [[result(1)]],
    grads: ([g], s, ops) => {
      const { planes, h, w, oh, ow } = s.attrs[0]
      const zeros = Tensor.empty(g!.dtype, [planes, h * w], g!.storage.memory)
      const blind = blindWindows(s.attrs[0], g!.device)
      const places = blind === null ? s.result(1) : ops.where(blind, 0, s.result(1))
      const grad = blind === null ? g! : ops.where(blind, 0, g!)
      return [
        ops.reshape(ops.scatterAdd(zeros, 1, ops.reshape(places, [planes, oh * ow]), ops.reshape(grad, [planes, oh * ow])), s.shape(0)),
      ]
    },
  },
})

/** x […, H, W] → means […, oH, oW]. */
export const avgPoolPlanes: Functional<(x: Tensor, geometry: AvgPoolGeometry) => Tensor> = primitive('avgPoolPlanes', {
  raw: pooling.avgPoolPlanes,
  grad: { reads: [[]], grads: ([g], s, ops) => [ops.avgPoolSpread(g!, s.attrs[0])] },
})

/** Its adjoint. */
export const avgPoolSpread: Functional<(grad: Tensor, geometry: AvgPoolGeometry) => Tensor> = primitive('avgPoolSpread', {
  raw: pooling.avgPoolSpread,
  grad: { reads: [[]], grads: ([g], s, ops) => [ops.avgPoolPlanes(g!, s.attrs[0])] },
})

/** x [rows, d], weight and bias [d] → [result, mean [rows], 1 / √(variance + eps) [rows]]; the last two have no gradient. */
export const layerNormRows: Functional<
  (x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number) => readonly [Tensor, Tensor, Tensor]
> = primitive('layerNormRows', {
  raw: normalization.layerNormRows,
  grad: {
    reads: [[0, 1, result(1), result(2)], [0, result(1), result(2)], []],
    differentiable: 1,
    isFused: true,
    grads: ([g], s, ops) => {
      const [rows, d] = s.shape(0) as readonly [number, number]
      if (!s.needs(0) && !s.needs(1)) return [null, null, ops.sum(g!, 0)]
      if (ops !== rawOperations) return composedNorm(g!, s, [rows, d, 1], [1], [0], s.attrs[0], ops)
      const [dx, weight, bias] = layerNormRowsBackward(g!, s.tensor(0), s.result(1), s.result(2), s.arg(1), s.needs(1), s.needs(2))
      return [s.needs(0) ? dx : null, weight, bias]
    },
  },
})

/** x [N, C, …], weight and bias [C] → [result, mean [C], biased variance [C]]; the last two have no gradient. */
export const batchNormTraining: Functional<
  (x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number) => readonly [Tensor, Tensor, Tensor]
> = primitive('batchNormTraining', {
  raw: normalization.batchNormTraining,
  grad: {
    reads: [[0, 1, result(1), result(2)], [0, result(1), result(2)], []],
    differentiable: 1,
    isFused: true,
    grads: ([g], s, ops) => {
      const [n, c] = s.shape(0) as readonly [number, number]
      const inner = s
        .shape(0)
        .slice(2)
        .reduce((product, extent) => product * extent, 1)
      if (!s.needs(0) && !s.needs(1)) return [null, null, ops.sum(ops.reshape(g!, [n, c, inner]), [0, 2])]
      if (ops !== rawOperations) return composedNorm(g!, s, [n, c, inner], [0, 2], [0, 2], s.attrs[0], ops)
      const eps = s.attrs[0]
      const [dx, weight, bias] = batchNormTrainingBackward(g!, s.tensor(0), s.result(1), s.result(2), s.arg(1), eps, s.needs(1), s.needs(2))
      return [s.needs(0) ? dx : null, weight, bias]
    },
  },
})

/** −t log p − (1 − t) log(1 − p), element by element, of one floating dtype; logarithms are cut off at −100. */
export const binaryCrossEntropy: Functional<(p: Tensor, target: Tensor) => Tensor> = primitive('binaryCrossEntropy', {
  raw: (p, target) => {
    const { add, clamp, log, mul, neg, sub } = rawOperations
    const bounded = (x: Tensor): Tensor => clamp(log(x), LOG_MIN)
    return neg(add(mul(target, bounded(p)), mul(sub(1, target), bounded(sub(1, p)))))
  },
  // g (p − t) / (p (1 − p)), g (log(1 − p) − log p)
  grad: {
    reads: [[0, 1], [0]],
    grads: ([g], s, ops) => {
      const p = s.tensor(0)
      const slope = () => ops.div(ops.sub(p, s.tensor(1)), ops.clamp(ops.mul(ops.sub(1, p), p), BCE_EPS))
      return [s.needs(0) ? ops.mul(g!, slope()) : null, s.needs(1) ? ops.mul(g!, ops.sub(ops.log(ops.sub(1, p)), ops.log(p))) : null]
    },
  },
})

/** embedding whose gradient is 0 for row paddingIdx (−1: none), and sparse rows where so wanted. */
export const embeddingRows: Functional<(weight: Tensor, indices: Tensor, paddingIdx: number, sparse: boolean) => Tensor> = primitive(
  'embeddingRows',
  {
    raw: (weight, indices) => embedding(weight, indices),
    grad: {
      reads: [[1], null],
      grads: ([g], s, ops) => {
        const [paddingIdx, sparse] = s.attrs
        const [rows, width] = s.shape(0) as readonly [number, number]
        const indices = s.tensor(1)
        if (sparse && ops === rawOperations) return [sparseRows(g!, indices, paddingIdx, rows, width), null]
        const counted = paddingIdx < 0 ? g! : ops.where(ops.unsqueeze(ops.eq(indices, paddingIdx), -1), 0, g!)
        return [ops.embeddingBackward(counted, indices, rows), null]
      },
    },
  },
)

/** [oh, ow]: the windows that see nothing but padding, whose place lies outside of the plane; null where there are none. */
function blindWindows({ h, w, kh, kw, oh, ow, strideH, strideW, padH, padW, dilH, dilW }: PoolGeometry, device: Device): Tensor | null {
  const blind = (outs: number, stride: number, pad: number, k: number, dil: number, extent: number): boolean[] =>
    Array.from({ length: outs }, (_, o) => {
      const from = o * stride - pad
      const first = from >= 0 ? from : from + Math.ceil(-from / dil) * dil
      return first >= extent || first > from + (k - 1) * dil
    })
  const rows = blind(oh, strideH, padH, kh, dilH, h)
  const columns = blind(ow, strideW, padW, kw, dilW, w)
  if (!rows.includes(true) && !columns.includes(true)) return null
  return tensor(
    rows.map((row) => columns.map((column) => row || column)),
    { device },
  )
}

/**
 * The gradients of y = x̂ w + b with x̂ = (x − mean) rstd, out of operations: dx = rstd (g w − mean(g w) − x̂ mean(g w x̂)), dw = Σ g x̂, db = Σ g.
 * @param shape that x is brought to, three-dimensional; the weight then lies along dimension 1
 * @param over the dimensions that share statistics
 * @param columns the dimensions that share a weight, beside the last where it is 1
 */
function composedNorm(
  gradient: Tensor,
  s: ManySaved<[number]>,
  shape: readonly number[],
  over: readonly number[],
  columns: readonly number[],
  eps: number,
  ops: Ops,
): (Tensor | null)[] {
  const g = ops.reshape(gradient, shape)
  const x = ops.reshape(s.tensor(0), shape)
  const weight = s.needs(0) ? s.arg(1) : null
  const centred = ops.sub(x, ops.mean(x, over, true))
  const rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(centred, centred), over, true), eps))
  const xhat = ops.mul(centred, rstd)
  const toAffine = (t: Tensor): Tensor => ops.reshape(ops.sum(t, columns), [shape[1]!])
  const gw = weight === null ? g : ops.mul(g, ops.reshape(weight, [1, shape[1]!, 1]))
  const slope = (): Tensor => ops.mul(xhat, ops.mean(ops.mul(gw, xhat), over, true))
  const dx = (): Tensor => ops.mul(rstd, ops.sub(ops.sub(gw, ops.mean(gw, over, true)), slope()))
  return [
    s.needs(0) ? ops.reshape(dx(), s.shape(0)) : null,
    s.needs(1) ? toAffine(ops.mul(g, xhat)) : null,
    s.needs(2) ? toAffine(g) : null,
  ]
}

function sparseRows(g: Tensor, indices: Tensor, paddingIdx: number, rows: number, width: number): SparseTensor {
  const flat = rawOperations.reshape(indices, [indices.numel])
  const values = rawOperations.reshape(g, [indices.numel, width])
  // A copy: g may be written to, or freed, when this node is done.
  if (paddingIdx < 0) return new SparseTensor(rawOperations.clone(flat), rawOperations.clone(values), [rows, width])
  const kept = Array.from(flat.dataSync().keys()).filter((i) => flat.dataSync()[i] !== paddingIdx)
  const at = tensor(Int32Array.from(kept), { device: g.device })
  return new SparseTensor(rawOperations.indexSelect(flat, 0, at), rawOperations.indexSelect(values, 0, at), [rows, width])
}

/** PyTorch's bound for p (1 − p), which is 0 at both ends; a float there in every dtype. */
const BCE_EPS = Math.fround(1e-12)

/** log of a probability is cut off here, as PyTorch does, so that 0 · log 0 is 0. */
const LOG_MIN = -100
