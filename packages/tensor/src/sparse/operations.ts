/** Operations on sparse rows (`sparse-tensor.ts`) that do not make them dense: add them up, add them to a dense tensor. */

import { clone, contiguous } from '../raw/copy.js'
import { wrote } from '../raw/inplace.js'
import { rawOperations as ops } from '../raw/operations.js'
import { elementsOf } from '../tensor/bytes.js'
import { argumentText, checkTensor } from '../tensor/check-argument.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument } from '../values/errors.js'
import { isSparse, SparseTensor } from './sparse-tensor.js'

/** x += alpha · rows, in place, in the order of the indices. */
export function addSparse_(x: Tensor, rows: SparseTensor, alpha = 1): Tensor {
  if (!x.isContiguous) return ops.add_(x, toDense(rows), alpha)
  x.storage.prepareWrite()
  addRows(x, rows.indices(), alpha === 1 ? rows.values() : ops.mul(rows.values(), alpha))
  wrote('add_', x)
  return x
}

function addRows(x: Tensor, indices: Tensor, values: Tensor): void {
  const n = indices.numel
  const inner = n === 0 ? 0 : values.numel / n
  if (inner === 0) return
  kernelsFor(x).indexAdd[x.dtype](contiguous(values), indices, x, 1, x.shape[0]!, n, inner)
}

/** The sum of two gradients of which at least one is sparse: sparse if both are, else a new dense tensor. */
export function sumOfSparse(a: Tensor, b: Tensor): Tensor {
  if (isSparse(a) && isSparse(b)) return new SparseTensor(ops.cat([a.indices(), b.indices()]), ops.cat([a.values(), b.values()]), a.shape)
  return isSparse(a) ? addSparse_(clone(b), a) : addSparse_(clone(a), b as SparseTensor)
}

/**
 * x with all elements; rows that are not stored are 0. A dense x is returned itself. PyTorch: `Tensor.to_dense`.
 * @example toDense(new SparseTensor(tensor([2, 0, 2]), tensor([1, 2, 3]), [4])) // [2, 0, 4, 0]
 */
export function toDense(x: Tensor): Tensor {
  checkTensor('toDense', 'what to make dense', x)
  return isSparse(x) ? addSparse_(Tensor.empty(x.dtype, x.shape, x.storage.memory), x) : x
}

/**
 * The same sparse tensor with ascending indices, each once. Several values of one row are added up in their order. PyTorch: `Tensor.coalesce`.
 * @example coalesce(new SparseTensor(tensor([2, 0, 2]), tensor([1, 2, 3]), [4])).values() // [2, 4]: rows 0 and 2
 */
export function coalesce(x: SparseTensor): SparseTensor {
  checkTensor('coalesce', 'what to coalesce', x)
  if (!isSparse(x)) throw invalidArgument('coalesce', 'a sparse tensor', argumentText(x), 'A dense one needs no coalescing.')
  if (x.isCoalesced) return x
  const indices = x.indices()
  const old = elementsOf(indices, 'coalesce') as Int32Array
  const rows = uniqueOf(old)
  // `from` with a function takes an iterator's time for each.
  const places = old.map((row) => placeOf(row, rows))
  const values = Tensor.empty(x.dtype, [rows.length, ...x.shape.slice(1)], x.storage.memory)
  addRows(values, Tensor.over('int32', [old.length], places, x.storage.memory), x.values())
  return new SparseTensor(Tensor.over('int32', [rows.length], rows, x.storage.memory), values, x.shape, true)
}

// Sorted lists and halving: a step of an optimizer comes here with a batch's rows, and a Set and a Map of them take more than three times as long.

export function uniqueOf(values: Int32Array): Int32Array {
  const sorted = values.slice().sort()
  let count = 0
  for (let i = 0; i < sorted.length; i++) {
    const value = sorted[i]!
    if (count === 0 || sorted[count - 1] !== value) sorted[count++] = value
  }
  return sorted.slice(0, count)
}

/** @param sorted has it */
export function placeOf(value: number, sorted: Int32Array): number {
  let [low, high] = [0, sorted.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
