/**
 * The names and argument lists of all operations, once. `raw/` implements them without gradients, autograd wraps them (and its table of
 * derivatives is typed over these names), `Tensor` has them as methods. Generic in the tensor type, so that it imports nothing above it.
 * Semantics, broadcasting and promotion are PyTorch's functions of the same name unless a line says otherwise.
 */
import type { DType } from '../values/dtype.js'
import type { DimsArg } from '../values/shape.js'
import type { ArithmeticCompositeOps, ArithmeticOps, BitOps, DivOptions, PowOps } from './ops-arithmetic.js'
import type { DerivativeOps, GeluOptions, SoftplusOptions } from './ops-derivative.js'
import type { InPlaceFormOps } from './ops-in-place.js'
import type { ContractionOps, IndexingOps, LookupOps, RearrangeOps } from './ops-indexing.js'
import type { EmbeddingOps, LossCompositeOps, NeuralCompositeOps, NeuralOps, Reduction } from './ops-neural.js'
import type { ArgOps, ReduceCompositeOps, ReduceOptions, StatisticsOps } from './ops-reduce.js'

export type { Reduction } from './ops-neural.js'
export type { DimsArg, GeluOptions, SoftplusOptions }

/** What operations know of a device; `tensor/device.ts` has the whole. */
export interface DeviceLike {
  readonly spec: string
  readonly type: string
}

/** Element-wise functions of one tensor. Those that only exist for real numbers turn int32 and bool into float32 first. */
export interface UnaryOps<T> {
  neg(x: T): T
  exp(x: T): T
  log(x: T): T
  sqrt(x: T): T
  sin(x: T): T
  cos(x: T): T
  tanh(x: T): T
  sigmoid(x: T): T
  relu(x: T): T
  abs(x: T): T
  sign(x: T): T
  /** A contiguous copy. */
  clone(x: T): T
  /** `x` itself when it is contiguous, else a copy. */
  contiguous(x: T): T
  /** `x` itself when it has that dtype and lies on that device, else a copy. */
  to(x: T, target: string | DeviceLike | T, dtype?: DType): T
  /** null or undefined: no bound on that side; at least one is given. */
  clamp(x: T, min?: number | null, max?: number | null): T
}

/** More functions of one tensor; int32 and bool become float32 first, unless a line says otherwise. */
export interface MathOps<T> {
  /** The four roundings leave int32 as it is and refuse bool. */
  floor(x: T): T
  ceil(x: T): T
  /** Halves go to the even neighbour. */
  round(x: T): T
  trunc(x: T): T
  reciprocal(x: T): T
  rsqrt(x: T): T
  /** x · x; int32 stays, bool becomes int32. */
  square(x: T): T
  log1p(x: T): T
  expm1(x: T): T
  log2(x: T): T
  log10(x: T): T
  exp2(x: T): T
  tan(x: T): T
  sinh(x: T): T
  cosh(x: T): T
  asin(x: T): T
  acos(x: T): T
  atan(x: T): T
  erf(x: T): T
}

/** Activations, `torch.nn.functional`'s; real numbers only. */
export interface ActivationOps<T> {
  /** x where positive, else x · negativeSlope (default 0.01). */
  leakyRelu(x: T, negativeSlope?: number): T
  gelu(x: T, options?: GeluOptions): T
  /** x σ(x) */
  silu(x: T): T
  /** log(1 + exp(beta x)) / beta */
  softplus(x: T, options?: SoftplusOptions): T
  /** x where positive, else alpha (eˣ − 1); alpha is 1 by default. */
  elu(x: T, alpha?: number): T
}

/** Broadcasting; one of the two may be a number. An integer-valued number counts as an integer for promotion. */
export interface BinaryOps<T> {
  add(a: T | number, b: T | number): T
  sub(a: T | number, b: T | number): T
  mul(a: T | number, b: T | number): T
  /** True division, in float32 for integers, unless a roundingMode is given. */
  div(a: T | number, b: T | number, options?: DivOptions): T
  maximum(a: T | number, b: T | number): T
  minimum(a: T | number, b: T | number): T
}

/** Results are bool. */
export interface CompareOps<T> {
  eq(a: T | number, b: T | number): T
  ne(a: T | number, b: T | number): T
  lt(a: T | number, b: T | number): T
  le(a: T | number, b: T | number): T
  gt(a: T | number, b: T | number): T
  ge(a: T | number, b: T | number): T
}

/** Without dims: over all elements. */
export interface ReduceOps<T> {
  /** int32 and bool sum to int32. */
  sum(x: T, dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): T
  /** Floating point only. */
  mean(x: T, dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): T
  amax(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** int32; the index of the first maximum. */
  argmax(x: T, dim?: number, keepdim?: boolean): T
}

export interface MatmulOps<T> {
  matmul(a: T, b: T): T
  bmm(a: T, b: T): T
}

/** These share their input's storage (reshape: when it can). */
export interface ViewOps<T> {
  view(x: T, shape: readonly number[]): T
  reshape(x: T, shape: readonly number[]): T
  transpose(x: T, dim0: number, dim1: number): T
  permute(x: T, dims: readonly number[]): T
  /** −1 keeps an extent. */
  expand(x: T, shape: readonly number[]): T
  /** Drops dimensions of extent 1: all, or those named that have it. */
  squeeze(x: T, dims?: DimsArg): T
  unsqueeze(x: T, dim: number): T
  narrow(x: T, dim: number, start: number, length: number): T
  select(x: T, dim: number, index: number): T
  /** Elements 0, step, 2 · step, … of a dimension; step ≥ 1. Users have slice(). */
  everyNth(x: T, dim: number, step: number): T
  /** […, k]: the elements of the plane dim1 × dim2 whose column is row + offset, as the last dimension. */
  diagonal(x: T, offset?: number, dim1?: number, dim2?: number): T
}

export interface JoinOps<T> {
  cat(tensors: readonly T[], dim?: number): T
  stack(tensors: readonly T[], dim?: number): T
}

export interface IndexOps<T> {
  where(cond: T, a: T | number, b: T | number): T
  /** weight [V, D], indices int32 of any shape → […indices, D]. */
  embedding(weight: T, indices: T): T
  /** grad […indices, D] → [V, D]: rows of grad added up by index. */
  embeddingBackward(grad: T, indices: T, rows: number): T
}

export interface LossOps<T> {
  softmax(x: T, dim: number): T
  logSoftmax(x: T, dim: number): T
  /** logp [N, C], target int32 [N] → [] or, with 'none', [N]. No class weights, no ignored index. */
  nllLoss(logp: T, target: T, reduction?: Reduction): T
  /** logits [N, C], target int32 [N]: nllLoss of logSoftmax. */
  crossEntropy(logits: T, target: T, reduction?: Reduction): T
}

/** Write into `x`, raise its storage's version and return `x`. `y` broadcasts to x's shape and converts to its dtype. */
export interface InPlaceOps<T> {
  /** x += alpha · y */
  add_(x: T, y: T | number, alpha?: number): T
  sub_(x: T, y: T | number, alpha?: number): T
  mul_(x: T, y: T | number): T
  div_(x: T, y: T | number): T
  copy_(x: T, src: T): T
  fill_(x: T, value: number | boolean): T
  zero_(x: T): T
}

/** Ops with kernels and a row in the table of derivatives. */
export interface PrimitiveOps<T>
  extends UnaryOps<T>,
    MathOps<T>,
    ActivationOps<T>,
    BinaryOps<T>,
    CompareOps<T>,
    PowOps<T>,
    ArithmeticOps<T>,
    BitOps<T>,
    ReduceOps<T>,
    StatisticsOps<T>,
    ArgOps<T>,
    MatmulOps<T>,
    ViewOps<T>,
    JoinOps<T>,
    IndexOps<T>,
    LossOps<T>,
    IndexingOps<T>,
    NeuralOps<T>,
    DerivativeOps<T>,
    InPlaceOps<T> {}

/** Ops written once over others (`composite/`), which makes them differentiable as often as those are. */
export interface CompositeOps<T>
  extends RearrangeOps<T>,
    LookupOps<T>,
    ContractionOps<T>,
    ActivationCompositeOps<T>,
    LogicOps<T>,
    ArithmeticCompositeOps<T>,
    ReduceCompositeOps<T>,
    NeuralCompositeOps<T> {}

/** `torch.nn.functional`'s. */
export interface ActivationCompositeOps<T> {
  /** x between its bounds (defaults −1 and 1); the gradient at a bound is 0, where clamp's is 1. */
  hardtanh(x: T, min?: number, max?: number): T
  relu6(x: T): T
  /** log σ(x) */
  logSigmoid(x: T): T
  /** x tanh(softplus x) */
  mish(x: T): T
  /** x / (1 + |x|) */
  softsign(x: T): T
  /** x − tanh x */
  tanhshrink(x: T): T
}

/** Of `nanToNum`. */
export interface NanToNumOptions {
  /** In the place of NaN; default 0. */
  readonly nan?: number
  /** In the place of ±∞; by default the largest finite numbers of the dtype. */
  readonly posinf?: number
  /** In the place of −∞; by default the least finite number of the dtype. */
  readonly neginf?: number
}

/** Results are bool, except nanToNum's. Numbers count as true unless they are 0; NaN is true. */
export interface LogicOps<T> {
  isNaN(x: T): T
  isInf(x: T): T
  isFinite(x: T): T
  nanToNum(x: T, options?: NanToNumOptions): T
  logicalNot(x: T): T
  logicalAnd(a: T, b: T): T
  logicalOr(a: T, b: T): T
  logicalXor(a: T, b: T): T
}

/** A composite may extend the primitive of its name (`crossEntropy`: to weights, smoothing and more dimensions). */
export interface Ops<T>
  extends Omit<PrimitiveOps<T>, keyof LossCompositeOps<T> | keyof EmbeddingOps<T>>,
    CompositeOps<T>,
    InPlaceFormOps<PrimitiveOps<T> & CompositeOps<T>, T> {}
