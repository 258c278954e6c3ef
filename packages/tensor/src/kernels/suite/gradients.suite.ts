/** Derivatives of activations and of softmax. */
import type { GradKernel, GradRowsKernel } from '../table/table.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'
import { PARAMETERS } from './elementwise.suite.js'
import { elementsOf, MARGIN } from './layouts.suite.js'
import { fibres } from './reduce.suite.js'

export function gradient(cell: Cell): void {
  type K = GradKernel<Any>
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    for (const [p0 = 0, p1 = 0] of PARAMETERS[cell.op] ?? [[0, 0]]) {
      for (const step of [1, 0]) {
        const g = cell.values(n + 2, cell.dtype, false)
        const x = cell.values(n + 3)
        const out = cell.rubbish(cell.dtype, n + 2 * MARGIN)
        const what = `[${shape}] step ${step} p ${p0}, ${p1}`
        cell.compare<K>(what, out, 1, maxAbs(g), (k, o) => k.flat(n, g, 1, step, x, 2, o, MARGIN, p0, p1))
      }
    }
  }
}

export function gradientRows(cell: Cell): void {
  type K = GradRowsKernel<Any>
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    const plain = cell.values(n + 4, cell.dtype, false)
    const y = cell.values(n + 4, cell.dtype, false)
    // Results of a softmax lie between 0 and 1, their logarithms below 0.
    for (let i = 0; i < y.length; i++) y[i] = cell.op === 'softmaxBackward' ? Math.abs(y[i]!) / 100 : -Math.abs(y[i]!)
    const scale = maxAbs(plain) * Math.sqrt(k)
    for (const g of cell.variants(plain, true)) {
      cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), k, scale, (kernel, o) =>
        kernel.run(outer, k, inner, g, 2, y, 1, o, 3),
      )
    }
  }
}
