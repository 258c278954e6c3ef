/** Reductions over one, several or all dimensions, brought to [outer, k, inner] for the kernels; and softmax, which has the same form. */

import { PostgradError } from '@postgrad/base'
import type { ReduceOp, SoftmaxOp } from '../kernels/table/table.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { type DType, isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { ReduceOptions, VarianceOptions } from '../values/options.js'
import type { DimsArg } from '../values/shape.js'
import { broadcastsTo, normalizeDim, normalizeDims, numelOf, SCALAR_SHAPE, type Shape, sameShape } from '../values/shape.js'
import { contiguous, to } from './copy.js'
import { scalarTensor } from './elementwise.js'
import { rawOperations as ops } from './operations.js'
import { permute, reshape } from './views.js'

/** A tensor as dense [outer, k, inner], to be reduced along k. */
interface Fibres {
  readonly dense: Tensor
  readonly outer: number
  readonly k: number
  readonly inner: number
}

/** `dims` ascending, or null for all. */
function fibresOf(x: Tensor, dims: readonly number[] | null): Fibres {
  if (dims === null) return { dense: contiguous(x), outer: 1, k: x.numel, inner: 1 }
  let outer = 1
  let k = 1
  let inner = 1
  // Chosen by shape and dimensions alone, never by strides: the form decides the order of summation.
  if (dims[dims.length - 1]! - dims[0]! === dims.length - 1) {
    for (let d = 0; d < x.shape.length; d++) {
      if (d < dims[0]!) outer *= x.shape[d]!
      else if (d <= dims[dims.length - 1]!) k *= x.shape[d]!
      else inner *= x.shape[d]!
    }
    return { dense: contiguous(x), outer, k, inner }
  }
  // Kept dimensions first, in order, then the reduced ones: a dense copy of that is [outer, k, 1].
  const kept: number[] = []
  for (let d = 0; d < x.shape.length; d++) if (!dims.includes(d)) kept.push(d)
  for (const d of dims) k *= x.shape[d]!
  for (const d of kept) outer *= x.shape[d]!
  return { dense: contiguous(permute(x, [...kept, ...dims])), outer, k, inner }
}

/** Without dimensions: all of them. */
function reduce(op: ReduceOp, x: Tensor, dims: readonly number[] | null, keepdim: boolean, outDtype: DType): Tensor {
  const out = Tensor.uninitialized(outDtype, reducedShape(x.shape, dims, keepdim), x.storage.memory)
  const { dense, outer, k, inner } = fibresOf(x, dims)
  if (k === 0 && op !== 'sum' && op !== 'prod' && out.numel > 0) throw emptyReduction(op, x.shape)
  kernelsFor(x)[op][x.dtype](dense, out, outer, k, inner)
  return out
}

/** Ascending, or null for all. */
function reducedDims(op: string, dims: DimsArg | undefined, ndim: number): readonly number[] | null {
  if (dims === undefined) return null
  const list = normalizeDims(op, dims, ndim)
  return list.length === ndim ? null : list
}

function reducedShape(shape: Shape, dims: readonly number[] | null, keepdim: boolean): Shape {
  if (dims === null) return keepdim ? shape.map(() => 1) : SCALAR_SHAPE
  const out: number[] = []
  for (let d = 0; d < shape.length; d++) {
    if (!dims.includes(d)) out.push(shape[d]!)
    else if (keepdim) out.push(1)
  }
  return out
}

function emptyReduction(op: string, shape: Shape): PostgradError {
  return new PostgradError('REDUCE_EMPTY', {
    op,
    expected: 'at least one element to choose from',
    got: `shape ${shapeText(shape)}`,
    remedy: 'Reduce over a dimension that is not empty.',
    values: { shape: [...shape] },
  })
}

/** What is summed: x, or what options ask for; never bool. @throws DTYPE_MISMATCH */
function summands(op: string, x: Tensor, options: ReduceOptions | undefined): Tensor {
  if (options?.dtype === undefined) return x.dtype === 'bool' ? to(x, 'int32') : x
  if ((options.dtype as string) === 'bool')
    throw dtypeMismatch(op, 'int32, float32 or float64 as dtype', 'bool', 'any() and all() are of bool.')
  return to(x, options.dtype)
}

/** Over no elements: 0. int32 and bool sum to int32. @throws DIM_OUT_OF_RANGE, DTYPE_MISMATCH for an unknown dtype in the options */
export function sum(x: Tensor, dims?: DimsArg, keepdim = false, options?: ReduceOptions): Tensor {
  const source = summands('sum', x, options)
  return reduce('sum', source, reducedDims('sum', dims, x.shape.length), keepdim, source.dtype)
}

/** Over no elements: NaN. @throws DTYPE_MISMATCH for int32 and bool, unless the options convert them; DIM_OUT_OF_RANGE */
export function mean(x: Tensor, dims?: DimsArg, keepdim = false, options?: ReduceOptions): Tensor {
  const source = options === undefined ? x : summands('mean', x, options)
  floatingOnly('mean', source)
  const list = reducedDims('mean', dims, x.shape.length)
  let count = list === null ? x.numel : 1
  for (const d of list ?? []) count *= x.shape[d]!
  const out = reduce('sum', source, list, keepdim, source.dtype)
  kernelsFor(out).div[out.dtype](out, scalarTensor(count, out.dtype, out.storage.memory), out)
  return out
}

/** NaN wins. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function amax(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  return reduce('amax', x, reducedDims('amax', dims, x.shape.length), keepdim, x.dtype)
}

/** Without `dim`: the index in row-major order of all elements. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function argmax(x: Tensor, dim?: number, keepdim = false): Tensor {
  return reduce('argmax', x, reducedDims('argmax', dim, x.shape.length), keepdim, 'int32')
}

/** Over no elements: 1. int32 and bool multiply to int32. @throws DIM_OUT_OF_RANGE */
export function prod(x: Tensor, dim?: number, keepdim = false): Tensor {
  const source = x.dtype === 'bool' ? to(x, 'int32') : x
  return reduce('prod', source, reducedDims('prod', dim, x.shape.length), keepdim, source.dtype)
}

/** NaN wins. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function amin(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  return reduce('amin', x, reducedDims('amin', dims, x.shape.length), keepdim, x.dtype)
}

/** Without `dim`: the index in row-major order of all elements. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function argmin(x: Tensor, dim?: number, keepdim = false): Tensor {
  return reduce('argmin', x, reducedDims('argmin', dim, x.shape.length), keepdim, 'int32')
}

/** Of fewer elements than the correction needs: NaN. @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE, INVALID_ARGUMENT */
export function variance(x: Tensor, dims?: DimsArg, keepdim = false, options?: VarianceOptions): Tensor {
  return spreadOf('var', x, dims, keepdim, options, false)
}

function spreadOf(
  op: 'var' | 'std',
  x: Tensor,
  dims: DimsArg | undefined,
  keepdim: boolean,
  { correction = 1 }: VarianceOptions = {},
  root: boolean,
): Tensor {
  floatingOnly(op, x)
  if (typeof correction !== 'number') throw invalidArgument(op, 'a number as correction', typeof correction)
  const list = reducedDims(op, dims, x.shape.length)
  const out = Tensor.uninitialized(x.dtype, reducedShape(x.shape, list, keepdim), x.storage.memory)
  const { dense, outer, k, inner } = fibresOf(x, list)
  kernelsFor(x).variance[x.dtype](dense, out, outer, k, inner, correction, root)
  return out
}

/** The square root of `variance`, which is not rounded in between: in float32 it may be out of range where its root is not. */
export function std(x: Tensor, dims?: DimsArg, keepdim = false, options?: VarianceOptions): Tensor {
  return spreadOf('std', x, dims, keepdim, options, true)
}

export function floatingOnly(op: string, x: Tensor): void {
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
}

/** log Σ exp x, with the maximum taken out; over no elements −∞. @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE */
export function logSumExp(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  floatingOnly('logSumExp', x)
  const list = reducedDims('logSumExp', dims, x.shape.length)
  const all = list ?? x.shape.map((_, d) => d)
  if (x.numel === 0) return ops.log(sum(ops.exp(x), all, keepdim))
  const largest = reduce('amax', x, list, true, x.dtype)
  // An infinite maximum would give ∞ − ∞.
  const shift = ops.where(ops.eq(ops.abs(largest), Number.POSITIVE_INFINITY), 0, largest)
  const total = ops.add(ops.log(sum(ops.exp(ops.sub(x, shift)), all, true)), shift)
  return keepdim ? total : reshape(total, reducedShape(x.shape, list, false))
}

/** (Σ |x|ᵖ)^(1/p); p = ±∞: the largest, smallest |x|; p = 0: how many are not 0; over nothing 0. @throws DTYPE_MISMATCH for int32 and bool, INVALID_ARGUMENT, REDUCE_EMPTY for other negative p over nothing */
export function norm(x: Tensor, p = 2, dims?: DimsArg, keepdim = false): Tensor {
  floatingOnly('norm', x)
  if (typeof p !== 'number') throw invalidArgument('norm', 'a number as p', typeof p)
  if (p === 2) return ops.sqrt(sum(ops.mul(x, x), dims, keepdim))
  const size = ops.abs(x)
  if (p === 1 || x.numel === 0) {
    const total = sum(size, dims, keepdim)
    if (p < 0 && Number.isFinite(p) && total.numel > 0) throw emptyReduction('norm', x.shape)
    return total
  }
  if (p === 0) return sum(to(ops.ne(x, 0), x.dtype), dims, keepdim)
  if (p === Number.POSITIVE_INFINITY) return amax(size, dims, keepdim)
  if (p === Number.NEGATIVE_INFINITY) return amin(size, dims, keepdim)
  return ops.powNumber(sum(ops.powNumber(size, p), dims, keepdim), 1 / p)
}

/** Undoes broadcasting: adds up what was repeated. @throws SHAPE_MISMATCH unless `shape` broadcasts to x's */
export function sumToShape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x
  if (!broadcastsTo(shape, x.shape)) {
    throw shapeMismatch(
      'sumToShape',
      `a shape that broadcasts to ${shapeText(x.shape)}`,
      shapeText(shape),
      'Pass the shape from before broadcasting.',
    )
  }
  const missing = x.shape.length - shape.length
  const dims: number[] = []
  for (let d = 0; d < x.shape.length; d++) if (d < missing || (shape[d - missing] === 1 && x.shape[d] !== 1)) dims.push(d)
  return reshape(dims.length === 0 ? x : sum(x, dims), shape)
}

function softmaxOf(op: SoftmaxOp, x: Tensor, dim: number): Tensor {
  floatingOnly(op, x)
  const d = normalizeDim(op, dim, x.shape.length)
  const dense = contiguous(x)
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  const k = x.shape.length === 0 ? 1 : x.shape[d]!
  kernelsFor(x)[op][x.dtype](dense, out, numelOf(x.shape.slice(0, d)), k, numelOf(x.shape.slice(d + 1)))
  return out
}

/** @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE */
export function softmax(x: Tensor, dim: number): Tensor {
  return softmaxOf('softmax', x, dim)
}

/** @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE */
export function logSoftmax(x: Tensor, dim: number): Tensor {
  return softmaxOf('logSoftmax', x, dim)
}
