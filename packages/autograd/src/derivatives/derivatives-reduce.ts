/**
 * Rows of the table of derivatives (`derivatives.ts`): reductions beyond the first ones, and running sums. g is the gradient of the result y, n how
 * many elements went into each result.
 */
import { type DimsArg, Tensor } from '@postgrad/tensor'
import type { StatisticsOps } from '@postgrad/tensor/internal'
import { formula, ofTensor, type TensorOps, type UnaryRows } from '../graph/formula.js'
import { allDims, numel, spread } from './dims.js'

export const statistics: UnaryRows<StatisticsOps<Tensor>> = {
  // g · the product of all others
  prod: { a: ofTensor(['a'], (g, s, ops) => ops.prodBackward(g, s.a, s.attrs[0])) },
  // g to the minima, in equal parts where several are equal
  amin: { a: ofTensor(['a', 'result'], (g, s, ops) => extremeSlope(g, s.a, s.result, s.attrs[0], ops)) },
  // 2 g (a − mean) / (n − correction)
  var: {
    a: ofTensor(['a'], (g, s, ops) => {
      const [dims, , options] = s.attrs
      return varianceSlope(ops.mul(g, 2), s.a, dims, options?.correction ?? 1, ops)
    }),
  },
  // g (a − mean) / ((n − correction) y); 0 where y is 0, as in PyTorch
  std: {
    a: ofTensor(['a', 'result'], (g, s, ops) => {
      const [dims, , options] = s.attrs
      const scaled = ops.where(ops.eq(s.result, 0), 0, ops.div(g, s.result))
      return varianceSlope(scaled, s.a, dims, options?.correction ?? 1, ops)
    }),
  },
  // g · exp(a − y)
  logSumExp: {
    a: ofTensor(['a', 'result'], (g, s, ops) => {
      const dims = s.attrs[0]
      return ops.mul(spread(g, s.shapeA, dims, ops), ops.exp(ops.sub(s.a, spread(s.result, s.shapeA, dims, ops))))
    }),
  },
  norm: { a: ofTensor(['a', 'result'], (g, s, ops) => normSlope(g, s.a, s.result, s.attrs[0] ?? 2, s.attrs[1], ops)) },
  // element i of a went into all results from i on
  cumsum: { a: formula([], (g, s, ops) => ops.to(ops.reverseCumsum(g, s.attrs[0]), s.dtypeA)) },
  reverseCumsum: { a: formula([], (g, s, ops) => ops.to(ops.cumsum(g, s.attrs[0]), s.dtypeA)) },
  cumprod: { a: ofTensor(['a'], (g, s, ops) => ops.cumprodBackward(g, s.a, s.attrs[0])) },
}

/**
 * g to the extremes, in equal parts where several are equal. Over all elements, which is what `max` and `min` are, a NaN counts as one; along dimensions it
 * equals nothing, so all of its row get NaN. So it is in PyTorch.
 */
export function extremeSlope(g: Tensor, a: Tensor, y: Tensor, dims: DimsArg | undefined, ops: TensorOps): Tensor {
  const extreme = spread(y, a.shape, dims, ops)
  const equal = ops.eq(a, extreme)
  const isExtreme = dims === undefined ? ops.logicalOr(equal, ops.logicalAnd(ops.isNaN(a), ops.isNaN(extreme))) : equal
  return share(ops.to(isExtreme, g.dtype), spread(g, a.shape, dims, ops), dims, ops)
}

/** g in equal parts to the elements that are marked with 1. */
function share(marked: Tensor, g: Tensor, dims: DimsArg | undefined, ops: TensorOps): Tensor {
  return ops.mul(g, ops.div(marked, ops.sum(marked, dims ?? allDims(marked.shape), true)))
}

/** g (a − mean) / (n − correction) */
function varianceSlope(g: Tensor, a: Tensor, dims: DimsArg | undefined, correction: number, ops: TensorOps): Tensor {
  const n = numel(a.shape) / Math.max(1, g.numel)
  const centred = ops.sub(a, ops.mean(a, dims ?? allDims(a.shape), true))
  // Negative where the correction is larger than n: so it is in PyTorch, where only the variance itself is bounded.
  return ops.mul(spread(ops.div(g, n - correction), a.shape, dims, ops), centred)
}

/** PyTorch's `norm_backward`: where the norm is 0 so is its gradient. */
function normSlope(g: Tensor, a: Tensor, y: Tensor, p: number, dims: DimsArg | undefined, ops: TensorOps): Tensor {
  const over = (x: Tensor) => spread(x, a.shape, dims, ops)
  if (p === 0) return Tensor.empty(g.dtype, a.shape, g.storage.memory)
  if (p === 1) return ops.mul(ops.sign(a), over(g))
  if (Math.abs(p) === Number.POSITIVE_INFINITY) {
    // Where one is NaN the norm is, and nothing else an extreme; its sign is 0.
    const isExtreme = ops.logicalOr(ops.eq(ops.abs(a), over(y)), ops.isNaN(a))
    return ops.mul(ops.sign(a), share(ops.to(isExtreme, g.dtype), over(g), dims, ops))
  }
  // Where the norm is 0 a 1 stands in its place, so that nothing is divided by 0, here and in further derivatives.
  const safe = ops.where(ops.eq(y, 0), 1, y)
  const factor = ops.where(ops.eq(y, 0), 0, ops.div(g, p === 2 ? safe : ops.pow(safe, p - 1)))
  if (p === 2) return ops.mul(a, over(factor))
  if (p > 2) return ops.mul(ops.mul(a, ops.pow(ops.abs(a), p - 2)), over(factor))
  // Below 2 the power of a zero is infinite; its sign is 0.
  const size = ops.where(ops.eq(a, 0), 1, ops.abs(a))
  return ops.mul(ops.mul(ops.sign(a), ops.pow(size, p - 1)), over(factor))
}
