/** The options of losses and of the operations of neural networks. Generic in the tensor type, so that it imports nothing above. */
import type { Generator } from './generator.js'

/** One number for both dimensions, or [height, width]. */
export type Pair = number | readonly [height: number, width: number]

/** The padding of a convolution: the number of zeros on each side, 'same' (the result has the size of the input), or 'valid' (no padding). */
export type ConvPadding<P> = P | 'same' | 'valid'

/** Options of `conv1d` and `conv2d`; P is a number, or a `Pair`. */
export interface ConvOptions<P> {
  /** How far the window moves between two elements of the result; default 1. */
  readonly stride?: P
  /**
   * Zeros on each side; default 0, the same as 'valid'. 'same' adds as many zeros as keep the size, and requires stride 1. If their number is odd, the end gets
   * one more.
   */
  readonly padding?: ConvPadding<P>
  /** The distance between the elements that one window reads; default 1. */
  readonly dilation?: P
  /** The number of groups of channels, each with its own weights; default 1. */
  readonly groups?: number
}

/** Options of `convTranspose1d` and `convTranspose2d`; P is a number, or a `Pair`. */
export interface ConvTransposeOptions<P> extends Omit<ConvOptions<P>, 'padding'> {
  /** How many elements are cut off each side of the result; default 0. */
  readonly padding?: P
  /**
   * How many elements are added at the end of the result; default 0. A convolution with a stride maps several input sizes to one output size: this chooses one
   * of them.
   */
  readonly outputPadding?: P
}

/** How a loss combines the losses of its elements: 'mean', 'sum', or 'none', which returns one loss for each. */
export type Reduction = 'mean' | 'sum' | 'none'

/** Options of every loss. */
export interface LossOptions {
  /** 'mean' (default) or 'sum' over all elements or rows; 'none' returns one loss for each. */
  readonly reduction?: Reduction
}

/** The third argument of a loss: only the reduction, or all options. */
export type LossArg<O extends LossOptions = LossOptions> = Reduction | O

/** Options of `smoothL1Loss`. */
export interface SmoothL1Options extends LossOptions {
  /** The difference up to which the loss is quadratic; above it, the loss is linear. Default 1. */
  readonly beta?: number
}

/** Options of `huberLoss`. */
export interface HuberOptions extends LossOptions {
  /** The difference up to which the loss is quadratic; above it, the loss is linear. Default 1. */
  readonly delta?: number
}

/** Options of `bceLoss`; generic in the tensor type, as the operations are. */
export interface BceOptions<T> extends LossOptions {
  /** A factor for each element's loss; broadcasts to the input. */
  readonly weight?: T | null
}

/** Options of `bceWithLogits`. */
export interface BceWithLogitsOptions<T> extends BceOptions<T> {
  /** A factor for the loss of elements whose target is 1; broadcasts to the input. */
  readonly posWeight?: T | null
}

/** Options of `nllLoss`. */
export interface NllLossOptions<T> extends LossOptions {
  /** A factor for each class, [C]. The reduction 'mean' divides by the sum of the factors. */
  readonly weight?: T | null
  /** Rows with this target do not count; default −100. */
  readonly ignoreIndex?: number
}

/** Options of `crossEntropy`. */
export interface CrossEntropyOptions<T> extends NllLossOptions<T> {
  /** The share of the target that is spread evenly over all classes; default 0. */
  readonly labelSmoothing?: number
}

/** Options of `klDiv`. */
export interface KlDivOptions {
  /** 'mean' (default), 'sum' or 'none', as for all losses; 'batchmean' divides the sum by N. */
  readonly reduction?: Reduction | 'batchmean'
  /** Whether the target is the logarithm of probabilities; default false. */
  readonly logTarget?: boolean
}

/** Options of `gaussianNllLoss`. */
export interface GaussianNllOptions extends LossOptions {
  /** Whether to add the constant ½ log 2π; default false. */
  readonly full?: boolean
  /** The smallest variance; smaller ones are replaced by it. Default 1e-6. */
  readonly eps?: number
}

/** Options of `dropout`. */
export interface DropoutOptions {
  /** Whether to drop elements; default true. If false, the result is x itself. */
  readonly training?: boolean
  /** The source of the random numbers; default: the generator of the scope. */
  readonly generator?: Generator
}

/** Options of `scaledDotProductAttention`. */
export interface AttentionOptions<T> {
  /** A mask that broadcasts to [..., L, S]. A bool mask is true at the positions that take part; the numbers of another mask are added to the scores. */
  readonly attnMask?: T | null
  /** Whether position i sees only positions 0 … i; default false. */
  readonly isCausal?: boolean
  /** The probability that a weight of attention becomes 0; default 0. */
  readonly dropoutP?: number
  /** A factor for the scores; default 1 / √E. */
  readonly scale?: number
  /** The source of the random numbers for dropout; default: the generator of the scope. */
  readonly generator?: Generator
}

/** Options of every pooling; P is a number, or a `Pair`. */
export interface PoolOptions<P> {
  /** How far the window moves from one element of the result to the next; default: the size of the kernel. */
  readonly stride?: P
  /** The padding on each side, at most half the size of the kernel; default 0. */
  readonly padding?: P
  /** Whether windows that begin inside x and end outside of it count, too; default false. */
  readonly ceilMode?: boolean
}

/** Options of `maxPool1d` and `maxPool2d`; P is a number, or a `Pair`. */
export interface MaxPoolOptions<P> extends PoolOptions<P> {
  /** The distance between the elements that one window reads; default 1. */
  readonly dilation?: P
}

/** Options of `avgPool1d` and `avgPool2d`; P is a number, or a `Pair`. */
export interface AvgPoolOptions<P> extends PoolOptions<P> {
  /** Whether padding counts as zeros in the mean; default true. */
  readonly countIncludePad?: boolean
  /** The number that divides the sum of every window; default: the size of the window. */
  readonly divisorOverride?: number | null
}

/** Options of every normalization. */
export interface NormOptions {
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
}

/** Options of `batchNorm`. */
export interface BatchNormOptions extends NormOptions {
  /** Whether to use the statistics of the batch and update the running ones; default false: the running statistics are used. */
  readonly training?: boolean
  /** The share of the batch's statistics in the updated running statistics; default 0.1. */
  readonly momentum?: number
}

/** Options of `embedding`. */
export interface EmbedOptions {
  /** The index of a row that gets no gradient; a negative index counts from the end. Default: none. */
  readonly paddingIdx?: number | null
  /** Whether the weight's gradient is a `SparseTensor` of the rows that were used; default false. Under createGraph it is dense. */
  readonly sparse?: boolean
}

/** Options of `embeddingBag`. */
export interface EmbeddingBagOptions<T> extends EmbedOptions {
  /** How the rows of a bag are combined; default 'mean'. */
  readonly mode?: 'sum' | 'mean' | 'max'
  /** Where each bag begins in the indices [n]: [bags], int32 or whole numbers. */
  readonly offsets?: T | null
  /** A factor for each row, in the shape of the indices. Only for mode 'sum'. */
  readonly perSampleWeights?: T | null
  /** Whether the last offset is the end of the last bag; default false: it is the beginning of another bag. */
  readonly includeLastOffset?: boolean
}
