/**
 * The kernels of neural networks: convolutions, pooling, normalisation. A part of the table of `table.ts`, whose promises hold here too. All
 * buffers are dense and row-major; images are [N, C, H, W].
 */
import type { TypedArray } from '../dtype.js'

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

/** Kernel op → kernel, for one dtype. */
export interface NeuralKernelMap<A extends TypedArray> {
  /** x, weight → y */
  conv2d: ConvKernel<A>
  /** The adjoint in x: y's gradient, weight → x's gradient. */
  conv2dInput: ConvKernel<A>
  /** The adjoint in the weight: x, y's gradient → the weight's gradient. */
  conv2dWeight: ConvKernel<A>
}

export const NEURAL_KERNEL_OPS = [
  'conv2d',
  'conv2dInput',
  'conv2dWeight',
] as const satisfies readonly (keyof NeuralKernelMap<Float32Array>)[]
