/**
 * Element-wise kernels of the js backend: loops of `elementwise/loops.ts`, which compile for one operation each, or a loop that takes the operation as a
 * function. Above: `element-cells.ts`, which chooses by an operation's row. Below: `walk.ts`, for strided operands.
 */
import type { TypedArray } from '../../values/dtype.js'
import { type GradDefinition, NOT_ON_BOOL, type Scalar1, type Scalar2 } from '../elementwise/definition.js'
import type { Row2, Row3 } from '../elementwise/loops.js'
import type { AxpyKernel, BinaryKernel, GradKernel, UnaryKernel, WhereKernel } from '../table/table.js'
import { everywhere } from './cells.js'
import { denseStrides, walk2, walk3 } from './walk.js'

type T = TypedArray

export function unaryRows<A extends T>(row: Row2<A, A>): UnaryKernel<A> {
  return {
    flat: (n, x, xo, out, oo) => row(n, x, xo, 1, out, oo, 1),
    strided: (shape, x, xo, xStrides, out, oo) => walk2(row, shape, x, xo, xStrides, out, oo, denseStrides(shape)),
  }
}

export function binaryRows<A extends T, O extends T>(row: Row3<A, A, O>): BinaryKernel<A, O> {
  return {
    flat: (n, a, ao, as, b, bo, bs, out, oo) => row(n, a, ao, as, b, bo, bs, out, oo, 1),
    strided: (shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides) =>
      walk3(row, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides),
  }
}

/** In double precision; storing rounds. */
export function unaryOf(f: Scalar1): UnaryKernel<T> {
  const rowOf = (p0: number, p1: number): Row2<T, T> => {
    return (n, x, xo, xs, out, oo, os) => {
      for (let i = 0; i < n; i++) out[oo + i * os] = f(x[xo + i * xs]!, p0, p1)
    }
  }
  return {
    flat(n, x, xo, out, oo, p0, p1) {
      for (let i = 0; i < n; i++) out[oo + i] = f(x[xo + i]!, p0, p1)
    },
    strided: (shape, x, xo, xStrides, out, oo, p0, p1) => walk2(rowOf(p0, p1), shape, x, xo, xStrides, out, oo, denseStrides(shape)),
  }
}

function rowOf(f: Scalar2): Row3<T, T, T> {
  return (n, a, ao, as, b, bo, bs, out, oo, os) => {
    for (let i = 0; i < n; i++) out[oo + i * os] = f(a[ao + i * as]!, b[bo + i * bs]!)
  }
}

export const binaryOf = (f: Scalar2): BinaryKernel<T, T> => binaryRows(rowOf(f))

/** `step(alpha)` gives the new value from what is held and from x. */
function axpyOf(step: (alpha: number) => Scalar2): AxpyKernel<T> {
  return {
    flat: (n, alpha, x, xo, xs, out, oo) => rowOf(step(alpha))(n, out, oo, 1, x, xo, xs, out, oo, 1),
    strided: (shape, alpha, x, xo, xStrides, out, oo, outStrides) =>
      walk3(rowOf(step(alpha)), shape, out, oo, outStrides, x, xo, xStrides, out, oo, outStrides),
  }
}

const where: WhereKernel<T> = {
  flat(n, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
    for (let i = 0; i < n; i++) out[oo + i] = c[co + i * cs] !== 0 ? a[ao + i * as]! : b[bo + i * bs]!
  },
  strided(shape, c, co, cStrides, a, ao, aStrides, b, bo, bStrides, out, oo) {
    const last = shape.length - 1
    const n = last < 0 ? 1 : shape[last]!
    const [cs, as, bs] = last < 0 ? [0, 0, 0] : [cStrides[last]!, aStrides[last]!, bStrides[last]!]
    let rows = n === 0 ? 0 : 1
    for (let d = 0; d < last; d++) rows *= shape[d]!
    const index = new Array<number>(Math.max(last, 0)).fill(0)
    for (let r = 0; r < rows; r++, oo += n) {
      where.flat(n, c, co, cs, a, ao, as, b, bo, bs, out, oo)
      for (let d = last - 1; d >= 0; d--) {
        co += cStrides[d]!
        ao += aStrides[d]!
        bo += bStrides[d]!
        if (++index[d]! < shape[d]!) break
        co -= cStrides[d]! * shape[d]!
        ao -= aStrides[d]! * shape[d]!
        bo -= bStrides[d]! * shape[d]!
        index[d] = 0
      }
    }
  },
}

/** A gradient times a slope, in double precision. */
export function gradient({ slope, gated = false }: GradDefinition): GradKernel<T> {
  return {
    flat(n, grad, go, gs, x, xo, out, oo, p0, p1) {
      for (let i = 0; i < n; i++) {
        const s = slope(x[xo + i]!, p0, p1)
        out[oo + i] = gated && s === 0 ? 0 : grad[go + i * gs]! * s
      }
    },
  }
}

function axpyF32(alpha: number): Scalar2 {
  const scale = Math.fround(alpha)
  return (held, x) => held + Math.fround(scale * x)
}

export const cells = {
  where: everywhere(where),
  axpy: {
    float32: axpyOf(axpyF32),
    float64: axpyOf((alpha) => (held, x) => held + alpha * x),
    int32: axpyOf((alpha) => (held, x) => held + Math.imul(alpha, x)),
    bool: NOT_ON_BOOL,
  },
}
