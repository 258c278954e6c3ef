/** The derivatives of reading and writing at indices: a table total by type over `IndexedForms`. Formulas as in `../derivatives/derivatives.ts`. */
import { Tensor } from '@postgrad/tensor'
import { sameShape } from '@postgrad/tensor/internal'
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
function read(g: Tensor, s: ManySaved<[dim: number]>, ops: TensorOps): Tensor {
  const index = s.tensor(1)
  const part = ops.gather(g, s.attrs[0], index)
  const shape = s.shape(2)
  return sameShape(shape, index.shape)
    ? part
    : ops.constantPad(
        part,
        [...shape.entries()].reverse().flatMap(([d, n]) => [0, n - index.shape[d]!]),
      )
}

export const indexed: ManyTable<IndexedForms> = {
  // g added up where it was read
  indexSelect: {
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.indexAdd(Tensor.empty(g!.dtype, s.shape(0)), s.attrs[0], s.tensor(1), g!), null],
  },
  gather: {
    reads: [[1], null],
    grads: ([g], s, ops) => [ops.scatterAdd(Tensor.empty(g!.dtype, s.shape(0)), s.attrs[0], s.tensor(1), g!), null],
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
  // g, but 0 where src was written; g read there
  scatter: {
    reads: [[1], null, [1]],
    grads: ([g], s, ops) => [s.needs(0) ? ops.scatter(g!, s.attrs[0], s.tensor(1), 0) : null, null, s.needs(2) ? read(g!, s, ops) : null],
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
