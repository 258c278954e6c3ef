/** Kernels that read and write at indices. */

import type { ClassLoss, ClassLossBackward, FirstOutside, Indexed, Nll, NllBackward } from '../table/operands.js'
import type { IndexOp } from '../table/table.js'
import { type Any, type Cell, maxAbs } from './cell.suite.js'
import { elementsOf, operandOf } from './layouts.suite.js'

type RowsOfClasses = readonly (readonly [n: number, classes: number])[]
const SMALL: RowsOfClasses = [
  [0, 3],
  [1, 1],
  [5, 7],
  [60, 11],
]
const SCORES: RowsOfClasses = [...SMALL, [4, 90]]

const rowsOfClasses = (cell: Cell, own: RowsOfClasses): RowsOfClasses =>
  cell.sizes(
    own.filter(([n, classes]) => n * classes <= 360 || own === SMALL || !cell.isSlow),
    () => {
      const [n, classes] = cell.extents(2, 2500, 0) as [number, number]
      return [n, Math.max(1, classes)]
    },
  )

export function nll(cell: Cell): void {
  type K = Nll
  for (const [n, classes] of rowsOfClasses(cell, SMALL)) {
    const x = cell.values(n * classes + 3)
    const target = cell.indices(n + 2, classes)
    cell.compare<K>(`[${n}, ${classes}]`, cell.rubbish(cell.dtype, n + 6), 1, 0, (k, o) =>
      k(operandOf(x, 3, [n, classes]), operandOf(target, 2, [n]), operandOf(o, 3, [n])),
    )
  }
}

export function nllBackward(cell: Cell): void {
  type K = NllBackward
  for (const [n, classes] of rowsOfClasses(cell, SMALL)) {
    for (const step of [0, 1]) {
      const grad = cell.values(n + 3)
      const target = cell.indices(n + 2, classes)
      cell.compare<K>(`[${n}, ${classes}] step ${step}`, cell.rubbish(cell.dtype, n * classes + 6), 1, 0, (k, o) =>
        k(operandOf(grad, 1, step === 0 ? [] : [n]), operandOf(target, 2, [n]), operandOf(o, 3, [n, classes])),
      )
    }
  }
}

/** Scores of a sensible size, then rows with a NaN, with infinities and with scores that are far apart. */
function scores(cell: Cell, n: number, classes: number): Any[] {
  const x = cell.values(n * classes + 3, cell.dtype, false)
  const rows =
    n === 0 ? [] : [Number.NaN, Infinity, -Infinity, 3e38, -3e38].map((value) => x.with(3 + Math.floor((n * classes) / 2), value))
  return [x, ...rows]
}

export function classLoss(cell: Cell): void {
  for (const [n, classes] of rowsOfClasses(cell, SCORES)) {
    const target = cell.indices(n + 2, classes)
    for (const x of scores(cell, n, classes)) {
      cell.compare<ClassLoss>(`[${n}, ${classes}]`, cell.rubbish(cell.dtype, n + 6), classes, 1, (k, o) =>
        k(operandOf(x, 3, [n, classes]), operandOf(target, 2, [n]), operandOf(o, 3, [n])),
      )
    }
  }
}

export function classLossBackward(cell: Cell): void {
  for (const [n, classes] of rowsOfClasses(cell, SCORES)) {
    const target = cell.indices(n + 2, classes)
    const grad = cell.values(n + 3, cell.dtype, false)
    for (const x of scores(cell, n, classes)) {
      for (const step of [0, 1]) {
        cell.compare<ClassLossBackward>(
          `[${n}, ${classes}] step ${step}`,
          cell.rubbish(cell.dtype, n * classes + 6),
          1,
          maxAbs(grad),
          (k, o) =>
            k(
              operandOf(grad, 1, step === 0 ? [] : [n]),
              operandOf(x, 3, [n, classes]),
              operandOf(target, 2, [n]),
              operandOf(o, 3, [n, classes]),
            ),
        )
      }
    }
  }
}

export function indexed(cell: Cell): void {
  type K = Indexed
  const op = cell.op as IndexOp
  const reads = op === 'indexSelect' || op === 'gather'
  const sums = op === 'indexAdd' || op === 'scatterAdd'
  const own: readonly (readonly [number, number, number, number])[] = [
    [1, 2, 0, 3],
    [1, 2, 5, 0],
    [0, 2, 2, 2],
    [1, 1, 1, 1],
    [1, 4, 9, 5],
    [1, 11, 20, 70],
    [3, 5, 7, 1],
    [2, 3, 8, 4],
    [1, 40, 90, 1],
    [100, 7, 1, 1],
  ]
  const draw = (): (typeof own)[number] => {
    const [outer, n, inner] = cell.block(2500, 0)
    return [outer, cell.extent(100), n, inner]
  }
  for (const [outer, rows, n, inner] of cell.sizes(own, draw)) {
    const wide = op !== 'indexSelect' && op !== 'indexAdd'
    const [shape, outShape] = [
      [outer, reads ? rows : n, inner],
      [outer, reads ? n : rows, inner],
    ]
    const indexShape = wide ? [outer, n, inner] : [n]
    const x = cell.values(elementsOf(shape) + 2, cell.dtype, !sums)
    const index = cell.indices(elementsOf(indexShape) + 1, rows)
    const size = elementsOf(outShape) + 6
    const out = reads ? cell.rubbish(cell.dtype, size) : cell.values(size, cell.dtype, !sums)
    const scale = !sums || cell.dtype === 'int32' ? 0 : Math.max(maxAbs(x), maxAbs(out))
    for (const from of sums ? cell.variants(x) : [x]) {
      cell.compare<K>(`[${outer}, ${rows}, ${inner}] at ${n}`, out, sums ? n : 1, scale, (k, o) =>
        k(operandOf(from, 2, shape), operandOf(index, 1, indexShape), operandOf(o, 3, outShape), outer, rows, n, inner),
      )
    }
  }
}

export function firstOutside(cell: Cell): void {
  type K = FirstOutside
  for (const n of cell.sizes([0, 1, 7, 100, 3000], () => cell.extent(3000, 0))) {
    for (const place of cell.sizes([0, 5, 99, n - 1, n], () => cell.below(n + 1))) {
      for (const outside of [-1, 40, -(2 ** 31), 2 ** 31 - 1]) {
        const x = cell.indices(n + 3, 40)
        if (place >= 0 && place < n) x[place + 2] = outside
        cell.compare<K>(`${outside} at ${place} of ${n}`, cell.rubbish('int32', 6), 1, 0, (k, o) =>
          k(operandOf(x, 2, [n]), operandOf(o, 3, [1]), 40),
        )
      }
    }
  }
}
