/** The derivatives of the operations of neural networks: a table total by type over `NeuralOps`. Formulas as in `../derivatives.ts`. */
import type { Tensor } from '@postgrad/tensor'
import type { NeuralOps } from '@postgrad/tensor/internal'
import type { ManyTable } from '../record-many.js'
import { sumToShape } from '../sum-to-shape.js'

export type NeuralTable = ManyTable<NeuralOps<Tensor>>

/** y = x ∗ w is bilinear, and so are its adjoints: the derivatives of each of the three are the other two. */
const convolutions: Pick<NeuralTable, 'convolution' | 'convolutionInput' | 'convolutionWeight'> = {
  convolution: {
    reads: [[1], [0], []],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.convolutionInput(g!, s.tensor(1), s.attrs[0]) : null,
      s.needs(1) ? ops.convolutionWeight(s.tensor(0), g!, s.attrs[0]) : null,
      s.needs(2) ? ops.sum(g!, [0, 2, 3]) : null,
    ],
  },
  convolutionInput: {
    reads: [[1], [0]],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.convolution(g!, s.tensor(1), null, s.attrs[0]) : null,
      s.needs(1) ? ops.convolutionWeight(g!, s.tensor(0), s.attrs[0]) : null,
    ],
  },
  convolutionWeight: {
    reads: [[1], [0]],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.convolutionInput(s.tensor(1), g!, s.attrs[0]) : null,
      s.needs(1) ? ops.convolution(s.tensor(0), g!, null, s.attrs[0]) : null,
    ],
  },
}

export const neural: NeuralTable = {
  ...convolutions,
  // g · weight, gᵀ · x over all rows, g summed over all rows
  linear: {
    reads: [[1], [0], []],
    grads: ([g], s, ops) => {
      const [outputs, inputs] = s.shape(1) as readonly [number, number]
      const rows = s
        .shape(0)
        .slice(0, -1)
        .reduce((n, extent) => n * extent, 1)
      const matrix = s.needs(1) ? ops.reshape(g!, [rows, outputs]) : null
      return [
        s.needs(0) ? ops.matmul(g!, s.tensor(1)) : null,
        matrix === null ? null : ops.matmul(ops.transpose(matrix, 0, 1), ops.reshape(s.tensor(0), [rows, inputs])),
        s.needs(2) ? sumToShape(g!, s.shape(2)) : null,
      ]
    },
  },
}
