/** The options of operations, and the names of several results. Generic in the tensor type, so that it imports nothing above it. */
import type { DType } from './dtype.js'

/** Options of `div`. */
export interface DivOptions {
  /** Whether to round the quotient: 'floor' towards −∞, 'trunc' towards 0. Integers then stay integers. Default null: no rounding. */
  readonly roundingMode?: 'floor' | 'trunc' | null
}

/** Options of `addcmul` and `addcdiv`. */
export interface ValueOptions {
  /** The factor of the product or quotient; default 1. */
  readonly value?: number
}

/** Options of `isclose` and `allclose`. */
export interface IsCloseOptions {
  /** The part of the allowed difference, atol + rtol · |b|, that depends on b. Default 1e-5. */
  readonly rtol?: number
  /** The part of the allowed difference, atol + rtol · |b|, that does not depend on b. Default 1e-8. */
  readonly atol?: number
  /** Whether NaN is close to NaN; default false. */
  readonly equalNan?: boolean
}

/** Options of `gelu`. */
export interface GeluOptions {
  /** 'none' (the default) is x Φ(x); 'tanh' approximates Φ by tanh. */
  readonly approximate?: 'none' | 'tanh'
}

/** Options of `softplus`. */
export interface SoftplusOptions {
  /** The factor of x; default 1. */
  readonly beta?: number
  /** Where beta · x is above this, the result is x. Default 20. */
  readonly threshold?: number
}

/** How `pad` fills the border of a tensor: with one value, its mirrored elements, its outermost elements, or its elements from the opposite side. */
export type PadMode = 'constant' | 'reflect' | 'replicate' | 'circular'

/** Options of `pad`. */
export interface PadOptions {
  /** How to fill the border; default 'constant'. */
  readonly mode?: PadMode
  /** The value of mode 'constant'; default 0. */
  readonly value?: number
}

/** `'start:end'` or `'start:end:step'` as in Python. Each part may be left out; negative bounds count from the end; step is at least 1. */
export type RangeText = `${number | ''}:${number | ''}` | `${number | ''}:${number | ''}:${number | ''}`

/**
 * One entry of an index, as between Python's brackets. A number removes a dimension, a range cuts a dimension, and null (None) adds one of extent 1. '...'
 * means all dimensions that are not named. An int32 tensor picks elements by index; a bool tensor picks the elements where it is true.
 */
export type IndexSpec<T> = number | RangeText | '...' | null | T

/** Options of `addmm` and `baddbmm`: their factors. */
export interface AddmmOptions {
  /** The factor of the tensor to which the product is added; default 1. If 0, NaN and infinities in that tensor do not count. */
  readonly beta?: number
  /** The factor of the product; default 1. */
  readonly alpha?: number
}

/** Options of `cosineSimilarity`. */
export interface SimilarityOptions {
  /** The dimension of the vectors; default 1. */
  readonly dim?: number
  /** The least value of the product of the two norms, by which the result divides; default 1e-8. */
  readonly eps?: number
}

/** Options of `pairwiseDistance`. */
export interface DistanceOptions {
  /** The p of the norm; default 2. */
  readonly p?: number
  /** Added to each difference; default 1e-6. */
  readonly eps?: number
  /** Whether to keep the last dimension, with extent 1; default false. */
  readonly keepdim?: boolean
}

/** Options of `sum` and `mean`. */
export interface ReduceOptions {
  /** The dtype to which x is converted first. Default: the dtype of x. */
  readonly dtype?: Exclude<DType, 'bool'>
}

/** Options of `var`, `std` and `varMean`. */
export interface VarianceOptions {
  /** The number that is subtracted from the number of elements in the divisor. Default 1 (Bessel's correction); 0 gives the variance of the population. */
  readonly correction?: number
}

/** Values and their indices. */
export interface ValuesAndIndices<T> {
  /** The values, of the tensor's dtype. */
  readonly values: T
  /** The positions of the values; int32. */
  readonly indices: T
}

/** Options of `sort` and `argsort`. */
export interface SortOptions {
  /** Whether to sort from the largest to the smallest; default false. */
  readonly descending?: boolean
}

/** Options of `topk`. */
export interface TopkOptions {
  /** Whether to return the largest values; default true. If false, the smallest values. */
  readonly largest?: boolean
}

/** Options of `nanToNum`. */
export interface NanToNumOptions {
  /** The number that replaces NaN; default 0. */
  readonly nan?: number
  /** The number that replaces +∞; default: the largest finite number of the dtype. */
  readonly posinf?: number
  /** The number that replaces −∞; default: the smallest finite number of the dtype. */
  readonly neginf?: number
}

/** `max` and `min`: of all elements a tensor, along a dimension the values and their places. */
export interface ExtremeOf<T> {
  (x: T): T
  (x: T, dim: number, keepdim?: boolean): ValuesAndIndices<T>
}
