/** The options of operations, and what several results are called. Generic in the tensor type, so that nothing above is imported. */
import type { DType } from './dtype.js'

/** Of `div`. */
export interface DivOptions {
  /** 'floor': towards −∞; 'trunc': towards 0; integers then stay integers. */
  readonly roundingMode?: 'floor' | 'trunc' | null
}

/** Of `addcmul` and `addcdiv`. */
export interface ValueOptions {
  /** A factor; default 1. */
  readonly value?: number
}

/** Of `isclose` and `allclose`. */
export interface IsCloseOptions {
  /** Allowed is atol + rtol |b|; defaults 1e-5 and 1e-8. */
  readonly rtol?: number
  /** Allowed beside `rtol` |b|; default 1e-8. */
  readonly atol?: number
  /** Whether NaN is close to NaN; default false. */
  readonly equalNan?: boolean
}

/** Of `gelu`. */
export interface GeluOptions {
  /** 'none' (the default): x Φ(x); 'tanh': the approximation by tanh. */
  readonly approximate?: 'none' | 'tanh'
}

/** Of `softplus`. */
export interface SoftplusOptions {
  /** Default 1. */
  readonly beta?: number
  /** Where x · beta is above it, the result is x. Default 20. */
  readonly threshold?: number
}

/** What `pad` puts around a tensor: one value, its elements mirrored, its last ones, or its elements from the other side. */
export type PadMode = 'constant' | 'reflect' | 'replicate' | 'circular'

/** Of `pad`. */
export interface PadOptions {
  /** Default 'constant'. */
  readonly mode?: PadMode
  /** Of 'constant'; default 0. */
  readonly value?: number
}

/** `'start:end'` or `'start:end:step'` as in Python: each part may be left out, negative bounds count from the end, step ≥ 1. */
export type RangeText = `${number | ''}:${number | ''}` | `${number | ''}:${number | ''}:${number | ''}`

/**
 * One entry of an index, as between Python's brackets: a number takes a dimension away, a range cuts it, '...' stands for all dimensions that
 * are not named, null (None) adds one of extent 1; an int32 tensor picks elements, a bool tensor those where it is true.
 */
export type IndexSpec<T> = number | RangeText | '...' | null | T

/** The factors of `addmm` and `baddbmm`. */
export interface AddmmOptions {
  /** The factor of what is added to; default 1. Where it is 0, NaN and infinities there do not count. */
  readonly beta?: number
  /** The factor of the product; default 1. */
  readonly alpha?: number
}

/** Of `cosineSimilarity`. */
export interface SimilarityOptions {
  /** Default 1. */
  readonly dim?: number
  /** The least product of the two norms to divide by; default 1e-8. */
  readonly eps?: number
}

/** Of `pairwiseDistance`. */
export interface DistanceOptions {
  /** The norm's; default 2. */
  readonly p?: number
  /** Added to each difference; default 1e-6. */
  readonly eps?: number
  /** Keeps the last dimension, with extent 1; default false. */
  readonly keepdim?: boolean
}

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

/** Of `nanToNum`. */
export interface NanToNumOptions {
  /** In the place of NaN; default 0. */
  readonly nan?: number
  /** In the place of ±∞; by default the largest finite numbers of the dtype. */
  readonly posinf?: number
  /** In the place of −∞; by default the least finite number of the dtype. */
  readonly neginf?: number
}

/** `max` and `min`: of all elements a tensor, along a dimension the values and where they stood. */
export interface ExtremeOf<T> {
  (x: T): T
  (x: T, dim: number, keepdim?: boolean): ValuesAndIndices<T>
}
