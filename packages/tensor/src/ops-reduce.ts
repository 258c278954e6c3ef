/**
 * The names and argument lists of the reductions beyond `ops.ts`'s first ones, and of running sums; once, as there. Without dims: over all elements.
 */
import type { DimsArg } from './shape.js'

export interface VarianceOptions {
  /** Taken off the number of elements in the divisor; default 1 (Bessel's), 0 for the population's variance. */
  readonly correction?: number
}

/** A value and where it stood. */
export interface ValuesAndIndices<T> {
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
}

/** Ops written once over others. */
export interface ReduceCompositeOps<T> {
  /** [variance, mean] */
  varMean(x: T, dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): [T, T]
  /** bool: whether one is not 0; over nothing false. */
  any(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** bool: whether none is 0; over nothing true. */
  all(x: T, dims?: DimsArg, keepdim?: boolean): T
  /** int32: how many are not 0. */
  countNonzero(x: T, dims?: DimsArg): T
}
