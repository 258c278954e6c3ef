/**
 * Kernels over arrays of this process: op × dtype → kernel or unsupported(reason), total by type (a gap does not compile). Above it stands the table of
 * operands (`operands.ts`, whose promises hold here too), which `over-arrays.ts` makes of this one; below it backends only compute.
 *
 * - Buffers are flat arrays. Offsets and strides count elements. Strides may be 0 (broadcast); they are never negative.
 * - `flat` means: the operands are dense runs of `n` elements from their offsets on (or one repeated element: step 0). `strided` takes the
 *   iteration shape and one stride per dimension and operand; its length may be 0 (0-d). `n` and extents may be 0: then nothing is written.
 */
import type { ArrayOf, DType, TypedArray } from '../../values/dtype.js'
import type {
  AvgPoolKernel,
  ChannelNormBackwardKernel,
  ChannelNormKernel,
  ConvKernel,
  LayerNormBackwardKernel,
  LayerNormKernel,
  MaxPoolKernel,
} from './neural.js'
import { type ByOp, OPS, type OpsOf } from './ops.js'

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

export type UnaryOp = OpsOf<'unary'>
export type BinaryOp = OpsOf<'binary'>
export type CompareOp = OpsOf<'compare'>
export type ReduceOp = OpsOf<'reduce' | 'place'>
export type ScanOp = OpsOf<'scan'>
export type GradOp = OpsOf<'grad'>
export type GradRowsOp = OpsOf<'gradRows'>
export type SoftmaxOp = OpsOf<'softmax'>
export type IndexOp = OpsOf<'index'>

export type Dims = readonly number[]

/** out is dense in both entries. */
export interface UnaryKernel<A extends TypedArray> {
  flat(n: number, x: A, xOffset: number, out: A, outOffset: number, p0: number, p1: number): void
  strided(shape: Dims, x: A, xOffset: number, xStrides: Dims, out: A, outOffset: number, p0: number, p1: number): void
}

/** `O` is the output's array: the input's, or Uint8Array of comparisons. Steps are 0 (one repeated element) or 1. */
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

/** As `GradRows`, all dense; `y` is the result of a softmax, or the argument of a product. */
export interface GradRowsKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, grad: A, gradOffset: number, y: A, yOffset: number, out: A, outOffset: number): void
}

/** As `Variance`. */
export interface VarianceKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: A, outOffset: number, correction: number, root: boolean): void
}

/** out [outer, k, inner]: the indices along k in the order of x; equals keep theirs, NaN is the greatest. All dense. */
export interface ArgsortKernel<A extends TypedArray> {
  run(outer: number, k: number, inner: number, x: A, xOffset: number, out: Int32Array, outOffset: number, descending: boolean): void
}

/** x and out are dense [outer, k, inner]: running sums and products, and softmax. */
export interface ScanKernel<A extends TypedArray> {
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

/** The form of each family's kernels, over arrays `A`. */
export interface ArrayForms<A extends TypedArray> {
  unary: UnaryKernel<A>
  binary: BinaryKernel<A, A>
  compare: BinaryKernel<A, Uint8Array>
  reduce: ReduceKernel<A, A>
  place: ReduceKernel<A, Int32Array>
  scan: ScanKernel<A>
  grad: GradKernel<A>
  gradRows: GradRowsKernel<A>
  softmax: ScanKernel<A>
  variance: VarianceKernel<A>
  argsort: ArgsortKernel<A>
  productBackward: GradRowsKernel<A>
  where: WhereKernel<A>
  axpy: AxpyKernel<A>
  copy: CopyKernel<A>
  fill: FillKernel<A>
  matmul: MatmulKernel<A>
  nll: NllKernel<A>
  nllBackward: NllBackwardKernel<A>
  index: IndexKernel<A>
  conv: ConvKernel<A>
  maxPool: MaxPoolKernel<A>
  avgPool: AvgPoolKernel<A>
  layerNorm: LayerNormKernel<A>
  layerNormBackward: LayerNormBackwardKernel<A>
  channelNorm: ChannelNormKernel<A>
  channelNormBackward: ChannelNormBackwardKernel<A>
}

/** Kernel op → kernel, for one dtype. */
export type ArrayKernelMap<D extends DType> = ByOp<ArrayForms<ArrayOf[D]>>

/** The names of the operations that have kernels: what `Device.kernelFor` answers for. */
export type KernelOp = keyof ArrayKernelMap<'float32'>

/** Every kernel op by name. */
export const KERNEL_OPS = Object.values(OPS).flat() as readonly KernelOp[]

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
