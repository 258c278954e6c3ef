/**
 * The derivatives of all differentiable operations: one table, total by type, so that a new operation without a row does not compile. Each
 * formula says what it reads of the forward pass; only that is saved, and only if the gradient that needs it is wanted. PyTorch:
 * `tools/autograd/derivatives.yaml`.
 *
 * Formulas compute with the `ops` they are given: the raw operations normally, the recorded ones under createGraph. g is the gradient of the
 * result; a and b are the operation's arguments. Rows are grouped as in `tensor/src/ops/ops.ts`.
 */
import { arange, type Device, type Reduction, Tensor } from '@postgrad/tensor'
import type {
  ActivationOps,
  ArithmeticOps,
  BinaryOps,
  IndexOps,
  JoinOps,
  LossOps,
  MathOps,
  MatmulOps,
  PowOps,
  ReduceOps,
  StatisticsOps,
  UnaryOps,
  ViewOps,
} from '@postgrad/tensor/internal'
import { embedDiagonal, raw } from '@postgrad/tensor/internal'
import { type BinaryRows, formula, type ListRows, type LookupRows, ofTensor, type TensorOps, type UnaryRows } from '../graph/formula.js'
import { activations } from './derivatives-activation.js'
import { arithmetic } from './derivatives-arithmetic.js'
import { math } from './derivatives-math.js'
import { extremeSlope, statistics } from './derivatives-reduce.js'
import { numel, spread, wrap } from './dims.js'
import { sumToShape } from './sum-to-shape.js'

type T = Tensor
type Shape = readonly number[]
export type UnaryTable = UnaryRows<
  UnaryOps<T> &
    PowNumber<T> &
    MathOps<T> &
    ActivationOps<T> &
    StatisticsOps<T> &
    Omit<ReduceOps<T>, 'argmax'> &
    ViewOps<T> &
    Pick<LossOps<T>, 'softmax' | 'logSoftmax'>
>
export type BinaryTable = BinaryRows<BinaryOps<T> & PowOps<T> & ArithmeticOps<T> & MatmulOps<T>>
export type WhereTable = BinaryRows<Pick<IndexOps<T>, 'where'>>
export type LookupTable = LookupRows<Omit<IndexOps<T>, 'where'> & Omit<LossOps<T>, 'softmax' | 'logSoftmax'>>
export type ListTable = ListRows<JoinOps<T>>

/** A power whose exponent is a number: it saves no exponent. */
interface PowNumber<T> {
  pow(x: T, exponent: number): T
}

const elementwise: UnaryRows<UnaryOps<T> & PowNumber<T>> = {
  // −g
  neg: { a: formula([], (g, _, ops) => ops.neg(g)) },
  // g · eᵃ
  exp: { a: formula(['result'], (g, s, ops) => ops.mul(g, s.result)) },
  // g / a
  log: { a: formula(['a'], (g, s, ops) => ops.div(g, s.a)) },
  // g / (2 √a)
  sqrt: { a: formula(['result'], (g, s, ops) => ops.div(g, ops.mul(s.result, 2))) },
  // g · cos a
  sin: { a: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.cos(s.a))) },
  // −g · sin a
  cos: { a: ofTensor(['a'], (g, s, ops) => ops.neg(ops.mul(g, ops.sin(s.a)))) },
  // g · (1 − tanh² a)
  tanh: { a: formula(['result'], (g, s, ops) => ops.tanhBackward(g, s.result)) },
  // g · σ (1 − σ)
  sigmoid: { a: formula(['result'], (g, s, ops) => ops.sigmoidBackward(g, s.result)) },
  // g, but 0 where a ≤ 0 (at 0: 0, at NaN: g, as PyTorch)
  relu: { a: formula(['result'], (g, s, ops) => ops.reluBackward(g, s.result)) },
  // g · sign a
  abs: { a: ofTensor(['a'], (g, s, ops) => ops.mul(g, ops.sign(s.a))) },
  // 0 wherever it is differentiable
  sign: { a: formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory)) },
  clone: { a: formula([], (g) => g) },
  contiguous: { a: formula([], (g) => g) },
  // Back to where it came from.
  to: { a: formula([], (g, s, ops) => ops.to(g, (s.attrs as unknown as readonly Device[])[2]!, s.dtypeA)) },
  // g · e aᵉ⁻¹; 0 for e = 0, also at a = 0
  pow: {
    a: ofTensor(['a'], (g, s, ops) => {
      const e = s.attrs[0]
      if (e === 0) return Tensor.empty(g.dtype, g.shape, g.storage.memory)
      if (e === 1) return g
      return ops.mul(g, ops.mul(e === 2 ? s.a : ops.pow(s.a, e - 1), e))
    }),
  },
  // g where min ≤ a ≤ max
  clamp: {
    a: formula(['a'], (g, s, ops) => {
      const [min, max] = s.attrs
      const above = min === undefined || min === null ? g : ops.where(ops.ge(s.a, min), g, 0)
      return max === undefined || max === null ? above : ops.where(ops.le(s.a, max), above, 0)
    }),
  },
}

const reductions: UnaryRows<Omit<ReduceOps<T>, 'argmax'>> = {
  // g for every summand
  sum: { a: formula([], (g, s, ops) => spread(ops.to(g, s.dtypeA), s.shapeA, s.attrs[0], ops)) },
  // g / n for every summand
  mean: {
    a: formula([], (g, s, ops) =>
      spread(ops.div(ops.to(g, s.dtypeA), Math.max(1, numel(s.shapeA)) / Math.max(1, g.numel)), s.shapeA, s.attrs[0], ops),
    ),
  },
  // g to the maxima, in equal parts where several are equal
  amax: { a: ofTensor(['a', 'result'], (g, s, ops) => extremeSlope(g, s.a, s.result, s.attrs[0], ops)) },
}

const views: Omit<UnaryRows<ViewOps<T>>, 'everyNth' | 'diagonal'> = {
  view: { a: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)) },
  reshape: { a: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)) },
  transpose: { a: formula([], (g, s, ops) => ops.transpose(g, s.attrs[0], s.attrs[1])) },
  permute: { a: formula([], (g, s, ops) => ops.permute(g, inverse(s.attrs[0]))) },
  // the sum over what was spread
  expand: { a: formula([], (g, s) => sumToShape(g, s.shapeA)) },
  squeeze: { a: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)) },
  unsqueeze: { a: formula([], (g, s, ops) => ops.reshape(g, s.shapeA)) },
  // g between zeros
  narrow: {
    a: formula([], (g, s, ops) => {
      const [dim, start, length] = s.attrs
      const d = wrap(dim, s.shapeA.length)
      return pad(g, d, wrap(start, s.shapeA[d]!), length, s.shapeA, ops)
    }),
  },
  select: {
    a: formula([], (g, s, ops) => {
      const d = wrap(s.attrs[0], s.shapeA.length)
      return pad(ops.unsqueeze(g, d), d, wrap(s.attrs[1], s.shapeA[d]!), 1, s.shapeA, ops)
    }),
  },
}

const moreViews: Pick<UnaryRows<ViewOps<T>>, 'everyNth' | 'diagonal'> = {
  // g at every step-th place, zeros between
  everyNth: {
    a: formula([], (g, s, ops) => {
      const [dim, step] = s.attrs
      const places = arange(0, s.shapeA[wrap(dim, g.ndim)]!, step, { dtype: 'int32', device: g.device })
      return ops.indexAdd(Tensor.empty(g.dtype, s.shapeA, g.storage.memory), dim, places, g)
    }),
  },
  // g on the diagonal
  diagonal: {
    a: formula([], (g, s, ops) => {
      const [offset = 0, dim1 = 0, dim2 = 1] = s.attrs
      const [rows, columns] = [s.shapeA[wrap(dim1, s.shapeA.length)]!, s.shapeA[wrap(dim2, s.shapeA.length)]!]
      return ops.movedim(embedDiagonal(ops, g, rows, columns, offset), [-2, -1], [dim1, dim2])
    }),
  },
}

const normalizers: UnaryRows<Pick<LossOps<T>, 'softmax' | 'logSoftmax'>> = {
  // y · (g − Σ g y)
  softmax: {
    a: formula(['result'], (g, s, ops) => ops.softmaxBackward(g, s.result, s.attrs[0])),
  },
  // g − eʸ Σ g
  logSoftmax: {
    a: formula(['result'], (g, s, ops) => ops.logSoftmaxBackward(g, s.result, s.attrs[0])),
  },
}

export const unary: UnaryTable = {
  ...elementwise,
  ...math,
  ...activations,
  ...statistics,
  ...reductions,
  ...views,
  ...moreViews,
  ...normalizers,
}

export const binary: BinaryTable = {
  ...arithmetic,
  // g, g
  add: { a: formula([], (g, s) => sumToShape(g, s.shapeA)), b: formula([], (g, s) => sumToShape(g, s.shapeB)) },
  // g, −g
  sub: { a: formula([], (g, s) => sumToShape(g, s.shapeA)), b: formula([], (g, s, ops) => ops.neg(sumToShape(g, s.shapeB))) },
  // g b, g a
  mul: {
    a: formula(['b'], (g, s, ops) => sumToShape(ops.mul(g, s.b), s.shapeA)),
    b: formula(['a'], (g, s, ops) => sumToShape(ops.mul(g, s.a), s.shapeB)),
  },
  // g / b, −g a / b²
  div: {
    a: formula(['b'], (g, s, ops) => sumToShape(ops.div(g, s.b), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(ops.mul(ops.neg(g), ops.div(ops.div(s.a, s.b), s.b)), s.shapeB)),
  },
  // g to the one that won, g / 2 where they are equal, g to both where one is NaN (as PyTorch)
  maximum: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(share(g, ops.lt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(share(g, ops.gt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeB)),
  },
  minimum: {
    a: formula(['a', 'b'], (g, s, ops) => sumToShape(share(g, ops.gt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeA)),
    b: formula(['a', 'b'], (g, s, ops) => sumToShape(share(g, ops.lt(s.a, s.b), ops.eq(s.a, s.b), ops), s.shapeB)),
  },
  // g bᵀ, aᵀ g
  matmul: {
    a: formula(['b'], (g, s, ops) => matmulGradA(g, s.b as Tensor, s.shapeA, ops)),
    b: formula(['a'], (g, s, ops) => matmulGradB(g, s.a as Tensor, s.shapeB, ops)),
  },
  bmm: {
    a: formula(['b'], (g, s, ops) => ops.bmm(g, ops.transpose(s.b as Tensor, 1, 2))),
    b: formula(['a'], (g, s, ops) => ops.bmm(ops.transpose(s.a as Tensor, 1, 2), g)),
  },
}

export const where: WhereTable = {
  // g where the condition holds, g where it does not
  where: {
    a: formula(['index'], (g, s, ops) => sumToShape(ops.where(s.index, g, 0), s.shapeA)),
    b: formula(['index'], (g, s, ops) => sumToShape(ops.where(s.index, 0, g), s.shapeB)),
  },
}

export const lookup: LookupTable = {
  // rows of g added up by index
  embedding: { a: formula(['index'], (g, s, ops) => ops.embeddingBackward(g, s.index, s.shapeA[0]!)) },
  // rows of g picked by index
  embeddingBackward: { a: formula(['index'], (g, s, ops) => ops.embedding(g, s.index)) },
  // −g / N at the target
  nllLoss: { a: formula(['index'], (g, s, ops) => nllGrad(g, s.index, s.shapeA, s.attrs[0], ops)) },
  // of logSoftmax a, from that of nllLoss: as PyTorch, which has two nodes
  crossEntropy: {
    a: ofTensor(['a', 'index'], (g, s, ops) =>
      ops.logSoftmaxBackward(nllGrad(g, s.index, s.shapeA, s.attrs[0], ops), ops.logSoftmax(s.a, 1), 1),
    ),
  },
}

export const lists: ListTable = {
  cat: {
    each: (g, i, shapes, dim, ops) => {
      const d = wrap(dim, g.ndim)
      // A one-dimensional empty tensor joins anything (PyTorch's legacy rule) and has no extent there.
      let start = 0
      for (let j = 0; j < i; j++) start += shapes[j]![d] ?? 0
      const shape = shapes[i]!
      return shape.length === g.ndim ? ops.narrow(g, d, start, shape[d]!) : Tensor.empty(g.dtype, shape, g.storage.memory)
    },
  },
  stack: { each: (g, i, _, dim, ops) => ops.select(g, wrap(dim, g.ndim), i) },
}

function inverse(dims: readonly number[]): number[] {
  const result = new Array<number>(dims.length)
  dims.forEach((dim, i) => {
    result[wrap(dim, dims.length)] = i
  })
  return result
}

/** `g` at `start` of dimension `dim`, zeros around it, up to `shape`. */
function pad(g: Tensor, dim: number, start: number, length: number, shape: Shape, ops: TensorOps): Tensor {
  if (length === shape[dim]) return g
  const pads = new Array<number>(2 * (shape.length - dim)).fill(0)
  pads[pads.length - 2] = start
  pads[pads.length - 1] = shape[dim]! - start - length
  return ops.constantPad(g, pads, 0)
}

/** 0 where it `loses`, half of g where it `ties`, else g. */
function share(g: Tensor, loses: Tensor, ties: Tensor, ops: TensorOps): Tensor {
  return ops.where(loses, 0, ops.where(ties, ops.mul(g, 0.5), g))
}

/**
 * Gradient of a in matmul(a, b). Vectors become matrices for the time being (a a row, b a column), as matmul treats them; what a broadcast
 * over batches is summed.
 */
function matmulGradA(g: Tensor, b: Tensor, shapeA: Shape, ops: TensorOps): Tensor {
  if (shapeA.length === 2 && b.ndim === 2) return ops.matmul(g, ops.transpose(b, 0, 1))
  const g2 = asMatrix(g, shapeA, b.shape, ops)
  const b2 = b.ndim === 1 ? ops.unsqueeze(b, 1) : b
  const a2Shape = shapeA.length === 1 ? [1, ...shapeA] : shapeA
  return ops.reshape(sumToShape(ops.matmul(g2, ops.transpose(b2, -2, -1)), a2Shape), shapeA)
}

/** Gradient of b in matmul(a, b). */
function matmulGradB(g: Tensor, a: Tensor, shapeB: Shape, ops: TensorOps): Tensor {
  if (shapeB.length === 2 && a.ndim === 2) return ops.matmul(ops.transpose(a, 0, 1), g)
  const g2 = asMatrix(g, a.shape, shapeB, ops)
  const a2 = a.ndim === 1 ? ops.unsqueeze(a, 0) : a
  const b2Shape = shapeB.length === 1 ? [...shapeB, 1] : shapeB
  if (b2Shape.length === 2 && a2.ndim > 2) {
    // One matrix served all batches: one large product does the sum over them, too.
    const [k, n] = b2Shape as [number, number]
    const rows = numel(a2.shape.slice(0, -1))
    return ops.reshape(ops.matmul(ops.transpose(ops.reshape(a2, [rows, k]), 0, 1), ops.reshape(g2, [rows, n])), shapeB)
  }
  return ops.reshape(sumToShape(ops.matmul(ops.transpose(a2, -2, -1), g2), b2Shape), shapeB)
}

/** The gradient of a product with the dimensions that matmul dropped because a or b was a vector. */
function asMatrix(g: Tensor, shapeA: Shape, shapeB: Shape, ops: TensorOps): Tensor {
  const withColumn = shapeB.length === 1 ? ops.unsqueeze(g, -1) : g
  return shapeA.length === 1 ? ops.unsqueeze(withColumn, -2) : withColumn
}

/** The gradient of nllLoss for logp [N, C]: minus the row's factor at the target, 0 elsewhere. */
function nllGrad(g: Tensor, target: Tensor, shape: Shape, reduction: Reduction | undefined, ops: TensorOps): Tensor {
  const [rows, classes] = shape as [number, number]
  if (!g.requiresGrad) {
    const each = reduction === 'none' || reduction === 'sum' || rows === 1 ? g : raw.div(g, rows)
    return raw.nllLossBackward(each, target, classes)
  }
  const oneHot = ops.to(ops.eq(ops.unsqueeze(target, 1), arange(0, classes, 1, { dtype: 'int32', device: g.device })), g.dtype)
  return ops.mul(oneHot, ops.neg(perRow(g, shape, reduction, ops)))
}

/** The gradient of a loss as a factor for each row of [N, C]; 'mean' is the default of all losses. */
function perRow(g: Tensor, shape: Shape, reduction: Reduction | undefined, ops: TensorOps): Tensor {
  if (reduction === 'none') return ops.unsqueeze(g, 1)
  return reduction === 'sum' ? g : ops.div(g, shape[0]!)
}
