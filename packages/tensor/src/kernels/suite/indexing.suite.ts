/** Kernels that read and write at indices. */

import type { IndexKernel, IndexOp, NllBackwardKernel, NllKernel } from '../table/table.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'

export function nll(cell: Cell): void {
  type K = NllKernel<Any>
  for (const [n, classes] of [
    [0, 3],
    [1, 1],
    [5, 7],
    [60, 11],
  ] as const) {
    const x = cell.values(n * classes + 3)
    const target = cell.indices(n + 2, classes)
    cell.compare<K>(`[${n}, ${classes}]`, cell.rubbish(cell.dtype, n + 6), 1, 0, (k, o) => k.run(n, classes, x, 3, target, 2, o, 3))
  }
}

export function nllBackward(cell: Cell): void {
  type K = NllBackwardKernel<Any>
  for (const [n, classes] of [
    [0, 3],
    [1, 1],
    [5, 7],
    [60, 11],
  ] as const) {
    for (const step of [0, 1]) {
      const grad = cell.values(n + 3)
      const target = cell.indices(n + 2, classes)
      cell.compare<K>(`[${n}, ${classes}] step ${step}`, cell.rubbish(cell.dtype, n * classes + 6), 1, 0, (k, o) =>
        k.run(n, classes, grad, 1, step, target, 2, o, 3),
      )
    }
  }
}

export function indexed(cell: Cell): void {
  type K = IndexKernel<Any>
  const op = cell.op as IndexOp
  const reads = op === 'indexSelect' || op === 'gather'
  const sums = op === 'indexAdd' || op === 'scatterAdd'
  for (const [outer, rows, n, inner] of [
    [1, 2, 0, 3],
    [1, 2, 5, 0],
    [0, 2, 2, 2],
    [1, 1, 1, 1],
    [1, 4, 9, 5],
    [1, 11, 20, 70],
    [3, 5, 7, 1],
    [2, 3, 8, 4],
    [1, 40, 90, 1],
  ] as const) {
    const wide = op !== 'indexSelect' && op !== 'indexAdd'
    const x = cell.values(outer * (reads ? rows : n) * inner + 2, cell.dtype, !sums)
    const index = cell.indices((wide ? outer * n * inner : n) + 1, rows)
    const size = outer * (reads ? n : rows) * inner + 6
    const out = reads ? cell.rubbish(cell.dtype, size) : cell.values(size, cell.dtype, !sums)
    const scale = !sums || cell.dtype === 'int32' ? 0 : Math.max(maxAbs(x), maxAbs(out))
    for (const from of sums ? cell.variants(x) : [x]) {
      cell.compare<K>(`[${outer}, ${rows}, ${inner}] at ${n}`, out, sums ? n : 1, scale, (k, o) =>
        k.run(outer, rows, n, inner, from, 2, index, 1, o, 3),
      )
    }
  }
}
