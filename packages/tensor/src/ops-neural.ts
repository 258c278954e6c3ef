/**
 * The names and argument lists of the operations of neural networks, once, as `ops.ts` has them for all others. Semantics are those of the functions
 * of the same name in PyTorch's `torch.nn.functional` unless a line says otherwise; shapes are written in its letters: N images (rows), C channels
 * (classes), H height, W width.
 */
import type { ConvGeometry } from './kernels/neural.js'

/** Ops with a node of their own. Tensors come first (null: left out), then attributes, all of them given: composites fill in what users leave out. */
export interface NeuralOps<T> {
  /** x […, in], weight [out, in], bias [out] → […, out]: x · weightᵀ + bias. */
  linear(x: T, weight: T, bias?: T | null): T
  /** @internal x [N, C, H, W], weight [O, C / groups, kH, kW] → [N, O, oH, oW]: what `conv2d` and its siblings stand on. */
  convolution(x: T, weight: T, bias: T | null, geometry: ConvGeometry): T
  /** @internal Its adjoint in x, from grad [N, O, oH, oW] and weight: a transposed convolution. */
  convolutionInput(grad: T, weight: T, geometry: ConvGeometry): T
  /** @internal Its adjoint in the weight. */
  convolutionWeight(x: T, grad: T, geometry: ConvGeometry): T
}

/** One number for both dimensions, or [height, width]. */
export type Pair = number | readonly [height: number, width: number]
export type ConvPadding<P> = P | 'same' | 'valid'

export interface ConvOptions<P> {
  /** Default 1. */
  readonly stride?: P
  /** Zeros on each side (default 0 = 'valid'); 'same': as many as keep the size, one more behind where they are odd, for stride 1 alone. */
  readonly padding?: ConvPadding<P>
  /** Distance of the places that one window reads; default 1. */
  readonly dilation?: P
  /** Into how many groups channels are divided, each with weights of its own; default 1. */
  readonly groups?: number
}

export interface ConvTransposeOptions<P> extends Omit<ConvOptions<P>, 'padding'> {
  /** By how much each side is cut; default 0. */
  readonly padding?: P
  /** By how much the result is longer behind: of the sizes that a convolution maps to the input's, which one; default 0. */
  readonly outputPadding?: P
}

export interface ConvolutionOps<T> {
  /** x [N, C, L] or [C, L], weight [O, C / groups, k], bias [O] → [N, O, oL] or [O, oL]. */
  conv1d(x: T, weight: T, bias?: T | null, options?: ConvOptions<number>): T
  /** x [N, C, H, W] or [C, H, W], weight [O, C / groups, kH, kW], bias [O] → [N, O, oH, oW] or [O, oH, oW]. */
  conv2d(x: T, weight: T, bias?: T | null, options?: ConvOptions<Pair>): T
  /** x [N, C, L] or [C, L], weight [C, O / groups, k], bias [O] → [N, O, oL] or [O, oL]: the gradient of conv1d for its input, as an operation. */
  convTranspose1d(x: T, weight: T, bias?: T | null, options?: ConvTransposeOptions<number>): T
  /** x [N, C, H, W] or [C, H, W], weight [C, O / groups, kH, kW], bias [O] → [N, O, oH, oW] or [O, oH, oW]. */
  convTranspose2d(x: T, weight: T, bias?: T | null, options?: ConvTransposeOptions<Pair>): T
}

/** Ops written once over others. */
export interface NeuralCompositeOps<T> extends ConvolutionOps<T> {}
