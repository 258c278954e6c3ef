/** Reductions: over all elements, or over dimensions. */

import { scalarTensor } from '../raw/elementwise.js'
import { elementsOf, isReadable } from '../tensor/bytes.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'
import type { ReduceOptions, VarianceOptions } from '../values/options.js'
import { type DimsArg, normalizeDims, numelOf } from '../values/shape.js'
import { composite, type Ops, primitive, rawOperations } from './define/define.js'
import { formula, ofTensor } from './define/formula.js'
import { withoutEach } from './parts/common.js'
import { allDims, spread } from './parts/dims.js'
import { emptyReduction, floatingOnly, reduce, reduced } from './parts/fibres.js'
import { gradientRows, slope } from './parts/slopes.js'

/**
 * The sum of all elements, or over `dims`. `keepdim` (default false) keeps these dimensions with extent 1. int32 and bool give int32 (PyTorch: int64). PyTorch:
 * `torch.sum`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 2], [3, 4]]).sum(0, true) // [[4, 6]]
 */
export const sum: (x: Tensor, dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions) => Tensor = primitive('sum', {
  args: ['tensor', 'dims?', 'boolean?', 'options?'],
  options: { dtype: true },
  raw: (x, dims, keepdim, options) => reduce('sum', summands('sum', x, options), dims, keepdim),
  // g for every summand
  grad: formula([], (g, s, ops) => spread(ops.to(g, s.dtypeA), s.shapeA, s.attrs[0], ops)),
})

/**
 * The mean of all elements, or over `dims`. `keepdim` (default false) keeps these dimensions with extent 1. x must be of floating point; `{ dtype }` converts
 * it first. PyTorch: `torch.mean`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 2], [3, 4]]).mean(1) // [1.5, 3.5]
 */
export const mean: (x: Tensor, dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions) => Tensor = primitive('mean', {
  args: ['tensor', 'dims?', 'boolean?', 'options?'],
  options: { dtype: true },
  raw: (x, dims, keepdim, options) => {
    const source = options === undefined ? x : summands('mean', x, options)
    floatingOnly('mean', source)
    const out = reduce('sum', source, dims, keepdim, 'mean')
    // Of no elements: 0 / 0.
    kernelsFor(out).div[out.dtype](out, scalarTensor(x.numel / Math.max(1, out.numel), out.dtype, out.storage.memory), out)
    return out
  },
  // g / n for every summand
  grad: formula([], (g, s, ops) =>
    spread(ops.div(ops.to(g, s.dtypeA), Math.max(1, numelOf(s.shapeA)) / Math.max(1, g.numel)), s.shapeA, s.attrs[0], ops),
  ),
})

/**
 * The product of all elements, or along `dim`. int32 and bool give int32. The product without elements is 1. PyTorch: `torch.prod`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [3, 4]]).prod(0) // [3, 8]
 */
export const prod: (x: Tensor, dim?: number, keepdim?: boolean) => Tensor = primitive('prod', {
  args: ['tensor', 'number?', 'boolean?'],
  raw: (x, dim, keepdim) => reduce('prod', x.dtype === 'bool' ? rawOperations.to(x, 'int32') : x, dim, keepdim),
  // g · the product of all others
  grad: slope(
    'a',
    (g, x, [dim]) => gradientRows('prodBackward', g, x, dim),
    (g, x, ops, [dim]) => productSlope(g, x, dim, ops),
  ),
})

/**
 * The largest element of all, or over `dims` (`keepdim`: default false). NaN counts as the largest. Equal elements share the gradient. PyTorch: `torch.amax`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 5], [7, 2]]).amax(1) // [5, 7]
 */
export const amax: (x: Tensor, dims?: DimsArg, keepdim?: boolean) => Tensor = primitive('amax', {
  args: ['tensor', 'dims?', 'boolean?'],
  raw: (x, dims, keepdim) => reduce('amax', x, dims, keepdim),
  // g to the maxima, in equal parts where several are equal
  grad: ofTensor(['a', 'result'], (g, s, ops) => extremeSlope(g, s.a, s.result, s.attrs[0], ops)),
})

/**
 * The smallest element of all, or over `dims` (`keepdim`: default false). NaN counts as the smallest. Equal elements share the gradient. PyTorch: `torch.amin`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 5], [7, 2]]).amin(0) // [1, 2]
 */
export const amin: (x: Tensor, dims?: DimsArg, keepdim?: boolean) => Tensor = primitive('amin', {
  args: ['tensor', 'dims?', 'boolean?'],
  raw: (x, dims, keepdim) => reduce('amin', x, dims, keepdim),
  // g to the minima, in equal parts where several are equal
  grad: ofTensor(['a', 'result'], (g, s, ops) => extremeSlope(g, s.a, s.result, s.attrs[0], ops)),
})

/**
 * The index (int32) of the largest element along `dim`; without `dim`, in the flattened x. Of equal elements it is the first. No gradient. PyTorch:
 * `torch.argmax`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 5], [7, 2]]).argmax() // 2: as if flattened
 */
export const argmax: (x: Tensor, dim?: number, keepdim?: boolean) => Tensor = primitive('argmax', {
  args: ['tensor', 'number?', 'boolean?'],
  raw: (x, dim, keepdim) => reduce('argmax', x, dim, keepdim),
  grad: null,
})

/**
 * The index (int32) of the smallest element along `dim`; without `dim`, in the flattened x. Of equal elements it is the first. No gradient. PyTorch:
 * `torch.argmin`.
 * @throws REDUCE_EMPTY if the reduction has no element to choose from; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 5], [7, 2]]).argmin(1) // [0, 1]
 */
export const argmin: (x: Tensor, dim?: number, keepdim?: boolean) => Tensor = primitive('argmin', {
  args: ['tensor', 'number?', 'boolean?'],
  raw: (x, dim, keepdim) => reduce('argmin', x, dim, keepdim),
  grad: null,
})

/**
 * The variance of all elements, or over `dims`. It divides by n − correction (default 1). PyTorch: `torch.var`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([1, 2, 3, 4]).var(0, false, { correction: 0 }) // 1.25
 */
const variance: (x: Tensor, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions) => Tensor = primitive('var', {
  args: ['tensor', 'dims?', 'boolean?', 'options?'],
  options: { correction: true },
  raw: (x, dims, keepdim, options) => deviation('var', x, dims, keepdim, options),
  // 2 g (a − mean) / (n − correction)
  grad: ofTensor(['a'], (g, s, ops) => {
    const [dims, , options] = s.attrs
    return varianceSlope(ops.mul(g, 2), s.a, dims, options?.correction ?? 1, ops)
  }),
})

export {
  // Said again: the method shows the comment of this name.
  /**
   * The variance of all elements, or over `dims`. It divides by n − correction (default 1). PyTorch: `torch.var`.
   * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
   * @example tensor([1, 2, 3, 4]).var(0, false, { correction: 0 }) // 1.25
   */
  variance as var,
}

/**
 * The standard deviation of all elements, or over `dims`. It divides by n − correction (default 1). PyTorch: `torch.std`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([1, 2, 3, 4]).std() // 1.291: of a sample; the population has 1.118
 */
export const std: (x: Tensor, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions) => Tensor = primitive('std', {
  args: ['tensor', 'dims?', 'boolean?', 'options?'],
  options: { correction: true },
  // Not the root of the rounded variance, which in float32 may be out of range where its root is not.
  raw: (x, dims, keepdim, options) => deviation('std', x, dims, keepdim, options),
  // g (a − mean) / ((n − correction) y); 0 where y is 0, as in PyTorch
  grad: ofTensor(['a', 'result'], (g, s, ops) => {
    const [dims, , options] = s.attrs
    const scaled = ops.where(ops.eq(s.result, 0), 0, ops.div(g, s.result))
    return varianceSlope(scaled, s.a, dims, options?.correction ?? 1, ops)
  }),
})

/**
 * [variance, mean] of all elements, or over `dims`. The variance divides by n − correction (default 1). PyTorch: `torch.var_mean`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 3], [10, 30]]).varMean(1) // [[2, 200], [2, 20]]: variances, then means
 */
export const varMean: (x: Tensor, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions) => [Tensor, Tensor] = composite('varMean', {
  args: ['tensor', 'dims?', 'boolean?', 'options?'],
  options: { correction: true },
  of: (ops) => (x, dims, keepdim, options) => [ops.var(x, dims, keepdim, options), ops.mean(x, dims, keepdim)],
})

/**
 * log Σ eˣ of all elements, or over `dims`, without overflow; −∞ without elements. PyTorch: `torch.logsumexp`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([1000, 1000]).logSumExp() // 1000.6932: e¹⁰⁰⁰ alone would be Infinity
 */
export const logSumExp: (x: Tensor, dims?: DimsArg, keepdim?: boolean) => Tensor = primitive('logSumExp', {
  args: ['tensor', 'dims?', 'boolean?'],
  raw: (x, dims, keepdim = false) => {
    floatingOnly('logSumExp', x)
    const { abs, add, amax, eq, exp, log, squeeze, sub, sum, where } = rawOperations
    const all = normalizeDims('logSumExp', dims, x.shape.length)
    if (x.numel === 0) return log(sum(exp(x), all, keepdim))
    const largest = amax(x, all, true)
    // An infinite maximum would give ∞ − ∞.
    const shift = where(eq(abs(largest), Number.POSITIVE_INFINITY), 0, largest)
    const total = add(log(sum(exp(sub(x, shift)), all, true)), shift)
    return keepdim ? total : squeeze(total, all)
  },
  // g · exp(a − y)
  grad: ofTensor(['a', 'result'], (g, s, ops) => {
    const dims = s.attrs[0]
    return ops.mul(spread(g, s.shapeA, dims, ops), ops.exp(ops.sub(s.a, spread(s.result, s.shapeA, dims, ops))))
  }),
})

/**
 * (Σ |x|ᵖ)^(1/p) of all elements, or over `dims`, with p = 2 by default. p = ±Infinity gives the largest or smallest |x|; p = 0 counts the elements that are
 * not 0. Without elements the norm is 0. PyTorch: `torch.norm`.
 * @throws DTYPE_MISMATCH if x is int32 or bool; DIM_OUT_OF_RANGE if x does not have one of the dimensions; REDUCE_EMPTY if p is negative and x has no elements
 * @example tensor([[3, -4], [0, 5]]).norm(1, 1) // [7, 5]
 */
export const norm: (x: Tensor, p?: number, dims?: DimsArg, keepdim?: boolean) => Tensor = primitive('norm', {
  args: ['tensor', 'number?', 'dims?', 'boolean?'],
  raw: (x, p = 2, dims, keepdim) => {
    floatingOnly('norm', x)
    if (typeof p !== 'number') throw invalidArgument('norm', 'a number as p', typeof p)
    const { abs, amax, amin, mul, ne, powNumber, sum, to } = rawOperations
    if (p === 2) {
      const total = sum(mul(x, x), dims, keepdim)
      kernelsFor(total).sqrt[total.dtype](total, total, 0, 0)
      return total
    }
    const size = abs(x)
    if (p === 1 || x.numel === 0) {
      const total = sum(size, dims, keepdim)
      if (p < 0 && Number.isFinite(p) && total.numel > 0) throw emptyReduction('norm', x.shape)
      return total
    }
    if (p === 0) return sum(to(ne(x, 0), x.dtype), dims, keepdim)
    if (p === Number.POSITIVE_INFINITY) return amax(size, dims, keepdim)
    if (p === Number.NEGATIVE_INFINITY) return amin(size, dims, keepdim)
    return powNumber(sum(powNumber(size, p), dims, keepdim), 1 / p)
  },
  grad: ofTensor(['a', 'result'], (g, s, ops) => normSlope(g, s.a, s.result, s.attrs[0] ?? 2, s.attrs[1], ops)),
})

/**
 * Whether at least one element is not 0, as bool: of all, or over `dims` (`keepdim`: default false). NaN is not 0. Without elements the result is false.
 * PyTorch: `torch.any`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[0, 0], [0, 3]]).any(1) // [false, true]
 */
export const any: (x: Tensor, dims?: DimsArg, keepdim?: boolean) => Tensor = composite('any', {
  args: ['tensor', 'dims?', 'boolean?'],
  // By an extreme, which every device has of bool; over nothing, where that would refuse, by a sum.
  of: (ops) => (x, dims, keepdim) => (x.numel === 0 ? ofNothing(ops, x, dims, keepdim) : ops.amax(ops.to(x, 'bool'), dims, keepdim)),
})

/**
 * Whether every element is not 0, as bool: of all, or over `dims` (`keepdim`: default false). Without elements the result is true. PyTorch: `torch.all`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 0], [2, 3]]).all(1) // [false, true]
 */
export const all: (x: Tensor, dims?: DimsArg, keepdim?: boolean) => Tensor = composite('all', {
  args: ['tensor', 'dims?', 'boolean?'],
  of: (ops) => (x, dims, keepdim) =>
    x.numel === 0 ? ops.logicalNot(ofNothing(ops, x, dims, keepdim)) : ops.amin(ops.to(x, 'bool'), dims, keepdim),
})

/**
 * How many elements are not 0, as int32: of all, or over `dims`. No gradient. PyTorch: `torch.count_nonzero`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[0, 2], [3, 4]]).countNonzero(0) // [1, 2]
 */
export const countNonzero: (x: Tensor, dims?: DimsArg) => Tensor = composite('countNonzero', {
  args: ['tensor', 'dims?'],
  of: (ops) => (x, dims) => ops.sum(ops.to(x, 'bool'), dims),
})

/** The summands: x, or x in the options' dtype; never bool. @throws DTYPE_MISMATCH */
function summands(op: string, x: Tensor, options: ReduceOptions | undefined): Tensor {
  if (options?.dtype === undefined) return x.dtype === 'bool' ? rawOperations.to(x, 'int32') : x
  if ((options.dtype as string) === 'bool')
    throw dtypeMismatch(op, 'int32, float32 or float64 as dtype', 'bool', 'any() and all() are of bool.')
  return rawOperations.to(x, options.dtype)
}

/** Of fewer elements than the correction needs: NaN. */
function deviation(
  op: 'var' | 'std',
  x: Tensor,
  dims: DimsArg | undefined,
  keepdim = false,
  { correction = 1 }: VarianceOptions = {},
): Tensor {
  floatingOnly(op, x)
  if (typeof correction !== 'number') throw invalidArgument(op, 'a number as correction', typeof correction)
  const { dense, outer, k, inner, out } = reduced(op, x, dims, keepdim, x.dtype)
  kernelsFor(x).variance[x.dtype](dense, out, outer, k, inner, correction, op === 'std')
  return out
}

const ofNothing = (ops: Ops, x: Tensor, dims?: DimsArg, keepdim?: boolean) => ops.to(ops.sum(ops.to(x, 'float32'), dims, keepdim), 'bool')

/**
 * g to the extremes, in equal parts where several are equal. Over all elements, which is what `max` and `min` are, a NaN counts as one; along dimensions it
 * equals nothing, so all of its row get NaN. So it is in PyTorch.
 */
function extremeSlope(g: Tensor, a: Tensor, y: Tensor, dims: DimsArg | undefined, ops: Ops): Tensor {
  const equal = () => ops.eq(a, spread(y, a.shape, dims, ops))
  const either = () => ops.logicalOr(equal(), ops.logicalAnd(ops.isNaN(a), ops.isNaN(spread(y, a.shape, dims, ops))))
  // Where the host can see the extreme, one comparison does.
  const ofAll = () => (isReadable(y) ? (Number.isNaN(elementsOf(y)[0]) ? ops.isNaN(a) : equal()) : either())
  return share(ops.to(dims === undefined ? ofAll() : equal(), g.dtype), g, dims, ops)
}

/** g, of the reduced shape, in equal parts to the elements that are marked with 1. */
function share(marked: Tensor, g: Tensor, dims: DimsArg | undefined, ops: Ops): Tensor {
  const count = ops.reshape(ops.sum(marked, dims ?? allDims(marked.shape)), g.shape)
  return ops.mul(spread(ops.div(g, count), marked.shape, dims, ops), marked)
}

/** g (a − mean) / (n − correction) */
function varianceSlope(g: Tensor, a: Tensor, dims: DimsArg | undefined, correction: number, ops: Ops): Tensor {
  const n = numelOf(a.shape) / Math.max(1, g.numel)
  const centred = ops.sub(a, ops.mean(a, dims ?? allDims(a.shape), true))
  // Negative where the correction is larger than n: so it is in PyTorch, where only the variance itself is bounded.
  return ops.mul(spread(ops.div(g, n - correction), a.shape, dims, ops), centred)
}

/** PyTorch's `norm_backward`: where the norm is 0 so is its gradient. */
function normSlope(g: Tensor, a: Tensor, y: Tensor, p: number, dims: DimsArg | undefined, ops: Ops): Tensor {
  const over = (x: Tensor) => spread(x, a.shape, dims, ops)
  if (p === 0) return Tensor.empty(g.dtype, a.shape, g.storage.memory)
  if (p === 1) return ops.mul(ops.sign(a), over(g))
  if (Math.abs(p) === Number.POSITIVE_INFINITY) {
    // Where one is NaN the norm is, and nothing else an extreme; its sign is 0.
    const isExtreme = ops.logicalOr(ops.eq(ops.abs(a), over(y)), ops.isNaN(a))
    return ops.mul(ops.sign(a), share(ops.to(isExtreme, g.dtype), g, dims, ops))
  }
  // A norm of 0 is replaced by 1, so that nothing is divided by 0, here and in further derivatives.
  const safe = ops.where(ops.eq(y, 0), 1, y)
  const factor = ops.where(ops.eq(y, 0), 0, ops.div(g, p === 2 ? safe : ops.pow(safe, p - 1)))
  if (p === 2) return ops.mul(a, over(factor))
  if (p > 2) return ops.mul(ops.mul(a, ops.pow(ops.abs(a), p - 2)), over(factor))
  // Below 2 the power of a zero is infinite; its sign is 0.
  const size = ops.where(ops.eq(a, 0), 1, ops.abs(a))
  return ops.mul(ops.mul(ops.sign(a), ops.pow(size, p - 1)), over(factor))
}

/** The derivative of a product, along `dim` or of all elements: g times the product of all others. */
function productSlope(g: Tensor, x: Tensor, dim: number | undefined, ops: Ops): Tensor {
  if (dim === undefined || x.ndim === 0) {
    return ops.reshape(ops.mul(ops.prod(withoutEach(ops.reshape(x, [-1]), ops), -1), ops.reshape(g, [])), x.shape)
  }
  const last = ops.transpose(x, dim, -1)
  const others = ops.prod(withoutEach(last, ops), -1)
  // g has lost `dim`, or keeps it as 1: give it back before the dimensions change places.
  const kept = ops.reshape(g, x.shape.with(dim, 1))
  return ops.transpose(ops.mul(others, ops.transpose(kept, dim, -1)), dim, -1)
}
