/** Copies, conversions and fills, from and to all layouts; triangles; random numbers. */

import { DTYPES } from '../../values/dtype.js'
import type { Copy, Draw, Fill, Triangle } from '../table/operands.js'
import type { Block, Cell } from './cell.suite.js'
import { elementsOf, laid, operandOf } from './layouts.suite.js'

export function copy(cell: Cell): void {
  type K = Copy
  for (const from of DTYPES) {
    for (const shape of cell.shapes) {
      const n = elementsOf(shape)
      const x = cell.values(n + 4, from)
      cell.compare<K>(`flat [${shape}] from ${from}`, cell.rubbish(cell.dtype, n + 6), 1, 0, (k, o) =>
        k(operandOf(x, 1, shape), operandOf(o, 2, shape)),
      )
      for (const layout of cell.broadcasting(shape)) {
        for (const target of cell.layouts(shape, false)) {
          const view = cell.values(layout.length, from)
          cell.compare<K>(
            `[${shape}] from ${from} ${layout.name} to ${target.name}`,
            cell.rubbish(cell.dtype, target.length),
            1,
            0,
            (k, o) => k(laid(view, shape, layout), laid(o, shape, target)),
          )
        }
      }
    }
  }
}

export function fill(cell: Cell): void {
  type K = Fill
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    for (const value of [0, 1, -3, 2.5, Number.NaN]) {
      if (cell.dtype === 'int32' && !Number.isInteger(value)) continue
      cell.compare<K>(`flat [${shape}] ${value}`, cell.rubbish(cell.dtype, n + 6), 1, 0, (k, o) => k(value, operandOf(o, 2, shape)))
      for (const target of cell.layouts(shape, false)) {
        cell.compare<K>(`[${shape}] ${value} ${target.name}`, cell.rubbish(cell.dtype, target.length), 1, 0, (k, o) =>
          k(value, laid(o, shape, target)),
        )
      }
    }
  }
}

/** Twice with the same words, so that the second sequence shows which state the first has left. */
export function draw(cell: Cell): void {
  for (const n of cell.sizes([0, 2, 78, 80, 82, 130, 5000], () => 2 * cell.extent(1500, 0))) {
    const state = Array.from({ length: 4 }, () => Math.floor(cell.random() * 2 ** 32) | 0)
    // Cosines of almost a quarter of the circle are small by the differences of larger numbers.
    cell.compare<Draw>(`${n}`, cell.rubbish(cell.dtype, 2 * n + 13), 1, 1, (k, o) => {
      const [words, out] = [Int32Array.from(state), operandOf(o, 5, [2 * n])]
      k(words, out, 0, n)
      k(words, out, n, n)
    })
  }
}

export function triangle(cell: Cell): void {
  type K = Triangle
  const own: readonly Block[] = [
    [0, 2, 2],
    [2, 0, 3],
    [2, 3, 0],
    [1, 1, 1],
    [3, 4, 5],
    [1, 20, 7],
    [2, 9, 140],
  ]
  for (const [outer, rows, columns] of cell.sizes(own, () => cell.block(3000, 0))) {
    const shape = [outer, rows, columns]
    const n = elementsOf(shape)
    for (const diagonal of cell.sizes([0, 1, -2, 200, -200], () => cell.below(2 * (rows + columns) + 1) - rows - columns)) {
      const x = cell.values(n + 4)
      cell.compare<K>(`[${shape}], diagonal ${diagonal}`, cell.rubbish(cell.dtype, n + 6), 1, 0, (k, o) =>
        k(operandOf(x, 2, shape), operandOf(o, 3, shape), outer, rows, columns, diagonal),
      )
    }
  }
}
