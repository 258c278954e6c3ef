/**
 * A sum whose bits do not depend on the order of its terms: each element's terms are added in the order of their own bits. For gradients whose order only messages decide
 * (autograd's Note [Causal order]). No element is read here, so dense gradients have the same order on every device. The indices of sparse rows are read: on a device with a memory of its own their sum is refused (READ_NOT_SYNCHRONOUS).
 *
 *     x   1    5   -0        sorted     1    2   -0        x + y + z, element by element:
 *     y   4    2    0      ────────→    3    5    0        ((1 + 3) + 4, (2 + 5) + 9, (-0 + 0) + 7)
 *     z   3    9    7                   4    9    7
 *
 * Minimum and maximum of two tensors put them in order, -0 before 0; a network of such pairs sorts all (Batcher's odd-even merge sort: Knuth, "The Art of Computer Programming", volume 3,
 * 5.2.2, algorithm M). Where one term is NaN, the sum is NaN in any order.
 */

import { contiguous } from '../raw/copy.js'
import { binaryInto, copyInto } from '../raw/into.js'
import { rawOperations as ops } from '../raw/operations.js'
import { elementsOf } from '../tensor/bytes.js'
import { giveBack } from '../tensor/give-back.js'
import { Tensor } from '../tensor/tensor.js'
import { addSparse_, coalesce, placeOf, sumOfSparse, toDense, uniqueOf } from './operations.js'
import { isSparse, SparseTensor } from './sparse-tensor.js'

/** Elements at a time: the terms of so many stay in the cache. */
const CHUNK = 4096

/**
 * The sum of tensors of one shape and dtype: of the first `leading` (0 or 1) as they are, then of the others in the order of the bits of each element. Sparse rows stay sparse if all are:
 * those of one row are added up within each tensor first, and then in that order. A sum of one tensor is that tensor.
 */
export function orderedSum(tensors: readonly Tensor[], leading = 0): Tensor {
  const others = leading === 0 ? tensors : tensors.slice(1)
  if (others.length > 1 && others.every(isSparse)) {
    const rows = sumOfRows(others)
    return leading === 0 ? rows : sumOfSparse(tensors[0]!, rows)
  }
  const [a, b] = tensors as readonly [Tensor, Tensor | undefined]
  if (b === undefined) return a
  if (tensors.length === 2) return a.isSparse || b.isSparse ? sumOfSparse(a, b) : ops.add(a, b)
  const out = Tensor.uninitialized(a.dtype, a.shape, a.storage.memory)
  addSorted(leading === 0 ? null : dense(a), others.map(dense), out)
  return out
}

const dense = (x: Tensor): Tensor => contiguous(toDense(x))

/** out = first + the others; all dense. */
function addSorted(first: Tensor | null, others: readonly Tensor[], out: Tensor): void {
  const size = Math.min(CHUNK, out.numel)
  const scratch = Tensor.uninitialized(out.dtype, [(others.length + 1) * size], out.storage.memory)
  const pairs = network(others.length)
  for (let start = 0; start < out.numel; start += size) {
    const length = Math.min(size, out.numel - start)
    const terms = others.map((x, i) => {
      const term = stretch(scratch, i * size, length)
      copyInto(stretch(x, start, length), term)
      return term
    })
    let spare = stretch(scratch, others.length * size, length)
    for (const [i, j] of pairs) {
      const [a, b] = [terms[i]!, terms[j]!]
      binaryInto('minimum', a, b, spare)
      binaryInto('maximum', a, b, b)
      terms[i] = spare
      spare = a
    }
    if (first !== null) terms.unshift(stretch(first, start, length))
    const into = stretch(out, start, length)
    terms.reduce((sum, term) => {
      binaryInto('add', sum, term, into)
      return into
    })
  }
  giveBack(scratch.storage)
}

const stretch = (x: Tensor, start: number, length: number): Tensor => Tensor.view(x, [length], [1], x.offset + start)

/** Which two of n terms are put in order, one pair after the other. */
function network(n: number): [number, number][] {
  const pairs: [number, number][] = []
  const top = 2 ** Math.ceil(Math.log2(n)) / 2
  for (let p = top; p >= 1; p /= 2) {
    for (let q = top, r = 0, d = p; ; d = q - p, q /= 2, r = p) {
      for (let i = 0; i + d < n; i++) if ((i & p) === r) pairs.push([i, i + d])
      if (q === p) break
    }
  }
  return pairs
}

/** Of each row that several have, a first, a second, … value: each of these is a tensor of all rows, with zeros where a row has no more. */
function sumOfRows(tensors: readonly SparseTensor[]): SparseTensor {
  const parts = tensors.map(coalesce)
  const [{ dtype, shape }] = parts as [SparseTensor]
  const indices = Int32Array.from(parts.flatMap((part) => [...elementsOf(part.indices(), 'orderedSum')]))
  const values = ops.cat(parts.map((part) => part.values()))
  const rows = uniqueOf(indices)
  const seen = new Int32Array(rows.length)
  const layers: { readonly from: number[]; readonly to: number[] }[] = []
  for (const [i, index] of indices.entries()) {
    const to = placeOf(index, rows)
    const number = seen[to]!++
    if (number === layers.length) layers.push({ from: [], to: [] })
    layers[number]!.from.push(i)
    layers[number]!.to.push(to)
  }
  const { memory } = values.storage
  const list = (places: readonly number[]): Tensor => Tensor.over('int32', [places.length], Int32Array.from(places), memory)
  const rowShape = [rows.length, ...shape.slice(1)]
  const terms = layers.map(({ from, to }) => {
    const some = new SparseTensor(list(to), ops.indexSelect(values, 0, list(from)), rowShape)
    return addSparse_(Tensor.empty(dtype, rowShape, memory), some)
  })
  return new SparseTensor(Tensor.over('int32', [rows.length], rows, memory), terms.length === 0 ? values : orderedSum(terms), shape, true)
}
