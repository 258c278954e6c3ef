/** Reductions over one, several or all dimensions, brought to [outer, k, inner] for the kernels; and softmax, which has the same form. */
import { PostgradError } from '@postgrad/base'
import { currentKernels } from '../device.js'
import { type DType, isFloating, type TypedArray } from '../dtype.js'
import { dtypeMismatch, shapeMismatch, shapeText } from '../errors.js'
import type { ReduceKernel, ReduceOp, SoftmaxKernel, SoftmaxOp } from '../kernels/table.js'
import type { DimsArg } from '../ops.js'
import { broadcastsTo, normalizeDim, normalizeDims, numelOf, SCALAR_SHAPE, type Shape, sameShape } from '../shape.js'
import { Tensor } from '../tensor.js'
import { contiguous, to } from './copy.js'
import { div } from './elementwise.js'
import { permute, reshape } from './views.js'

/** Without dimensions: all of them. */
function reduce(op: ReduceOp, x: Tensor, dims: readonly number[] | null, keepdim: boolean, outDtype: DType): Tensor {
  const ndim = x.shape.length
  if (dims === null) {
    const out = Tensor.uninitialized(outDtype, keepdim ? new Array<number>(ndim).fill(1) : SCALAR_SHAPE)
    if (x.numel === 0 && op !== 'sum') throw emptyReduction(op, x.shape)
    const dense = contiguous(x)
    const kernel = currentKernels()[op][x.dtype] as ReduceKernel<TypedArray, TypedArray>
    kernel.run(1, x.numel, 1, dense.storage.array, dense.offset, out.storage.array, 0)
    return out
  }
  let source = x
  let outer = 1
  let k = 1
  let inner = 1
  // Chosen by shape and dimensions alone, never by strides: the form decides the order of summation.
  if (dims[dims.length - 1]! - dims[0]! === dims.length - 1) {
    for (let d = 0; d < ndim; d++) {
      if (d < dims[0]!) outer *= x.shape[d]!
      else if (d <= dims[dims.length - 1]!) k *= x.shape[d]!
      else inner *= x.shape[d]!
    }
  } else {
    // Kept dimensions first, in order, then the reduced ones: a dense copy of that is [outer, k, 1].
    const kept: number[] = []
    for (let d = 0; d < ndim; d++) if (!dims.includes(d)) kept.push(d)
    source = permute(x, [...kept, ...dims])
    for (const d of dims) k *= x.shape[d]!
    for (const d of kept) outer *= x.shape[d]!
  }
  const out = Tensor.uninitialized(outDtype, reducedShape(x.shape, dims, keepdim))
  if (k === 0 && op !== 'sum' && out.numel > 0) throw emptyReduction(op, x.shape)
  const dense = contiguous(source)
  const kernel = currentKernels()[op][x.dtype] as ReduceKernel<TypedArray, TypedArray>
  kernel.run(outer, k, inner, dense.storage.array, dense.offset, out.storage.array, 0)
  return out
}

/** Ascending, or null for all. */
function reducedDims(op: string, dims: DimsArg | undefined, ndim: number): readonly number[] | null {
  if (dims === undefined) return null
  const list = normalizeDims(op, dims, ndim)
  return list.length === ndim ? null : list
}

function reducedShape(shape: Shape, dims: readonly number[], keepdim: boolean): Shape {
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

/** Over no elements: 0. int32 and bool sum to int32. @throws DIM_OUT_OF_RANGE */
export function sum(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  const source = x.dtype === 'bool' ? to(x, 'int32') : x
  return reduce('sum', source, reducedDims('sum', dims, x.shape.length), keepdim, source.dtype)
}

/** Over no elements: NaN. @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE */
export function mean(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  if (!isFloating(x.dtype)) throw dtypeMismatch('mean', 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
  const list = reducedDims('mean', dims, x.shape.length)
  let count = list === null ? x.numel : 1
  for (const d of list ?? []) count *= x.shape[d]!
  return div(reduce('sum', x, list, keepdim, x.dtype), count)
}

/** NaN wins. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function amax(x: Tensor, dims?: DimsArg, keepdim = false): Tensor {
  return reduce('amax', x, reducedDims('amax', dims, x.shape.length), keepdim, x.dtype)
}

/** Without `dim`: the index in row-major order of all elements. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE */
export function argmax(x: Tensor, dim?: number, keepdim = false): Tensor {
  return reduce('argmax', x, reducedDims('argmax', dim, x.shape.length), keepdim, 'int32')
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
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
  const d = normalizeDim(op, dim, x.shape.length)
  const dense = contiguous(x)
  const out = Tensor.uninitialized(x.dtype, x.shape)
  const k = x.shape.length === 0 ? 1 : x.shape[d]!
  const kernel = currentKernels()[op][x.dtype] as SoftmaxKernel<TypedArray>
  kernel.run(numelOf(x.shape.slice(0, d)), k, numelOf(x.shape.slice(d + 1)), dense.storage.array, dense.offset, out.storage.array, 0)
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
