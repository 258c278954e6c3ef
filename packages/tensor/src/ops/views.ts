/** Views: tensors that share their argument's storage (`reshape` and what is made of it: when they can). */
import * as views from '../raw/views.js'
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastShapes, type DimsArg, inferShape, normalizeDim, numelOf, type Shape } from '../values/shape.js'
import { composite, type Functional, type Ops, primitive } from './define/define.js'
import { formula } from './define/formula.js'
import { embedDiagonal } from './parts/common.js'
import { sumToShape, wrap } from './parts/dims.js'

/** The same storage in another shape, of which one extent may be −1. PyTorch: `Tensor.view`. @throws SHAPE_MISMATCH, VIEW_NOT_CONTIGUOUS */
export const view: (x: Tensor, shape: readonly number[]) => Tensor = primitive('view', {
  args: ['tensor', 'numbers'],
  raw: views.view,
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/**
 * The same elements in another shape, of which one extent may be −1; a view where it can be, else a copy. PyTorch: `torch.reshape`. @throws
 * SHAPE_MISMATCH
 */
export const reshape: (x: Tensor, shape: readonly number[]) => Tensor = primitive('reshape', {
  args: ['tensor', 'numbers'],
  raw: views.reshape,
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/** A view with two dimensions exchanged. PyTorch: `torch.transpose`. @throws DIM_OUT_OF_RANGE */
export const transpose: (x: Tensor, dim0: number, dim1: number) => Tensor = primitive('transpose', {
  args: ['tensor', 'number', 'number'],
  raw: views.transpose,
  grad: formula([], (g, s, ops) => ops.transpose(g, s.attrs[0], s.attrs[1])),
})

/** A view with the dimensions in the order of `dims`, which names each once. PyTorch: `torch.permute`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE */
export const permute: (x: Tensor, dims: readonly number[]) => Tensor = primitive('permute', {
  args: ['tensor', 'numbers'],
  raw: views.permute,
  grad: formula([], (g, s, ops) => ops.permute(g, inverse(s.attrs[0]))),
})

/** A view in which extents of 1 are repeated to `shape`; −1 keeps an extent. PyTorch: `Tensor.expand`. @throws SHAPE_MISMATCH */
export const expand: (x: Tensor, shape: readonly number[]) => Tensor = primitive('expand', {
  args: ['tensor', 'numbers'],
  raw: views.expand,
  // the sum over what was spread
  grad: formula([], (g, s) => sumToShape(g, s.shapeA)),
})

/** A view without dimensions of extent 1: all of them, or those named that have it. PyTorch: `torch.squeeze`. @throws DIM_OUT_OF_RANGE */
export const squeeze: (x: Tensor, dims?: DimsArg) => Tensor = primitive('squeeze', {
  args: ['tensor', 'dims?'],
  raw: views.squeeze,
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/** A view with a new dimension of extent 1 at `dim`. PyTorch: `torch.unsqueeze`. @throws DIM_OUT_OF_RANGE */
export const unsqueeze: (x: Tensor, dim: number) => Tensor = primitive('unsqueeze', {
  args: ['tensor', 'number'],
  raw: views.unsqueeze,
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/** A view of `length` elements along `dim` from `start` on. PyTorch: `torch.narrow`. @throws INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
export const narrow: (x: Tensor, dim: number, start: number, length: number) => Tensor = primitive('narrow', {
  args: ['tensor', 'number', 'number', 'number'],
  raw: views.narrow,
  // g between zeros
  grad: formula([], (g, s, ops) => {
    const [dim, start, length] = s.attrs
    const d = wrap(dim, s.shapeA.length)
    return betweenZeros(g, d, wrap(start, s.shapeA[d]!), length, s.shapeA, ops)
  }),
})

/**
 * A view of one slice along `dim`, without that dimension; negative indices count from the end. PyTorch: `torch.select`. @throws
 * INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE
 */
export const select: (x: Tensor, dim: number, index: number) => Tensor = primitive('select', {
  args: ['tensor', 'number', 'number'],
  raw: views.select,
  grad: formula([], (g, s, ops) => {
    const d = wrap(s.attrs[0], s.shapeA.length)
    return betweenZeros(ops.unsqueeze(g, d), d, wrap(s.attrs[1], s.shapeA[d]!), 1, s.shapeA, ops)
  }),
})

/**
 * A view of the diagonal of planes dim1 × dim2 (default 0, 1), shifted by `offset` (0), as the last dimension. PyTorch: `torch.diagonal`. @throws
 * DIM_OUT_OF_RANGE
 */
export const diagonal: (x: Tensor, offset?: number, dim1?: number, dim2?: number) => Tensor = primitive('diagonal', {
  args: ['tensor', 'number?', 'number?', 'number?'],
  raw: views.diagonal,
  // g on the diagonal
  grad: formula([], (g, s, ops) => {
    const [offset = 0, dim1 = 0, dim2 = 1] = s.attrs
    const [rows, columns] = [s.shapeA[wrap(dim1, s.shapeA.length)]!, s.shapeA[wrap(dim2, s.shapeA.length)]!]
    return ops.movedim(embedDiagonal(ops, g, rows, columns, offset), [-2, -1], [dim1, dim2])
  }),
})

/**
 * Dimensions startDim … endDim (default all of them) as one; a view where it can be. A 0-d tensor becomes [1]. PyTorch: `torch.flatten`. @throws
 * DIM_OUT_OF_RANGE
 */
export const flatten: (x: Tensor, startDim?: number, endDim?: number) => Tensor = composite('flatten', {
  args: ['tensor', 'number?', 'number?'],
  of:
    (ops) =>
    (x, startDim = 0, endDim = -1) => {
      const from = normalizeDim('flatten', startDim, x.ndim)
      const to = normalizeDim('flatten', endDim, x.ndim)
      if (from > to) throw invalidArgument('flatten', 'startDim ≤ endDim', `${startDim} and ${endDim}`, 'Swap them.')
      if (from === to && x.ndim > 0) return x
      if (x.ndim === 0) return ops.reshape(x, [1])
      const middle = numelOf(x.shape.slice(from, to + 1))
      return ops.reshape(x, [...x.shape.slice(0, from), middle, ...x.shape.slice(to + 1)])
    },
})

/** A view with dimension `dim` as several, of which one may be −1. PyTorch: `torch.unflatten`. @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE */
export const unflatten: (x: Tensor, dim: number, sizes: readonly number[]) => Tensor = composite('unflatten', {
  args: ['tensor', 'number', 'numbers'],
  of: (ops) => (x, dim, sizes) => {
    const [d, extent] = cut('unflatten', x, dim)
    return ops.reshape(x, [...x.shape.slice(0, d), ...inferShape('unflatten', sizes, extent), ...x.shape.slice(d + 1)])
  },
})

/** All elements as one dimension; a view where it can be. PyTorch: `torch.ravel`. */
export const ravel: (x: Tensor) => Tensor = composite('ravel', {
  args: ['tensor'],
  of: (ops) => (x) => ops.reshape(x, [x.numel]),
})

/**
 * A view with dimensions `source` at the places `destination`; the others keep their order. PyTorch: `torch.movedim`. @throws DIM_OUT_OF_RANGE,
 * INVALID_ARGUMENT
 */
export const movedim: (x: Tensor, source: DimsArg, destination: DimsArg) => Tensor = composite('movedim', {
  args: ['tensor', 'dims', 'dims'],
  of: (ops) => (x, source, destination) => {
    const from = places('movedim', x, source)
    const to = places('movedim', x, destination)
    if (from.length !== to.length) {
      throw invalidArgument('movedim', 'as many sources as destinations', `${from.length} and ${to.length}`)
    }
    const rest = x.shape.map((_, d) => d).filter((d) => !from.includes(d))
    const order = x.shape.map((_, d) => (to.includes(d) ? from[to.indexOf(d)]! : rest.shift()!))
    return ops.permute(x, order)
  },
})

/** A view with two dimensions exchanged. PyTorch: `torch.swapaxes`. @throws DIM_OUT_OF_RANGE */
export const swapaxes: (x: Tensor, dim0: number, dim1: number) => Tensor = composite('swapaxes', {
  args: ['tensor', 'number', 'number'],
  of: (ops) => (x, dim0, dim1) => ops.transpose(x, dim0, dim1),
})

/** The tensor expanded to a shape, as a view. PyTorch: `torch.broadcast_to`. @throws SHAPE_MISMATCH */
export const broadcastTo: (x: Tensor, shape: readonly number[]) => Tensor = composite('broadcastTo', {
  args: ['tensor', 'numbers'],
  of: (ops) => (x, shape) => ops.expand(x, shape),
})

/** The tensors expanded to one shape, as views. PyTorch: `torch.broadcast_tensors`. @throws SHAPE_MISMATCH */
export const broadcastTensors: Functional<(tensors: readonly Tensor[]) => Tensor[]> = composite('broadcastTensors', {
  args: ['tensors'],
  isFunctional: true,
  of: (ops) => (tensors) => {
    let shape: Shape = []
    for (const t of tensors) shape = broadcastShapes('broadcastTensors', shape, t.shape)
    return tensors.map((t) => ops.expand(t, shape))
  },
})

/**
 * A view of every step-th element along `dim` from start up to (without) end; both may be negative and are cut to what is there, step ≥ 1. PyTorch:
 * `x[start:end:step]`. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const slice: (x: Tensor, dim: number, start?: number | null, end?: number | null, step?: number) => Tensor = composite('slice', {
  args: ['tensor', 'number', 'number??', 'number??', 'number?'],
  of:
    (ops) =>
    (x, dim, start, end, step = 1) => {
      const [d, extent] = cut('slice', x, dim)
      if (!Number.isSafeInteger(step) || step < 1)
        throw invalidArgument('slice', 'an integer step ≥ 1', step, 'Use flip() to go backwards.')
      const from = bound(start ?? 0, extent)
      const part = ops.narrow(x, d, from, Math.max(bound(end ?? extent, extent) - from, 0))
      return step === 1 ? part : ops.everyNth(part, d, step)
    },
})

/**
 * Views of `size` along `dim` (default 0), the last may be shorter; or of the sizes given, which add up to the extent. PyTorch: `torch.split`.
 * @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const split: (x: Tensor, size: number | readonly number[], dim?: number) => Tensor[] = composite('split', {
  args: ['tensor', 'dims', 'number?'],
  of:
    (ops) =>
    (x, size, dim = 0) => {
      const [d, extent] = cut('split', x, dim)
      const sizes = typeof size === 'number' ? equalSizes('split', extent, size) : size
      if (sizes.reduce((sum, n) => sum + n, 0) !== extent) {
        throw shapeMismatch('split', `sizes that add up to ${extent}`, shapeText(sizes), `Dimension ${d} has ${extent} elements.`)
      }
      let start = 0
      return sizes.map((length) => {
        const part = ops.narrow(x, d, start, length)
        start += length
        return part
      })
    },
})

/**
 * At most `count` views of equal size along `dim` (default 0); the last may be shorter. PyTorch: `torch.chunk`. @throws INVALID_ARGUMENT,
 * DIM_OUT_OF_RANGE
 */
export const chunk: (x: Tensor, count: number, dim?: number) => Tensor[] = composite('chunk', {
  args: ['tensor', 'number', 'number?'],
  of:
    (ops) =>
    (x, count, dim = 0) => {
      if (!Number.isInteger(count) || count < 1) throw invalidArgument('chunk', 'a count ≥ 1', count, 'Ask for at least one part.')
      const [d, extent] = cut('chunk', x, dim)
      // Without elements there still are `count` parts, as in PyTorch.
      return ops.split(x, extent === 0 ? new Array<number>(count).fill(0) : Math.ceil(extent / count), d)
    },
})

/**
 * Views along `dim` (default 0): into so many parts, the first ones longer by 1 where it does not divide, or cut at the indices given. PyTorch:
 * `torch.tensor_split`. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const tensorSplit: (x: Tensor, parts: number | readonly number[], dim?: number) => Tensor[] = composite('tensorSplit', {
  args: ['tensor', 'dims', 'number?'],
  of:
    (ops) =>
    (x, parts, dim = 0) => {
      const [d, extent] = cut('tensorSplit', x, dim)
      if (typeof parts !== 'number') {
        return [...parts, null].map((end, i) => ops.slice(x, d, i === 0 ? 0 : parts[i - 1], end))
      }
      if (!Number.isInteger(parts) || parts < 1) throw invalidArgument('tensorSplit', 'a number of parts ≥ 1, or indices', parts)
      const longer = extent % parts
      const size = Math.floor(extent / parts)
      const sizes = Array.from({ length: parts }, (_, i) => (i < longer ? size + 1 : size))
      return ops.split(x, sizes, d)
    },
})

/** Views of all slices along `dim` (default 0), without it. PyTorch: `torch.unbind`. @throws DIM_OUT_OF_RANGE */
export const unbind: (x: Tensor, dim?: number) => Tensor[] = composite('unbind', {
  args: ['tensor', 'number?'],
  of:
    (ops) =>
    (x, dim = 0) => {
      const [d, extent] = cut('unbind', x, dim)
      return Array.from({ length: extent }, (_, i) => ops.select(x, d, i))
    },
})

/** A bound of a slice as in Python: negative ones count from the end, what lies outside is cut off. */
function bound(at: number, extent: number): number {
  if (!Number.isInteger(at)) throw invalidArgument('slice', 'integers as start and end', at)
  return Math.min(Math.max(at < 0 ? at + extent : at, 0), extent)
}

/** Each dimension once, as indices from 0, in the order given. */
function places(op: string, x: Tensor, dims: DimsArg): number[] {
  const list = (typeof dims === 'number' ? [dims] : dims).map((d) => normalizeDim(op, d, x.ndim))
  if (new Set(list).size !== list.length) throw invalidArgument(op, 'each dimension once', shapeText(list))
  return list
}

/** The dimension to cut along and its extent. */
function cut(op: string, x: Tensor, dim: number): [dim: number, extent: number] {
  if (x.ndim === 0) throw shapeMismatch(op, 'a tensor with at least one dimension', '[]', 'Use reshape([1]) first.')
  const d = normalizeDim(op, dim, x.ndim)
  return [d, x.shape[d]!]
}

/** As many of `size` as needed; one empty part of an empty extent. */
function equalSizes(op: string, extent: number, size: number): number[] {
  if (!Number.isInteger(size) || size < 1) throw invalidArgument(op, 'a size ≥ 1', size, 'Pass the length of a part.')
  const parts = Math.max(1, Math.ceil(extent / size))
  return Array.from({ length: parts }, (_, i) => Math.min(size, extent - i * size))
}

function inverse(dims: readonly number[]): number[] {
  const result = new Array<number>(dims.length)
  dims.forEach((dim, i) => {
    result[wrap(dim, dims.length)] = i
  })
  return result
}

/** `g` at `start` of dimension `dim`, zeros around it, up to `shape`. */
function betweenZeros(g: Tensor, dim: number, start: number, length: number, shape: Shape, ops: Ops): Tensor {
  if (length === shape[dim]) return g
  const pads = new Array<number>(2 * (shape.length - dim)).fill(0)
  pads[pads.length - 2] = start
  pads[pads.length - 1] = shape[dim]! - start - length
  return ops.constantPad(g, pads, 0)
}
