/** Element-wise kernels: dense with repeated elements, in place, strided in all layouts. */

import type { DType } from '../../values/dtype.js'
import type { Axpy, Binary, Unary, Where } from '../table/operands.js'
import type { KernelOp } from '../table/table.js'
import type { Any, Cell } from './cell.suite.js'
import { elementsOf, laid, MARGIN, operandOf } from './layouts.suite.js'

/** Dense, or one element that is repeated. */
const stepped = (array: Any, offset: number, step: number, shape: readonly number[]) => operandOf(array, offset, step === 0 ? [] : shape)

const EXPONENTS = [2, 0, 1, -1, 0.5, -0.5, 3, 2.5, Number.NaN, Infinity, -Infinity]
/** p0 and p1 of functions that have some. */
export const PARAMETERS: Readonly<Partial<Record<KernelOp, readonly (readonly number[])[]>>> = {
  clamp: [
    [-0.5, 2],
    [-Infinity, 1],
    [0, Infinity],
    [2, -2],
  ],
  leakyRelu: [[Math.fround(0.01)], [-0.5], [0]],
  elu: [[1], [0.3]],
  leakyReluBackward: [[Math.fround(0.01)], [-0.5]],
  eluBackward: [[1], [0.3]],
  softplusBackward: [
    [1, 20],
    [2, 5],
  ],
  softplus: [
    [1, 20],
    [2, 5],
  ],
}

export function unary(cell: Cell): void {
  type K = Unary
  const own = cell.op === 'pow' ? exponents(cell) : (PARAMETERS[cell.op] ?? [[0, 0]])
  const params = cell.sizes(own, () => drawnParameters(cell, own))
  // The left tail of geluTanh takes the exponential of a rounded number: its error is small relative to 1, not to itself.
  const scale = cell.op === 'geluTanh' ? 1 : 0
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    for (const [p0 = 0, p1 = 0] of params) {
      const x = cell.values(n + 2 * MARGIN)
      const out = cell.rubbish(cell.dtype, n + 2 * MARGIN)
      const what = `[${shape}] p ${p0}, ${p1}`
      cell.compare<K>(`flat ${what}`, out, 1, scale, (k, o) => k(operandOf(x, 2, shape), operandOf(o, MARGIN, shape), p0, p1))
      cell.compare<K>(`in place ${what}`, x, 1, scale, (k, o) => k(operandOf(o, 2, shape), operandOf(o, 2, shape), p0, p1))
      // The strides do not depend on the parameters: the first ones are enough.
      for (const layout of p0 === params[0]![0] ? cell.layouts(shape, true) : []) {
        const view = cell.values(layout.length)
        cell.compare<K>(`${layout.name} ${what}`, out, 1, scale, (k, o) =>
          k(laid(view, shape, layout), operandOf(o, MARGIN, shape), p0, p1),
        )
      }
    }
  }
}

function exponents(cell: Cell): number[][] {
  return EXPONENTS.filter((e) => cell.dtype !== 'int32' || (Number.isInteger(e) && e >= 0)).map((e) => [e, 0])
}

/** One of the list, or others of the same signs: quarters, which are exact in every dtype. */
export function drawnParameters(cell: Cell, own: readonly (readonly number[])[]): readonly number[] {
  const found = cell.one(own)
  if (cell.dtype === 'int32' || cell.random() < 0.5) return found
  return found.map((p) => (p === 0 || !Number.isFinite(p) ? p : Math.sign(p) * (cell.below(16) + 1) * 0.25))
}

export function binary(cell: Cell, outDtype: DType): void {
  type K = Binary
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    const out = cell.rubbish(outDtype, n + 2 * MARGIN)
    for (const [aStep, bStep] of [
      [1, 1],
      [1, 0],
      [0, 1],
      [0, 0],
    ] as const) {
      const a = cell.values(n + 3)
      const b = cell.values(n + 3)
      for (let i = 0; i < n; i += 3) b[i] = a[i + 1]! // ties, for comparisons
      cell.compare<K>(`flat [${shape}] steps ${aStep} ${bStep}`, out, 1, 0, (k, o) =>
        k(stepped(a, 1, aStep, shape), stepped(b, 0, bStep, shape), operandOf(o, MARGIN, shape)),
      )
      if (aStep === 1 && outDtype === cell.dtype) {
        cell.compare<K>(`in place [${shape}] step ${bStep}`, a, 1, 0, (k, o) =>
          k(operandOf(o, 1, shape), stepped(b, 0, bStep, shape), operandOf(o, 1, shape)),
        )
      }
    }
    const [views, targets] = [cell.broadcasting(shape), cell.layouts(shape, false)]
    for (let i = 0; i < views.length; i++) {
      const left = views[i]!
      const right = views[(i + 1) % views.length]!
      const target = targets[i % targets.length]!
      const a = cell.values(left.length)
      const b = cell.values(right.length)
      const to = cell.rubbish(outDtype, target.length)
      cell.compare<K>(`[${shape}] ${left.name} with ${right.name} to ${target.name}`, to, 1, 0, (k, o) =>
        k(laid(a, shape, left), laid(b, shape, right), laid(o, shape, target)),
      )
      if (outDtype === cell.dtype) {
        const held = cell.values(target.length)
        cell.compare<K>(`in place [${shape}] ${target.name} with ${right.name}`, held, 1, 0, (k, o) =>
          k(laid(o, shape, target), laid(b, shape, right), laid(o, shape, target)),
        )
      }
    }
  }
}

export function where(cell: Cell): void {
  type K = Where
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    const out = cell.rubbish(cell.dtype, n + 2 * MARGIN)
    for (const steps of [
      [1, 1, 1],
      [1, 0, 1],
      [1, 1, 0],
      [0, 1, 1],
      [1, 0, 0],
    ] as const) {
      const c = cell.values(n + 2, 'bool')
      const a = cell.values(n + 2)
      const b = cell.values(n + 2)
      cell.compare<K>(`flat [${shape}] steps ${steps}`, out, 1, 0, (k, o) =>
        k(stepped(c, 1, steps[0], shape), stepped(a, 2, steps[1], shape), stepped(b, 0, steps[2], shape), operandOf(o, MARGIN, shape)),
      )
    }
    const views = cell.broadcasting(shape)
    for (let i = 0; i < views.length; i++) {
      const lc = views[i]!
      const la = views[(i + 1) % views.length]!
      const lb = views[(i + 2) % views.length]!
      const c = cell.values(lc.length, 'bool')
      const a = cell.values(la.length)
      const b = cell.values(lb.length)
      cell.compare<K>(`[${shape}] ${lc.name}, ${la.name}, ${lb.name}`, out, 1, 0, (k, o) =>
        k(laid(c, shape, lc), laid(a, shape, la), laid(b, shape, lb), operandOf(o, MARGIN, shape)),
      )
    }
  }
}

export function axpy(cell: Cell): void {
  type K = Axpy
  const alphas = cell.dtype === 'int32' ? [1, -3] : [1, -0.1, 0]
  for (const shape of cell.shapes) {
    const n = elementsOf(shape)
    for (const alpha of alphas) {
      const held = cell.values(n + 4)
      const x = cell.values(n + 4)
      const scale = cell.dtype === 'int32' ? 0 : 1
      for (const step of [0, 1]) {
        cell.compare<K>(`flat [${shape}] alpha ${alpha} step ${step}`, held, 1, scale, (k, o) =>
          k(alpha, stepped(x, 1, step, shape), operandOf(o, 2, shape)),
        )
      }
      for (const layout of cell.broadcasting(shape)) {
        for (const target of cell.layouts(shape, false)) {
          const view = cell.values(layout.length)
          const to = cell.values(target.length)
          cell.compare<K>(`[${shape}] ${layout.name} to ${target.name} alpha ${alpha}`, to, 1, scale, (k, o) =>
            k(alpha, laid(view, shape, layout), laid(o, shape, target)),
          )
        }
      }
    }
  }
}
