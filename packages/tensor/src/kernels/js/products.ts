/** Products of matrices of the js backend. */
import type { Scalar2 } from '../elementwise/definition.js'
import { matmulOf } from '../table/matmul.js'
import { REAL_OR_INT, real } from './cells.js'
import { plus, plusInt, times } from './reduce.js'

/** Float products are added in double precision, and rounded once. */
const matmul = (multiply: Scalar2, join: Scalar2) =>
  matmulOf((m, n, k, a, b, out, at) => {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let total = 0
        for (let p = 0; p < k; p++)
          total = join(total, multiply(a.host[a.at + i * a.row + p * a.col]!, b.host[b.at + p * b.row + j * b.col]!))
        out[at + i * n + j] = total
      }
    }
  })

export const cells = {
  matmul: real(matmul(times, plus), matmul(Math.imul, plusInt), REAL_OR_INT),
}
