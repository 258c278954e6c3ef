/** Products of matrices of the js backend, and the losses that read or write one class for each row. */
import type { TypedArray } from '../../values/dtype.js'
import type { Scalar2 } from '../elementwise/definition.js'
import type { MatmulKernel, NllBackwardKernel, NllKernel } from '../table/table.js'
import { REAL_LOSS, REAL_OR_INT, real } from './cells.js'
import { plus, plusInt, times } from './reduce.js'

type T = TypedArray

/** Float products are added in double precision, and rounded once. */
const matmul = (multiply: Scalar2, join: Scalar2): MatmulKernel<T> => ({
  run(batch, m, n, k, a, ao, aBatch, aRow, aCol, b, bo, bBatch, bRow, bCol, out, oo) {
    for (let t = 0; t < batch; t++) {
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let total = 0
          for (let p = 0; p < k; p++) {
            total = join(total, multiply(a[ao + t * aBatch + i * aRow + p * aCol]!, b[bo + t * bBatch + p * bRow + j * bCol]!))
          }
          out[oo + (t * m + i) * n + j] = total
        }
      }
    }
  },
})

const nll: NllKernel<T> = {
  run(n, classes, x, xo, target, to, out, oo) {
    for (let i = 0; i < n; i++) out[oo + i] = -x[xo + i * classes + target[to + i]!]!
  },
}

const nllBackward: NllBackwardKernel<T> = {
  run(n, classes, grad, go, gradStep, target, to, out, oo) {
    out.fill(0, oo, oo + n * classes)
    for (let i = 0; i < n; i++) out[oo + i * classes + target[to + i]!] = -grad[go + i * gradStep]!
  },
}

export const cells = {
  matmul: real(matmul(times, plus), matmul(Math.imul, plusInt), REAL_OR_INT),
  nll: real(nll, REAL_LOSS, REAL_LOSS),
  nllBackward: real(nllBackward, REAL_LOSS, REAL_LOSS),
}
