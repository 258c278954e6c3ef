/** Composites that read and write at indices and masks. Beside: `indexed.ts`, which reads what stands between Python's brackets. */

import type { Ops } from '../ops/ops.js'
import type { LookupOps } from '../ops/ops-indexing.js'
import { scalarOf, scalarTensor } from '../raw/elementwise.js'
import { checkedIndices } from '../raw/indices.js'
import { checkWritable } from '../raw/inplace.js'
import { isReadable } from '../tensor/bytes.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { checkHolds, dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { broadcastShapes, normalizeDim, numelOf } from '../values/shape.js'
import { indexBy } from './indexed.js'

export function lookupComposites(ops: Ops<Tensor>): LookupOps<Tensor> {
  return {
    index: (x, specs) => indexBy(ops, x, specs),

    indexPut(x, specs, values, accumulate = false) {
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

    indexPut_(x, specs, values, accumulate = false) {
      const view = indexBy(ops, x, specs)
      // A tensor among the specs made a copy of the elements.
      if (view.storage !== x.storage || accumulate) {
        checkWritable('indexPut_', x)
        return ops.copy_(x, ops.indexPut(x, specs, values, accumulate))
      }
      if (typeof values === 'object') {
        checkWritable('indexPut_', view)
        ops.copy_(view, values)
      } else {
        checkHolds('indexPut_', x.dtype, Number(values))
        ops.fill_(view, values)
      }
      return x
    },

    take(x, index) {
      const at = checkedIndices('take', index, x.numel, true)
      return ops.reshape(ops.indexSelect(ops.reshape(x, [x.numel]), 0, ops.reshape(at, [at.numel])), index.shape)
    },

    takeAlongDim(x, index, dim) {
      if (dim === undefined) return ops.gather(ops.reshape(x, [x.numel]), 0, ops.reshape(index, [index.numel]))
      if (x.ndim !== index.ndim) {
        throw shapeMismatch(
          'takeAlongDim',
          `indices with the ${x.ndim} dimensions of the tensor`,
          shapeText(index.shape),
          'Use unsqueeze().',
        )
      }
      const d = normalizeDim('takeAlongDim', dim, x.ndim)
      const one = (shape: readonly number[]) => (shape.length === 0 ? shape : shape.with(d, 1))
      const shape = broadcastShapes('takeAlongDim', one(x.shape), one(index.shape))
      const along = (t: Tensor) => (t.ndim === 0 ? t : ops.expand(t, shape.with(d, t.shape[d]!)))
      return ops.gather(along(x), d, along(index))
    },

    indexFill(x, dim, index, value) {
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

    maskedFill(x, mask, value) {
      checkMask('maskedFill', mask)
      return ops.where(mask, fillValue('maskedFill', ops, x, value), x)
    },

    maskedSelect(x, mask) {
      checkMask('maskedSelect', mask)
      const shape = broadcastShapes('maskedSelect', x.shape, mask.shape)
      const chosen = ops.nonzero(ops.reshape(ops.expand(mask, shape), [numelOf(shape)]))
      return ops.indexSelect(ops.reshape(ops.expand(x, shape), [numelOf(shape)]), 0, ops.reshape(chosen, [chosen.numel]))
    },

    tril: (x, diagonal = 0) =>
      triangle(
        'tril',
        ops,
        x,
        () => 0,
        (row) => row + whole('tril', diagonal) + 1,
      ),

    triu: (x, diagonal = 0) =>
      triangle(
        'triu',
        ops,
        x,
        (row) => row + whole('triu', diagonal),
        () => Number.POSITIVE_INFINITY,
      ),
  }
}

function whole(op: string, diagonal: number): number {
  if (Number.isSafeInteger(diagonal)) return diagonal
  throw invalidArgument(op, 'an integer diagonal', diagonal, '0 is the main one, 1 the one above.')
}

function checkMask(op: string, mask: Tensor): void {
  if (mask.dtype !== 'bool') throw dtypeMismatch(op, 'a bool tensor as the mask', mask.dtype, 'Compare first, as in ne(mask, 0).')
}

/** A number, a boolean or a 0-d tensor as a 0-d tensor of x's dtype. @throws INVALID_ARGUMENT for a number that it cannot hold */
function fillValue(op: string, ops: Ops<Tensor>, x: Tensor, value: Tensor | number | boolean): Tensor {
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

/** Keeps columns `from` … `to` (excluded) of each row, zeros elsewhere. */
function triangle(op: string, ops: Ops<Tensor>, x: Tensor, from: (row: number) => number, to: (row: number) => number): Tensor {
  if (x.ndim < 2) throw shapeMismatch(op, 'at least two dimensions', shapeText(x.shape), 'Use reshape() to make a matrix.')
  const [rows, columns] = x.shape.slice(-2) as [number, number]
  const mask = new Uint8Array(rows * columns)
  for (let row = 0; row < rows; row++) {
    const [first, end] = [Math.max(from(row), 0), Math.min(to(row), columns)]
    if (first < end) mask.fill(1, row * columns + first, row * columns + end)
  }
  return ops.where(Tensor.over('bool', [rows, columns], mask, x.storage.memory), x, Tensor.empty(x.dtype, [], x.storage.memory))
}
