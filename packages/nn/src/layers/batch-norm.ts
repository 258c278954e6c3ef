/** Batch normalisation, with running statistics for evaluation. PyTorch: `torch.nn.BatchNorm1d`, `BatchNorm2d`. */
import { batchNorm } from '@postgrad/autograd'
import { ones, type Tensor, zeros } from '@postgrad/tensor'
import { argumentText, checkTensor, invalidArgument, raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOptions, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { constant, type ParameterOptions } from '../module/parameter.js'

/** Options of `BatchNorm1d` and `BatchNorm2d`. */
export interface BatchNormModuleOptions extends ParameterOptions {
  /** The number that is added to the variance; default 1e-5. */
  readonly eps?: number
  /** The share of a batch's statistics in the running statistics, default 0.1; null: the running statistics are the mean of all batches so far. */
  readonly momentum?: number | null
  /** Whether the layer has a weight and a bias; default true. */
  readonly affine?: boolean
  /** Whether to keep running statistics and use them in eval mode; default true. Without them the layer always uses the statistics of the batch. */
  readonly trackRunningStats?: boolean
}

const NAMES: Readonly<Record<string, string>> = {
  runningMean: 'running_mean',
  runningVar: 'running_var',
  numBatchesTracked: 'num_batches_tracked',
}

/** @internal What both have in common, and what computes over several ranks builds on. */
export abstract class BatchNorm extends Module {
  /** The number of channels. */
  readonly numFeatures: number
  /** The number that is added to the variance. */
  readonly eps: number
  /** The share of a batch's statistics in the running statistics; null: they are the mean of all batches so far. */
  readonly momentum: number | null
  /** The factor of each channel, [numFeatures], or null. */
  readonly weight: Tensor | null
  /** The bias of each channel, [numFeatures], or null. */
  readonly bias: Tensor | null
  /** The running mean of each channel, [numFeatures], a buffer; null without running statistics. */
  readonly runningMean: Tensor | null
  /** The running mean of the unbiased variance of each channel, [numFeatures], a buffer; null without running statistics. */
  readonly runningVar: Tensor | null
  /** How many batches the running statistics contain, int32 [], a buffer; null without running statistics. */
  readonly numBatchesTracked: Tensor | null

  /**
   * The weight begins with 1, the bias and the running mean with 0, and the running variance with 1.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(numFeatures: number, options: BatchNormModuleOptions = {}) {
    super()
    checkOptions(new.target.name, options, ['eps', 'momentum', 'affine', 'trackRunningStats', 'dtype'])
    const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true, dtype = 'float32' } = options
    checkSizes(new.target.name, { numFeatures })
    if (typeof eps !== 'number' || !(eps >= 0)) throw invalidArgument(new.target.name, 'a number ≥ 0 as eps', argumentText(eps))
    if (momentum !== null && (typeof momentum !== 'number' || Number.isNaN(momentum)))
      throw invalidArgument(new.target.name, 'a number or null as momentum', argumentText(momentum))
    this.numFeatures = numFeatures
    this.eps = eps
    this.momentum = momentum
    this.weight = affine ? constant([numFeatures], 1, { dtype }) : null
    this.bias = affine ? constant([numFeatures], 0, { dtype }) : null
    const buffer = (field: string, make: () => Tensor) => this.registerBuffer(field, trackRunningStats ? make() : null)
    this.runningMean = buffer('runningMean', () => zeros([numFeatures], { dtype }))
    this.runningVar = buffer('runningVar', () => ones([numFeatures], { dtype }))
    this.numBatchesTracked = buffer('numBatchesTracked', () => zeros([], { dtype: 'int32' }))
    noteMembers(this)
  }

  override fieldName(field: string): string {
    return NAMES[field] ?? super.fieldName(field)
  }

  override extraRepr(): string {
    const { numFeatures, eps, momentum } = this
    const parts = { numFeatures, eps, momentum: String(momentum), affine: this.weight !== null }
    return extraRepr({ ...parts, trackRunningStats: this.runningMean !== null })
  }

  protected normalize(x: Tensor, ranks: readonly number[], expected: string): Tensor {
    this.checkInput(x, (rank) => ranks.includes(rank), expected)
    const { runningMean, runningVar, weight, bias, eps } = this
    const training = this.training || runningMean === null
    return batchNorm(x, runningMean, runningVar, weight, bias, { training, momentum: this.training ? this.share() : 0, eps })
  }

  /** @throws INVALID_ARGUMENT unless it is a tensor, SHAPE_MISMATCH unless its rank fits and it has the channels */
  protected checkInput(x: Tensor, fits: (rank: number) => boolean, expected: string): void {
    checkTensor(this.constructor.name, 'the input', x)
    if (fits(x.ndim) && x.shape[1] === this.numFeatures) return
    throw shapeMismatch(
      this.constructor.name,
      `input ${expected} with C = ${this.numFeatures}`,
      shapeText(x.shape),
      'Insert the batch with unsqueeze(0).',
    )
  }

  /** Counts the batch. @returns its share in the running statistics */
  protected share(): number {
    if (this.numBatchesTracked === null) return 0
    raw.add_(this.numBatchesTracked, 1)
    return this.momentum ?? 1 / this.numBatchesTracked.itemSync()
  }
}

/**
 * Normalizes each channel of [N, C] or [N, C, L]: by the statistics of the batch in training, and by the running ones in eval mode. Defaults: eps 1e-5,
 * momentum 0.1. PyTorch: `torch.nn.BatchNorm1d`.
 * @example new BatchNorm1d(2).forward(tensor([[1, 10], [3, 30]])) // [[-1, -1], [1, 1]]
 */
export class BatchNorm1d extends BatchNorm {
  /**
   * x [N, C] or [N, C, L] → the same shape. An empty batch gives an empty result.
   * @throws SHAPE_MISMATCH if x does not have this shape, or has only one value for each channel in training; DTYPE_MISMATCH if x does not have the dtype of
   * the parameters
   */
  forward(x: Tensor): Tensor {
    return this.normalize(x, [2, 3], '[N, C] or [N, C, L]')
  }
}

/**
 * Normalizes each channel of [N, C, H, W]: by the statistics of the batch in training, and by the running ones in eval mode. Defaults: eps 1e-5, momentum 0.1.
 * PyTorch: `torch.nn.BatchNorm2d`.
 * @example
 * const norm = new BatchNorm2d(3)
 * norm.forward(randn([8, 3, 4, 4])).shape // [8, 3, 4, 4]
 * norm.eval() // now the running statistics are used
 * norm.forward(randn([1, 3, 4, 4])).shape // [1, 3, 4, 4]
 */
export class BatchNorm2d extends BatchNorm {
  /**
   * x [N, C, H, W] → the same shape. An empty batch gives an empty result.
   * @throws SHAPE_MISMATCH if x does not have this shape, or has only one value for each channel in training; DTYPE_MISMATCH if x does not have the dtype of
   * the parameters
   */
  forward(x: Tensor): Tensor {
    return this.normalize(x, [4], '[N, C, H, W]')
  }
}
