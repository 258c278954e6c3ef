/** Kernels along the middle axis of [outer, k, inner]: reductions, running sums, sorting, softmax. */

import { allocate } from '../../values/dtype.js'
import type { Argsort, GradRows, Rows, SumApart, Variance } from '../table/operands.js'
import { type Any, type Block, type Cell, maxAbs, SPECIAL } from './cell.suite.js'
import { elementsOf, operandOf } from './layouts.suite.js'

/** [outer, k, inner] of reductions and softmax. */
export function fibres(cell: Cell, emptyToo: boolean): readonly Block[] {
  const all: Block[] = [
    [1, 1, 1],
    [1, 9, 1],
    [3, 5, 1],
    [0, 4, 1],
    [2, 5, 0],
    [2, 3, 4],
    [1, 20, 33],
    [7, 65, 1],
    [1, 2500, 1],
    [2, 3, 2100],
    [40, 100, 1],
    [1, 4099, 1],
  ]
  if (emptyToo) all.push([3, 0, 2], [1, 0, 1])
  return cell.sizes(
    all.filter(([o, k, i]) => o * k * i <= 5000 || !cell.isSlow),
    () => {
      const [o, k, i] = cell.block(3000, 0)
      return [o, emptyToo ? k : Math.max(1, k), i]
    },
  )
}

/** A place for a special value among n elements: `own` in the suite's own sizes. */
const placeIn = (cell: Cell, own: number, n: number): number => cell.sizes([own], () => cell.below(n))[0]!

export function reduce(cell: Cell): void {
  type K = Rows
  const outDtype = cell.op === 'argmax' || cell.op === 'argmin' ? 'int32' : cell.dtype
  for (const [outer, k, inner] of fibres(cell, cell.op === 'sum')) {
    for (const special of [false, true]) {
      const x = cell.values(outer * k * inner + 4, cell.dtype, special && cell.op !== 'sum')
      if (cell.op !== 'sum') for (let i = 0; i + 7 < x.length; i += 5) x[i] = x[i + 7]! // ties
      const scale = maxAbs(x)
      const out = cell.rubbish(outDtype, outer * inner + 6)
      cell.compare<K>(`[${outer}, ${k}, ${inner}]`, out, k, scale, (kernel, o) =>
        kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, inner]), outer, k, inner),
      )
    }
  }
  for (const value of SPECIAL[cell.dtype].filter((v) => !cell.isLeftOut(v) && (cell.op !== 'sum' || !Number.isFinite(v)))) {
    const own: readonly Block[] = [
      [1, 300, 1],
      [3, 100, 1],
      [1, 3, 100],
    ]
    for (const [outer, k, inner] of cell.sizes(own, () => cell.block(900))) {
      const x = cell.values(outer * k * inner, cell.dtype, false)
      x[placeIn(cell, 130, x.length)] = value
      cell.compare<K>(`[${outer}, ${k}, ${inner}] with ${value}`, cell.rubbish(outDtype, outer * inner + 9), k, 10, (kernel, o) =>
        kernel(operandOf(x, 0, [outer, k, inner]), operandOf(o, 0, [outer, inner]), outer, k, inner),
      )
    }
  }
}

/** Of [parts, outer, part]: pieces of a part, several parts at once, totals that threads share. */
export function sumApart(cell: Cell): void {
  const own: readonly Block[] = [
    [1, 1, 64],
    [2, 3, 128],
    [0, 2, 64],
    [3, 1, 4160],
    [5, 4, 192],
    [2, 3, 2432],
  ]
  const draw = (): Block => {
    const [parts, outer, part] = cell.block(4000, 0)
    return [parts, outer, 64 * Math.ceil(part / 64)]
  }
  for (const [parts, outer, part] of cell.sizes(own, draw)) {
    const x = cell.values(parts * outer * part + 4, cell.dtype, false)
    for (const values of cell.variants(x)) {
      cell.compare<SumApart>(`[${parts}, ${outer}, ${part}]`, cell.rubbish(cell.dtype, outer + 6), parts * part, maxAbs(x), (kernel, o) =>
        kernel(operandOf(values, 2, [parts, outer, part]), operandOf(o, 3, [outer]), parts, outer, part),
      )
    }
  }
}

/** 0 is greater than −0, in any order; a place is that of the first. NaN wins over all. */
export function extremes(cell: Cell): void {
  type K = Rows
  reduce(cell)
  if (cell.dtype === 'int32' || cell.dtype === 'bool') return
  const outDtype = cell.op === 'argmax' || cell.op === 'argmin' ? 'int32' : cell.dtype
  const other = cell.op === 'amax' || cell.op === 'argmax' ? -1 : 1
  const own: readonly Block[] = [
    [3, 5, 1],
    [2, 91, 1],
    [1, 4099, 1],
    [1, 90, 5],
  ]
  for (const [outer, k, inner] of cell.sizes(own, () => cell.block(900))) {
    if (outer * k * inner > 400 && cell.isSlow) continue
    for (const [rest, rare] of [
      [0, -0],
      [-0, 0],
      [other, 0],
      [other, -0],
      [Number.NaN, 0],
      [0, Number.NaN],
    ] as const) {
      for (const place of cell.sizes([0, 3, (k >> 1) + 1, k - 1], () => cell.below(k))) {
        const x = allocate(cell.dtype, outer * k * inner).fill(rest)
        for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) x[(o * k + place) * inner + i] = rare
        cell.compare<K>(
          `[${outer}, ${k}, ${inner}] ${rare} among ${rest} at ${place}`,
          cell.rubbish(outDtype, outer * inner),
          1,
          0,
          (kernel, o) => kernel(operandOf(x, 0, [outer, k, inner]), operandOf(o, 0, [outer, inner]), outer, k, inner),
        )
      }
    }
  }
}

/** Values around 1 (of either sign): the product of thousands of them stays in range. */
function factors(cell: Cell, length: number): Any {
  const out = allocate(cell.dtype, length)
  for (let i = 0; i < length; i++) {
    const sign = cell.random() < 0.5 ? -1 : 1
    out[i] = cell.dtype === 'int32' ? Math.floor((cell.random() - 0.5) * 20) : sign * (1 + (cell.random() - 0.5) * 0.01)
  }
  return out
}

export function products(cell: Cell, size: (outer: number, k: number, inner: number) => number): void {
  type K = Rows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = size(outer, k, inner)
    const x = factors(cell, outer * k * inner + 4)
    cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), k, 0, (kernel, o) =>
      kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [n]), outer, k, inner),
    )
  }
  for (const value of SPECIAL[cell.dtype].filter(
    (v) => !cell.isLeftOut(v) && !(Math.abs(v) > 1e30 && Math.abs(v) < Infinity) && !(Math.abs(v) > 0 && Math.abs(v) < 1e-35),
  )) {
    for (const [outer, k, inner] of cell.sizes([[2, 3, 2]] as const, () => cell.block(400))) {
      const x = factors(cell, outer * k * inner)
      x[placeIn(cell, 7, x.length)] = value
      const n = size(outer, k, inner)
      cell.compare<K>(`[${outer}, ${k}, ${inner}] with ${value}`, cell.rubbish(cell.dtype, n + 6), k, 0, (kernel, o) =>
        kernel(operandOf(x, 0, [outer, k, inner]), operandOf(o, 0, [n]), outer, k, inner),
      )
    }
  }
}

export function runningSums(cell: Cell): void {
  type K = Rows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    const x = cell.values(n + 4, cell.dtype, false)
    const scale = cell.dtype === 'int32' ? 0 : maxAbs(x)
    cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), k, scale, (kernel, o) =>
      kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, k, inner]), outer, k, inner),
    )
  }
  for (const value of [Number.NaN, Infinity, -Infinity]) {
    if (cell.dtype === 'int32') continue
    for (const [outer, k, inner] of cell.sizes([[2, 3, 2]] as const, () => cell.block(900))) {
      const [n, shape] = [outer * k * inner, [outer, k, inner]]
      const x = cell.values(n, cell.dtype, false)
      x[placeIn(cell, 7, n)] = value
      cell.compare<K>(`[${shape}] with ${value}`, cell.rubbish(cell.dtype, n), k, 100, (kernel, o) =>
        kernel(operandOf(x, 0, shape), operandOf(o, 0, shape), outer, k, inner),
      )
    }
  }
}

export function argsort(cell: Cell): void {
  type K = Argsort
  // Longer than what a selection holds at once.
  const longer: readonly Block[] = cell.isSlow ? [] : [[2, 300, 1], [1, 290, 2]] // biome-ignore format: two shapes
  for (const [outer, k, inner] of cell.sizes([...fibres(cell, true), ...longer], () => cell.block(600, 0))) {
    // The oracle counts, which takes k² steps.
    if (k > 600) continue
    for (const [descending, isSorted] of [
      [false, false],
      [true, false],
      [true, true],
    ] as const) {
      // biome-ignore format: three cases
      const x = cell.values(outer * k * inner + 4)
      for (let i = 0; i + 7 < x.length; i += 5) x[i] = x[i + 7]! // ties
      // Each element is better than those before it, so that a selection takes all.
      if (isSorted) x.sort()
      for (const m of new Set(cell.sizes([k, Math.min(k, 3), 0], () => cell.below(k + 1)))) {
        cell.compare<K>(
          `${m} of [${outer}, ${k}, ${inner}] ${descending ? 'descending' : ''} ${isSorted ? 'of sorted' : ''}`,
          cell.rubbish('int32', outer * m * inner + 6),
          1,
          0,
          (kernel, o) => kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, m, inner]), outer, k, m, inner, descending),
        )
      }
    }
  }
}

export function flip(cell: Cell): void {
  type K = Rows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    const x = cell.values(n + 4)
    cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), 1, 0, (kernel, o) =>
      kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, k, inner]), outer, k, inner),
    )
  }
}

export function variance(cell: Cell): void {
  type K = Variance
  for (const [outer, k, inner] of fibres(cell, true)) {
    for (const [correction, root] of [
      [1, false],
      [0, false],
      [2, false],
      [1, true],
    ] as const) {
      const x = cell.values(outer * k * inner + 4, cell.dtype, false)
      const out = cell.rubbish(cell.dtype, outer * inner + 6)
      const scale = k === 1 ? 0 : maxAbs(x) ** (root ? 1 : 2)
      cell.compare<K>(`[${outer}, ${k}, ${inner}] correction ${correction}, root ${root}`, out, k, scale, (kernel, o) =>
        kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, inner]), outer, k, inner, correction, root),
      )
    }
  }
  for (const value of [Number.NaN, Infinity, -Infinity]) {
    for (const [outer, k, inner] of cell.sizes([[3, 100, 1]] as const, () => cell.block(900))) {
      const x = cell.values(outer * k * inner, cell.dtype, false)
      x[placeIn(cell, 130, x.length)] = value
      for (const root of [false, true])
        cell.compare<K>(
          `[${outer}, ${k}, ${inner}] with ${value}, root ${root}`,
          cell.rubbish(cell.dtype, outer * inner),
          k,
          1e4,
          (kernel, o) => kernel(operandOf(x, 0, [outer, k, inner]), operandOf(o, 0, [outer, inner]), outer, k, inner, 1, root),
        )
    }
  }
}

export function productBackward(cell: Cell): void {
  type K = GradRows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    for (const zeros of [0, 1, 2]) {
      const plain = factors(cell, n + 4)
      for (let i = 0; i < zeros && n > 0; i++) plain[2 + Math.floor(cell.random() * n)] = 0
      const shape = [outer, k, inner]
      const gradShape = cell.op === 'prodBackward' ? [outer, inner] : shape
      const grad = cell.values(elementsOf(gradShape) + 1, cell.dtype, false)
      const scale = maxAbs(grad)
      // Of a running product's derivative the infinite terms may cancel in one order of summation and not in another.
      for (const x of zeros === 0 ? cell.variants(plain, cell.op === 'cumprodBackward') : [plain]) {
        cell.compare<K>(`[${outer}, ${k}, ${inner}] with ${zeros} zeros`, cell.rubbish(cell.dtype, n + 6), k, scale, (kernel, o) =>
          kernel(operandOf(grad, 1, gradShape), operandOf(x, 2, shape), operandOf(o, 3, shape), outer, k, inner),
        )
      }
    }
  }
}

export function softmax(cell: Cell): void {
  type K = Rows
  for (const [outer, k, inner] of fibres(cell, true)) {
    const n = outer * k * inner
    const x = cell.values(n + 4, cell.dtype, false)
    cell.compare<K>(`[${outer}, ${k}, ${inner}]`, cell.rubbish(cell.dtype, n + 6), k, 1, (kernel, o) =>
      kernel(operandOf(x, 2, [outer, k, inner]), operandOf(o, 3, [outer, k, inner]), outer, k, inner),
    )
  }
  for (const row of [
    [1000, 1000, 1000],
    [-1000, 0, 1000],
    [Number.NaN, 0, 1],
    [Infinity, 0, 1],
    [-Infinity, 0, 1],
    [-Infinity, -Infinity, -Infinity],
    [3e38, -3e38, 0],
  ]) {
    for (const k of cell.sizes([3], () => cell.extent(300, 3))) {
      const x = cell.values(k, cell.dtype, false)
      x.set(row, placeIn(cell, 0, k - 2))
      cell.compare<K>(`${row} among ${k}`, cell.rubbish(cell.dtype, k), k, 1, (kernel, o) =>
        kernel(operandOf(x, 0, [1, k, 1]), operandOf(o, 0, [1, k, 1]), 1, k, 1),
      )
    }
  }
}
