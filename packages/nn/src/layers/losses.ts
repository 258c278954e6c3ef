/**
 * Losses as modules. The operations of the same names document them; some are exported again here. Class weights are buffers, as in PyTorch.
 * PyTorch: `torch.nn.CrossEntropyLoss` and its siblings, and `torch.nn.functional`.
 */
import {
  bceLoss,
  bceWithLogits,
  crossEntropy,
  gaussianNllLoss,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  nllLoss,
  smoothL1Loss,
} from '@postgrad/autograd'
import type {
  BceOptions,
  BceWithLogitsOptions,
  CrossEntropyOptions,
  GaussianNllOptions,
  HuberOptions,
  KlDivOptions,
  LossArg,
  LossOptions,
  NllLossOptions,
  Reduction,
  SmoothL1Options,
  Tensor,
} from '@postgrad/tensor'
import { checkOneOf, checkOptions } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

export { crossEntropy, mseLoss, nllLoss } from '@postgrad/autograd'

const REDUCTIONS: readonly Reduction[] = ['mean', 'sum', 'none']

abstract class Loss<R extends string = Reduction> extends Module {
  /** What it gives of all elements: their mean, their sum, or each. */
  readonly reduction: R

  /** @param others names of its options except `reduction` */
  protected constructor(options: R | { readonly reduction?: R }, known: readonly R[], others: readonly string[] = []) {
    super()
    if (typeof options !== 'string') checkOptions<Record<string, unknown>>(new.target.name, options, ['reduction', ...others])
    const given = typeof options === 'string' ? options : (options.reduction ?? ('mean' as R))
    checkOneOf(new.target.name, 'reduction', given, known)
    this.reduction = given
  }

  override extraRepr(): string {
    return extraRepr({ reduction: this.reduction })
  }
}

/** The options where a reduction alone was given: none. */
function others<O extends object>(options: string | O): Partial<O> {
  return typeof options === 'string' ? {} : options
}

/**
 * (input − target)² as a module; `reduction` is 'mean' by default. PyTorch: `torch.nn.MSELoss`. Input and target of one shape → [], or that shape
 * with 'none'. So do the losses below, unless they say otherwise.
 * @example
 * new MSELoss().forward(tensor([1, 5]), tensor([0, 3])) // 2.5
 * new MSELoss('sum').forward(tensor([1, 5]), tensor([0, 3])) // 5
 */
export class MSELoss extends Loss {
  /** @throws INVALID_ARGUMENT (as all losses) */
  constructor(options: LossArg = {}) {
    super(options, REDUCTIONS)
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH (as all losses) */
  forward(input: Tensor, target: Tensor): Tensor {
    return mseLoss(input, target, this.reduction)
  }
}

/**
 * |input − target| as a module; `reduction` is 'mean' by default. PyTorch: `torch.nn.L1Loss`.
 * @example new L1Loss().forward(tensor([1, 5]), tensor([0, 3])) // 1.5
 */
export class L1Loss extends Loss {
  constructor(options: LossArg = {}) {
    super(options, REDUCTIONS)
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return l1Loss(input, target, this.reduction)
  }
}

/**
 * smoothL1Loss as a module; beta is 1, `reduction` 'mean' by default. PyTorch: `torch.nn.SmoothL1Loss`.
 * @example new SmoothL1Loss({ beta: 2, reduction: 'none' }).forward(tensor([1, 5]), tensor([0, 0])) // [0.25, 4]
 */
export class SmoothL1Loss extends Loss {
  /** Where the square becomes the absolute value. */
  readonly beta: number

  constructor(options: LossArg<SmoothL1Options> = {}) {
    super(options, REDUCTIONS, ['beta'])
    this.beta = others(options).beta ?? 1
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(input, target, { reduction: this.reduction, beta: this.beta })
  }
}

/**
 * huberLoss as a module; delta is 1, `reduction` 'mean' by default. PyTorch: `torch.nn.HuberLoss`.
 * @example new HuberLoss({ delta: 2, reduction: 'none' }).forward(tensor([1, 5]), tensor([0, 0])) // [0.5, 8]
 */
export class HuberLoss extends Loss {
  /** Where the square becomes the absolute value. */
  readonly delta: number

  constructor(options: LossArg<HuberOptions> = {}) {
    super(options, REDUCTIONS, ['delta'])
    this.delta = others(options).delta ?? 1
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return huberLoss(input, target, { reduction: this.reduction, delta: this.delta })
  }
}

/**
 * Binary cross entropy as a module; `reduction` is 'mean' by default. PyTorch: `torch.nn.BCELoss`. Input: probabilities.
 * @example new BCELoss().forward(tensor([0.9, 0.2]), tensor([1, 0])) // 0.1643
 */
export class BCELoss extends Loss {
  /** Broadcasts to the input; null: none. */
  readonly weight: Tensor | null

  constructor(options: LossArg<BceOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return bceLoss(input, target, { reduction: this.reduction, weight: this.weight })
  }
}

/**
 * Binary cross entropy of σ(input), without overflow, as a module; `reduction` is 'mean' by default. PyTorch: `torch.nn.BCEWithLogitsLoss`. Input:
 * logits.
 * @example
 * new BCEWithLogitsLoss().forward(tensor([2, -1]), tensor([1, 0])) // 0.2201
 * new BCEWithLogitsLoss({ posWeight: tensor([3]) }).forward(tensor([2, -1]), tensor([1, 0])) // 0.347
 */
export class BCEWithLogitsLoss extends Loss {
  /** Broadcasts to the input; null: none. */
  readonly weight: Tensor | null
  /** Factor of the loss where the target is 1; broadcasts to the input; null: none. */
  readonly posWeight: Tensor | null

  constructor(options: LossArg<BceWithLogitsOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight', 'posWeight'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
    this.posWeight = this.registerBuffer('posWeight', others(options).posWeight ?? null)
  }

  override fieldName(field: string): string {
    return field === 'posWeight' ? 'pos_weight' : super.fieldName(field)
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return bceWithLogits(input, target, { reduction: this.reduction, weight: this.weight, posWeight: this.posWeight })
  }
}

/**
 * Negative log likelihood as a module. Defaults: reduction 'mean', ignoreIndex −100. PyTorch: `torch.nn.NLLLoss`. Input: log-probabilities [N, C]
 * (or [C], [N, C, d, …]); target: classes [N] ([], [N, d, …]), int32 or whole numbers → [], or the target's shape with 'none'.
 * @example new NLLLoss().forward(new LogSoftmax(-1).forward(tensor([[2, 0, 0]])), tensor([0])) // 0.2395
 */
export class NLLLoss extends Loss {
  /** [C], or null */
  readonly weight: Tensor | null
  /** Rows of this target count for nothing. */
  readonly ignoreIndex: number

  constructor(options: LossArg<NllLossOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight', 'ignoreIndex'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
    this.ignoreIndex = others(options).ignoreIndex ?? -100
  }

  /**
   * Log-probabilities [N, C], [C] or [N, C, d, …] and classes → [], or with 'none' the target's shape. @throws SHAPE_MISMATCH,
   * DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
   */
  forward(input: Tensor, target: Tensor): Tensor {
    return nllLoss(input, target, { reduction: this.reduction, weight: this.weight, ignoreIndex: this.ignoreIndex })
  }
}

/**
 * Cross entropy as a module. Defaults: reduction 'mean', ignoreIndex −100, labelSmoothing 0. PyTorch: `torch.nn.CrossEntropyLoss`. Input: logits,
 * shaped as NLLLoss's; target: classes as there, or probabilities of the input's shape.
 * @example
 * const logits = tensor([[2, 0, 0], [0, 0, 2]])
 * new CrossEntropyLoss().forward(logits, tensor([0, 1])) // 1.2395
 * new CrossEntropyLoss('none').forward(logits, tensor([0, 1])) // [0.2395, 2.2395]
 */
export class CrossEntropyLoss extends Loss {
  /** [C], or null */
  readonly weight: Tensor | null
  /** Rows of this class count for nothing. */
  readonly ignoreIndex: number
  /** The share of the target that is spread evenly over all classes. */
  readonly labelSmoothing: number

  constructor(options: LossArg<CrossEntropyOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight', 'ignoreIndex', 'labelSmoothing'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
    this.ignoreIndex = others(options).ignoreIndex ?? -100
    this.labelSmoothing = others(options).labelSmoothing ?? 0
  }

  /**
   * Logits [N, C], [C] or [N, C, d, …] and classes or probabilities → [], or with 'none' one loss per row. @throws SHAPE_MISMATCH, DTYPE_MISMATCH,
   * INDEX_OUT_OF_RANGE
   */
  forward(input: Tensor, target: Tensor): Tensor {
    const { reduction, weight, ignoreIndex, labelSmoothing } = this
    // Without options the operation has one kernel for it all.
    const plain = weight === null && labelSmoothing === 0 && ignoreIndex === -100
    return crossEntropy(input, target, plain ? reduction : { reduction, weight, ignoreIndex, labelSmoothing })
  }
}

/**
 * Kullback-Leibler divergence as a module; `reduction` is 'mean' by default. PyTorch: `torch.nn.KLDivLoss`. Input: log-probabilities; target:
 * probabilities, or their logarithms with logTarget. 'batchmean' divides the sum by N, as the definition does.
 * @example new KLDivLoss('batchmean').forward(tensor([[0.5, 0.5]]).log(), tensor([[0.25, 0.75]])) // 0.1308
 */
export class KLDivLoss extends Loss<Reduction | 'batchmean'> {
  /** Whether targets are logarithms of probabilities. */
  readonly logTarget: boolean

  constructor(options: Reduction | 'batchmean' | KlDivOptions = {}) {
    super(options, [...REDUCTIONS, 'batchmean'], ['logTarget'])
    this.logTarget = others(options).logTarget ?? false
  }

  /** Input and target of one shape → [], or with 'none' that shape. @throws SHAPE_MISMATCH */
  forward(input: Tensor, target: Tensor): Tensor {
    return klDiv(input, target, { reduction: this.reduction, logTarget: this.logTarget })
  }
}

/**
 * gaussianNllLoss as a module: of input, target and variance. Defaults: full false, eps 1e-6, reduction 'mean'. PyTorch: `torch.nn.GaussianNLLLoss`.
 * @example new GaussianNLLLoss().forward(tensor([1, 2]), tensor([1, 4]), tensor([1, 4])) // 0.5966
 */
export class GaussianNLLLoss extends Loss {
  private readonly options: GaussianNllOptions

  constructor(options: GaussianNllOptions = {}) {
    super(options as LossOptions, REDUCTIONS, ['full', 'eps'])
    this.options = options
  }

  /**
   * Input and target of one shape, variance broadcasts to it → [], or with 'none' the shape. @throws
   * SHAPE_MISMATCH, INVALID_ARGUMENT
   */
  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return gaussianNllLoss(input, target, variance, this.options)
  }
}
