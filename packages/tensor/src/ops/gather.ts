/** Reading and writing elements at indices along one dimension: with one index for all, or with an index for each element. `indexing.ts` uses it. */

import { contiguous } from '../raw/copy.js'
import { scalarOf } from '../raw/elementwise.js'
import { checkedIndices } from '../raw/indices.js'
import { elementsOf } from '../tensor/bytes.js'
import { arange } from '../tensor/create.js'
import { Tensor } from '../tensor/tensor.js'
import { shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, sameShape } from '../values/shape.js'
import { type Ops, primitive, rawOperations, type WithInPlace } from './define/define.js'
import type { ManySaved } from './define/formula.js'
import { addSlices, checkIndexShape, corner, runAt, scattered, writtenAt } from './parts/at-indices.js'

/**
 * The slices of x along `dim` with the numbers in `index` [n]: […, extent, …] → […, n, …]. `index` has int32 or whole numbers, none negative. A 0-d tensor
 * counts as [1]. PyTorch: `torch.index_select`.
 * @throws INDEX_OUT_OF_RANGE if x does not have a slice; DTYPE_MISMATCH if an index is not a whole number; SHAPE_MISMATCH if `index` has more than one
 * dimension; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2, 3], [4, 5, 6]]).indexSelect(1, tensor([2, 0])) // [[3, 1], [6, 4]]
 */
export const indexSelect: (x: Tensor, dim: number, index: Tensor) => Tensor = primitive('indexSelect', {
  args: ['tensor', 'number', 'tensor'],
  looseNumbers: true,
  raw: (x, dim, index) => {
    const { shape } = x
    const d = normalizeDim('indexSelect', dim, shape.length)
    if (index.shape.length > 1 || (shape.length === 0 && index.numel !== 1)) {
      const expected = shape.length === 0 ? 'an index of one element for a 0-d tensor' : 'an index [n]'
      throw shapeMismatch('indexSelect', expected, shapeText(index.shape), 'Flatten the index, or use gather() or index().')
    }
    const at = checkedIndices('indexSelect', index, shape[d] ?? 1)
    const out = Tensor.uninitialized(x.dtype, shape.length === 0 ? shape : shape.with(d, at.numel), x.storage.memory)
    const table = contiguous(x)
    runAt('indexSelect', table, d, at.numel, table, at, out)
    return out
  },
  // g added up where it was read
  grad: {
    at: [0, 2],
    reads: [[1], null],
    grads: ([g], s, ops) => [readBack('indexAdd', g!, s, ops), null],
  },
})

/**
 * Elements picked along `dim`; for dim 1, out[i, j, k] = x[i, index[i, j, k], k]. The result has the shape of `index`, which may be smaller than x except along
 * `dim`. `index` has int32 or whole numbers, none negative. PyTorch: `torch.gather`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; SHAPE_MISMATCH if `index` does not fit to x; DTYPE_MISMATCH if an index is not a whole number;
 * DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([[1, 2], [3, 4]]).gather(1, tensor([[1], [0]])) // [[2], [3]]
 */
export const gather: (x: Tensor, dim: number, index: Tensor) => Tensor = primitive('gather', {
  args: ['tensor', 'number', 'tensor'],
  raw: (x, dim, index) => {
    const d = normalizeDim('gather', dim, x.shape.length)
    checkIndexShape('gather', x, d, index)
    const at = checkedIndices('gather', index, x.shape[d] ?? 1)
    const table = contiguous(corner(x, index.shape, d))
    const out = Tensor.uninitialized(x.dtype, index.shape, x.storage.memory)
    runAt('gather', table, d, index.shape[d] ?? 1, table, at, out)
    return out
  },
  grad: {
    at: [0, 2],
    reads: [[1], null],
    grads: ([g], s, ops) => [readBack('scatterAdd', g!, s, ops), null],
  },
})

/**
 * A copy of x to which the slices of `src` are added along `dim`, in order, each at its place in `index` [n] (int32 or whole numbers). PyTorch:
 * `torch.index_add`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; SHAPE_MISMATCH if `src` does not have one slice for each index; DTYPE_MISMATCH if `src` does not
 * have the dtype of x; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example zeros([3]).indexAdd(0, tensor([0, 2, 2]), tensor([1, 10, 100])) // [1, 0, 110]
 */
export const indexAdd: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor) => Tensor> = primitive('indexAdd', {
  args: ['tensor', 'number', 'tensor', 'tensor'],
  inPlace: true,
  looseNumbers: true,
  raw: (x, dim, index, src) => addSlices(x, dim, index, src),
  into: (x, dim, index, src) => writtenAt('indexAdd_', x, index, src, (at, from, target) => addSlices(x, dim, at, from, target)),
  // g; g read where it was added
  grad: {
    at: [0, 2, 3],
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? ops.indexSelect(g!, s.attrs[0], s.tensor(1)) : null],
  },
})

/**
 * A copy of x with elements of `src` added along `dim`, in order; for dim 1, out[i, index[i, j, k], k] += src[i, j, k]. PyTorch: `torch.scatter_add`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; SHAPE_MISMATCH if `src` is smaller than `index`; DTYPE_MISMATCH if `src` does not have the dtype
 * of x; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example zeros([2, 2]).scatterAdd(1, tensor([[0, 0], [1, 0]]), tensor([[1, 2], [3, 4]])) // [[3, 0], [4, 3]]
 */
export const scatterAdd: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor) => Tensor> = primitive('scatterAdd', {
  args: ['tensor', 'number', 'tensor', 'tensor'],
  inPlace: true,
  raw: (x, dim, index, src) => scattered('scatterAdd', x, dim, index, src),
  into: (x, dim, index, src) =>
    writtenAt('scatterAdd_', x, index, src, (at, from, target) => scattered('scatterAdd', x, dim, at, from, target)),
  grad: {
    at: [0, 2, 3],
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? read(g!, s, ops) : null],
  },
})

/**
 * A copy of x with elements of `src` written along `dim`; for dim 1, out[i, index[i, j, k], k] = src[i, j, k]. `src` is a number, a boolean, or a tensor at
 * least as large as `index`. If an index occurs twice, the last write counts. PyTorch: `torch.scatter`.
 * @throws INDEX_OUT_OF_RANGE if an index is outside of `dim`; SHAPE_MISMATCH if `src` is smaller than `index`; DTYPE_MISMATCH if `src` does not have the dtype
 * of x; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example zeros([2, 3]).scatter(1, tensor([[2], [0]]), 1) // [[0, 0, 1], [1, 0, 0]]
 */
export const scatter: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor | number | boolean) => Tensor> = primitive(
  'scatter',
  {
    args: ['tensor', 'number', 'tensor', 'filling'],
    inPlace: true,
    raw: (x, dim, index, src) => scattered('scatter', x, dim, index, sourceOf(x, index, src)),
    into: (x, dim, index, src) =>
      writtenAt('scatter_', x, index, sourceOf(x, index, src), (at, from, target) => scattered('scatter', x, dim, at, from, target)),
    // g, but 0 where src was written; g read there by the last one that was written to each place
    grad: {
      at: [0, 2, 3],
      reads: [[1], null, [1]],
      grads: ([g], s, ops) => [
        s.needs(0) ? ops.scatter(g!, s.attrs[0], s.tensor(1), 0) : null,
        null,
        s.needs(2) ? read(g!, s, ops, winners(s, ops)) : null,
      ],
    },
  },
)

/**
 * The places of the elements that are not 0, as int32 [count, ndim] in row-major order. No gradient. PyTorch: `torch.nonzero`.
 * @example tensor([[0, 5], [7, 0]]).nonzero() // [[0, 1], [1, 0]]
 */
export const nonzero: (x: Tensor) => Tensor = primitive('nonzero', {
  args: ['tensor'],
  raw: (x) => {
    // How many there are must be known at once.
    const elements = elementsOf(x, 'nonzero')
    let count = 0
    for (let i = 0; i < x.numel; i++) if (elements[i] !== 0) count++
    const ndim = x.shape.length
    const places = new Int32Array(count * ndim)
    let row = 0
    for (let i = 0; i < x.numel; i++) {
      if (elements[i] === 0) continue
      let flat = i
      for (let d = ndim - 1; d > 0; d--) {
        places[row + d] = flat % x.shape[d]!
        flat = Math.floor(flat / x.shape[d]!)
      }
      if (ndim > 0) places[row] = flat
      row += ndim
    }
    return Tensor.over('int32', [count, ndim], places)
  },
  grad: null,
})

const sourceOf = (x: Tensor, index: Tensor, src: Tensor | number | boolean): Tensor =>
  typeof src === 'object' ? src : rawOperations.expand(scalarOf('scatter', src, x), index.shape)

/** The gradient of what was read at indices: g, added up where it was read. Unless it is recorded, it is added to fresh zeros, of which no copy is made. */
function readBack(op: 'indexAdd' | 'scatterAdd', g: Tensor, s: ManySaved<[dim: number]>, ops: Ops): Tensor {
  const zeros = Tensor.empty(g.dtype, s.shape(0), g.storage.memory)
  const [dim] = s.attrs
  if (ops !== rawOperations) return ops[op](zeros, dim, s.tensor(1), g)
  return op === 'indexAdd' ? addSlices(zeros, dim, s.tensor(1), g, 'gradient') : scattered(op, zeros, dim, s.tensor(1), g, 'gradient')
}

/** g read where src was written; 0 where src is larger than the index. */
function read(g: Tensor, s: ManySaved<[dim: number]>, ops: Ops, won: Tensor | null = null): Tensor {
  const index = s.tensor(1)
  const all = ops.gather(g, s.attrs[0], index)
  const part = won === null ? all : ops.where(won, all, Tensor.empty(g.dtype, [], g.storage.memory))
  const shape = s.shape(2)
  if (sameShape(shape, index.shape)) return part
  const behind = [...shape.entries()].reverse().flatMap(([d, n]) => [0, n - index.shape[d]!])
  return ops.constantPad(part, behind)
}

/**
 * Which of the values that scatter has written were not overwritten by a later one, bool of the index's shape; null if each place was written once at most.
 * Writes to one place differ only in where they are along `dim`, so scatter itself says which was the last: it writes these numbers.
 */
function winners(s: ManySaved<[dim: number]>, ops: Ops): Tensor | null {
  const index = s.tensor(1)
  const dim = normalizeDim('scatter', s.attrs[0], index.ndim)
  const count = index.shape[dim] ?? 1
  if (count <= 1) return null
  const dtype = count <= FLOAT32_WHOLE ? 'float32' : 'int32'
  const along = index.shape.map((_, d) => (d === dim ? count : 1))
  const numbers = ops.expand(ops.reshape(arange(0, count, 1, { dtype, device: index.device }), along), index.shape)
  const last = ops.gather(ops.scatter(Tensor.empty(dtype, s.shape(0), index.storage.memory), dim, index, numbers), dim, index)
  return ops.eq(last, numbers)
}

/** Up to here float32 holds every whole number; gpujs compares nothing else, and no more elements. */
const FLOAT32_WHOLE = 2 ** 24
