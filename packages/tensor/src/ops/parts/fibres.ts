/** Tensors as dense [outer, k, inner], for kernels that go along k: reductions, running sums, softmax, sorts. */

import { PostgradError } from '@postgrad/base'
import type { ReduceOp, ScanOp, SoftmaxOp } from '../../kernels/table/table.js'
import { contiguous } from '../../raw/copy.js'
import { fusedKernel, kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { type DType, isFloating } from '../../values/dtype.js'
import { dtypeMismatch, shapeText } from '../../values/errors.js'
import { type DimsArg, normalizeDim, normalizeDims, SCALAR_SHAPE, type Shape } from '../../values/shape.js'
import { rawOperations } from '../define/define.js'

interface Fibres {
  readonly dense: Tensor
  readonly outer: number
  readonly k: number
  readonly inner: number
}

/** Dimensions `first` … `last` as k, those before and after as outer and inner. */
export function fibres(x: Tensor, first: number, last: number): Fibres {
  const { shape } = x
  let outer = 1
  let k = 1
  let inner = 1
  for (let d = 0; d < shape.length; d++) {
    if (d < first) outer *= shape[d]!
    else if (d <= last) k *= shape[d]!
    else inner *= shape[d]!
  }
  return { dense: contiguous(x), outer, k, inner }
}

/** One dimension as k; a 0-d tensor counts as [1]. @throws DIM_OUT_OF_RANGE */
export function fibresAlong(op: string, x: Tensor, dim: number): Fibres {
  const d = normalizeDim(op, dim, x.shape.length)
  return fibres(x, d, d)
}

/** `dims` ascending, or null for all. */
export function fibresOver(x: Tensor, dims: readonly number[] | null): Fibres {
  const first = dims === null ? 0 : dims[0]!
  const last = dims === null ? x.shape.length : dims[dims.length - 1]!
  // Chosen by shape and dimensions alone, never by strides: the form decides the order of summation.
  if (dims === null || last - first === dims.length - 1) return fibres(x, first, last)
  // Kept dimensions first, in order, then the reduced ones: a dense copy of that is [outer, k, 1].
  const kept: number[] = []
  for (let d = 0; d < x.shape.length; d++) if (!dims.includes(d)) kept.push(d)
  return fibres(rawOperations.permute(x, [...kept, ...dims]), kept.length, x.shape.length)
}

/** The fibres of a reduction over `dims` (default all), and the tensor for its result. @throws DIM_OUT_OF_RANGE */
export function reduced(
  op: string,
  x: Tensor,
  dims: DimsArg | undefined,
  keepdim: boolean,
  dtype: DType,
): Fibres & { readonly out: Tensor } {
  const { shape } = x
  const over = dimsOver(op, dims, shape)
  const out = Tensor.uninitialized(dtype, reducedShape(shape, over, keepdim), x.storage.memory)
  const { dense, outer, k, inner } = fibresOver(x, over)
  return { dense, outer, k, inner, out }
}

/** Ascending; null: all. @throws DIM_OUT_OF_RANGE */
function dimsOver(op: string, dims: DimsArg | undefined, { length }: Shape): readonly number[] | null {
  const list = dims === undefined ? null : normalizeDims(op, dims, length)
  return list === null || list.length === length ? null : list
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

/** A reduction by a kernel: places are int32, all else has x's dtype. @param name of the operation, for its errors */
export function reduce(op: ReduceOp, x: Tensor, dims: DimsArg | undefined, keepdim = false, name: string = op): Tensor {
  const dtype = op === 'argmax' || op === 'argmin' ? 'int32' : x.dtype
  if (op === 'sum' && x.shape.length > 2 && Array.isArray(dims) && dims.length > 1) {
    const out = sumApart(x, dimsOver(name, dims, x.shape), keepdim)
    if (out !== null) return out
  }
  const { dense, outer, k, inner, out } = reduced(name, x, dims, keepdim, dtype)
  if (k === 0 && op !== 'sum' && op !== 'prod' && out.numel > 0) throw emptyReduction(op, x.shape)
  kernelsFor(x)[op][x.dtype](dense, out, outer, k, inner)
  return out
}

/** A part has whole groups of rule SUM. */
const GROUP = 64
/** The most totals: the kernel holds eight doubles for each. */
const TOTALS_MAX = 4096

/** The sum over the first dimensions and the last, as of a channel's gradients, by a kernel that needs no copy. Null: another form, or the device has no such kernel. */
function sumApart(x: Tensor, dims: readonly number[] | null, keepdim: boolean): Tensor | null {
  if (dims === null || dims[0] !== 0 || dims[dims.length - 1] !== x.shape.length - 1) return null
  const { shape } = x
  const first = dims.findIndex((dim, i) => dim !== i)
  const last = shape.length - (dims.length - first)
  if (dims[first] !== last) return null
  let [parts, outer, part] = [1, 1, 1]
  for (let d = 0; d < shape.length; d++) {
    if (d < first) parts *= shape[d]!
    else if (d < last) outer *= shape[d]!
    else part *= shape[d]!
  }
  if (x.numel === 0 || part % GROUP !== 0 || outer > TOTALS_MAX) return null
  const kernel = fusedKernel('sumApart', x)
  if (kernel === null) return null
  const out = Tensor.uninitialized(x.dtype, reducedShape(shape, dims, keepdim), x.storage.memory)
  kernel(contiguous(x), out, parts, outer, part)
  return out
}

export function emptyReduction(op: string, shape: Shape): PostgradError {
  return new PostgradError('REDUCE_EMPTY', {
    op,
    expected: 'at least one element to choose from',
    got: `shape ${shapeText(shape)}`,
    remedy: 'Reduce over a dimension that is not empty.',
    values: { shape: [...shape] },
  })
}

/** Keeps x's shape: running sums and products, softmax. */
export function along(op: ScanOp | SoftmaxOp, x: Tensor, dim: number): Tensor {
  const { dense, outer, k, inner } = fibresAlong(op, x, dim)
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  kernelsFor(x)[op][x.dtype](dense, out, outer, k, inner)
  return out
}

/** int32 and bool run in int32. */
export function scan(op: ScanOp, x: Tensor, dim: number): Tensor {
  return along(op, x.dtype === 'bool' ? rawOperations.to(x, 'int32') : x, dim)
}

/** @throws DTYPE_MISMATCH for int32 and bool, DIM_OUT_OF_RANGE */
export function softmaxAlong(op: SoftmaxOp, x: Tensor, dim: number): Tensor {
  floatingOnly(op, x)
  return along(op, x, dim)
}

export function floatingOnly(op: string, x: Tensor): void {
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
}
