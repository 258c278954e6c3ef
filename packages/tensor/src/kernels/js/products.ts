/** Products of matrices of the js backend. */
import type { TypedArray } from '../../values/dtype.js'
import type { Scalar2 } from '../elementwise/definition.js'
import type { MatmulKernel } from '../table/table.js'
import { REAL_OR_INT, real } from './cells.js'
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

export const cells = {
  matmul: real(matmul(times, plus), matmul(Math.imul, plusInt), REAL_OR_INT),
}
