/** Views: tensors that share their argument's storage (`reshape` and what is made of it: when they can). See also `slices.ts`. */
import { PostgradError } from '@postgrad/base'
import { contiguous } from '../raw/copy.js'
import { Tensor } from '../tensor/tensor.js'
import { indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import {
  broadcastShapes,
  broadcastStrides,
  broadcastsTo,
  checkShape,
  type DimsArg,
  inferShape,
  isContiguous,
  normalizeDim,
  normalizeDims,
  numelOf,
  type Shape,
  viewStrides,
} from '../values/shape.js'
import { composite, type Functional, type Ops, primitive } from './define/define.js'
import { formula } from './define/formula.js'
import { embedDiagonal } from './parts/common.js'
import { cut, sumToShape, wrap } from './parts/dims.js'

/**
 * x with another shape, as a view of the same storage. One extent may be −1. PyTorch: `Tensor.view`.
 * @throws SHAPE_MISMATCH if the shape has another number of elements; VIEW_NOT_CONTIGUOUS if that shape needs a copy: use `reshape`
 * @example zeros([2, 3, 4]).view([6, -1]) // shape [6, 4]
 */
export const view: (x: Tensor, shape: readonly number[]) => Tensor = primitive('view', {
  args: ['tensor', 'numbers'],
  raw: (x, shape) => {
    const out = reshaped('view', x, shape)
    if (out !== null) return out
    const target = inferShape('view', shape, x.numel)
    throw new PostgradError('VIEW_NOT_CONTIGUOUS', {
      op: 'view',
      expected: `strides under which ${shapeText(target)} needs no copy`,
      got: `shape ${shapeText(x.shape)} with strides ${shapeText(x.strides)}`,
      remedy: 'Use reshape(), which copies when it must, or contiguous() first.',
      values: { shape: [...x.shape], strides: [...x.strides], target: [...target] },
    })
  },
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/**
 * The same elements with another shape; a view if possible, else a copy. One extent may be −1. PyTorch: `torch.reshape`.
 * @throws SHAPE_MISMATCH if the shape has another number of elements
 * @example tensor([[1, 2, 3], [4, 5, 6]]).reshape([3, -1]) // [[1, 2], [3, 4], [5, 6]]
 */
export const reshape: (x: Tensor, shape: readonly number[]) => Tensor = primitive('reshape', {
  args: ['tensor', 'numbers'],
  raw: (x, shape) => reshaped('reshape', x, shape) ?? reshaped('reshape', contiguous(x), shape)!,
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/**
 * A view with two dimensions exchanged. PyTorch: `torch.transpose`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example tensor([[1, 2, 3], [4, 5, 6]]).transpose(0, 1) // [[1, 4], [2, 5], [3, 6]]
 */
export const transpose: (x: Tensor, dim0: number, dim1: number) => Tensor = primitive('transpose', {
  args: ['tensor', 'number', 'number'],
  raw: (x, dim0, dim1) => {
    const a = normalizeDim('transpose', dim0, x.shape.length)
    const b = normalizeDim('transpose', dim1, x.shape.length)
    if (a === b) return Tensor.view(x, x.shape, x.strides, x.offset)
    const shape = x.shape.slice()
    const strides = x.strides.slice()
    shape[a] = x.shape[b]!
    shape[b] = x.shape[a]!
    strides[a] = x.strides[b]!
    strides[b] = x.strides[a]!
    return Tensor.view(x, shape, strides, x.offset)
  },
  grad: formula([], (g, s, ops) => ops.transpose(g, s.attrs[0], s.attrs[1])),
})

/**
 * A view with the dimensions in the order of `dims`, which lists each dimension once. PyTorch: `torch.permute`.
 * @throws INVALID_ARGUMENT if `dims` does not list each dimension once; DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example zeros([2, 3, 4]).permute([2, 0, 1]) // shape [4, 2, 3]
 */
export const permute: (x: Tensor, dims: readonly number[]) => Tensor = primitive('permute', {
  args: ['tensor', 'numbers'],
  raw: (x, dims) => {
    const order = dims.map((d) => normalizeDim('permute', d, x.shape.length))
    if (order.length !== x.shape.length || new Set(order).size !== order.length) {
      throw invalidArgument('permute', `each of the ${x.shape.length} dimensions once`, shapeText(dims))
    }
    const extents = order.map((d) => x.shape[d]!)
    const strides = order.map((d) => x.strides[d]!)
    return Tensor.view(x, extents, strides, x.offset)
  },
  grad: formula([], (g, s, ops) => ops.permute(g, inverse(s.attrs[0]))),
})

/**
 * A view in which dimensions of extent 1 repeat up to `shape`. −1 keeps an extent. PyTorch: `Tensor.expand`.
 * @throws SHAPE_MISMATCH if x does not broadcast to the shape
 * @example tensor([[1], [2]]).expand([-1, 3]) // [[1, 1, 1], [2, 2, 2]]
 */
export const expand: (x: Tensor, shape: readonly number[]) => Tensor = primitive('expand', {
  args: ['tensor', 'numbers'],
  raw: (x, shape) => {
    const missing = shape.length - x.shape.length
    if (missing < 0) {
      throw shapeMismatch('expand', `at least ${x.shape.length} dimensions`, shapeText(shape), 'Name every dimension; -1 keeps one.')
    }
    const target = shape.map((extent, i) => {
      if (extent !== -1) return extent
      if (i < missing) throw invalidArgument('expand', 'no -1 for a new leading dimension', shapeText(shape), 'Write its extent.')
      return x.shape[i - missing]!
    })
    checkShape('expand', target)
    if (!broadcastsTo(x.shape, target)) {
      throw shapeMismatch(
        'expand',
        `a shape to which ${shapeText(x.shape)} broadcasts`,
        shapeText(target),
        'Only extents of 1 can be expanded.',
      )
    }
    return Tensor.view(x, target, broadcastStrides(x.shape, x.strides, target), x.offset)
  },
  // the sum over what was spread
  grad: formula([], (g, s) => sumToShape(g, s.shapeA)),
})

/**
 * A view without dimensions of extent 1: without all of them, or without those in `dims`. Other dimensions stay. PyTorch: `torch.squeeze`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example zeros([1, 3, 1]).squeeze(0) // shape [3, 1]
 */
export const squeeze: (x: Tensor, dims?: DimsArg) => Tensor = primitive('squeeze', {
  args: ['tensor', 'dims?'],
  raw: (x, dims) => {
    // No dimensions are none, not all.
    const named = typeof dims === 'object' && dims.length === 0 ? dims : normalizeDims('squeeze', dims, x.shape.length)
    const keep = (_: number, d: number): boolean => x.shape[d] !== 1 || !named.includes(d)
    return Tensor.view(x, x.shape.filter(keep), x.strides.filter(keep), x.offset)
  },
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/**
 * A view with a new dimension of extent 1 at `dim`. PyTorch: `torch.unsqueeze`.
 * @throws DIM_OUT_OF_RANGE if the result does not have `dim`
 * @example tensor([1, 2]).unsqueeze(-1) // [[1], [2]]
 */
export const unsqueeze: (x: Tensor, dim: number) => Tensor = primitive('unsqueeze', {
  args: ['tensor', 'number'],
  raw: (x, dim) => {
    const d = normalizeDim('unsqueeze', dim, x.shape.length + 1, 'result')
    const stride = d < x.shape.length ? x.shape[d]! * x.strides[d]! : 1
    return Tensor.view(x, x.shape.toSpliced(d, 0, 1), x.strides.toSpliced(d, 0, stride), x.offset)
  },
  grad: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)),
})

/**
 * A view of `length` elements along `dim`, from `start` on. A negative start counts from the end. PyTorch: `torch.narrow`.
 * @throws INDEX_OUT_OF_RANGE if x does not have these elements; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([0, 1, 2, 3, 4]).narrow(0, -3, 2) // [2, 3]
 */
export const narrow: (x: Tensor, dim: number, start: number, length: number) => Tensor = primitive('narrow', {
  args: ['tensor', 'number', 'number', 'number'],
  raw: (x, dim, start, length) => {
    const [d, extent] = cut('narrow', x, dim)
    const from = start < 0 ? start + extent : start
    if (!Number.isInteger(from) || from < 0 || from > extent) {
      throw indexOutOfRange('narrow', `a start from ${-extent} to ${extent}`, start, `Dimension ${d} has ${extent} elements.`)
    }
    if (!Number.isInteger(length) || length < 0 || from + length > extent) {
      throw indexOutOfRange(
        'narrow',
        `a length from 0 to ${extent - from}`,
        length,
        `Dimension ${d} has ${extent} elements, the start is ${from}.`,
      )
    }
    return Tensor.view(x, x.shape.with(d, length), x.strides, x.offset + from * x.strides[d]!)
  },
  // g between zeros
  grad: formula([], (g, s, ops) => {
    const [dim, start, length] = s.attrs
    const d = wrap(dim, s.shapeA.length)
    return betweenZeros(g, d, wrap(start, s.shapeA[d]!), length, s.shapeA, ops)
  }),
})

/**
 * A view of one slice along `dim`, without that dimension. A negative index counts from the end. PyTorch: `torch.select`.
 * @throws INDEX_OUT_OF_RANGE if x does not have that slice; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [3, 4]]).select(1, -1) // [2, 4]
 */
export const select: (x: Tensor, dim: number, index: number) => Tensor = primitive('select', {
  args: ['tensor', 'number', 'number'],
  raw: (x, dim, index) => {
    const [d, extent] = cut('select', x, dim)
    const at = index < 0 ? index + extent : index
    if (!Number.isInteger(at) || at < 0 || at >= extent) {
      throw indexOutOfRange('select', `an index from ${-extent} to ${extent - 1}`, index, `Dimension ${d} has ${extent} elements.`)
    }
    return Tensor.view(x, x.shape.toSpliced(d, 1), x.strides.toSpliced(d, 1), x.offset + at * x.strides[d]!)
  },
  grad: formula([], (g, s, ops) => {
    const d = wrap(s.attrs[0], s.shapeA.length)
    return betweenZeros(ops.unsqueeze(g, d), d, wrap(s.attrs[1], s.shapeA[d]!), 1, s.shapeA, ops)
  }),
})

/**
 * A view of the diagonal of planes dim1 × dim2 (default 0 and 1), as the last dimension. `offset` (default 0) is the number of the diagonal. PyTorch:
 * `torch.diagonal`.
 * @throws DIM_OUT_OF_RANGE if x does not have dim1 or dim2; INVALID_ARGUMENT if dim1 and dim2 are the same dimension
 * @example tensor([[1, 2, 3], [4, 5, 6]]).diagonal(1) // [2, 6]
 */
export const diagonal: (x: Tensor, offset?: number, dim1?: number, dim2?: number) => Tensor = primitive('diagonal', {
  args: ['tensor', 'number?', 'number?', 'number?'],
  raw: (x, offset = 0, dim1 = 0, dim2 = 1) => {
    const ndim = x.shape.length
    if (ndim < 2) throw shapeMismatch('diagonal', 'at least two dimensions', shapeText(x.shape), 'Use diag() or diagEmbed() for a vector.')
    const a = normalizeDim('diagonal', dim1, ndim)
    const b = normalizeDim('diagonal', dim2, ndim)
    if (a === b) throw invalidArgument('diagonal', 'two different dimensions', `${dim1} and ${dim2}`)
    if (!Number.isInteger(offset)) throw invalidArgument('diagonal', 'an integer offset', offset)
    const row = Math.max(-offset, 0)
    const column = Math.max(offset, 0)
    const length = Math.max(Math.min(x.shape[a]! - row, x.shape[b]! - column), 0)
    const kept = (values: Shape): number[] => values.filter((_, d) => d !== a && d !== b)
    const from = length === 0 ? x.offset : x.offset + row * x.strides[a]! + column * x.strides[b]!
    return Tensor.view(x, [...kept(x.shape), length], [...kept(x.strides), x.strides[a]! + x.strides[b]!], from)
  },
  // g on the diagonal
  grad: formula([], (g, s, ops) => {
    const [offset = 0, dim1 = 0, dim2 = 1] = s.attrs
    const [rows, columns] = [s.shapeA[wrap(dim1, s.shapeA.length)]!, s.shapeA[wrap(dim2, s.shapeA.length)]!]
    return ops.movedim(embedDiagonal(ops, g, rows, columns, offset), [-2, -1], [dim1, dim2])
  }),
})

/**
 * x with the dimensions startDim … endDim (default all) joined into one; a view if possible, else a copy. A 0-d tensor becomes [1]. PyTorch: `torch.flatten`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions; INVALID_ARGUMENT if startDim comes after endDim
 * @example zeros([2, 3, 4]).flatten(1) // shape [2, 12]
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

/**
 * A view with dimension `dim` split into several, whose extents are `sizes`. One size may be −1. PyTorch: `torch.unflatten`.
 * @throws SHAPE_MISMATCH if the sizes do not multiply to the extent of `dim`; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example zeros([2, 12]).unflatten(1, [3, -1]) // shape [2, 3, 4]
 */
export const unflatten: (x: Tensor, dim: number, sizes: readonly number[]) => Tensor = composite('unflatten', {
  args: ['tensor', 'number', 'numbers'],
  of: (ops) => (x, dim, sizes) => {
    const [d, extent] = cut('unflatten', x, dim)
    return ops.reshape(x, [...x.shape.slice(0, d), ...inferShape('unflatten', sizes, extent), ...x.shape.slice(d + 1)])
  },
})

/**
 * All elements as one dimension; a view if possible, else a copy. PyTorch: `torch.ravel`.
 * @example tensor([[1, 2], [3, 4]]).ravel() // [1, 2, 3, 4]
 */
export const ravel: (x: Tensor) => Tensor = composite('ravel', {
  args: ['tensor'],
  of: (ops) => (x) => ops.reshape(x, [x.numel]),
})

/**
 * A view with the dimensions `source` moved to the places `destination`; the other dimensions keep their order. PyTorch: `torch.movedim`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions; INVALID_ARGUMENT if a dimension is listed twice, or the lists differ in length
 * @example zeros([8, 3, 32, 64]).movedim(1, -1) // shape [8, 32, 64, 3]
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

/**
 * A view with two dimensions exchanged. PyTorch: `torch.swapaxes`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions
 * @example zeros([2, 3, 4]).swapaxes(0, -1) // shape [4, 3, 2]
 */
export const swapaxes: (x: Tensor, dim0: number, dim1: number) => Tensor = composite('swapaxes', {
  args: ['tensor', 'number', 'number'],
  of: (ops) => (x, dim0, dim1) => ops.transpose(x, dim0, dim1),
})

/**
 * x expanded to `shape`, as a view. PyTorch: `torch.broadcast_to`.
 * @throws SHAPE_MISMATCH if x does not broadcast to the shape
 * @example tensor([1, 2]).broadcastTo([2, 2]) // [[1, 2], [1, 2]]
 */
export const broadcastTo: (x: Tensor, shape: readonly number[]) => Tensor = composite('broadcastTo', {
  args: ['tensor', 'numbers'],
  of: (ops) => (x, shape) => ops.expand(x, shape),
})

/**
 * The tensors expanded to their common shape, as views. PyTorch: `torch.broadcast_tensors`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example broadcastTensors([tensor([[1], [2]]), tensor([3, 4])]) // [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
 */
export const broadcastTensors: Functional<(tensors: readonly Tensor[]) => Tensor[]> = composite('broadcastTensors', {
  args: ['tensors'],
  isFunctional: true,
  of: (ops) => (tensors) => {
    let shape: Shape = []
    for (const t of tensors) shape = broadcastShapes('broadcastTensors', shape, t.shape)
    return tensors.map((t) => ops.expand(t, shape))
  },
})

/** A view, or null where the strides do not allow it. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function reshaped(op: string, x: Tensor, shape: Shape): Tensor | null {
  const target = inferShape(op, shape, x.numel)
  const strides = viewStrides(x.shape, x.strides, target)
  if (strides === null) return null
  return new Tensor(x.storage, target, strides, x.offset, x.numel, x.isContiguous || isContiguous(target, strides))
}

/** Each dimension once, as indices from 0, in the order given. */
function places(op: string, x: Tensor, dims: DimsArg): number[] {
  const list = (typeof dims === 'number' ? [dims] : dims).map((d) => normalizeDim(op, d, x.ndim))
  if (new Set(list).size !== list.length) throw invalidArgument(op, 'each dimension once', shapeText(list))
  return list
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
