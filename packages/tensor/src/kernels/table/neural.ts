/**
 * The kernels of neural networks: convolutions, pooling, normalisation. A part of the table of `table.ts`, whose promises hold here too. All
 * buffers are dense and row-major; images are [N, C, H, W].
 */
import type { TypedArray } from '../../values/dtype.js'

/**
 * One convolution in numbers: x [n, c, h, w] with weight [o, c / groups, kh, kw] → y [n, o, oh, ow]. y[oy, ox] reads x[oy · strideH − padH + ky · dilH, …];
 * what lies outside of x is 0, so padding below and on the right follows from oh and ow.
 */
export interface ConvGeometry {
  readonly n: number
  readonly c: number
  readonly h: number
  readonly w: number
  readonly o: number
  readonly kh: number
  readonly kw: number
  readonly oh: number
  readonly ow: number
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilH: number
  readonly dilW: number
  readonly groups: number
}

/** The three of a convolution, each bilinear in a and b. */
export interface ConvKernel<A extends TypedArray> {
  run(geometry: ConvGeometry, a: A, aOffset: number, b: A, bOffset: number, out: A, outOffset: number): void
}

/** A window that slides over the planes [h, w] of x [planes, h, w] → [planes, oh, ow]; named as in ConvGeometry. */
export interface PoolGeometry {
  readonly planes: number
  readonly h: number
  readonly w: number
  readonly kh: number
  readonly kw: number
  readonly oh: number
  readonly ow: number
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilH: number
  readonly dilW: number
}

/** Windows without dilation, and what their sums are divided by. */
export interface AvgPoolGeometry extends PoolGeometry {
  /** 1: the places of the window within the padded plane; 0: those within the plane. */
  readonly includePad: number
  /** If not 0: this, whatever the window. */
  readonly divisor: number
}

/**
 * out and indices (y · w + x within the plane) of each window's maximum: the first of equals, the last NaN. A window that sees nothing of the plane, over which
 * its dilation carries it, has the maximum -∞ at its first place that is not before the plane, as in PyTorch.
 */
export interface MaxPoolKernel<A extends TypedArray> {
  run(geometry: PoolGeometry, x: A, xOffset: number, out: A, outOffset: number, indices: Int32Array, indicesOffset: number): void
}

/** avgPool2d: x [planes, h, w] → [planes, oh, ow], and its adjoint, back. */
export interface AvgPoolKernel<A extends TypedArray> {
  run(geometry: AvgPoolGeometry, x: A, xOffset: number, out: A, outOffset: number): void
}

/** x [rows, d] normalised along d, times weight [d], plus bias [d] (null: 1, 0); mean [rows] and rstd [rows], 1 / √(variance + eps), go out as well. */
export interface LayerNormKernel<A extends TypedArray> {
  run(
    rows: number,
    d: number,
    eps: number,
    x: A,
    xOffset: number,
    weight: A | null,
    weightOffset: number,
    bias: A | null,
    biasOffset: number,
    out: A,
    mean: A,
    rstd: A,
  ): void
}

/** The gradients of x [rows, d] and, where not null, of weight [d] and bias [d]. mean, rstd and the outputs begin at 0. */
export interface LayerNormBackwardKernel<A extends TypedArray> {
  run(
    rows: number,
    d: number,
    grad: A,
    gradOffset: number,
    x: A,
    xOffset: number,
    mean: A,
    rstd: A,
    weight: A | null,
    weightOffset: number,
    out: A,
    weightGrad: A | null,
    biasGrad: A | null,
  ): void
}

/** As layerNorm, of x [outer, c, inner] along outer and inner, with weight and bias [c]; the variance (biased) goes out instead of rstd. */
export interface ChannelNormKernel<A extends TypedArray> {
  run(
    outer: number,
    c: number,
    inner: number,
    eps: number,
    x: A,
    xOffset: number,
    weight: A | null,
    weightOffset: number,
    bias: A | null,
    biasOffset: number,
    out: A,
    mean: A,
    variance: A,
  ): void
}

export interface ChannelNormBackwardKernel<A extends TypedArray> {
  run(
    outer: number,
    c: number,
    inner: number,
    eps: number,
    grad: A,
    gradOffset: number,
    x: A,
    xOffset: number,
    mean: A,
    variance: A,
    weight: A | null,
    weightOffset: number,
    out: A,
    weightGrad: A | null,
    biasGrad: A | null,
  ): void
}
