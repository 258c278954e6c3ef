/**
 * Reading and writing elements at indices along one dimension: indexSelect and indexAdd with one index for all, gather and scatter with an
 * index per element. Brought to [outer, extent, inner] for the kernels. Beside: `indices.ts`, which checks the indices.
 */

import type { IndexOp } from '../kernels/table/table.js'
import { elementsOf } from '../tensor/bytes.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, type Shape, sameShape } from '../values/shape.js'
import { clone, contiguous } from './copy.js'
import { scalarOf } from './elementwise.js'
import { checkedIndices, wholeIndices } from './indices.js'
import { copy_ } from './inplace.js'
import { expand, narrow, reshape } from './views.js'

/** Around dimension `d` of the table, whose extent the indices point into: x, index and out as the kernel takes them. */
function run(op: IndexOp, table: Shape, d: number, n: number, x: Tensor, index: Tensor, out: Tensor): void {
  let outer = 1
  let inner = 1
  for (let i = 0; i < d; i++) outer *= table[i]!
  for (let i = d + 1; i < table.length; i++) inner *= table[i]!
  kernelsFor(x)[op][x.dtype](x, index, out, outer, table[d] ?? 1, n, inner)
}

/**
 * x […, extent, …], index int32 [n] (or []) → […, n, …]: slices of x along `dim`. A 0-d x counts as [1].
 * @throws DIM_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
 */
export function indexSelect(x: Tensor, dim: number, index: Tensor): Tensor {
  const d = normalizeDim('indexSelect', dim, x.shape.length)
  if (index.shape.length > 1 || (x.shape.length === 0 && index.numel !== 1)) {
    const expected = x.shape.length === 0 ? 'an index of one element beside a 0-d tensor' : 'an index [n]'
    throw shapeMismatch('indexSelect', expected, shapeText(index.shape), 'Flatten the index, or use gather() or index().')
  }
  const at = checkedIndices('indexSelect', index, x.shape[d] ?? 1)
  const out = Tensor.uninitialized(x.dtype, x.shape.length === 0 ? x.shape : x.shape.with(d, at.numel), x.storage.memory)
  run('indexSelect', x.shape, d, at.numel, contiguous(x), at, out)
  return out
}

/** @throws SHAPE_MISMATCH unless index has x's dimensions, none longer than x's except `d` */
function checkIndexShape(op: string, x: Tensor, d: number, index: Tensor): void {
  if (index.shape.length === x.shape.length && index.shape.every((n, i) => i === d || n <= x.shape[i]!)) return
  throw shapeMismatch(
    op,
    `an index of ${x.shape.length} dimensions, none but dimension ${d} longer than in ${shapeText(x.shape)}`,
    shapeText(index.shape),
    'expand() or narrow() the index, or use indexSelect(), whose index is a vector.',
    { x: [...x.shape], index: [...index.shape] },
  )
}

/** The first elements of x along every dimension (but `except`), as many as `shape` has. */
function corner(x: Tensor, shape: Shape, except: number): Tensor {
  let part = x
  for (let d = 0; d < shape.length; d++) if (d !== except && shape[d] !== part.shape[d]) part = narrow(part, d, 0, shape[d]!)
  return part
}

/**
 * out[i, j, k] = x[i, index[i, j, k], k] (for dim 1 of three); index int32 with x's dimensions, which may be shorter than x's except `dim`.
 * The result has index's shape. @throws DIM_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
 */
export function gather(x: Tensor, dim: number, index: Tensor): Tensor {
  const d = normalizeDim('gather', dim, x.shape.length)
  checkIndexShape('gather', x, d, index)
  const at = checkedIndices('gather', index, x.shape[d] ?? 1)
  const table = contiguous(corner(x, index.shape, d))
  const out = Tensor.uninitialized(x.dtype, index.shape, x.storage.memory)
  run('gather', table.shape, d, index.shape[d] ?? 1, table, at, out)
  return out
}

/**
 * A copy of x in which out[i, index[i, j, k], k] = src[i, j, k] (for dim 1 of three). Where several name one place, the last in the order of
 * `dim` wins. `src`: x's dtype, a number or a boolean, or at least as large as index. @throws as gather, INVALID_ARGUMENT for a number that x's dtype cannot hold
 */
export function scatter(x: Tensor, dim: number, index: Tensor, src: Tensor | number | boolean): Tensor {
  return scattered('scatter', x, dim, index, typeof src === 'object' ? src : expand(scalarOf('scatter', src, x), index.shape))
}

/** As scatter, but adding to x, in the order of `dim`. @throws as gather, DTYPE_MISMATCH for bool */
export function scatterAdd(x: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  return scattered('scatterAdd', x, dim, index, src)
}

function scattered(op: 'scatter' | 'scatterAdd', x: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  const d = normalizeDim(op, dim, x.shape.length)
  checkSource(op, x, src, op === 'scatterAdd')
  checkIndexShape(op, x, d, index)
  if (src.shape.length !== index.shape.length || index.shape.some((n, i) => n > src.shape[i]!)) {
    throw shapeMismatch(
      op,
      `a source of at least the index's shape ${shapeText(index.shape)}`,
      shapeText(src.shape),
      'Make the source as large as the index, or narrow() the index.',
      { index: [...index.shape], src: [...src.shape] },
    )
  }
  const at = checkedIndices(op, index, x.shape[d] ?? 1)
  const out = clone(x)
  const part = corner(out, index.shape, d)
  const table = contiguous(part)
  run(op, table.shape, d, index.shape[d] ?? 1, contiguous(corner(src, index.shape, -1)), at, table)
  if (table !== part) copy_(part, table)
  return out
}

function checkSource(op: string, x: Tensor, src: Tensor, sums: boolean): void {
  if (src.dtype !== x.dtype) throw dtypeMismatch(op, `a source of ${x.dtype}`, src.dtype, `Convert it with to('${x.dtype}').`)
  if (sums && x.dtype === 'bool') throw dtypeMismatch(op, 'numbers', 'bool', "Convert with to('int32') first.")
}

/**
 * A copy of x to whose slices along `dim` those of src are added: index int32 [n] (or []), src like x with n in `dim`. In the order of the
 * index. @throws DIM_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH (also for bool), INDEX_OUT_OF_RANGE
 */
export function indexAdd(x: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  const d = normalizeDim('indexAdd', dim, x.shape.length)
  checkSource('indexAdd', x, src, true)
  const expected = x.shape.length === 0 ? x.shape : x.shape.with(d, index.numel)
  if (index.shape.length > 1 || !sameShape(src.shape, expected)) {
    throw shapeMismatch(
      'indexAdd',
      `an index [n] and a source ${shapeText(expected)}`,
      `${shapeText(index.shape)} and ${shapeText(src.shape)}`,
      'The source has one slice for each index.',
      { x: [...x.shape], index: [...index.shape], src: [...src.shape] },
    )
  }
  const at = checkedIndices('indexAdd', index, x.shape[d] ?? 1)
  const out = clone(x)
  run('indexAdd', x.shape, d, at.numel, contiguous(src), at, out)
  return out
}

/** Where x is not 0: int32 [count, x.ndim], in row-major order. How many there are must be known at once. @throws READ_NOT_SYNCHRONOUS */
export function nonzero(x: Tensor): Tensor {
  const elements = elementsOf(x, 'nonzero')
  let count = 0
  for (let i = 0; i < x.numel; i++) if (elements[i] !== 0) count++
  const ndim = x.shape.length
  const places = new Int32Array(count * ndim)
  let row = 0
  for (let i = 0; i < x.numel; i++) {
    if (elements[i] === 0) continue
    let flat = i
    for (let d = ndim - 1; d >= 0; d--) {
      places[row + d] = flat % x.shape[d]!
      flat = Math.floor(flat / x.shape[d]!)
    }
    row += ndim
  }
  return Tensor.over('int32', [count, ndim], places)
}

/**
 * Classes (int32, or whole numbers) of any shape → int32 […, numClasses]: 1 at the class, 0 elsewhere. Without numClasses: one more than the largest class.
 * @throws DTYPE_MISMATCH, INDEX_OUT_OF_RANGE, INVALID_ARGUMENT, READ_NOT_SYNCHRONOUS
 */
export function oneHot(classes: Tensor, numClasses?: number): Tensor {
  const whole = wholeIndices('oneHot', classes, 'classes')
  let count = numClasses ?? 0
  if (numClasses === undefined) {
    if (classes.numel === 0)
      throw invalidArgument('oneHot', 'numClasses for no classes', 'none', 'Pass it: it cannot be seen from the data.')
    for (const each of elementsOf(whole, 'oneHot')) count = Math.max(count, each + 1)
  } else if (!Number.isSafeInteger(numClasses) || numClasses < 1) throw invalidArgument('oneHot', 'numClasses ≥ 1', numClasses)
  const { memory } = classes.storage
  const at = reshape(checkedIndices('oneHot', whole, count), [...classes.shape, 1])
  return scatter(Tensor.empty('int32', [...classes.shape, count], memory), -1, at, 1)
}
