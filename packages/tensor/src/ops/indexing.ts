/** Reading and writing at indices and masks, as with Python's brackets and beyond. Made of the operations of `gather.ts`. */

import { scalarOf } from '../raw/elementwise.js'
import { checkedIndices } from '../raw/indices.js'
import { isReadable } from '../tensor/bytes.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { checkHolds, dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { IndexSpec } from '../values/options.js'
import { broadcastShapes, normalizeDim, numelOf } from '../values/shape.js'
import { composite, type Functional, method, type Ops, type WithInPlace } from './define/define.js'
import { placesFor } from './parts/common.js'
import { indexBy } from './parts/indexed.js'

/**
 * x[spec, spec, …] of Python. A spec is a number, a range ('1:3', '::2'), '...', null for a new dimension, or a tensor of indices or bool. The result is a view
 * unless a spec is a tensor. PyTorch: `x[…]`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of its dimension; INVALID_ARGUMENT if a range is not valid; SHAPE_MISMATCH if there are too many specs, or
 * a mask is of another shape; DTYPE_MISMATCH if an index is not a whole number
 * @example tensor([[1, 2, 3], [4, 5, 6]]).index(-1, '1:') // [5, 6]
 */
export const index: Functional<(x: Tensor, specs: readonly IndexSpec<Tensor>[]) => Tensor> = composite('index', {
  args: ['tensor', 'list'],
  isFunctional: true,
  looseNumbers: true,
  of: (ops) => (x, specs) => indexBy(ops, x, specs),
})

// The method takes them one by one.
method('index', (x: Tensor, ...specs: IndexSpec<Tensor>[]) => index(x, specs), 5)

/**
 * A copy with x[specs] = values, or x[specs] += values with `accumulate` (default false). `values` broadcast. If an index occurs twice, the last value counts
 * and gets the gradient. PyTorch: `torch.index_put`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of its dimension; SHAPE_MISMATCH if `values` do not broadcast to x[specs]
 * @example zeros([2, 3]).indexPut([1, '1:'], tensor([8, 9])) // [[0, 0, 0], [0, 8, 9]]
 */
export const indexPut: (x: Tensor, specs: readonly IndexSpec<Tensor>[], values: Tensor | number | boolean, accumulate?: boolean) => Tensor =
  composite('indexPut', {
    args: ['tensor', 'list', 'filling', 'boolean?'],
    looseNumbers: true,
    of:
      (ops) =>
      (x, specs, values, accumulate = false) => {
        // Where the elements lie that the specs name: whatever they are, ranges as well, it is then a write at flat indices.
        const numbers = placesFor(x, x.numel, (i) => i)
        const places = indexBy(ops, ops.reshape(numbers, x.shape), specs)
        const at = ops.reshape(places, [places.numel])
        const given = typeof values === 'object' ? values : scalarOf('indexPut', values, x)
        const source = ops.reshape(ops.expand(given, places.shape), [places.numel])
        const flat = ops.reshape(x, [x.numel])
        const out = accumulate ? ops.indexAdd(flat, 0, at, source) : ops.scatter(flat, 0, at, source)
        // A tensor of its own, not a view of one: made under noGrad it could not be written to.
        return x.ndim === 1 ? out : ops.clone(ops.reshape(out, x.shape))
      },
  })

/**
 * A copy in which the slices along `dim` at `index` [n] (int32 or whole numbers) are all `value`: a number, a boolean or a 0-d tensor. PyTorch:
 * `torch.index_fill`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; DIM_OUT_OF_RANGE if `dim` is not a dimension of x; SHAPE_MISMATCH if `value` has dimensions
 * @example tensor([[1, 2, 3], [4, 5, 6]]).indexFill(1, tensor([0, 2]), -1) // [[-1, 2, -1], [-1, 5, -1]]
 */
export const indexFill: WithInPlace<(x: Tensor, dim: number, index: Tensor, value: Tensor | number | boolean) => Tensor> = composite(
  'indexFill',
  {
    args: ['tensor', 'number', 'tensor', 'filling'],
    inPlace: true,
    looseNumbers: true,
    of: (ops) => (x, dim, index, value) => {
      const d = normalizeDim('indexFill', dim, x.ndim)
      if (index.ndim > 1) throw shapeMismatch('indexFill', 'an index [n]', shapeText(index.shape), 'Flatten the index.')
      const at = checkedIndices('indexFill', index, x.shape[d] ?? 1, true)
      const filling = fillValue('indexFill', ops, x, value)
      if (filling.requiresGrad && x.ndim > 0) {
        // By a mask: each place that is filled counts once in the value's gradient, however often it is named.
        const none = Tensor.empty('bool', [x.shape[d]!], x.storage.memory)
        const named = ops.scatter(none, 0, ops.reshape(at, [at.numel]), true)
        const mask = ops.reshape(named, [x.shape[d]!, ...new Array<number>(x.ndim - d - 1).fill(1)])
        return ops.where(mask, filling, x)
      }
      const wide = x.shape.map((_, i) => (i === d ? at.numel : 1))
      const shape = x.ndim === 0 ? [] : x.shape.with(d, at.numel)
      const everywhere = ops.expand(ops.reshape(at, wide), shape)
      return ops.scatter(x, d, everywhere, ops.expand(filling, shape))
    },
  },
)

/**
 * A copy of x with `value` where `mask` (bool) is true. `value` is a number, a boolean or a 0-d tensor. x and `mask` broadcast; the dtype stays. PyTorch:
 * `torch.masked_fill`.
 * @throws DTYPE_MISMATCH if `mask` is not bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example const x = tensor([1, -2, 3]); x.maskedFill(x.lt(0), 0) // [1, 0, 3]
 */
export const maskedFill: WithInPlace<(x: Tensor, mask: Tensor, value: Tensor | number | boolean) => Tensor> = composite('maskedFill', {
  args: ['tensor', 'tensor', 'filling'],
  inPlace: true,
  of: (ops) => (x, mask, value) => {
    checkMask('maskedFill', mask)
    return ops.where(mask, fillValue('maskedFill', ops, x, value), x)
  },
})

/**
 * The elements of x where `mask` (bool) is true, as [count]. x and `mask` broadcast. PyTorch: `torch.masked_select`.
 * @throws DTYPE_MISMATCH if `mask` is not bool; SHAPE_MISMATCH if the shapes do not broadcast
 * @example const x = tensor([[1, 5], [7, 2]]); x.maskedSelect(x.gt(3)) // [5, 7]
 */
export const maskedSelect: (x: Tensor, mask: Tensor) => Tensor = composite('maskedSelect', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, mask) => {
    checkMask('maskedSelect', mask)
    const shape = broadcastShapes('maskedSelect', x.shape, mask.shape)
    const chosen = ops.nonzero(ops.reshape(ops.expand(mask, shape), [numelOf(shape)]))
    return ops.indexSelect(ops.reshape(ops.expand(x, shape), [numelOf(shape)]), 0, ops.reshape(chosen, [chosen.numel]))
  },
})

/**
 * The elements of the flattened x at `index` (int32 or whole numbers, any shape); negative indices count from the end. PyTorch: `torch.take`.
 * @throws INDEX_OUT_OF_RANGE if x does not have an index; DTYPE_MISMATCH if an index is not a whole number
 * @example tensor([[1, 2], [3, 4]]).take(tensor([0, -1])) // [1, 4]
 */
export const take: (x: Tensor, index: Tensor) => Tensor = composite('take', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, index) => {
    const at = checkedIndices('take', index, x.numel, true)
    return ops.reshape(ops.indexSelect(ops.reshape(x, [x.numel]), 0, ops.reshape(at, [at.numel])), index.shape)
  },
})

/**
 * As `gather`, but x and `index` broadcast against each other, except along `dim`. Without `dim` both count as flattened. PyTorch: `torch.take_along_dim`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; SHAPE_MISMATCH if the shapes do not broadcast; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example const x = tensor([[3, 1, 2], [5, 6, 4]]); x.takeAlongDim(x.argsort(1), 1) // [[1, 2, 3], [4, 5, 6]]
 */
export const takeAlongDim: (x: Tensor, index: Tensor, dim?: number) => Tensor = composite('takeAlongDim', {
  args: ['tensor', 'tensor', 'number?'],
  of: (ops) => (x, index, dim) => {
    if (dim === undefined) return ops.gather(ops.reshape(x, [x.numel]), 0, ops.reshape(index, [index.numel]))
    if (x.ndim !== index.ndim) {
      throw shapeMismatch('takeAlongDim', `indices with the ${x.ndim} dimensions of the tensor`, shapeText(index.shape), 'Use unsqueeze().')
    }
    const d = normalizeDim('takeAlongDim', dim, x.ndim)
    const one = (shape: readonly number[]) => (shape.length === 0 ? shape : shape.with(d, 1))
    const shape = broadcastShapes('takeAlongDim', one(x.shape), one(index.shape))
    const along = (t: Tensor) => (t.ndim === 0 ? t : ops.expand(t, shape.with(d, t.shape[d]!)))
    return ops.gather(along(x), d, along(index))
  },
})

function checkMask(op: string, mask: Tensor): void {
  if (mask.dtype !== 'bool') throw dtypeMismatch(op, 'a bool tensor as the mask', mask.dtype, 'Compare first, as in ne(mask, 0).')
}

/** A number, a boolean or a 0-d tensor as a 0-d tensor of x's dtype. @throws INVALID_ARGUMENT for a number that it cannot hold */
function fillValue(op: string, ops: Ops, x: Tensor, value: Tensor | number | boolean): Tensor {
  if (typeof value !== 'object') {
    if (x.dtype === 'int32' && !Number.isInteger(Number(value))) {
      throw invalidArgument(op, 'an integer for an int32 tensor', value, "Convert with to('float32') first.")
    }
    return scalarOf(op, value, x)
  }
  if (value.ndim === 0) {
    // A value that is not yet computed is not waited for; it wraps around.
    if (x.dtype === 'int32' && isFloating(value.dtype) && isReadable(value)) checkHolds(op, x.dtype, value.itemSync())
    return ops.to(value, x.dtype)
  }
  throw shapeMismatch(op, 'a number, a boolean or a 0-d tensor as the value', shapeText(value.shape), 'Use where() for several values.')
}
