/** Reading and writing at indices and masks. */

import { scalarOf, scalarTensor } from '../raw/elementwise.js'
import * as rawGather from '../raw/gather.js'
import { checkedIndices } from '../raw/indices.js'
import { isReadable } from '../tensor/bytes.js'
import { arange } from '../tensor/create.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { checkHolds, dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { IndexSpec } from '../values/options.js'
import { broadcastShapes, normalizeDim, numelOf, sameShape } from '../values/shape.js'
import { composite, type Functional, method, type Ops, primitive, type WithInPlace } from './define/define.js'
import type { ManySaved } from './define/formula.js'
import { indexBy } from './parts/indexed.js'

/**
 * The slices along `dim` whose numbers are in `index` (int32 or whole numbers, [n], none negative): […, extent, …] → […, n, …]. PyTorch: `torch.index_select`.
 * @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
 */
export const indexSelect: (x: Tensor, dim: number, index: Tensor) => Tensor = primitive('indexSelect', {
  args: ['tensor', 'number', 'tensor'],
  looseNumbers: true,
  raw: rawGather.indexSelect,
  // g added up where it was read
  grad: {
    at: [0, 2],
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.indexAdd(Tensor.empty(g!.dtype, s.shape(0), g!.storage.memory), s.attrs[0], s.tensor(1), g!), null],
  },
})

/**
 * Elements picked along `dim`: out[i, j, k] = x[i, index[i, j, k], k] for dim 1. The result has the shape of `index` (int32 or whole numbers, none negative).
 * PyTorch: `torch.gather`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const gather: (x: Tensor, dim: number, index: Tensor) => Tensor = primitive('gather', {
  args: ['tensor', 'number', 'tensor'],
  raw: rawGather.gather,
  grad: {
    at: [0, 2],
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.scatterAdd(Tensor.empty(g!.dtype, s.shape(0), g!.storage.memory), s.attrs[0], s.tensor(1), g!), null],
  },
})

/**
 * A copy with src's slices added along `dim` at the places in `index` (int32 or whole numbers, [n]), in their order. PyTorch: `torch.index_add`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const indexAdd: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor) => Tensor> = primitive('indexAdd', {
  args: ['tensor', 'number', 'tensor', 'tensor'],
  inPlace: true,
  looseNumbers: true,
  raw: rawGather.indexAdd,
  // g; g read where it was added
  grad: {
    at: [0, 2, 3],
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? ops.indexSelect(g!, s.attrs[0], s.tensor(1)) : null],
  },
})

/**
 * A copy with out[i, index[i, j, k], k] += src[i, j, k] for dim 1, summed in the order of `dim`. PyTorch: `torch.scatter_add`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const scatterAdd: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor) => Tensor> = primitive('scatterAdd', {
  args: ['tensor', 'number', 'tensor', 'tensor'],
  inPlace: true,
  raw: rawGather.scatterAdd,
  grad: {
    at: [0, 2, 3],
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? read(g!, s, ops) : null],
  },
})

/**
 * A copy with out[i, index[i, j, k], k] = src[i, j, k] for dim 1; src may be a number or a boolean, the last write wins. PyTorch: `torch.scatter`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const scatter: WithInPlace<(x: Tensor, dim: number, index: Tensor, src: Tensor | number | boolean) => Tensor> = primitive(
  'scatter',
  {
    args: ['tensor', 'number', 'tensor', 'filling'],
    inPlace: true,
    raw: rawGather.scatter,
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

/** int32 [count, ndim]: the places where elements are not 0, in row-major order. No gradient. PyTorch: `torch.nonzero`. */
export const nonzero: (x: Tensor) => Tensor = primitive('nonzero', {
  args: ['tensor'],
  raw: rawGather.nonzero,
  grad: null,
})

/**
 * What Python writes as x[spec, spec, …]: numbers, ranges ('1:3', '::2'), '...', null for a new dimension, tensors of indices or of bool. A view unless a
 * tensor is among them. PyTorch: `x[…]`. @throws INDEX_OUT_OF_RANGE, INVALID_ARGUMENT
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
 * A copy with x[specs] = values, or += with `accumulate` (default false); values broadcast. Of equal indices the last wins, and
 * has the gradient. PyTorch: `torch.index_put`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const indexPut: (x: Tensor, specs: readonly IndexSpec<Tensor>[], values: Tensor | number | boolean, accumulate?: boolean) => Tensor =
  composite('indexPut', {
    args: ['tensor', 'list', 'filling', 'boolean?'],
    looseNumbers: true,
    of:
      (ops) =>
      (x, specs, values, accumulate = false) => {
        // Where the elements lie that the specs name: whatever they are, ranges as well, it is then a write at flat indices.
        const places = indexBy(
          ops,
          Tensor.over(
            'int32',
            x.shape,
            Int32Array.from({ length: x.numel }, (_, i) => i),
            x.storage.memory,
          ),
          specs,
        )
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
 * A copy whose slices along `dim` at `index` (int32 or whole numbers, [n]) are a number, a boolean or a 0-d tensor. PyTorch: `torch.index_fill`. @throws INDEX_OUT_OF_RANGE,
 * DIM_OUT_OF_RANGE
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
        const named = ops.scatter(
          Tensor.empty('bool', [x.shape[d]!], x.storage.memory),
          0,
          ops.reshape(at, [at.numel]),
          scalarTensor(1, 'bool', x.storage.memory).expand([at.numel]),
        )
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
 * A copy with a number, a boolean or a 0-d tensor where mask (bool) is true; both broadcast, the dtype stays. PyTorch: `torch.masked_fill`. @throws
 * DTYPE_MISMATCH, SHAPE_MISMATCH
 */
export const maskedFill: WithInPlace<(x: Tensor, mask: Tensor, value: Tensor | number | boolean) => Tensor> = composite('maskedFill', {
  args: ['tensor', 'tensor', 'filling'],
  inPlace: true,
  of: (ops) => (x, mask, value) => {
    checkMask('maskedFill', mask)
    return ops.where(mask, fillValue('maskedFill', ops, x, value), x)
  },
})

/** The elements where mask (bool) is true, as [count]; both broadcast. PyTorch: `torch.masked_select`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH */
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
 * Elements as if flattened, at indices (int32, or whole numbers) of any shape; negative ones count from the end. PyTorch: `torch.take`. @throws INDEX_OUT_OF_RANGE,
 * DTYPE_MISMATCH
 */
export const take: (x: Tensor, index: Tensor) => Tensor = composite('take', {
  args: ['tensor', 'tensor'],
  of: (ops) => (x, index) => {
    const at = checkedIndices('take', index, x.numel, true)
    return ops.reshape(ops.indexSelect(ops.reshape(x, [x.numel]), 0, ops.reshape(at, [at.numel])), index.shape)
  },
})

/**
 * As gather, with tensor and indices broadcast against each other except in `dim`; without `dim` flattened. PyTorch: `torch.take_along_dim`.
 * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
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
      throw invalidArgument(op, 'an integer beside an int32 tensor', value, "Convert with to('float32') first.")
    }
    return scalarOf(op, value, x)
  }
  if (value.ndim === 0) {
    // What the device has yet to compute is not waited for; it wraps around.
    if (x.dtype === 'int32' && isFloating(value.dtype) && isReadable(value)) checkHolds(op, x.dtype, value.itemSync())
    return ops.to(value, x.dtype)
  }
  throw shapeMismatch(op, 'a number, a boolean or a 0-d tensor as the value', shapeText(value.shape), 'Use where() for several values.')
}

/** g read where src was written; 0 where src is larger than the index. */
function read(g: Tensor, s: ManySaved<[dim: number]>, ops: Ops, won: Tensor | null = null): Tensor {
  const index = s.tensor(1)
  const all = ops.gather(g, s.attrs[0], index)
  const part = won === null ? all : ops.where(won, all, Tensor.empty(g.dtype, [], g.storage.memory))
  const shape = s.shape(2)
  return sameShape(shape, index.shape)
    ? part
    : ops.constantPad(
        part,
        [...shape.entries()].reverse().flatMap(([d, n]) => [0, n - index.shape[d]!]),
      )
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
  const line = ops.reshape(
    arange(0, count, 1, { dtype, device: index.device }),
    index.shape.map((_, d) => (d === dim ? count : 1)),
  )
  const numbers = ops.expand(line, index.shape)
  const last = ops.gather(ops.scatter(Tensor.empty(dtype, s.shape(0), index.storage.memory), dim, index, numbers), dim, index)
  return ops.eq(last, numbers)
}

/** Up to here float32 holds every whole number; gpujs compares nothing else, and no more elements. */
const FLOAT32_WHOLE = 2 ** 24
