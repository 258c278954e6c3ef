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
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
  /** The share of a batch's statistics in the running ones, default 0.1; null: the running ones are the mean of all batches so far. */
  readonly momentum?: number | null
  /** Whether the layer has a weight and a bias; default true. */
  readonly affine?: boolean
  /** Keep running statistics, and use them in eval; default true. false: the batch's own are used always. */
  readonly trackRunningStats?: boolean
}

const NAMES: Readonly<Record<string, string>> = {
  runningMean: 'running_mean',
  runningVar: 'running_var',
  numBatchesTracked: 'num_batches_tracked',
}

/** @internal What both have in common, and what computes over several ranks builds on. */
export abstract class BatchNorm extends Module {
  /** How many channels there are. */
  readonly numFeatures: number
  /** Added to the variance. */
  readonly eps: number
  /** The share of a batch's statistics in the running ones; null: their mean so far. */
  readonly momentum: number | null
  /** [numFeatures], or null */
  readonly weight: Tensor | null
  /** [numFeatures], or null */
  readonly bias: Tensor | null
  /** [numFeatures], or null; a buffer, as the two below. */
  readonly runningMean: Tensor | null
  /** [numFeatures], or null. Of the unbiased variances. */
  readonly runningVar: Tensor | null
  /** int32 [], or null. */
  readonly numBatchesTracked: Tensor | null

  /** Weight 1, bias 0, running mean 0, running variance 1. @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
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
 * Normalizes each channel of [N, C] or [N, C, L] by the batch's statistics, in eval by the running ones. Defaults: eps 1e-5, momentum 0.1. PyTorch:
 * `torch.nn.BatchNorm1d`.
 * @example new BatchNorm1d(2).forward(tensor([[1, 10], [3, 30]])) // [[-1, -1], [1, 1]]
 */
export class BatchNorm1d extends BatchNorm {
  /** x [N, C] or [N, C, L] → the same shape. In training one value for each channel is refused; an empty batch gives an empty result. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return this.normalize(x, [2, 3], '[N, C] or [N, C, L]')
  }
}

/**
 * Normalizes each channel of [N, C, H, W] by the batch's statistics, in eval by the running ones. Defaults: eps 1e-5, momentum 0.1. PyTorch:
 * `torch.nn.BatchNorm2d`.
 * @example
 * const norm = new BatchNorm2d(3)
 * norm.forward(randn([8, 3, 4, 4])).shape // [8, 3, 4, 4]
 * norm.eval() // now the running statistics are used
 * norm.forward(randn([1, 3, 4, 4])).shape // [1, 3, 4, 4]
 */
export class BatchNorm2d extends BatchNorm {
  /** x [N, C, H, W] → the same shape. In training one value for each channel is refused; an empty batch gives an empty result. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return this.normalize(x, [4], '[N, C, H, W]')
  }
}
