/**
 * The oracle of the kernel suite: each element from its definition, by one walk over strides and one function of numbers, slow and without a loop of the
 * backends. Sums have the order of KERNELS.md. Tests alone use it. Neighbours: `rows.suite.ts`, `neural.suite.ts` and `fused.suite.ts`, the other parts of its table.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus'
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator'
import { broadcastStrides, contiguousStrides, type Shape } from '../../values/shape.js'
import { type Functions, functionsOf, type Reason, type Scalar1, type Scalar2 } from '../elementwise/definition.js'
import { cellsOfRows } from '../elementwise/rows.js'
import type { KernelCells } from '../table/backend.js'
import type {
  Axpy,
  Binary,
  ClassLoss,
  ClassLossBackward,
  Copy,
  Draw,
  Fill,
  FirstOutside,
  Grad,
  Indexed,
  Matmul,
  Nll,
  NllBackward,
  Operand,
  Triangle,
  Unary,
  Where,
} from '../table/operands.js'
import { type KernelOp, unsupported } from '../table/table.js'
import { fused } from './fused.suite.js'
import { neural } from './neural.suite.js'
import { rows } from './rows.suite.js'

/** Calls `f` for each index of `shape` with the places in all operands, or in what has no elements of its own. */
function walk(shape: Shape, operands: readonly Pick<Operand, 'offset' | 'shape' | 'strides'>[], f: (...places: number[]) => void): void {
  const elements = shape.reduce((n, extent) => n * extent, 1)
  const strides = operands.map((x) => broadcastStrides(x.shape, x.strides, shape))
  for (let i = 0; i < elements; i++) {
    const places = operands.map(({ offset }) => offset)
    for (let d = shape.length - 1, rest = i; d >= 0; rest = Math.floor(rest / shape[d]!), d--) {
      for (let o = 0; o < places.length; o++) places[o]! += (rest % shape[d]!) * strides[o]![d]!
    }
    f(...places)
  }
}

/** Numbers in row-major order, as places of a dense view from 0 on. */
const numbered = (shape: Shape) => ({ offset: 0, shape, strides: contiguousStrides(shape) })

const hostOf = ({ storage }: Operand) => storage.host!

const unary =
  (f: Scalar1): Unary =>
  (x, out, p0, p1) =>
    walk(out.shape, [x, out], (from, to) => (hostOf(out)[to] = f(hostOf(x)[from]!, p0, p1)))

const binary =
  (f: Scalar2): Binary =>
  (a, b, out) =>
    walk(out.shape, [a, b, out], (left, right, to) => (hostOf(out)[to] = f(hostOf(a)[left]!, hostOf(b)[right]!)))

const where: Where = (cond, a, b, out) =>
  walk(out.shape, [cond, a, b, out], (condition, left, right, to) => {
    hostOf(out)[to] = hostOf(cond)[condition] !== 0 ? hostOf(a)[left]! : hostOf(b)[right]!
  })

const axpy =
  (multiply: Scalar2): Axpy =>
  (alpha, x, out) =>
    walk(out.shape, [x, out], (from, to) => (hostOf(out)[to] = hostOf(out)[to]! + multiply(alpha, hostOf(x)[from]!)))

const copy =
  (convert: (v: number) => number): Copy =>
  (x, out) =>
    walk(out.shape, [x, out], (from, to) => (hostOf(out)[to] = convert(hostOf(x)[from]!)))

const fill =
  (convert: (v: number) => number): Fill =>
  (value, out) =>
    walk(out.shape, [out], (to) => (hostOf(out)[to] = convert(value)))

/** `next` gives one number, or two. */
const draw =
  (next: (source: RandomGenerator) => readonly number[]): Draw =>
  (words, out, from, count) => {
    const source = xoroshiro128plusFromState([...words])
    for (let i = 0; i < count; ) for (const value of next(source)) hostOf(out)[out.offset + from + i++] = value
    words.set(source.getState())
  }

/** Box and Muller. */
const normalPair = (source: RandomGenerator): readonly number[] => {
  const [u, v] = [uniformFloat64(source), uniformFloat64(source)]
  const radius = Math.sqrt(-2 * Math.log(1 - u))
  return [radius * Math.cos(2 * Math.PI * v), radius * Math.sin(2 * Math.PI * v)]
}

/** Where the slope of relu is 0 so is the gradient, whatever arrived (NaN, too), as PyTorch's. */
const gradient =
  (slopeOf: Scalar1, op: KernelOp): Grad =>
  (grad, x, out, p0, p1) =>
    walk(out.shape, [grad, x, out], (g, from, to) => {
      const slope = slopeOf(hostOf(x)[from]!, p0, p1)
      hostOf(out)[to] = op === 'reluBackward' && slope === 0 ? 0 : hostOf(grad)[g]! * slope
    })

/** Rule DOT: every product and every sum is rounded. Of matrices, in batches. */
const matmul =
  (multiply: Scalar2, add: Scalar2): Matmul =>
  (a, given, out, turned = false) => {
    const b = turned ? { ...given, shape: given.shape.toReversed(), strides: given.strides.toReversed() } : given
    const [x, y] = [hostOf(a), hostOf(b)]
    const k = a.shape.at(-1)!
    const [aStep, bStep] = [a.strides.at(-1)!, b.strides.at(-2)!]
    const rows = { ...a, shape: a.shape.with(-1, 1) }
    const columns = { ...b, shape: b.shape.with(-2, 1) }
    walk(out.shape, [rows, columns, out], (left, right, to) => {
      let total = 0
      for (let p = 0; p < k; p++) total = add(total, multiply(x[left + p * aStep]!, y[right + p * bStep]!))
      hostOf(out)[to] = total
    })
  }

const nll: Nll = (x, target, out) =>
  walk(out.shape, [target, numbered(out.shape), out], (t, i, to) => {
    hostOf(out)[to] = -hostOf(x)[x.offset + i * x.shape[1]! + hostOf(target)[t]!]!
  })

const nllBackward: NllBackward = (grad, target, out) => {
  const [n, classes] = out.shape as readonly [number, number]
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < classes; c++) {
      const g = hostOf(grad)[grad.offset + (grad.numel === 1 ? 0 : i)]!
      hostOf(out)[out.offset + i * classes + c] = c === hostOf(target)[target.offset + i] ? -g : 0
    }
  }
}

/** Row i of x, and its logSoftmax. */
function logSoftmaxOf(x: Operand, i: number): number[] {
  const classes = x.shape[1]!
  const row = Array.from({ length: classes }, (_, c) => hostOf(x)[x.offset + i * classes + c]!)
  const max = Math.max(...row)
  const total = row.reduce((sum, v) => sum + Math.exp(v - max), 0)
  return row.map((v) => v - max - Math.log(total))
}

const classLoss: ClassLoss = (x, target, out) => {
  for (let i = 0; i < target.numel; i++) hostOf(out)[out.offset + i] = -logSoftmaxOf(x, i)[hostOf(target)[target.offset + i]!]!
}

const classLossBackward: ClassLossBackward = (grad, x, target, out) => {
  for (let i = 0; i < target.numel; i++) {
    const g = hostOf(grad)[grad.offset + (grad.numel === 1 ? 0 : i)]!
    const right = hostOf(target)[target.offset + i]
    for (const [c, logp] of logSoftmaxOf(x, i).entries()) {
      hostOf(out)[out.offset + i * x.shape[1]! + c] = g * Math.exp(logp) - (c === right ? g : 0)
    }
  }
}

/**
 * `join` gives the new value from the old one and from what comes. `wide`: the index has all dimensions. `reads`: the index says where x is read, and not
 * where out is written.
 */
const indexed =
  (wide: boolean, reads: boolean, join: Scalar2): Indexed =>
  (x, index, out, outer, extent, n, inner) => {
    const shape = [outer, n, inner]
    const [xs, at, to] = [hostOf(x), hostOf(index), hostOf(out)]
    const along = wide ? { ...numbered(shape), offset: index.offset } : { offset: index.offset, shape: [1, n, 1], strides: [0, 1, 0] }
    const starts = { offset: 0, shape, strides: [extent * inner, 0, 1] }
    walk(shape, [numbered(shape), along, starts], (part, place, start) => {
      const row = start + at[place]! * inner
      const [from, into] = reads ? [row, part] : [part, row]
      to[out.offset + into] = join(to[out.offset + into]!, xs[x.offset + from]!)
    })
  }

const firstOutside: FirstOutside = (x, out, extent) => {
  const indices = Array.from({ length: x.numel }, (_, i) => hostOf(x)[x.offset + i]!)
  const first = indices.findIndex((index) => !(index >= 0 && index < extent))
  hostOf(out)[out.offset] = first < 0 ? x.numel : first
}

/** An element lies on diagonal number column − row. */
const triangle =
  (keeps: (own: number, diagonal: number) => boolean): Triangle =>
  (x, out, outer, rows, columns, diagonal) => {
    const shape = [outer, rows, columns]
    const place = numbered(shape)
    const own = { offset: 0, shape, strides: [0, -1, 1] }
    walk(shape, [place, own], (i, on) => {
      hostOf(out)[out.offset + i] = keeps(on, diagonal) ? hostOf(x)[x.offset + i]! : 0
    })
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
  uniform: cells(
    draw((source) => [(source.next() >>> 8) / 2 ** 24]),
    draw((source) => [uniformFloat64(source)]),
    draw((source) => [source.next()]),
    NONE,
  ),
  normal: cells(draw(normalPair), draw(normalPair), NONE, NONE),
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
  classLoss: cells(classLoss, classLoss, NONE, NONE),
  classLossBackward: cells(classLossBackward, classLossBackward, NONE, NONE),
  firstOutside: { float32: NONE, float64: NONE, int32: firstOutside, bool: NONE },
  tril: everywhere(triangle((own, diagonal) => own <= diagonal)),
  triu: everywhere(triangle((own, diagonal) => own >= diagonal)),
  indexSelect: everywhere(indexed(false, true, take)),
  gather: everywhere(indexed(true, true, take)),
  scatter: everywhere(indexed(true, false, take)),
  indexAdd: sums(false),
  scatterAdd: sums(true),
  ...rows,
  ...neural,
  ...fused,
} as unknown as KernelCells
