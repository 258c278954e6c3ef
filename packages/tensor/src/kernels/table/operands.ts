/**
 * The interface between operations and devices: one table, kernel op × dtype → a function of operands. `raw/` checks shapes, promotes, allocates and
 * calls it; a device computes, wherever its elements are.
 *
 * Promises of the caller (`raw/`), for every family:
 * - All inputs have the dtype that selects the kernel, unless the family says otherwise. The output is explicit and preallocated.
 * - "Dense" means `isContiguous`. Where a family does not say so, an operand may have any strides, which are never negative. Extents may be 0: then
 *   nothing is written.
 * - An output may be the very same view as an input (in place); otherwise it does not overlap any input. Its elements have places of their own.
 * - Indices and targets are within range (but on an asynchronous backend those that its kernels have yet to write cannot be checked here:
 *   there the kernel must not go astray by them). Fresh outputs are zero-filled, and kernels that do not accumulate may not rely on it.
 *
 * Promises of a kernel: it writes all of the output and nothing else, keeps no operand (an asynchronous backend: not beyond
 * `settle()`), and which code runs depends on op, dtype, shape and device alone, not on where an operand lies.
 */
import type { Storage } from '../../heap/storage.js'
import type { DType, TypedArray } from '../../values/dtype.js'
import type { Shape } from '../../values/shape.js'
import type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from './neural.js'
import { type ByOp, type KernelOp, OPS } from './ops.js'

/** A tensor as kernels see it. Offset and strides count elements. */
export interface Operand {
  readonly storage: Storage
  readonly offset: number
  readonly shape: Shape
  readonly strides: Shape
  readonly dtype: DType
  readonly numel: number
  /** Elements lie densely in row-major order from `offset` on. */
  readonly isContiguous: boolean
}

/** The elements of a dense operand of the cpu, as an array of their own. */
export function elementsOf<A extends TypedArray>({ storage, offset, numel }: Operand): A {
  const host = storage.host!
  return (offset === 0 && host.length === numel ? host : host.subarray(offset, offset + numel)) as A
}

/** out is dense, of x's shape. */
export type Unary = (x: Operand, out: Operand, p0: number, p1: number) => void
/** a and b broadcast to out's shape. The output of a comparison is bool. */
export type Binary = (a: Operand, b: Operand, out: Operand) => void
/** out = cond ? a : b, out dense; the others broadcast to its shape. */
export type Where = (cond: Operand, a: Operand, b: Operand, out: Operand) => void
/** out += alpha · x, the one kernel that reads its output. x broadcasts. Rounds as `out + fround(alpha · x)` does (no fused multiply-add). */
export type Axpy = (alpha: number, x: Operand, out: Operand) => void
/** Copies and converts: the table's dtype is the output's, x may have any, and broadcasts. To int32 truncates, to bool is `x != 0` (NaN is true). */
export type Copy = (x: Operand, out: Operand) => void
/** Here elements of out may share their places: all get the same value. */
export type Fill = (value: number, out: Operand) => void
/**
 * Writes `count` random numbers into out, which is dense, from element `from` on: uniform in [0, 1) (int32: 32 random bits), or standard normal, which come in
 * pairs, so that `count` is even (not int32). `words` are the state of a generator's source, and afterwards that from which it continues. The bits are those
 * of `values/draws.ts`.
 */
export type Draw = (words: Int32Array, out: Operand, from: number, count: number) => void
/** All dense; but a grad that is not is one element repeated. */
export type Grad = (grad: Operand, x: Operand, out: Operand, p0: number, p1: number) => void

/** x is dense [outer, k, inner]; out dense, [outer, inner] of reductions (`sum` over k = 0 writes zeros, `prod` ones), as x of scans, softmax and `flip`. */
export type Rows = (x: Operand, out: Operand, outer: number, k: number, inner: number) => void
/** out [outer] = the sums of floats x [parts, outer, part] over its first and last axis, as `sum` of a copy [outer, parts · part] has them; part is a multiple of 64. Dense. */
export type SumApart = (x: Operand, out: Operand, parts: number, outer: number, part: number) => void
/**
 * Variance of x [outer, k, inner] along k: Σ (x − mean)² / max(0, k − correction), in two passes; with `root` its square root, rounded once. out is
 * [outer, inner], dense as x; k = 0 gives NaN.
 */
export type Variance = (x: Operand, out: Operand, outer: number, k: number, inner: number, correction: number, root: boolean) => void
/**
 * out [outer, m, inner] int32: the first m of the indices along k in the order of x [outer, k, inner]; equals keep theirs, NaN is the greatest. All dense,
 * m ≤ k.
 */
export type Argsort = (x: Operand, out: Operand, outer: number, k: number, m: number, inner: number, descending: boolean) => void
/** out = x [outer, rows, columns], both dense, with 0 above diagonal number `diagonal` (`triu`: below it). */
export type Triangle = (x: Operand, out: Operand, outer: number, rows: number, columns: number, diagonal: number) => void
/**
 * Derivatives along rows, all dense: of softmax by its result y, and of a product by each of its factors x, without a division (factors may be 0). y, x and
 * out are [outer, k, inner], and so is grad, but of `prodBackward`: [outer, inner]. `prodBackward`: out = grad · Π of the other x. `cumprodBackward`:
 * out i = Σ over j ≥ i of grad j · Π of x 0 … j without x i.
 */
export type GradRows = (grad: Operand, x: Operand, out: Operand, outer: number, k: number, inner: number) => void

/**
 * [k]·[k] → [], [m,k]·[k] → [m], [k]·[k,n] → [n], [m,k]·[k,n] → [m,n], with leading batch dimensions that broadcast. Transposes come as strides; out is
 * dense. k = 0 writes zeros. `turned`: b is a matrix [n, k], as a layer's weight is; the view of its transpose would cost a small layer a tenth of its time.
 */
export type Matmul = (a: Operand, b: Operand, out: Operand, turned?: boolean) => void
/** out[i] = −x[i, target[i]]; all dense, x [n, classes], target int32. */
export type Nll = (x: Operand, target: Operand, out: Operand) => void
/** out [n, classes]: 0, but out[i, target[i]] = −grad[i]. All dense; grad of one element: the same for all. */
export type NllBackward = (grad: Operand, target: Operand, out: Operand) => void
/** `nll` of x's logSoftmax. */
export type ClassLoss = (x: Operand, target: Operand, out: Operand) => void
/** out [n, classes] = grad[i] (softmax(x) − 1 at target[i]). All dense; grad of one element: the same for all. */
export type ClassLossBackward = (grad: Operand, x: Operand, target: Operand, out: Operand) => void
/** out [1] = the place of the first of the indices x [n], dense, that is not in 0 … extent − 1 (extent < 2³¹); n if all are. */
export type FirstOutside = (x: Operand, out: Operand, extent: number) => void
/**
 * Movement and sums at integer indices along the middle axis; all operands are dense. `rows` is the extent that the indices point into, n
 * how many there are.
 *
 * - `indexSelect`: x [outer, rows, inner], index [n], out [outer, n, inner]: out[o, i, j] = x[o, index[i], j]. An embedding has outer = 1.
 * - `gather`: x [outer, rows, inner], index and out [outer, n, inner]: out[o, i, j] = x[o, index[o, i, j], j].
 * - `indexAdd`: x [outer, n, inner], index [n], out [outer, rows, inner]: out[o, index[i], j] += x[o, i, j], in order of i.
 * - `scatterAdd`: x and index [outer, n, inner], out [outer, rows, inner]: out[o, index[o, i, j], j] += x[o, i, j], in order of i.
 * - `scatter`: the same with = in place of +=: the last i wins.
 *
 * The last three leave what no index names as it was. Every sum is rounded to the dtype; int32 wraps.
 */
export type Indexed = (x: Operand, index: Operand, out: Operand, outer: number, rows: number, n: number, inner: number) => void

/**
 * The three of a convolution, each bilinear in a and b; all dense. conv2d may take a bias [o]: the kernel adds it to each element of the result, rounded as by
 * a second operation. The other two get null.
 */
export type Conv = (a: Operand, b: Operand, bias: Operand | null, out: Operand, geometry: ConvGeometry) => void
/**
 * out and indices (int32 y · w + x within the plane) of each window's maximum, all dense: the first of equals, the last NaN. A window that sees nothing of the
 * plane, over which its dilation carries it, has the maximum -∞ at its first place that is not before the plane, as in PyTorch.
 */
export type MaxPool = (x: Operand, out: Operand, indices: Operand, geometry: PoolGeometry) => void
/** The means of windows, and their adjoint; both dense. */
export type AvgPool = (x: Operand, out: Operand, geometry: AvgPoolGeometry) => void
/**
 * x normalised, times weight, plus bias (null: 1, 0). `layerNorm`: x [rows, d] along d, with weight and bias [d], mean and spread [rows], the latter
 * 1 / √(variance + eps). `channelNorm`: x [n, c, …] along all but c, with weight, bias, mean and spread [c], the latter the biased variance. All dense.
 */
export type Norm = (
  x: Operand,
  weight: Operand | null,
  bias: Operand | null,
  out: Operand,
  mean: Operand,
  spread: Operand,
  eps: number,
) => void
/** The gradients of x and, where not null, of weight and bias, by what the forward pass gave. layerNorm's has no use for eps. All dense. */
export type NormBackward = (
  grad: Operand,
  x: Operand,
  mean: Operand,
  spread: Operand,
  weight: Operand | null,
  out: Operand,
  weightGrad: Operand | null,
  biasGrad: Operand | null,
  eps: number,
) => void

/**
 * A step of an optimizer: writes p and the states that are not null, all of grad's shape and dense. Every product, sum, quotient and root is rounded to the
 * dtype, in the order in which the formulas of `nn/src/optim` have them. p is multiplied by `factor` first, unless that is 1. The direction is grad, negated
 * where `maximize` is 1, plus weightDecay · p unless weightDecay is 0. The states, and `own`, the numbers of each:
 *
 * - `sgdStep`: velocity; momentum, 1 − dampening, isFirst, nesterov.
 * - `adamStep`: average, average square, largest average square; β₁, 1 − β₁, β₂, 1 − β₂, eps.
 * - `nadamStep`: average, average square; β₁, 1 − β₁, β₂, 1 − β₂, eps, and factors of the new average and of the direction.
 * - `adamaxStep`: average, largest size; β₁, 1 − β₁, β₂, eps.
 * - `rmspropStep`: average square, average, buffer; alpha, 1 − alpha, eps, momentum.
 * - `adagradStep`: sum of squares; eps.
 * - `adadeltaStep`: average square, average square of the steps; rho, 1 − rho, eps.
 */
export type Step = (
  grad: Operand,
  first: Operand | null,
  second: Operand | null,
  third: Operand | null,
  p: Operand,
  numbers: StepNumbers,
) => void
/** `rate` is negative: the step times it is added. */
export type StepNumbers = readonly [rate: number, factor: number, weightDecay: number, maximize: number, ...own: readonly number[]]

/**
 * One step of an LSTM of N rows and width H, all dense: the gates are those of product + inputs, both [N, 4H]. c is [N, H]. Writes `made` [5, N, H], the gates
 * i, f, g, o and tanh(c'), and c' and h' [N, H].
 */
export type LstmCell = (product: Operand, inputs: Operand, c: Operand, made: Operand, nextC: Operand, nextH: Operand) => void
/** Back through `lstmCell`: from gradOut + dh and dc, [N, H] each, to the gates' gradient [N, 4H]; dc becomes the gradient of c. All dense. */
export type LstmCellBackward = (gradOut: Operand, dh: Operand, made: Operand, c: Operand, dc: Operand, dGates: Operand) => void
/**
 * One step of a GRU, all dense: product and inputs [N, 3H], bias [H], h [N, H]. Writes `made` [4, N, H], r, z, q and n as in `gru-layer.ts`, and h' [N, H].
 */
export type GruCell = (product: Operand, inputs: Operand, bias: Operand, h: Operand, made: Operand, nextH: Operand) => void
/** Back through `gruCell`: from gradOut + dh to the gradients of inputs and product [N, 3H], and to that part of h's that goes past the product. All dense. */
export type GruCellBackward = (
  gradOut: Operand,
  dh: Operand,
  made: Operand,
  h: Operand,
  dInputs: Operand,
  dProduct: Operand,
  direct: Operand,
) => void
/**
 * softmax(scale q kᵀ) v in each of [A, B] matrices, with none of which it writes all scores: q [A, B, L, E], k [A, B, S, E], v [A, B, S, V], with rows whose
 * elements are adjacent, and any other strides. Where a bool mask is 0 the score is -∞; another mask is added. It has v's dtype or is bool, shape
 * [A, B, L, S], and adjacent elements in its rows. `isCausal`: row i sees the keys up to i alone. out [A, B, L, V] is dense.
 */
export type Attention = (q: Operand, k: Operand, v: Operand, mask: Operand | null, out: Operand, scale: number, isCausal: boolean) => void
/** The gradients of q, k and v, dense, where not null; grad is as q. */
export type AttentionBackward = (
  grad: Operand,
  q: Operand,
  k: Operand,
  v: Operand,
  mask: Operand | null,
  dq: Operand | null,
  dk: Operand | null,
  dv: Operand | null,
  scale: number,
  isCausal: boolean,
) => void

/** How the kernels of each family are called. */
export interface Forms {
  unary: Unary
  binary: Binary
  compare: Binary
  reduce: Rows
  place: Rows
  scan: Rows
  grad: Grad
  gradRows: GradRows
  softmax: Rows
  variance: Variance
  argsort: Argsort
  flip: Rows
  triangle: Triangle
  productBackward: GradRows
  where: Where
  axpy: Axpy
  copy: Copy
  draw: Draw
  fill: Fill
  matmul: Matmul
  nll: Nll
  nllBackward: NllBackward
  classLoss: ClassLoss
  classLossBackward: ClassLossBackward
  firstOutside: FirstOutside
  index: Indexed
  conv: Conv
  maxPool: MaxPool
  avgPool: AvgPool
  layerNorm: Norm
  layerNormBackward: NormBackward
  channelNorm: Norm
  channelNormBackward: NormBackward
  step: Step
  sumApart: SumApart
  lstmCell: LstmCell
  lstmCellBackward: LstmCellBackward
  gruCell: GruCell
  gruCellBackward: GruCellBackward
  attention: Attention
  attentionBackward: AttentionBackward
}

/** Kernel op → how it is called. */
export type KernelMap = ByOp<Forms>

/** op × dtype → kernel, total: unsupported cells throw KERNEL_UNSUPPORTED. Operations call it. */
export type KernelTable = { readonly [Op in KernelOp]: { readonly [D in DType]: KernelMap[Op] } }

/** A kernel in the words of its user (`defineKernel`): a name, and the text of a gpu.js function. This object's identity is the kernel's. */
export interface UserKernel {
  readonly name: string
  readonly source: string
  /** The names of its inputs: its first parameters, which are arrays. */
  readonly inputs: readonly string[]
}

/** Runs kernels that users write. */
export interface UserKernels {
  /** Names what runs them, as `variantOf` does. */
  readonly variant: string
  /**
   * One thread for each element of out, which has at least one. `args` are numbers and dense operands of out's dtype, in the order of the source's parameters;
   * `constants` are integers. @throws KERNEL_COMPILE, KERNEL_MODE, KERNEL_RESULT, KERNEL_OUT_OF_RANGE, KERNEL_UNSUPPORTED (more elements than it can
   * index, or float64 where the device has none)
   */
  run(kernel: UserKernel, constants: Readonly<Record<string, number>>, args: readonly (Operand | number)[], out: Operand): void
}

/** Kernels whose operands may have any strides, or broadcast. */
export const ELEMENT_WISE: ReadonlySet<KernelOp> = new Set(
  [OPS.unary, OPS.binary, OPS.compare, OPS.where, OPS.axpy, OPS.copy, OPS.fill].flat(),
)
