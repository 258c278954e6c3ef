/**
 * The oracle of the kernel suite: each element from its definition, by one walk over strides and one function of numbers, slow and without a loop of the
 * backends. Sums have the order of KERNELS.md. Tests alone use it. Neighbours: `rows.suite.ts` and `neural.suite.ts`, the other parts of its table.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import { type Functions, functionsOf, type Reason, type Scalar1, type Scalar2 } from '../elementwise/definition.js'
import { cellsOfRows } from '../elementwise/rows.js'
import {
  type ArrayKernelTable,
  type AxpyKernel,
  type BinaryKernel,
  type CopyKernel,
  type Dims,
  type FillKernel,
  type GradKernel,
  type IndexKernel,
  type KernelOp,
  type MatmulKernel,
  type NllBackwardKernel,
  type NllKernel,
  type UnaryKernel,
  unsupported,
  type WhereKernel,
} from '../table/table.js'
import { neural } from './neural.suite.js'
import { rows } from './rows.suite.js'

type T = TypedArray

/** Calls `f` for each index of `shape` with the places in all operands. */
function walk(shape: Dims, operands: readonly (readonly [offset: number, strides: Dims])[], f: (...places: number[]) => void): void {
  const elements = shape.reduce((n, extent) => n * extent, 1)
  for (let i = 0; i < elements; i++) {
    const places = operands.map(([offset]) => offset)
    for (let d = shape.length - 1, rest = i; d >= 0; rest = Math.floor(rest / shape[d]!), d--) {
      for (let o = 0; o < places.length; o++) places[o]! += (rest % shape[d]!) * operands[o]![1][d]!
    }
    f(...places)
  }
}

/** The strides of a dense view. */
const dense = (shape: Dims): Dims => shape.map((_, d) => shape.slice(d + 1).reduce((n, extent) => n * extent, 1))

function unary(f: Scalar1): UnaryKernel<T> {
  return {
    flat: (n, x, xo, out, oo, p0, p1) => unary(f).strided([n], x, xo, [1], out, oo, p0, p1),
    strided: (shape, x, xo, xs, out, oo, p0, p1) =>
      walk(
        shape,
        [
          [xo, xs],
          [oo, dense(shape)],
        ],
        (from, to) => (out[to] = f(x[from]!, p0, p1)),
      ),
  }
}

function binary(f: Scalar2): BinaryKernel<T, T> {
  return {
    flat: (n, a, ao, as, b, bo, bs, out, oo) => binary(f).strided([n], a, ao, [as], b, bo, [bs], out, oo, [1]),
    strided: (shape, a, ao, as, b, bo, bs, out, oo, os) =>
      walk(
        shape,
        [
          [ao, as],
          [bo, bs],
          [oo, os],
        ],
        (left, right, to) => (out[to] = f(a[left]!, b[right]!)),
      ),
  }
}

const where: WhereKernel<T> = {
  flat: (n, c, co, cs, a, ao, as, b, bo, bs, out, oo) => where.strided([n], c, co, [cs], a, ao, [as], b, bo, [bs], out, oo),
  strided(shape, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
    const operands = [
      [co, cs],
      [ao, as],
      [bo, bs],
      [oo, dense(shape)],
    ] as const
    walk(shape, operands, (condition, left, right, to) => (out[to] = c[condition] !== 0 ? a[left]! : b[right]!))
  },
}

function axpy(multiply: Scalar2): AxpyKernel<T> {
  return {
    flat: (n, alpha, x, xo, xs, out, oo) => axpy(multiply).strided([n], alpha, x, xo, [xs], out, oo, [1]),
    strided: (shape, alpha, x, xo, xs, out, oo, os) =>
      walk(
        shape,
        [
          [xo, xs],
          [oo, os],
        ],
        (from, to) => (out[to] = out[to]! + multiply(alpha, x[from]!)),
      ),
  }
}

function copy(convert: (v: number) => number): CopyKernel<T> {
  return {
    flat: (n, x, xo, out, oo) => copy(convert).strided([n], x, xo, [1], out, oo, [1]),
    strided: (shape, x, xo, xs, out, oo, os) =>
      walk(
        shape,
        [
          [xo, xs],
          [oo, os],
        ],
        (from, to) => (out[to] = convert(x[from]!)),
      ),
  }
}

function fill(convert: (v: number) => number): FillKernel<T> {
  return {
    flat: (n, value, out, oo) => fill(convert).strided([n], value, out, oo, [1]),
    strided: (shape, value, out, oo, os) => walk(shape, [[oo, os]], (to) => (out[to] = convert(value))),
  }
}

/** Where the slope of relu is 0 so is the gradient, whatever arrived (NaN, too), as PyTorch's. */
function gradient(slopeOf: Scalar1, op: KernelOp): GradKernel<T> {
  return {
    flat(n, grad, go, gs, x, xo, out, oo, p0, p1) {
      walk(
        [n],
        [
          [go, [gs]],
          [xo, [1]],
          [oo, [1]],
        ],
        (g, at, to) => {
          const slope = slopeOf(x[at]!, p0, p1)
          out[to] = op === 'reluBackward' && slope === 0 ? 0 : grad[g]! * slope
        },
      )
    },
  }
}

/** Rule DOT: every product and every sum is rounded. */
function matmul(multiply: Scalar2, add: Scalar2): MatmulKernel<T> {
  return {
    run(batch, m, n, k, a, ao, aBatch, aRow, aCol, b, bo, bBatch, bRow, bCol, out, oo) {
      const operands = [
        [ao, [aBatch, aRow, 0]],
        [bo, [bBatch, 0, bCol]],
        [oo, dense([batch, m, n])],
      ] as const
      walk([batch, m, n], operands, (left, right, to) => {
        let total = 0
        for (let p = 0; p < k; p++) total = add(total, multiply(a[left + p * aCol]!, b[right + p * bRow]!))
        out[to] = total
      })
    },
  }
}

const nll: NllKernel<T> = {
  run: (n, classes, x, xo, target, to, out, oo) => walk([n], [[0, [1]]], (i) => (out[oo + i] = -x[xo + i * classes + target[to + i]!]!)),
}

const nllBackward: NllBackwardKernel<T> = {
  run: (n, classes, grad, go, gradStep, target, to, out, oo) =>
    walk(
      [n, classes],
      [
        [0, [1, 0]],
        [0, [0, 1]],
      ],
      (i, c) => {
        out[oo + i * classes + c] = c === target[to + i] ? -grad[go + i * gradStep]! : 0
      },
    ),
}

/**
 * `join` gives the new value from the old one and from what comes. `wide`: the index has all dimensions. `reads`: the index says where x is read, and not
 * where out is written.
 */
function indexed(wide: boolean, reads: boolean, join: Scalar2): IndexKernel<T> {
  return {
    run(outer, extent, n, inner, x, xo, index, io, out, oo) {
      const shape = [outer, n, inner]
      const operands = [
        [0, dense(shape)],
        [io, wide ? dense(shape) : [0, 1, 0]],
        [0, [extent * inner, 0, 1]],
      ] as const
      walk(shape, operands, (part, at, start) => {
        const row = start + index[at]! * inner
        const [from, to] = reads ? [row, part] : [part, row]
        out[oo + to] = join(out[oo + to]!, x[xo + from]!)
      })
    },
  }
}

const NONE = unsupported('PyTorch has no such cell, or raw operations convert before')
const cells = <K>(float32: K, float64: K | typeof NONE, int32: K | typeof NONE, bool: K | typeof NONE) => ({
  float32,
  float64,
  int32,
  bool,
})
const everywhere = <K>(kernel: K) => cells(kernel, kernel, kernel, kernel)
/** The functions of an op's row for floats, int32 and bool, each made a kernel. */
function cellsOf<F extends object, K>(row: Functions<F>, kernelOf: (f: F) => K) {
  const { real, int32, bool } = functionsOf(row)
  const cell = (f: F | Reason) => ('unsupported' in f ? NONE : kernelOf(f))
  return cells(cell(real) as K, cell(real), cell(int32), cell(bool))
}

const { fround, imul } = Math
const truth = (v: number): number => (v !== 0 ? 1 : 0)
const same = (v: number): number => v
const plusInt: Scalar2 = (a, b) => (a + b) | 0
const take: Scalar2 = (_, value) => value
const plus: Scalar2 = (held, value) => held + value
const sums = (wide: boolean) => cells(indexed(wide, false, plus), indexed(wide, false, plus), indexed(wide, false, plus), NONE)

export const oracle = {
  ...cellsOfRows({
    unary: (row) => cellsOf(row, unary),
    binary: (row) => cellsOf(row, binary),
    compare: ({ js }) => everywhere(binary(js)),
    grad: ({ slope }, op) => cells(gradient(slope, op), gradient(slope, op), NONE, NONE),
  }),
  where: everywhere(where),
  axpy: cells(
    axpy((alpha, x) => fround(fround(alpha) * x)),
    axpy((alpha, x) => alpha * x),
    axpy(imul),
    NONE,
  ),
  copy: cells(copy(same), copy(same), copy(same), copy(truth)),
  fill: cells(fill(same), fill(same), fill(same), fill(truth)),
  matmul: cells(
    matmul(
      (a, b) => fround(a * b),
      (a, b) => fround(a + b),
    ),
    matmul((a, b) => a * b, plus),
    matmul(imul, plusInt),
    NONE,
  ),
  nll: cells(nll, nll, NONE, NONE),
  nllBackward: cells(nllBackward, nllBackward, NONE, NONE),
  indexSelect: everywhere(indexed(false, true, take)),
  gather: everywhere(indexed(true, true, take)),
  scatter: everywhere(indexed(true, false, take)),
  indexAdd: sums(false),
  scatterAdd: sums(true),
  ...rows,
  ...neural,
} as unknown as { readonly [Op in KernelOp]: { readonly [D in DType]: ArrayKernelTable[Op][D] } }
