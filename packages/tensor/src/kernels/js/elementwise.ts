/**
 * Element-wise kernels of the js backend: loops of `elementwise/loops.ts`, which compile for one operation each, or a loop that takes the operation as a
 * function. `element-cells.ts` chooses by an operation's row. `table/walk.ts` walks strided operands.
 */
import type { TypedArray } from '../../values/dtype.js'
import { type GradDefinition, NOT_ON_BOOL, type Scalar1, type Scalar2 } from '../elementwise/definition.js'
import type { Row2, Row3 } from '../elementwise/loops.js'
import type { Axpy, Binary, Grad, Operand, Unary, Where } from '../table/operands.js'
import { stepOver, walk } from '../table/walk.js'
import { everywhere } from './cells.js'

type T = TypedArray

/** out = row(x), which broadcasts to out's shape. */
export function unaryRows<A extends T, O extends T>(row: Row2<A, O>): Unary {
  return (x, out, p0, p1) => {
    const n = out.numel
    const xStep = x.isContiguous && x.numel === n ? 1 : x.numel === 1 ? 0 : -1
    const from = x.storage.host as A
    const to = out.storage.host as O
    if (xStep >= 0 && out.isContiguous) row(n, from, x.offset, xStep, to, out.offset, 1, p0, p1)
    else walk(out.shape, [x, out], (n, at, step) => row(n, from, at[0]!, step[0]!, to, at[1]!, step[1]!, p0, p1))
  }
}

export function binaryRows<A extends T, O extends T>(row: Row3<A, A, O>): Binary {
  return (a, b, out) => {
    // As `stepOver`, written out: small tensors come here more than anywhere else.
    const n = out.numel
    const aStep = a.isContiguous && a.numel === n ? 1 : a.numel === 1 ? 0 : -1
    const bStep = b.isContiguous && b.numel === n ? 1 : b.numel === 1 ? 0 : -1
    const x = a.storage.host as A
    const y = b.storage.host as A
    const z = out.storage.host as O
    if (aStep >= 0 && bStep >= 0 && out.isContiguous) row(n, x, a.offset, aStep, y, b.offset, bStep, z, out.offset, 1)
    else if (aStep === 1 && out.isContiguous && isRowOf(b, out)) {
      // As of a bias: b is added to each row.
      const width = b.numel
      for (let i = 0; i < n; i += width) row(width, x, a.offset + i, 1, y, b.offset, 1, z, out.offset + i, 1)
    } else walk(out.shape, [a, b, out], (n, at, step) => row(n, x, at[0]!, step[0]!, y, at[1]!, step[1]!, z, at[2]!, step[2]!))
  }
}

/** Whether b is dense, and the last dimensions of out: so it repeats itself along the others. */
function isRowOf(b: Operand, out: Operand): boolean {
  const missing = out.shape.length - b.shape.length
  if (!b.isContiguous || b.numel === 0) return false
  for (let d = 0; d < b.shape.length; d++) if (b.shape[d] !== out.shape[missing + d]) return false
  return true
}

/** In double precision; storing rounds. */
export const unaryOf = (f: Scalar1): Unary =>
  unaryRows<T, T>((n, x, xo, xs, out, oo, os, p0, p1) => {
    for (let i = 0; i < n; i++) out[oo + i * os] = f(x[xo + i * xs]!, p0, p1)
  })

export const binaryOf = (f: Scalar2): Binary =>
  binaryRows<T, T>((n, a, ao, as, b, bo, bs, out, oo, os) => {
    for (let i = 0; i < n; i++) out[oo + i * os] = f(a[ao + i * as]!, b[bo + i * bs]!)
  })

/** `row` takes alpha as its parameter. */
function axpyOf<A extends T>(row: Row2<A, A>): Axpy {
  const add = unaryRows(row)
  return (alpha, x, out) => add(x, out, alpha, 0)
}

const where: Where = (cond, a, b, out) => {
  const [c, x, y, z] = [cond.storage.host!, a.storage.host!, b.storage.host!, out.storage.host!]
  const choose = (n: number, co: number, cs: number, ao: number, as: number, bo: number, bs: number, oo: number, os: number): void => {
    for (let i = 0; i < n; i++) z[oo + i * os] = c[co + i * cs] !== 0 ? x[ao + i * as]! : y[bo + i * bs]!
  }
  const [cStep, aStep, bStep] = [stepOver(cond, out), stepOver(a, out), stepOver(b, out)]
  if (cStep >= 0 && aStep >= 0 && bStep >= 0) choose(out.numel, cond.offset, cStep, a.offset, aStep, b.offset, bStep, out.offset, 1)
  else {
    walk(out.shape, [cond, a, b, out], (n, at, step) => choose(n, at[0]!, step[0]!, at[1]!, step[1]!, at[2]!, step[2]!, at[3]!, step[3]!))
  }
}

/** A gradient times a slope, in double precision. */
export function gradient({ slope, gated = false }: GradDefinition): Grad {
  return (g, x, out, p0, p1) => {
    const [grad, from, to] = [g.storage.host!, x.storage.host!, out.storage.host!]
    const step = g.isContiguous ? 1 : 0
    for (let i = 0; i < out.numel; i++) {
      const s = slope(from[x.offset + i]!, p0, p1)
      to[out.offset + i] = gated && s === 0 ? 0 : grad[g.offset + i * step]! * s
    }
  }
}

const axpyF32: Row2<Float32Array, Float32Array> = (n, x, xo, xs, out, oo, os, alpha) => {
  const scale = Math.fround(alpha)
  for (let i = 0; i < n; i++) out[oo + i * os] = out[oo + i * os]! + Math.fround(scale * x[xo + i * xs]!)
}
const axpyF64: Row2<Float64Array, Float64Array> = (n, x, xo, xs, out, oo, os, alpha) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = out[oo + i * os]! + alpha * x[xo + i * xs]!
}
const axpyI32: Row2<Int32Array, Int32Array> = (n, x, xo, xs, out, oo, os, alpha) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = out[oo + i * os]! + Math.imul(alpha, x[xo + i * xs]!)
}

export const cells = {
  where: everywhere(where),
  axpy: { float32: axpyOf(axpyF32), float64: axpyOf(axpyF64), int32: axpyOf(axpyI32), bool: NOT_ON_BOOL },
}
