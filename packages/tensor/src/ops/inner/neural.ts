/** Primitives of neural networks. Tensors come first (null: left out), then attributes, all of them given: composites fill in defaults. */

import { contiguous } from '../../raw/copy.js'
import { SparseTensor } from '../../sparse/sparse-tensor.js'
import { tensor } from '../../tensor/create.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import { numelOf } from '../../values/shape.js'
import { type Functional, type Ops, primitive, rawOperations } from '../define/define.js'
import { type ManySaved, result } from '../define/formula.js'

type Normalization = Functional<
  (x: Tensor, weight: Tensor | null, bias: Tensor | null, eps: number) => readonly [result: Tensor, mean: Tensor, spread: Tensor]
>
const NORM_ROW = { reads: [[0, 1, result(1), result(2)], [0, result(1), result(2)], []], differentiable: 1, isFused: true } as const

/** x [rows, d], weight and bias [d] → [result, mean [rows], 1 / √(variance + eps) [rows]]; the last two have no gradient. @throws DTYPE_MISMATCH */
export const layerNormRows: Normalization = primitive('layerNormRows', {
  raw: (x, weight, bias, eps) => normalized('layerNorm', 'layerNorm', x.shape[0]!, x, weight, bias, eps),
  grad: {
    ...NORM_ROW,
    grads: ([g], s, ops) => {
      const [rows, d] = s.shape(0) as readonly [number, number]
      return normGrads('layerNormBackward', g!, s, { shape: [rows, d, 1], over: [1], columns: [0] }, ops)
    },
  },
})

/** x [N, C, …], weight and bias [C] → [result, mean [C], biased variance [C]]; the last two have no gradient. @throws DTYPE_MISMATCH */
export const batchNormTraining: Normalization = primitive('batchNormTraining', {
  raw: (x, weight, bias, eps) => normalized('channelNorm', 'batchNorm', x.shape[1]!, x, weight, bias, eps),
  grad: {
    ...NORM_ROW,
    grads: ([g], s, ops) => {
      const [n, c, ...inner] = s.shape(0) as readonly [number, number, ...number[]]
      return normGrads('channelNormBackward', g!, s, { shape: [n, c, numelOf(inner)], over: [0, 2], columns: [0, 2] }, ops)
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
    raw: (weight, indices) => rawOperations.embeddingAt(weight, indices),
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

const dense = (x: Tensor | null): Tensor | null => (x === null ? null : contiguous(x))

/** @param count how many statistics there are of each kind */
function normalized(
  op: 'layerNorm' | 'channelNorm',
  name: string,
  count: number,
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): readonly [Tensor, Tensor, Tensor] {
  const { dtype, shape, storage } = x
  const fits = (t: Tensor | null): boolean => t === null || t.dtype === dtype
  if (!isFloating(dtype) || !fits(weight) || !fits(bias)) {
    const got = [x, weight, bias].flatMap((t) => (t === null ? [] : [t.dtype])).join(', ')
    throw dtypeMismatch(name, 'one floating point dtype for input, weight and bias', got, "Convert with to('float32').")
  }
  const out = Tensor.uninitialized(dtype, shape, storage.memory)
  const mean = Tensor.uninitialized(dtype, [count], storage.memory)
  const spread = Tensor.uninitialized(dtype, [count], storage.memory)
  kernelsFor(x)[op][dtype](contiguous(x), dense(weight), dense(bias), out, mean, spread, eps)
  return [out, mean, spread]
}

interface Form {
  /** The shape of x in three dimensions; the weight then lies along dimension 1. */
  readonly shape: readonly number[]
  /** The dimensions that share statistics. */
  readonly over: readonly number[]
  /** The dimensions that share a weight, without the last where it is 1. */
  readonly columns: readonly number[]
}

/** The gradients of x, weight and bias. A kernel computes all of them at once, unless they are to be differentiated again. */
function normGrads(
  op: 'layerNormBackward' | 'channelNormBackward',
  g: Tensor,
  s: ManySaved<[eps: number]>,
  form: Form,
  ops: Ops,
): (Tensor | null)[] {
  const toAffine = (t: Tensor): Tensor => ops.reshape(ops.sum(t, form.columns), [form.shape[1]!])
  if (!s.needs(0) && !s.needs(1)) return [null, null, toAffine(ops.reshape(g, form.shape))]
  if (ops !== rawOperations) return composedNorm(ops.reshape(g, form.shape), s, form, toAffine, ops)
  const x = s.tensor(0)
  const { dtype, storage } = x
  const out = Tensor.uninitialized(dtype, x.shape, storage.memory)
  const affine = (i: number) => (s.needs(i) ? Tensor.uninitialized(dtype, [form.shape[1]!], storage.memory) : null)
  const [weight, bias] = [affine(1), affine(2)]
  kernelsFor(x)[op][dtype](contiguous(g), contiguous(x), s.result(1), s.result(2), dense(s.arg(1)), out, weight, bias, s.attrs[0])
  return [s.needs(0) ? out : null, weight, bias]
}

/** The same of y = x̂ w + b with x̂ = (x − mean) rstd, out of operations: dx = rstd (g w − mean(g w) − x̂ mean(g w x̂)), dw = Σ g x̂, db = Σ g. */
function composedNorm(
  g: Tensor,
  s: ManySaved<[eps: number]>,
  { shape, over }: Form,
  toAffine: (t: Tensor) => Tensor,
  ops: Ops,
): (Tensor | null)[] {
  const [eps] = s.attrs
  const x = ops.reshape(s.tensor(0), shape)
  const weight = s.needs(0) ? s.arg(1) : null
  const centred = ops.sub(x, ops.mean(x, over, true))
  const rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(centred, centred), over, true), eps))
  const xhat = ops.mul(centred, rstd)
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
