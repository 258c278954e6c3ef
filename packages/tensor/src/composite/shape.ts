/** Composites that cut and fold shapes: views of views. */

import type { DimsArg, Ops } from '../ops/ops.js'
import type { RearrangeOps } from '../ops/ops-indexing.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastShapes, inferShape, normalizeDim, numelOf, type Shape } from '../values/shape.js'

type Names = 'flatten' | 'split' | 'slice' | 'chunk' | 'unbind' | 'tensorSplit' | 'unflatten' | 'ravel' | 'movedim' | 'swapaxes'
type MoreNames = 'broadcastTo' | 'broadcastTensors' | 'viewAs' | 'expandAs' | 'diag' | 'diagEmbed'

export function shapeComposites(ops: Ops<Tensor>): Pick<RearrangeOps<Tensor>, Names | MoreNames> {
  return {
    flatten(x, startDim = 0, endDim = -1) {
      const from = normalizeDim('flatten', startDim, x.ndim)
      const to = normalizeDim('flatten', endDim, x.ndim)
      if (from > to) throw invalidArgument('flatten', 'startDim ≤ endDim', `${startDim} and ${endDim}`, 'Swap them.')
      if (from === to && x.ndim > 0) return x
      if (x.ndim === 0) return ops.reshape(x, [1])
      const middle = numelOf(x.shape.slice(from, to + 1))
      return ops.reshape(x, [...x.shape.slice(0, from), middle, ...x.shape.slice(to + 1)])
    },

    split(x, size, dim = 0) {
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

    chunk(x, count, dim = 0) {
      if (!Number.isInteger(count) || count < 1) throw invalidArgument('chunk', 'a count ≥ 1', count, 'Ask for at least one part.')
      const [d, extent] = cut('chunk', x, dim)
      // Without elements there still are `count` parts, as in PyTorch.
      return ops.split(x, extent === 0 ? new Array<number>(count).fill(0) : Math.ceil(extent / count), d)
    },

    unbind(x, dim = 0) {
      const [d, extent] = cut('unbind', x, dim)
      return Array.from({ length: extent }, (_, i) => ops.select(x, d, i))
    },

    slice(x, dim, start, end, step = 1) {
      const [d, extent] = cut('slice', x, dim)
      if (!Number.isSafeInteger(step) || step < 1)
        throw invalidArgument('slice', 'an integer step ≥ 1', step, 'Use flip() to go backwards.')
      const from = bound(start ?? 0, extent)
      const part = ops.narrow(x, d, from, Math.max(bound(end ?? extent, extent) - from, 0))
      return step === 1 ? part : ops.everyNth(part, d, step)
    },

    tensorSplit(x, parts, dim = 0) {
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

    unflatten(x, dim, sizes) {
      const [d, extent] = cut('unflatten', x, dim)
      return ops.reshape(x, [...x.shape.slice(0, d), ...inferShape('unflatten', sizes, extent), ...x.shape.slice(d + 1)])
    },

    ravel: (x) => ops.reshape(x, [x.numel]),

    movedim(x, source, destination) {
      const from = places('movedim', x, source)
      const to = places('movedim', x, destination)
      if (from.length !== to.length) {
        throw invalidArgument('movedim', 'as many sources as destinations', `${from.length} and ${to.length}`)
      }
      const rest = x.shape.map((_, d) => d).filter((d) => !from.includes(d))
      const order = x.shape.map((_, d) => (to.includes(d) ? from[to.indexOf(d)]! : rest.shift()!))
      return ops.permute(x, order)
    },

    swapaxes: (x, dim0, dim1) => ops.transpose(x, dim0, dim1),

    broadcastTo: (x, shape) => ops.expand(x, shape),

    broadcastTensors(tensors) {
      let shape: Shape = []
      for (const t of tensors) shape = broadcastShapes('broadcastTensors', shape, t.shape)
      return tensors.map((t) => ops.expand(t, shape))
    },

    viewAs: (x, other) => ops.view(x, other.shape),

    expandAs: (x, other) => ops.expand(x, other.shape),

    diag(x, diagonal = 0) {
      if (x.ndim === 1) return ops.diagEmbed(x, diagonal)
      if (x.ndim === 2) return ops.diagonal(x, diagonal)
      throw shapeMismatch('diag', 'a vector or a matrix', shapeText(x.shape), 'Use diagonal() or diagEmbed() for batches.')
    },

    diagEmbed(x, offset = 0, dim1 = -2, dim2 = -1) {
      if (x.ndim === 0) throw shapeMismatch('diagEmbed', 'a tensor with at least one dimension', '[]', 'Use reshape([1]) first.')
      const a = normalizeDim('diagEmbed', dim1, x.ndim + 1)
      const b = normalizeDim('diagEmbed', dim2, x.ndim + 1)
      if (a === b) throw invalidArgument('diagEmbed', 'two different dimensions', `${dim1} and ${dim2}`)
      const extent = x.shape.at(-1)! + Math.abs(offset)
      return ops.movedim(embedDiagonal(ops, x, extent, extent, offset), [-2, -1], [a, b])
    },
  }
}

/** [..., k] → [..., rows, columns] with it at [i, i + offset] (i counted from where the diagonal begins), zeros elsewhere. */
export function embedDiagonal(ops: Ops<Tensor>, x: Tensor, rows: number, columns: number, offset: number): Tensor {
  const batch = x.shape.slice(0, -1)
  const k = x.shape.at(-1)!
  const first = Math.max(-offset, 0) * columns + Math.max(offset, 0)
  const places = Tensor.over(
    'int32',
    [1, k],
    Int32Array.from({ length: k }, (_, i) => first + i * (columns + 1)),
    x.storage.memory,
  )
  const n = numelOf(batch)
  const flat = ops.scatter(
    Tensor.empty(x.dtype, [n, rows * columns], x.storage.memory),
    1,
    ops.expand(places, [n, k]),
    ops.reshape(x, [n, k]),
  )
  return ops.reshape(flat, [...batch, rows, columns])
}

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
