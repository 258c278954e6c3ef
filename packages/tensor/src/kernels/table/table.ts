/**
 * Kernels over arrays of this process: op × dtype → kernel or unsupported(reason), total by type (a gap does not compile). Above it stands the table of
 * operands (`operands.ts`, whose promises hold here too), which `over-arrays.ts` makes of this one; below it backends only compute.
 *
 * - Buffers are flat arrays. Offsets and strides count elements. Strides may be 0 (broadcast); they are never negative.
 * - `flat` means: the operands are dense runs of `n` elements from their offsets on (or one repeated element: step 0). `strided` takes the
 *   iteration shape and one stride per dimension and operand; its length may be 0 (0-d). `n` and extents may be 0: then nothing is written.
 */
import type { ArrayOf, DType, TypedArray } from '../../values/dtype.js'
import { GRADIENTS } from '../elementwise/activations.js'
import { BINARY } from '../elementwise/binary.js'
import { COMPARE } from '../elementwise/compare.js'
import { UNARY } from '../elementwise/unary.js'
import { NEURAL_KERNEL_OPS, type NeuralKernelMap } from './neural.js'

export type {
  AvgPoolGeometry,
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvGeometry,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
  PoolGeometry,
} from './neural.js'

/**
 * `sum`, `prod` (dtype kept; never asked on bool), `amax`, `amin` (NaN wins), `argmax`, `argmin` (int32 output; first of equals; the first NaN
 * wins). k ≥ 1 for the last four.
 */
export const REDUCE_OPS = ['sum', 'prod', 'amax', 'amin', 'argmax', 'argmin'] as const
/** Running sums and products along the middle axis of [outer, k, inner]; `reverseCumsum` runs from the end. Never asked on bool. */
export const SCAN_OPS = ['cumsum', 'cumprod', 'reverseCumsum'] as const
/** From the gradient and the result: y (g − Σ g y) and g − eʸ Σ g, sums along the middle axis. */
export const GRAD_ROWS_OPS = ['softmaxBackward', 'logSoftmaxBackward'] as const
/** Along the middle axis of [outer, k, inner], with the maximum subtracted first. */
export const SOFTMAX_OPS = ['softmax', 'logSoftmax'] as const

/** Reading and writing at indices (`IndexKernel`). */
export const INDEX_OPS = ['indexSelect', 'gather', 'indexAdd', 'scatterAdd', 'scatter'] as const

export type UnaryOp = keyof typeof UNARY
export type BinaryOp = keyof typeof BINARY
export type CompareOp = keyof typeof COMPARE
export type ReduceOp = (typeof REDUCE_OPS)[number]
export type ScanOp = (typeof SCAN_OPS)[number]
export type GradOp = keyof typeof GRADIENTS
export type GradRowsOp = (typeof GRAD_ROWS_OPS)[number]
export type SoftmaxOp = (typeof SOFTMAX_OPS)[number]
export type IndexOp = (typeof INDEX_OPS)[number]

export const UNARY_OPS = Object.keys(UNARY) as readonly UnaryOp[]
export const BINARY_OPS = Object.keys(BINARY) as readonly BinaryOp[]
export const COMPARE_OPS = Object.keys(COMPARE) as readonly CompareOp[]
export const GRAD_OPS = Object.keys(GRADIENTS) as readonly GradOp[]

export type Dims = readonly number[]

/** out is dense in both entries. */
export interface UnaryKernel<A extends TypedArray> {
  flat(n: number, x: A, xOffset: number, out: A, outOffset: number, p0: number, p1: number): void
  strided(shape: Dims, x: A, xOffset: number, xStrides: Dims, out: A, outOffset: number, p0: number, p1: number): void
}

/** `O` is the output's array: the input's for BINARY_OPS, Uint8Array for COMPARE_OPS. Steps are 0 (one repeated element) or 1. */
export interface BinaryKernel<A extends TypedArray, O extends TypedArray> {
  flat(n: number, a: A, aOffset: number, aStep: number, b: A, bOffset: number, bStep: number, out: O, outOffset: number): void
  strided(
    shape: Dims,
    a: A,
    aOffset: number,
    aStrides: Dims,
    b: A,
    bOffset: number,
    bStrides: Dims,
    out: O,
    outOffset: number,
    outStrides: Dims,
  ): void
}

/** out = cond ? a : b, out dense. */
export interface WhereKernel<A extends TypedArray> {
  flat(
    n: number,
    cond: Uint8Array,
    condOffset: number,
    condStep: number,
    a: A,
    aOffset: number,
    aStep: number,
    b: A,
    bOffset: number,
    bStep: number,
    out: A,
    outOffset: number,
  ): void
  strided(
    shape: Dims,
    cond: Uint8Array,
    condOffset: number,
    condStrides: Dims,
    a: A,
    aOffset: number,
    aStrides: Dims,
    b: A,
    bOffset: number,
    bStrides: Dims,
    out: A,
    outOffset: number,
  ): void
}

export interface AxpyKernel<A extends TypedArray> {
  flat(n: number, alpha: number, x: A, xOffset: number, xStep: number, out: A, outOffset: number): void
  strided(shape: Dims, alpha: number, x: A, xOffset: number, xStrides: Dims, out: A, outOffset: number, outStrides: Dims): void
}

export interface CopyKernel<A extends TypedArray> {
  flat(n: number, x: TypedArray, xOffset: number, out: A, outOffset: number): void
  strided(shape: Dims, x: TypedArray, xOffset: number, xStrides: Dims, out: A, outOffset: number, outStrides: Dims): void
}

export interface FillKernel<A extends TypedArray> {
  flat(n: number, value: number, out: A, outOffset: number): void
  strided(shape: Dims, value: number, out: A, outOffset: number, outStrides: Dims): void
}

/** x is dense [outer, k, inner], out dense [outer, inner]; `O` is Int32Array for argmax, argmin. `sum` over k = 0 writes zeros, `prod` ones. */
export interface ReduceKernel<A extends TypedArray, O extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: O, outOffset: number): void
}

/** All dense; gradStep 0 repeats one gradient. */
export interface GradKernel<A extends TypedArray> {
  flat(
    n: number,
    grad: A,
    gradOffset: number,
    gradStep: number,
    x: A,
    xOffset: number,
    out: A,
    outOffset: number,
    p0: number,
    p1: number,
  ): void
}

/** grad, y and out are dense [outer, k, inner]. */
export interface GradRowsKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, grad: A, gradOffset: number, y: A, yOffset: number, out: A, outOffset: number): void
}

/** As `Variance`. */
export interface VarianceKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: A, outOffset: number, correction: number, root: boolean): void
}

/** Of a product, as `GradRows`. */
export interface ProductBackwardKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, grad: A, gradOffset: number, x: A, xOffset: number, out: A, outOffset: number): void
}

/** out [outer, k, inner]: the indices along k in the order of x; equals keep theirs, NaN is the greatest. All dense. */
export interface ArgsortKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: Int32Array, outOffset: number, descending: boolean): void
}

/** x and out are dense [outer, k, inner]. */
export interface ScanKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: A, outOffset: number): void
}

/** x and out are dense [outer, k, inner]. */
export interface SoftmaxKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: A, outOffset: number): void
}

/** out [batch, m, n] dense = a [batch, m, k] · b [batch, k, n], both strided (transposes come as strides; batch stride 0 repeats). k = 0 writes zeros. */
export interface MatmulKernel<A extends TypedArray> {
  run(
    batch: number,
    m: number,
    n: number,
    k: number,
    a: A,
    aOffset: number,
    aBatch: number,
    aRow: number,
    aCol: number,
    b: A,
    bOffset: number,
    bBatch: number,
    bRow: number,
    bCol: number,
    out: A,
    outOffset: number,
  ): void
}

/** out[i] = −x[i, target[i]]; x dense [n, classes]. */
export interface NllKernel<A extends TypedArray> {
  run(n: number, classes: number, x: A, xOffset: number, target: Int32Array, targetOffset: number, out: A, outOffset: number): void
}

/** out [n, classes]: 0, but out[i, target[i]] = −grad[i · gradStep]. Step 0: the same gradient for all. */
export interface NllBackwardKernel<A extends TypedArray> {
  run(
    n: number,
    classes: number,
    grad: A,
    gradOffset: number,
    gradStep: number,
    target: Int32Array,
    targetOffset: number,
    out: A,
    outOffset: number,
  ): void
}

/** As `Indexed`: indexSelect, gather, indexAdd, scatterAdd, scatter; all dense. */
export interface IndexKernel<A extends TypedArray> {
  run(
    outer: number,
    rows: number,
    n: number,
    inner: number,
    x: A,
    xOffset: number,
    index: Int32Array,
    indexOffset: number,
    out: A,
    outOffset: number,
  ): void
}

/** Kernel op → kernel, for one dtype. */
export type ArrayKernelMap<D extends DType> = { [Op in UnaryOp]: UnaryKernel<ArrayOf[D]> } & {
  [Op in BinaryOp]: BinaryKernel<ArrayOf[D], ArrayOf[D]>
} & { [Op in CompareOp]: BinaryKernel<ArrayOf[D], Uint8Array> } & {
  where: WhereKernel<ArrayOf[D]>
  axpy: AxpyKernel<ArrayOf[D]>
  copy: CopyKernel<ArrayOf[D]>
  fill: FillKernel<ArrayOf[D]>
  sum: ReduceKernel<ArrayOf[D], ArrayOf[D]>
  prod: ReduceKernel<ArrayOf[D], ArrayOf[D]>
  amax: ReduceKernel<ArrayOf[D], ArrayOf[D]>
  amin: ReduceKernel<ArrayOf[D], ArrayOf[D]>
  argmax: ReduceKernel<ArrayOf[D], Int32Array>
  argmin: ReduceKernel<ArrayOf[D], Int32Array>
  variance: VarianceKernel<ArrayOf[D]>
  argsort: ArgsortKernel<ArrayOf[D]>
  prodBackward: ProductBackwardKernel<ArrayOf[D]>
  cumprodBackward: ProductBackwardKernel<ArrayOf[D]>
} & { [Op in GradOp]: GradKernel<ArrayOf[D]> } & { [Op in GradRowsOp]: GradRowsKernel<ArrayOf[D]> } & {
  [Op in ScanOp]: ScanKernel<ArrayOf[D]>
} & { [Op in SoftmaxOp]: SoftmaxKernel<ArrayOf[D]> } & {
  matmul: MatmulKernel<ArrayOf[D]>
  nll: NllKernel<ArrayOf[D]>
  nllBackward: NllBackwardKernel<ArrayOf[D]>
} & { [Op in IndexOp]: IndexKernel<ArrayOf[D]> } & NeuralKernelMap<ArrayOf[D]>

/** The names of the operations that have kernels: what `Device.kernelFor` answers for. */
export type KernelOp = keyof ArrayKernelMap<'float32'>

/** Every kernel op by name, for tests and tables; total by construction of the type below. */
export const KERNEL_OPS = [
  ...UNARY_OPS,
  ...BINARY_OPS,
  ...COMPARE_OPS,
  ...REDUCE_OPS,
  ...SCAN_OPS,
  ...GRAD_OPS,
  ...GRAD_ROWS_OPS,
  ...SOFTMAX_OPS,
  'variance',
  'argsort',
  'prodBackward',
  'cumprodBackward',
  'where',
  'axpy',
  'copy',
  'fill',
  'matmul',
  'nll',
  'nllBackward',
  ...INDEX_OPS,
  ...NEURAL_KERNEL_OPS,
] as const satisfies readonly KernelOp[]

/** Says why a backend has no kernel for a cell; the reason reaches the user in KERNEL_UNSUPPORTED. */
export interface Unsupported {
  readonly unsupported: string
}

export function unsupported(reason: string): Unsupported {
  return { unsupported: reason }
}

export function isUnsupported(entry: object): entry is Unsupported {
  return 'unsupported' in entry
}

/** op × dtype → kernel | unsupported(reason), total. */
export type ArrayKernelTable = { readonly [Op in KernelOp]: { readonly [D in DType]: ArrayKernelMap<D>[Op] | Unsupported } }

/** A kernel in the words of its user (`defineKernel`): a name, and the text of a gpu.js function. This object's identity is the kernel's. */
export interface UserKernel {
  readonly name: string
  readonly source: string
  /** What the text calls its inputs: its first parameters, which are arrays. */
  readonly inputs: readonly string[]
}

/** Runs kernels that users write; the promises are those of the table's kernels. */
export interface ArrayUserKernels {
  /** Names what runs them, as `variantOf` does. */
  readonly variant: string
  /**
   * One thread for each of the `n` ≥ 1 elements of out. `args` are dense arrays and numbers, in the order of the source's parameters;
   * `constants` are integers. All arrays are of out's kind. @throws KERNEL_COMPILE, KERNEL_MODE, KERNEL_RESULT, KERNEL_OUT_OF_RANGE,
   * KERNEL_UNSUPPORTED (more elements than it can index, or float64 where the device has none)
   */
  run(
    kernel: UserKernel,
    n: number,
    constants: Readonly<Record<string, number>>,
    args: readonly (Float32Array | Float64Array | number)[],
    out: Float32Array | Float64Array,
    outOffset: number,
  ): void
}

/** Whose kernels run: WebAssembly with SIMD, or plain JavaScript. */
export type BackendName = 'wasm' | 'js'

/** A set of kernels over arrays of this process, made once per thread. Kernels may compile lazily, at their first call. */
export interface ArrayBackend {
  /** The gpu.js kernels are for GPUs; no device of users has them yet. */
  readonly name: BackendName | 'gpujs'
  /** As the user asks for it: 'wasm', 'js'. */
  readonly label: string
  readonly kernels: ArrayKernelTable
  readonly userKernels: ArrayUserKernels
  /** Names the code that would run, without running it: 'loop', 'simd', 'simd tiles', 'gpu.js cpu', …; a function of its arguments alone. */
  variantOf(op: KernelOp, dtype: DType, shape: Dims): string
}
