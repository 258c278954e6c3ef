/**
 * The names and argument lists of the operations that rearrange, join, look up and contract, once, as `ops.ts` has them for all others. Semantics
 * are those of PyTorch's functions of the same name unless a line says otherwise. Indices are int32, or whole numbers in a floating dtype (rule INDEX in KERNELS.md).
 */
import type { DimsArg } from '../values/shape.js'

/** Ops with a node of their own. */
export interface IndexingOps<T> {
  /** x […, extent, …], index [n] → […, n, …]: slices of x along `dim`. */
  indexSelect(x: T, dim: number, index: T): T
  /** out[i, j, k] = x[i, index[i, j, k], k] for dim 1; the result has index's shape. Negative indices are refused. */
  gather(x: T, dim: number, index: T): T
  /** x with src's slices added along `dim`: src […, n, …], index [n]. Sums in the order of the index. */
  indexAdd(x: T, dim: number, index: T, src: T): T
  /** x with out[i, index[i, j, k], k] += src[i, j, k] for dim 1. Sums in the order of `dim`. */
  scatterAdd(x: T, dim: number, index: T, src: T): T
  /** The same with = in place of +=: the last one wins. src may be a number or a boolean. */
  scatter(x: T, dim: number, index: T, src: T | number | boolean): T
  /** `pads`: before and after, from the last dimension on, two numbers each; negative ones cut. */
  constantPad(x: T, pads: readonly number[], value?: number): T
  /** int32 [count, x.ndim]: where x is not 0, in row-major order. No gradient. */
  nonzero(x: T): T
  /** Classes (int32, or whole numbers) of any shape → int32 […, numClasses]. No gradient. */
  oneHot(classes: T, numClasses?: number): T
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

/** Ops written over others (`composite/`): the parts of a shape. Those of the first group share their input's storage where they can. */
export interface RearrangeOps<T> {
  /** Dimensions startDim … endDim (inclusive) as one. A 0-d tensor becomes [1]. */
  flatten(x: T, startDim?: number, endDim?: number): T
  /** Parts of `size` along `dim` (the last may be shorter), or of the sizes given, which add up to the extent. */
  split(x: T, size: number | readonly number[], dim?: number): T[]
  /** At most `count` parts of equal size along `dim`; the last may be shorter. */
  chunk(x: T, count: number, dim?: number): T[]
  /** All slices along `dim`, without it. */
  unbind(x: T, dim?: number): T[]
  /** Every step-th element from start up to (without) end; both may be negative, and are cut to what is there. step ≥ 1. */
  slice(x: T, dim: number, start?: number | null, end?: number | null, step?: number): T
  /** `parts`: into so many, the first ones longer by 1 where it does not divide; or cut at these indices, which may lie outside. */
  tensorSplit(x: T, parts: number | readonly number[], dim?: number): T[]
  /** Dimension `dim` as several, of which one may be −1. */
  unflatten(x: T, dim: number, sizes: readonly number[]): T
  ravel(x: T): T
  /** Dimensions `source` at the places `destination`; the others keep their order. */
  movedim(x: T, source: DimsArg, destination: DimsArg): T
  swapaxes(x: T, dim0: number, dim1: number): T
  broadcastTo(x: T, shape: readonly number[]): T
  broadcastTensors(tensors: readonly T[]): T[]
  viewAs(x: T, other: T): T
  expandAs(x: T, other: T): T
  /** 1-d → the matrix with it on a diagonal; 2-d → its diagonal. */
  diag(x: T, diagonal?: number): T
  /** The last dimension as the diagonal of dim1 × dim2 of the result, zeros elsewhere. */
  diagEmbed(x: T, offset?: number, dim1?: number, dim2?: number): T

  /** Copies. */
  repeat(x: T, repeats: readonly number[]): T
  /** As repeat, but `repeats` may be shorter than x's shape. */
  tile(x: T, repeats: readonly number[]): T
  /** Each element (or slice along `dim`) several times in a row; a tensor gives a count for each. Without `dim` x is flattened. */
  repeatInterleave(x: T, repeats: number | T, dim?: number): T
  /** Without `dims` x is rolled as if flattened. */
  roll(x: T, shifts: DimsArg, dims?: DimsArg): T
  flip(x: T, dims: DimsArg): T
  /** `pads` as in constantPad; the other modes pad the last one to three dimensions and do not cut. */
  pad(x: T, pads: readonly number[], options?: PadOptions): T
  /** 'ij': the i-th result varies along dimension i; 'xy': the first two are exchanged. */
  meshgrid(tensors: readonly T[], indexing?: 'ij' | 'xy'): T[]
  hstack(tensors: readonly T[]): T
  vstack(tensors: readonly T[]): T
}

/** Composites that look up and mask. */
export interface LookupOps<T> {
  /** x[spec, spec, …]: see IndexSpec. A view unless there is a tensor among the specs. */
  index(x: T, specs: readonly IndexSpec<T>[]): T
  /** x with x[specs] = values (broadcast; a number or a boolean is allowed), or += with accumulate. Of equal indices the last wins. */
  indexPut(x: T, specs: readonly IndexSpec<T>[], values: T | number | boolean, accumulate?: boolean): T
  /** Elements of x as if flattened, at indices of any shape; negative ones count from the end. */
  take(x: T, index: T): T
  /** As gather, with x and indices broadcast against each other except in `dim`. Without `dim` x is flattened. */
  takeAlongDim(x: T, index: T, dim?: number): T
  /** x with slices along `dim` at index [n] set to a number, a boolean or a 0-d tensor. */
  indexFill(x: T, dim: number, index: T, value: T | number | boolean): T
  /** x where mask (bool) is false, value (a number, a boolean or a 0-d tensor) elsewhere; they broadcast. The dtype is x's. */
  maskedFill(x: T, mask: T, value: T | number | boolean): T
  /** The elements of x where mask (bool) is true, [count]; they broadcast. */
  maskedSelect(x: T, mask: T): T
  /** The lower triangle of the last two dimensions, zeros above diagonal number `diagonal`. */
  tril(x: T, diagonal?: number): T
  /** indexPut in place: x[specs] = values. */
  indexPut_(x: T, specs: readonly IndexSpec<T>[], values: T | number | boolean, accumulate?: boolean): T
  /** The upper triangle of the last two dimensions, zeros below diagonal number `diagonal`. */
  triu(x: T, diagonal?: number): T
}

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

/** Products of vectors and matrices, composed of `matmul`. */
export interface ContractionOps<T> {
  /** [k], [k] → [] */
  dot(a: T, b: T): T
  /** [m], [n] → [m, n] */
  outer(a: T, b: T): T
  /** [m, k], [k] → [m] */
  mv(a: T, b: T): T
  /** [m, k], [k, n] → [m, n] */
  mm(a: T, b: T): T
  /** beta · x + alpha · a b: a [m, k], b [k, n], x broadcasts to [m, n]. */
  addmm(x: T, a: T, b: T, options?: AddmmOptions): T
  /** The same with batches: a [b, m, k], b [b, k, n]. */
  baddbmm(x: T, a: T, b: T, options?: AddmmOptions): T
  /** Sums over the last `dims` dimensions of a and the first of b, or over dims[0] of a with dims[1] of b. */
  tensordot(a: T, b: T, dims?: number | readonly [readonly number[], readonly number[]]): T
  /**
   * Sums of products by Einstein's convention: 'ij,jk->ik'. Without '->' the letters that come once, in alphabetical order (capitals first),
   * are kept; '...' are the dimensions without letters, which broadcast; a letter that comes twice in one operand takes its diagonal.
   */
  einsum(equation: string, ...operands: readonly (T | readonly T[])[]): T
  /** The sum of the diagonal of a matrix. */
  trace(x: T): T
  /** Σ ab / max(|a| |b|, eps) along `dim`; a and b broadcast. */
  cosineSimilarity(a: T, b: T, options?: SimilarityOptions): T
  /** The p-norm of a − b + eps over the last dimension. */
  pairwiseDistance(a: T, b: T, options?: DistanceOptions): T
}
