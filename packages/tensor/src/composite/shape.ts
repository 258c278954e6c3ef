/** Composites that cut and fold shapes: views of views. */
import { invalidArgument, shapeMismatch, shapeText } from '../errors.js'
import type { Ops, ShapeCompositeOps } from '../ops.js'
import { normalizeDim, numelOf } from '../shape.js'
import type { Tensor } from '../tensor.js'

export function shapeComposites(ops: Ops<Tensor>): ShapeCompositeOps<Tensor> {
  return {
    flatten(x, startDim = 0, endDim = -1) {
      const from = normalizeDim('flatten', startDim, x.ndim)
      const to = normalizeDim('flatten', endDim, x.ndim)
      if (from > to) throw invalidArgument('flatten', 'startDim ≤ endDim', `${startDim} and ${endDim}`, 'Swap them.')
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
  }
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
