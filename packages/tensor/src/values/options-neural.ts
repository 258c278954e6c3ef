/** The options of losses and of the operations of neural networks. Generic in the tensor type, so that nothing above is imported. */
import type { Generator } from './generator.js'

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
