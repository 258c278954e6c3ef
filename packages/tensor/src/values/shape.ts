/** Arithmetic of shapes and strides: pure functions over integer arrays, without tensors. Every operation uses it. */
import { PostgradError } from '@postgrad/base'
import { broadcastMismatch, invalidArgument, shapeMismatch, shapeText } from './errors.js'

export type Shape = readonly number[]
/** One dimension or several; negative ones count from the end. */
export type DimsArg = number | readonly number[]

/** Shared by all 0-d tensors. */
export const SCALAR_SHAPE: Shape = Object.freeze([])

export function numelOf(shape: Shape): number {
  let n = 1
  for (let i = 0; i < shape.length; i++) n *= shape[i]!
  return n
}

export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true
  const n = a.length
  if (n !== b.length) return false
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return false
  return true
}

/** Row-major; an extent of 0 counts as 1, as in PyTorch. */
export function contiguousStrides(shape: Shape): Shape {
  const n = shape.length
  if (n === 0) return SCALAR_SHAPE
  const strides = new Array<number>(n)
  let step = 1
  for (let i = n - 1; i >= 0; i--) {
    strides[i] = step
    const extent = shape[i]!
    if (extent > 1) step *= extent
  }
  return strides
}

/** Whether elements lie densely in row-major order; strides of extents 1 do not matter, and without elements everything is contiguous. */
export function isContiguous(shape: Shape, strides: Shape): boolean {
  let step = 1
  let dense = true
  for (let i = shape.length - 1; i >= 0; i--) {
    const extent = shape[i]!
    if (extent === 0) return true
    if (extent !== 1) {
      if (strides[i] !== step) dense = false
      step *= extent
    }
  }
  return dense
}

/** @throws INVALID_ARGUMENT unless all extents are integers ≥ 0 */
export function checkShape(op: string, shape: Shape): void {
  if (!Array.isArray(shape)) throw invalidArgument(op, 'a shape: an array of integers', typeof shape, 'Write [2, 3], not 2, 3.')
  for (const extent of shape as Shape) {
    if (!Number.isSafeInteger(extent) || extent < 0) throw invalidArgument(op, 'a shape of integers ≥ 0', shapeText(shape))
  }
  if (!Number.isSafeInteger(numelOf(shape))) throw invalidArgument(op, 'a shape whose extents multiply to a safe integer', shapeText(shape))
}

/** @throws SHAPE_MISMATCH */
export function broadcastShapes(op: string, a: Shape, b: Shape): Shape {
  // Nearly always one of the two is the result, and who gets the very same shape has no strides to compute.
  if (broadcastsTo(b, a)) return a
  if (broadcastsTo(a, b)) return b
  const n = Math.max(a.length, b.length)
  const out = new Array<number>(n)
  for (let i = 1; i <= n; i++) {
    const x = i <= a.length ? a[a.length - i]! : 1
    const y = i <= b.length ? b[b.length - i]! : 1
    if (x !== y && x !== 1 && y !== 1) throw broadcastMismatch(op, a, b)
    out[n - i] = x === 1 ? y : x
  }
  return out
}

/** Strides with which a tensor of `shape` and `strides` is read as `target`, to which it broadcasts: 0 where an extent is repeated. */
export function broadcastStrides(shape: Shape, strides: Shape, target: Shape): Shape {
  if (sameShape(shape, target)) return strides
  const n = target.length
  const missing = n - shape.length
  const out = new Array<number>(n)
  for (let i = 0; i < n; i++) {
    const j = i - missing
    out[i] = j < 0 || (shape[j] === 1 && target[i] !== 1) ? 0 : strides[j]!
  }
  return out
}

/** Whether `shape` broadcasts to exactly `target`. */
export function broadcastsTo(shape: Shape, target: Shape): boolean {
  const missing = target.length - shape.length
  if (missing < 0) return false
  for (let i = 0; i < shape.length; i++) {
    if (shape[i] !== 1 && shape[i] !== target[i + missing]) return false
  }
  return true
}

/** A dimension as an index from 0. A 0-d tensor accepts 0 and −1, as in PyTorch. @param of the tensor that has `ndim` dimensions @throws DIM_OUT_OF_RANGE */
export function normalizeDim(op: string, dim: number, ndim: number, of: 'tensor' | 'result' = 'tensor'): number {
  const n = ndim === 0 ? 1 : ndim
  if (!Number.isInteger(dim) || dim < -n || dim >= n) {
    throw new PostgradError('DIM_OUT_OF_RANGE', {
      op,
      expected: `a dimension from ${-n} to ${n - 1}`,
      got: String(dim),
      remedy: `The ${of} has ${ndim} dimension${ndim === 1 ? '' : 's'}; negative ones count from the end.`,
      values: { dim, ndim },
    })
  }
  return dim < 0 ? dim + n : dim
}

/** Several dimensions, in ascending order; undefined and [] mean all. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT on repetition */
export function normalizeDims(op: string, dims: number | readonly number[] | undefined, ndim: number): number[] {
  if (dims === undefined || (typeof dims === 'object' && dims.length === 0)) return Array.from({ length: ndim }, (_, i) => i)
  const list = typeof dims === 'number' ? [dims] : dims
  const out = list.map((d) => normalizeDim(op, d, ndim)).sort((x, y) => x - y)
  for (let i = 1; i < out.length; i++) {
    if (out[i] === out[i - 1]) throw invalidArgument(op, 'each dimension once', shapeText(list), 'Leave out the repeated dimension.')
  }
  return ndim === 0 ? [] : out
}

/** A new array: `shape` with one −1 filled in, whose extents multiply to `numel`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
export function inferShape(op: string, shape: Shape, numel: number): Shape {
  let known = 1
  let open = -1
  if (!Array.isArray(shape)) throw invalidArgument(op, 'a shape: an array of integers', typeof shape, 'Write [2, 3], not 2, 3.')
  for (let i = 0; i < shape.length; i++) {
    const extent = shape[i]!
    if (extent === -1 && open < 0) open = i
    else if (Number.isSafeInteger(extent) && extent >= 0) known *= extent
    else throw invalidArgument(op, 'a shape of integers ≥ 0 with at most one -1', shapeText(shape))
  }
  if (open >= 0 && known > 0 && numel % known === 0) {
    const out = shape.slice()
    out[open] = numel / known
    return out
  }
  if (open >= 0 && known === 0 && numel === 0) {
    throw invalidArgument(op, 'a shape without -1 if an extent is 0', shapeText(shape), 'Write the extent: any value would fit.')
  }
  if (open >= 0 || known !== numel) {
    throw shapeMismatch(op, `a shape of ${numel} elements`, shapeText(shape), 'The product of the extents must stay the same.', { numel })
  }
  return shape.slice()
}

/** Strides that read the same elements as `shape`, or null if a copy is needed (PyTorch's `computeStride`). */
export function viewStrides(oldShape: Shape, oldStrides: Shape, shape: Shape): Shape | null {
  const numel = numelOf(oldShape)
  if (numel === 0 || isContiguous(oldShape, oldStrides)) return contiguousStrides(shape)
  const out = new Array<number>(shape.length)
  let v = shape.length - 1
  let chunkStride = oldStrides[oldStrides.length - 1]!
  let chunk = 1
  let viewed = 1
  for (let d = oldShape.length - 1; d >= 0; d--) {
    chunk *= oldShape[d]!
    // A chunk of old dimensions ends where the next one does not continue it.
    if (d === 0 || (oldShape[d - 1] !== 1 && oldStrides[d - 1] !== chunk * chunkStride)) {
      while (v >= 0 && (viewed < chunk || shape[v] === 1)) {
        out[v] = viewed * chunkStride
        viewed *= shape[v]!
        v--
      }
      if (viewed !== chunk) return null
      if (d > 0) {
        chunkStride = oldStrides[d - 1]!
        chunk = 1
        viewed = 1
      }
    }
  }
  return v === -1 ? out : null
}
