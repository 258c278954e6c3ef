/** Products of matrices: batches, transposes and gaps as strides, sizes beyond the blocks of a tiled product. */

import type { Matmul } from '../table/operands.js'
import { type Cell, maxAbs } from './cell.suite.js'
import { operandOf, spanOf } from './layouts.suite.js'

export function matmul(cell: Cell): void {
  type K = Matmul
  const sizes: (readonly [number, number, number, number])[] = [
    [1, 1, 1, 1],
    [1, 3, 3, 3],
    [2, 4, 8, 5],
    [3, 5, 9, 7],
    [1, 1, 17, 40],
    [1, 19, 1, 33],
    [1, 0, 4, 3],
    [1, 4, 3, 0],
    [0, 4, 3, 2],
    [1, 37, 41, 64],
    [2, 16, 24, 33],
    // Many that are small.
    [40, 1, 1, 1],
    [7, 1, 1, 5],
    [5, 3, 2, 4],
    // A column times a row.
    [1, 19, 33, 1],
    [3, 37, 9, 1],
    [1, 130, 2, 1],
    [1, 2, 131, 1],
  ]
  // Beyond the blocks of a tiled product in every direction: rows, columns, depth.
  if (!cell.isSlow) sizes.push([1, 9, 523, 150], [1, 67, 21, 270], [1, 10, 260, 300])
  const draw = (): (typeof sizes)[number] => {
    const all = cell.extents(3, cell.one([2000, 20_000, 100_000]), 0)
    const [m, n, k] = all.map((extent) => Math.min(extent, 600)) as [number, number, number]
    return [m * n * k > 2e4 ? 1 : cell.extent(3, 0), m, n, k]
  }
  for (const [batch, m, n, k] of cell.sizes(sizes, draw)) {
    const kinds = [
      { name: 'dense', a: [m * k, k, 1], b: [k * n, n, 1] },
      { name: 'transposed', a: [m * k, 1, m], b: [k * n, 1, k] },
      { name: 'a transposed, b repeated', a: [m * k, 1, m], b: [0, n, 1] },
      { name: 'narrowed', a: [m * (k + 3), k + 3, 1], b: [k * (n + 5), n + 5, 1] },
      { name: 'gaps', a: [2 * m * k, 2 * k, 2], b: [3 * k * n, 3, 3 * k] },
      { name: 'expanded', a: [0, 0, 1], b: [0, 1, 0] },
      { name: 'narrowed and transposed', a: [k * (m + 2), 1, m + 2], b: [n * (k + 1), 1, k + 1] },
    ] as const
    for (const { name, a: sa, b: sb } of m * n * k > 1e5 ? kinds.slice(0, 2) : kinds) {
      const a = cell.values(3 + spanOf([batch, m, k], sa), cell.dtype, false)
      const b = cell.values(3 + spanOf([batch, k, n], sb), cell.dtype, false)
      const scale = cell.dtype === 'int32' ? 0 : maxAbs(a) * maxAbs(b)
      cell.compare<K>(
        `[${batch}, ${m}, ${k}] · [${batch}, ${k}, ${n}] ${name}`,
        cell.rubbish(cell.dtype, batch * m * n + 6),
        k,
        scale,
        (kernel, o) =>
          kernel(operandOf(a, 2, [batch, m, k], [...sa]), operandOf(b, 1, [batch, k, n], [...sb]), operandOf(o, 3, [batch, m, n])),
      )
    }
    if (batch !== 1) continue
    // As a layer calls it: b is a matrix [n, k].
    const [a, b] = [cell.values(3 + m * k, cell.dtype, false), cell.values(3 + n * k, cell.dtype, false)]
    const scale = cell.dtype === 'int32' ? 0 : maxAbs(a) * maxAbs(b)
    cell.compare<K>(`[${m}, ${k}] · the transpose of [${n}, ${k}]`, cell.rubbish(cell.dtype, m * n + 6), k, scale, (kernel, o) =>
      kernel(operandOf(a, 2, [m, k]), operandOf(b, 1, [n, k]), operandOf(o, 3, [m, n]), true),
    )
  }
  if (cell.dtype === 'int32') return
  for (const special of [Number.NaN, Infinity, -Infinity]) {
    for (const size of cell.sizes([3, 20], () => cell.extent(40, 2))) {
      const square = [size, size]
      const a = cell.values(size * size, cell.dtype, false)
      const b = cell.values(size * size, cell.dtype, false)
      a[1] = special
      b[size] = 0
      b[size + 1] = 1
      cell.compare<K>(`${size} with ${special}`, cell.rubbish(cell.dtype, size * size), size, 100, (kernel, o) =>
        kernel(operandOf(a, 0, square), operandOf(b, 0, square), operandOf(o, 0, square)),
      )
      a[0] = -0
      cell.compare<K>(`a column of ${size} with ${special} and -0`, cell.rubbish(cell.dtype, size * size), 1, 100, (kernel, o) =>
        kernel(operandOf(a, 0, [size, 1]), operandOf(b, 0, [1, size]), operandOf(o, 0, square)),
      )
    }
  }
}
