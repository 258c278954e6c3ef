/** Views of parts of a dimension, made of `narrow` and `select`. */
import type { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { composite } from './define/define.js'
import { cut } from './parts/dims.js'

/**
 * A view of every step-th element along `dim`, from `start` to before `end`. Negative bounds count from the end, and bounds outside of x are cut off. `step` is
 * at least 1. PyTorch: `x[start:end:step]`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x; INVALID_ARGUMENT if `step` is not an integer ≥ 1
 * @example tensor([0, 1, 2, 3, 4]).slice(0, 1, null, 2) // [1, 3]
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
 * Views of length `size` along `dim` (default 0), of which the last may be shorter. With a list of sizes, one view for each size. PyTorch: `torch.split`.
 * @throws SHAPE_MISMATCH if the sizes do not add up to the extent of `dim`; DIM_OUT_OF_RANGE if `dim` is not a dimension of x; INVALID_ARGUMENT if a size is
 * not valid
 * @example tensor([1, 2, 3, 4, 5]).split([2, 3]) // [[1, 2], [3, 4, 5]]
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
 * At most `count` views of equal length along `dim` (default 0); the last may be shorter. PyTorch: `torch.chunk`.
 * @throws INVALID_ARGUMENT if `count` is not an integer ≥ 1; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([1, 2, 3, 4, 5]).chunk(2) // [[1, 2, 3], [4, 5]]
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
 * Views along `dim` (default 0). With a number, that many parts, of which the first ones may be longer by 1. With a list, x is cut at these indices. PyTorch:
 * `torch.tensor_split`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x; INVALID_ARGUMENT if `parts` is not valid
 * @example tensor([1, 2, 3, 4, 5]).tensorSplit(3) // [[1, 2], [3, 4], [5]]
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

/**
 * Views of all slices along `dim` (default 0); they do not have that dimension. PyTorch: `torch.unbind`.
 * @throws DIM_OUT_OF_RANGE if `dim` is not a dimension of x; SHAPE_MISMATCH if x has no dimensions
 * @example tensor([[1, 2], [3, 4]]).unbind(1) // [[1, 3], [2, 4]]
 */
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

/** As many of `size` as needed; one empty part of an empty extent. */
function equalSizes(op: string, extent: number, size: number): number[] {
  if (!Number.isInteger(size) || size < 1) throw invalidArgument(op, 'a size ≥ 1', size, 'Pass the length of a part.')
  const parts = Math.max(1, Math.ceil(extent / size))
  return Array.from({ length: parts }, (_, i) => Math.min(size, extent - i * size))
}
