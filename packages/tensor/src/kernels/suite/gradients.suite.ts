/** Derivatives of activations and of softmax. */
import type { Grad, GradRows } from '../table/operands.js'
import { type Cell, maxAbs } from './cell.suite.js'
import { drawnParameters, PARAMETERS } from './elementwise.suite.js'
import { elementsOf, MARGIN, operandOf } from './layouts.suite.js'
import { fibres } from './reduce.suite.js'

export function gradient(cell: Cell): void {
  type K = Grad
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    const own = PARAMETERS[cell.op] ?? [[0, 0]]
    for (const [p0 = 0, p1 = 0] of cell.sizes(own, () => drawnParameters(cell, own))) {
      for (const step of [1, 0]) {
        const g = cell.values(n + 2, cell.dtype, false)
        const x = cell.values(n + 3)
        const out = cell.rubbish(cell.dtype, n + 2 * MARGIN)
        const what = `[${shape}] step ${step} p ${p0}, ${p1}`
        const repeated = shape.map(() => 0)
        cell.compare<K>(what, out, 1, maxAbs(g), (k, o) => {
          const grad = operandOf(g, 1, shape, step === 0 ? repeated : undefined)
          k(grad, operandOf(x, 2, shape), operandOf(o, MARGIN, shape), p0, p1)
        })
      }
    }
  }
}

export function gradientRows(cell: Cell): void {
  type K = GradRows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    const shape = [outer, k, inner]
    const plain = cell.values(n + 4, cell.dtype, false)
    const y = cell.values(n + 4, cell.dtype, false)
    // Results of a softmax lie between 0 and 1, their logarithms below 0.
    for (let i = 0; i < y.length; i++) y[i] = cell.op === 'softmaxBackward' ? Math.abs(y[i]!) / 100 : -Math.abs(y[i]!)
    const scale = maxAbs(plain) * Math.sqrt(k)
    for (const g of cell.variants(plain, true)) {
      cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), k, scale, (kernel, o) =>
        kernel(operandOf(g, 2, shape), operandOf(y, 1, shape), operandOf(o, 3, shape), outer, k, inner),
      )
    }
  }
}
