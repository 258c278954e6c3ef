/**
 * The names and argument lists of the reductions beyond `ops.ts`'s first ones, and of running sums; once, as there. Without dims: over all elements.
 */
import type { DType } from '../values/dtype.js'
import type { DimsArg } from '../values/shape.js'

/** Of `sum` and `mean`. */
export interface ReduceOptions {
  /** x is converted to it first. */
  readonly dtype?: Exclude<DType, 'bool'>
}

/** Of `var`, `std` and `varMean`. */
export interface VarianceOptions {
  /** Taken off the number of elements in the divisor; default 1 (Bessel's), 0 for the population's variance. */
  readonly correction?: number
}

/** A value and where it stood. */
export interface ValuesAndIndices<T> {
  /** The values, of the tensor's dtype. */
  readonly values: T
  /** int32 */
  readonly indices: T
}

/** Ops with a row in the table of derivatives. */
export interface StatisticsOps<T> {
  /** int32 and bool multiply to int32; over nothing 1. */
  prod(x: T, dim?: number, keepdim?: boolean): T
  amin(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** Floating point only, as all that follow here up to norm. */
  var(x: T, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): T
  std(x: T, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): T
  logSumExp(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** (Σ |x|ᵖ)^(1/p), p = 2 by default; ±Infinity: the extreme |x|; 0: how many are not 0. */
  norm(x: T, p?: number, dims?: DimsArg, keepdim?: boolean): T
  /** Element i is the sum of the elements 0 … i along `dim`; int32 and bool sum to int32. */
  cumsum(x: T, dim: number): T
  cumprod(x: T, dim: number): T
  /** As cumsum, from the end. Not in PyTorch: it is what the derivative of cumsum needs. */
  reverseCumsum(x: T, dim: number): T
}

/** Their results have no gradient. */
export interface ArgOps<T> {
  /** int32; the index of the first minimum. */
  argmin(x: T, dim?: number, keepdim?: boolean): T
  /** int32: the indices along `dim` (default the last) in the order of x. Equals keep their order, NaN is the greatest. */
  argsort(x: T, dim?: number, options?: SortOptions): T
}

/** Of `sort` and `argsort`. */
export interface SortOptions {
  /** From the largest down; default false. */
  readonly descending?: boolean
}

/** Of `topk`. */
export interface TopkOptions {
  /** The largest (the default) or the smallest. */
  readonly largest?: boolean
}

/** Ops written once over others. */
export interface ReduceCompositeOps<T> {
  /** [variance, mean] */
  varMean(x: T, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): [T, T]
  /** bool: whether one is not 0; over nothing false. */
  any(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** bool: whether none is 0; over nothing true. */
  all(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** Without `dim` the largest of all, NaN first; the gradient goes to all largest in equal parts. */
  max(x: T): T
  /** Along `dim`, with the index of the first of the largest, to which the gradient goes. */
  max(x: T, dim: number, keepdim?: boolean): ValuesAndIndices<T>
  min(x: T): T
  min(x: T, dim: number, keepdim?: boolean): ValuesAndIndices<T>
  /** In the order of argsort; the gradient goes to where the values came from. */
  sort(x: T, dim?: number, options?: SortOptions): ValuesAndIndices<T>
  /** The k largest along `dim` (default the last), from the largest down. */
  topk(x: T, k: number, dim?: number, options?: TopkOptions): ValuesAndIndices<T>
  /** int32: how many are not 0. */
  countNonzero(x: T, dims?: DimsArg): T
}
