/** The derivatives of reading and writing at indices: a table total by type over `IndexedForms`. Formulas as in `../derivatives/derivatives.ts`. */
import { arange, Tensor } from '@postgrad/tensor'
import { normalizeDim, sameShape } from '@postgrad/tensor/internal'
import type { TensorOps } from '../graph/formula.js'
import type { ManySaved, ManyTable } from '../record/record-many.js'

type T = Tensor

/** The operations of `IndexingOps` that have a gradient, with their tensors first. */
export interface IndexedForms {
  indexSelect(x: T, index: T, dim: number): T
  gather(x: T, index: T, dim: number): T
  indexAdd(x: T, index: T, src: T, dim: number): T
  scatterAdd(x: T, index: T, src: T, dim: number): T
  scatter(x: T, index: T, src: T, dim: number): T
  constantPad(x: T, pads: readonly number[], value: number | undefined): T
}

/** g read where src was written; 0 where src is larger than the index. */
function read(g: Tensor, s: ManySaved<[dim: number]>, ops: TensorOps, won: Tensor | null = null): Tensor {
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

/** Up to here float32 holds every whole number; gpujs compares nothing else, and no more elements. */
const FLOAT32_WHOLE = 2 ** 24

/**
 * Which of the values that scatter has written were not overwritten by a later one, bool of the index's shape; null if each place was written once at most.
 * Writes to one place differ only in where they are along `dim`, so scatter itself says which was the last: it writes these numbers.
 */
function winners(s: ManySaved<[dim: number]>, ops: TensorOps): Tensor | null {
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

export const indexed: ManyTable<IndexedForms> = {
  // g added up where it was read
  indexSelect: {
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.indexAdd(Tensor.empty(g!.dtype, s.shape(0), g!.storage.memory), s.attrs[0], s.tensor(1), g!), null],
  },
  gather: {
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.scatterAdd(Tensor.empty(g!.dtype, s.shape(0), g!.storage.memory), s.attrs[0], s.tensor(1), g!), null],
  },
  // g; g read where it was added
  indexAdd: {
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? ops.indexSelect(g!, s.attrs[0], s.tensor(1)) : null],
  },
  scatterAdd: {
    reads: [[], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? g! : null, null, s.needs(2) ? read(g!, s, ops) : null],
  },
  // g, but 0 where src was written; g read there by the last one that was written to each place
  scatter: {
    reads: [[1], null, [1]],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.scatter(g!, s.attrs[0], s.tensor(1), 0) : null,
      null,
      s.needs(2) ? read(g!, s, ops, winners(s, ops)) : null,
    ],
  },
  // g without the pads
  constantPad: {
    reads: [[]],
    grads: ([g], s, ops) => [
      ops.constantPad(
        g!,
        s.attrs[0].map((n) => -n),
      ),
    ],
  },
}
