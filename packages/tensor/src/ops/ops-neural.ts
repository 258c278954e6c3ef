/**
 * The names and argument lists of the operations of neural networks, once, as `ops.ts` has them for all others. Semantics are those of the functions
 * of the same name in PyTorch's `torch.nn.functional` unless a line says otherwise; shapes are written in its letters: N images (rows), C channels
 * (classes), H height, W width.
 */

import type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from '../kernels/table/neural.js'
import type { Generator } from '../values/generator.js'

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
  /** @internal x […, H, W] → maxima and their places (int32 y · W + x) […, oH, oW]. */
  maxPoolPlanes(x: T, geometry: PoolGeometry): readonly [T, T]
  /** @internal x […, H, W] → means […, oH, oW]. */
  avgPoolPlanes(x: T, geometry: AvgPoolGeometry): T
  /** @internal Its adjoint. */
  avgPoolSpread(grad: T, geometry: AvgPoolGeometry): T
  /** @internal x [rows, d], weight and bias [d] → [result, mean [rows], 1 / √(variance + eps) [rows]]; the last two have no gradient. */
  layerNormRows(x: T, weight: T | null, bias: T | null, eps: number): readonly [T, T, T]
  /** @internal embedding whose gradient is 0 for row paddingIdx (−1: none), and sparse rows where so wanted. */
  embeddingRows(weight: T, indices: T, paddingIdx: number, sparse: boolean): T
  /** @internal −t log p − (1 − t) log(1 − p), element by element, of one floating dtype; logarithms are cut off at −100. */
  binaryCrossEntropy(p: T, target: T): T
  /** @internal x [N, C, …], weight and bias [C] → [result, mean [C], biased variance [C]]; the last two have no gradient. */
  batchNormTraining(x: T, weight: T | null, bias: T | null, eps: number): readonly [T, T, T]
}

/** One number for both dimensions, or [height, width]. */
export type Pair = number | readonly [height: number, width: number]
/** How a convolution pads: by so many zeros on each side, 'same' (the result has the input's size), or 'valid' (not at all). */
export type ConvPadding<P> = P | 'same' | 'valid'

/** Of `conv1d` and `conv2d`; P is a number, or a `Pair`. */
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

/** Of `convTranspose1d` and `convTranspose2d`; P is a number, or a `Pair`. */
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

/** What a loss gives of its elements: their mean, their sum, or each of them. */
export type Reduction = 'mean' | 'sum' | 'none'

/** Of every loss. */
export interface LossOptions {
  /** 'mean' (the default) or 'sum' over all elements or rows, or 'none' for each of them. */
  readonly reduction?: Reduction
}
/** Only the reduction, or all options. */
export type LossArg<O extends LossOptions = LossOptions> = Reduction | O

/** Of `smoothL1Loss`. */
export interface SmoothL1Options extends LossOptions {
  /** Where the square becomes the absolute value; default 1. */
  readonly beta?: number
}
/** Of `huberLoss`. */
export interface HuberOptions extends LossOptions {
  /** Where the square becomes the absolute value; default 1. */
  readonly delta?: number
}
/** Generic in the tensor type, as the operations are. */
export interface BceOptions<T> extends LossOptions {
  /** Factor of each element's loss; broadcasts to the input. */
  readonly weight?: T | null
}
/** Of `bceWithLogits`. */
export interface BceWithLogitsOptions<T> extends BceOptions<T> {
  /** Factor of the loss where the target is 1; broadcasts to the input. */
  readonly posWeight?: T | null
}
/** Of `nllLoss`. */
export interface NllLossOptions<T> extends LossOptions {
  /** [C]: a factor for each class; a 'mean' divides by the factors' sum. */
  readonly weight?: T | null
  /** Rows of this target count for nothing; default −100. */
  readonly ignoreIndex?: number
}
/** Of `crossEntropy`. */
export interface CrossEntropyOptions<T> extends NllLossOptions<T> {
  /** The share of the target that is spread evenly over all classes; default 0. */
  readonly labelSmoothing?: number
}
/** Of `klDiv`. */
export interface KlDivOptions {
  /** As of all losses, or 'batchmean': the sum divided by N. */
  readonly reduction?: Reduction | 'batchmean'
  /** The target is the logarithm of probabilities; default false. */
  readonly logTarget?: boolean
}
/** Of `gaussianNllLoss`. */
export interface GaussianNllOptions extends LossOptions {
  /** With the constant ½ log 2π; default false. */
  readonly full?: boolean
  /** The variance is at least this; default 1e-6. */
  readonly eps?: number
}
/** Of `dropout`. */
export interface DropoutOptions {
  /** false: x itself. Default true. */
  readonly training?: boolean
  /** Where the random numbers come from; default: the scope's. */
  readonly generator?: Generator
}
/** Of `scaledDotProductAttention`. */
export interface AttentionOptions<T> {
  /** Broadcasts to [..., L, S]. bool: true where a position takes part; numbers are added to the scores. */
  readonly attnMask?: T | null
  /** Position i sees positions 0 … i; default false. */
  readonly isCausal?: boolean
  /** Probability that a share is zeroed; default 0. */
  readonly dropoutP?: number
  /** Factor of the scores; default 1 / √E. */
  readonly scale?: number
  /** Where the random numbers of dropout come from; default: the scope's. */
  readonly generator?: Generator
}

/** Of the third argument a string is the reduction. Input and target have one shape: none of them broadcasts. */
export interface LossCompositeOps<T> {
  mseLoss(input: T, target: T, options?: LossArg): T
  l1Loss(input: T, target: T, options?: LossArg): T
  smoothL1Loss(input: T, target: T, options?: LossArg<SmoothL1Options>): T
  huberLoss(input: T, target: T, options?: LossArg<HuberOptions>): T
  /** Input: probabilities. PyTorch: `binary_cross_entropy`. */
  bceLoss(input: T, target: T, options?: LossArg<BceOptions<T>>): T
  /** bceLoss of σ(logits), without overflow. PyTorch: `binary_cross_entropy_with_logits`. */
  bceWithLogits(logits: T, target: T, options?: LossArg<BceWithLogitsOptions<T>>): T
  /** Input: log-probabilities; target: probabilities. */
  klDiv(input: T, target: T, options?: Reduction | 'batchmean' | KlDivOptions): T
  gaussianNllLoss(input: T, target: T, variance: T, options?: GaussianNllOptions): T
  /** logp [N, C], [C] or [N, C, d, …], target (int32, or whole numbers) [N], [] or [N, d, …]. */
  nllLoss(logp: T, target: T, options?: LossArg<NllLossOptions<T>>): T
  /** logits as logp of nllLoss; target classes as there (int32, or whole numbers in a floating dtype), or probabilities of the logits' shape. */
  crossEntropy(logits: T, target: T, options?: LossArg<CrossEntropyOptions<T>>): T
  /** Each element 0 with probability p (default 0.5), else x / (1 − p). */
  dropout(x: T, p?: number, options?: DropoutOptions): T
  /** query [..., L, E], key [..., S, E], value [..., S, V] → [..., L, V]. */
  scaledDotProductAttention(query: T, key: T, value: T, options?: AttentionOptions<T>): T
}

/** Of every pooling; P is a number, or a `Pair`. */
export interface PoolOptions<P> {
  /** Default: the kernel's size. */
  readonly stride?: P
  /** On each side, at most half the kernel's size; default 0. */
  readonly padding?: P
  /** Windows that begin inside but end outside count as well; default false. */
  readonly ceilMode?: boolean
}
/** Of `maxPool1d` and `maxPool2d`; P is a number, or a `Pair`. */
export interface MaxPoolOptions<P> extends PoolOptions<P> {
  /** Distance of the places that one window reads; default 1. */
  readonly dilation?: P
}
/** Of `avgPool1d` and `avgPool2d`; P is a number, or a `Pair`. */
export interface AvgPoolOptions<P> extends PoolOptions<P> {
  /** Padding counts as zeros in the mean; default true. */
  readonly countIncludePad?: boolean
  /** Divides the sum of every window, whatever its size. */
  readonly divisorOverride?: number | null
}

/** x [N, C, H, W] or [C, H, W] (1-d: [N, C, L] or [C, L]). NaN is greater than any number, the first of equals wins. */
export interface PoolingOps<T> {
  maxPool1d(x: T, kernelSize: number, options?: MaxPoolOptions<number>): T
  maxPool2d(x: T, kernelSize: Pair, options?: MaxPoolOptions<Pair>): T
  /** The maxima, and where in its plane each stands: int32 y · W + x. PyTorch: `return_indices=True`. */
  maxPool2dWithIndices(x: T, kernelSize: Pair, options?: MaxPoolOptions<Pair>): readonly [T, T]
  avgPool1d(x: T, kernelSize: number, options?: AvgPoolOptions<number>): T
  avgPool2d(x: T, kernelSize: Pair, options?: AvgPoolOptions<Pair>): T
  adaptiveAvgPool1d(x: T, outputSize: number): T
  /** Means of oH × oW windows of (nearly) equal size. */
  adaptiveAvgPool2d(x: T, outputSize: Pair): T
}

/** Of every normalization. */
export interface NormOptions {
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
}
/** Of `batchNorm`. */
export interface BatchNormOptions extends NormOptions {
  /** true: by the batch's own statistics, which go into the running ones; false (the default): by the running ones. */
  readonly training?: boolean
  /** The share of the batch's statistics in the new running ones; default 0.1. */
  readonly momentum?: number
}
export interface NormalizationOps<T> {
  /** Over the last dimensions, whose shape (or only extent) is normalizedShape; weight and bias have it. */
  layerNorm(x: T, normalizedShape: number | readonly number[], weight?: T | null, bias?: T | null, options?: NormOptions): T
  /** x [N, C, …] for each channel; all others [C]. In training writes the running mean and (unbiased) variance, unless null, in place. */
  batchNorm(x: T, runningMean?: T | null, runningVar?: T | null, weight?: T | null, bias?: T | null, options?: BatchNormOptions): T
  /** x [N, C, …] for each image and group of channels; weight and bias [C]. */
  groupNorm(x: T, groups: number, weight?: T | null, bias?: T | null, options?: NormOptions): T
  /** x [N, C, …] for each image and channel; weight and bias [C]. */
  instanceNorm(x: T, weight?: T | null, bias?: T | null, options?: NormOptions): T
}

/** Of `embedding`. */
export interface EmbedOptions {
  /** The row of this index gets no gradient; negative ones count from the end. */
  readonly paddingIdx?: number | null
  /** The gradient of the weight is a `SparseTensor` of the rows that were used; default false. Under createGraph it is dense. */
  readonly sparse?: boolean
}
/** Of `embeddingBag`. */
export interface EmbeddingBagOptions<T> extends EmbedOptions {
  /** How the rows of a bag become one; default 'mean'. */
  readonly mode?: 'sum' | 'mean' | 'max'
  /** int32 or whole numbers [bags]: where in the indices [n] each bag begins. */
  readonly offsets?: T | null
  /** Factors of the rows, of the indices' shape; for 'sum' alone. */
  readonly perSampleWeights?: T | null
  /** The last offset is where the last bag ends; default false: it is another bag's beginning. */
  readonly includeLastOffset?: boolean
}
export interface EmbeddingOps<T> {
  /** weight [V, D], indices (int32, or whole numbers) of any shape → […indices, D]. */
  embedding(weight: T, indices: T, options?: EmbedOptions): T
  /** weight [V, D], indices (int32, or whole numbers) [bags, length], or [n] with offsets → [bags, D]. Rows at paddingIdx do not count; a bag of nothing is 0. */
  embeddingBag(weight: T, indices: T, options?: EmbeddingBagOptions<T>): T
}

/** Ops written once over others. */
export interface NeuralCompositeOps<T>
  extends EmbeddingOps<T>,
    ConvolutionOps<T>,
    LossCompositeOps<T>,
    PoolingOps<T>,
    NormalizationOps<T> {}
