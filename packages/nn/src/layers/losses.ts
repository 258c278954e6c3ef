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
  /** How the losses of all elements become the result: 'mean', 'sum' or 'none'. */
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
 * mseLoss as a module: (input − target)². `reduction` is 'mean' by default. PyTorch: `torch.nn.MSELoss`.
 * @example
 * new MSELoss().forward(tensor([1, 5]), tensor([0, 3])) // 2.5
 * new MSELoss('sum').forward(tensor([1, 5]), tensor([0, 3])) // 5
 */
export class MSELoss extends Loss {
  /** @throws INVALID_ARGUMENT if an option is not valid */
  constructor(options: LossArg = {}) {
    super(options, REDUCTIONS)
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return mseLoss(input, target, this.reduction)
  }
}

/**
 * l1Loss as a module: |input − target|. `reduction` is 'mean' by default. PyTorch: `torch.nn.L1Loss`.
 * @example new L1Loss().forward(tensor([1, 5]), tensor([0, 3])) // 1.5
 */
export class L1Loss extends Loss {
  constructor(options: LossArg = {}) {
    super(options, REDUCTIONS)
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return l1Loss(input, target, this.reduction)
  }
}

/**
 * smoothL1Loss as a module: quadratic below beta, linear above. beta is 1, `reduction` 'mean' by default. PyTorch: `torch.nn.SmoothL1Loss`.
 * @example new SmoothL1Loss({ beta: 2, reduction: 'none' }).forward(tensor([1, 5]), tensor([0, 0])) // [0.25, 4]
 */
export class SmoothL1Loss extends Loss {
  /** The difference up to which the loss is quadratic; above it, the loss is linear. */
  readonly beta: number

  constructor(options: LossArg<SmoothL1Options> = {}) {
    super(options, REDUCTIONS, ['beta'])
    this.beta = others(options).beta ?? 1
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(input, target, { reduction: this.reduction, beta: this.beta })
  }
}

/**
 * huberLoss as a module: quadratic up to delta, linear above. delta is 1, `reduction` 'mean' by default. PyTorch: `torch.nn.HuberLoss`.
 * @example new HuberLoss({ delta: 2, reduction: 'none' }).forward(tensor([1, 5]), tensor([0, 0])) // [0.5, 8]
 */
export class HuberLoss extends Loss {
  /** The difference up to which the loss is quadratic; above it, the loss is linear. */
  readonly delta: number

  constructor(options: LossArg<HuberOptions> = {}) {
    super(options, REDUCTIONS, ['delta'])
    this.delta = others(options).delta ?? 1
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return huberLoss(input, target, { reduction: this.reduction, delta: this.delta })
  }
}

/**
 * bceLoss as a module: binary cross entropy. The input holds probabilities. `reduction` is 'mean' by default. PyTorch: `torch.nn.BCELoss`.
 * @example new BCELoss().forward(tensor([0.9, 0.2]), tensor([1, 0])) // 0.1643
 */
export class BCELoss extends Loss {
  /** A factor for each element's loss, which broadcasts to the input; null: none. */
  readonly weight: Tensor | null

  constructor(options: LossArg<BceOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ; INVALID_ARGUMENT if a probability is not from 0 to 1 */
  forward(input: Tensor, target: Tensor): Tensor {
    return bceLoss(input, target, { reduction: this.reduction, weight: this.weight })
  }
}

/**
 * bceWithLogits as a module: binary cross entropy of σ(input), without overflow. The input holds logits. `reduction` is 'mean' by default. PyTorch:
 * `torch.nn.BCEWithLogitsLoss`.
 * @example
 * new BCEWithLogitsLoss().forward(tensor([2, -1]), tensor([1, 0])) // 0.2201
 * new BCEWithLogitsLoss({ posWeight: tensor([3]) }).forward(tensor([2, -1]), tensor([1, 0])) // 0.347
 */
export class BCEWithLogitsLoss extends Loss {
  /** A factor for each element's loss, which broadcasts to the input; null: none. */
  readonly weight: Tensor | null
  /** A factor for the loss of elements whose target is 1, which broadcasts to the input; null: none. */
  readonly posWeight: Tensor | null

  constructor(options: LossArg<BceWithLogitsOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight', 'posWeight'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
    this.posWeight = this.registerBuffer('posWeight', others(options).posWeight ?? null)
  }

  override fieldName(field: string): string {
    return field === 'posWeight' ? 'pos_weight' : super.fieldName(field)
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return bceWithLogits(input, target, { reduction: this.reduction, weight: this.weight, posWeight: this.posWeight })
  }
}

/**
 * nllLoss as a module: negative log likelihood. Defaults: reduction 'mean', ignoreIndex −100. PyTorch: `torch.nn.NLLLoss`.
 * @example new NLLLoss().forward(new LogSoftmax(-1).forward(tensor([[2, 0, 0]])), tensor([0])) // 0.2395
 */
export class NLLLoss extends Loss {
  /** A factor for each class, [C], or null. */
  readonly weight: Tensor | null
  /** Rows with this target do not count. */
  readonly ignoreIndex: number

  constructor(options: LossArg<NllLossOptions<Tensor>> = {}) {
    super(options, REDUCTIONS, ['weight', 'ignoreIndex'])
    this.weight = this.registerBuffer('weight', others(options).weight ?? null)
    this.ignoreIndex = others(options).ignoreIndex ?? -100
  }

  /**
   * log-probabilities [N, C], [C] or [N, C, d, …] and classes (int32 or whole numbers) [N], [] or [N, d, …] → [], or the target's shape with 'none'.
   * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if a class is not a whole number; INDEX_OUT_OF_RANGE if a class is not from 0 to C − 1
   */
  forward(input: Tensor, target: Tensor): Tensor {
    return nllLoss(input, target, { reduction: this.reduction, weight: this.weight, ignoreIndex: this.ignoreIndex })
  }
}

/**
 * crossEntropy as a module: cross entropy of logits. Defaults: reduction 'mean', ignoreIndex −100, labelSmoothing 0. PyTorch: `torch.nn.CrossEntropyLoss`.
 * @example
 * const logits = tensor([[2, 0, 0], [0, 0, 2]])
 * new CrossEntropyLoss().forward(logits, tensor([0, 1])) // 1.2395
 * new CrossEntropyLoss('none').forward(logits, tensor([0, 1])) // [0.2395, 2.2395]
 */
export class CrossEntropyLoss extends Loss {
  /** A factor for each class, [C], or null. */
  readonly weight: Tensor | null
  /** Rows with this target do not count. */
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
   * logits [N, C], [C] or [N, C, d, …] and classes (int32 or whole numbers) [N], [] or [N, d, …] → [], or the target's shape with 'none'. The target may also
   * hold probabilities in the shape of the logits; 'none' then gives one loss for each row.
   * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if a class is not a whole number; INDEX_OUT_OF_RANGE if a class is not from 0 to C − 1
   */
  forward(input: Tensor, target: Tensor): Tensor {
    const { reduction, weight, ignoreIndex, labelSmoothing } = this
    // Without options the operation has one kernel for it all.
    const plain = weight === null && labelSmoothing === 0 && ignoreIndex === -100
    return crossEntropy(input, target, plain ? reduction : { reduction, weight, ignoreIndex, labelSmoothing })
  }
}

/**
 * klDiv as a module: Kullback-Leibler divergence. The input holds log-probabilities; the target holds probabilities, or with `logTarget` log-probabilities.
 * `reduction` is 'mean' by default; 'batchmean' divides the sum by N, as the mathematical definition does. PyTorch: `torch.nn.KLDivLoss`.
 * @example new KLDivLoss('batchmean').forward(tensor([[0.5, 0.5]]).log(), tensor([[0.25, 0.75]])) // 0.1308
 */
export class KLDivLoss extends Loss<Reduction | 'batchmean'> {
  /** Whether the target holds log-probabilities. */
  readonly logTarget: boolean

  constructor(options: Reduction | 'batchmean' | KlDivOptions = {}) {
    super(options, [...REDUCTIONS, 'batchmean'], ['logTarget'])
    this.logTarget = others(options).logTarget ?? false
  }

  /** input and target of one shape → [], or that shape with 'none'. @throws SHAPE_MISMATCH if the shapes differ */
  forward(input: Tensor, target: Tensor): Tensor {
    return klDiv(input, target, { reduction: this.reduction, logTarget: this.logTarget })
  }
}

/**
 * gaussianNllLoss as a module: negative log likelihood of a normal distribution. Defaults: full false, eps 1e-6, reduction 'mean'. PyTorch:
 * `torch.nn.GaussianNLLLoss`.
 * @example new GaussianNLLLoss().forward(tensor([1, 2]), tensor([1, 4]), tensor([1, 4])) // 0.5966
 */
export class GaussianNLLLoss extends Loss {
  private readonly options: GaussianNllOptions

  constructor(options: GaussianNllOptions = {}) {
    super(options as LossOptions, REDUCTIONS, ['full', 'eps'])
    this.options = options
  }

  /**
   * input and target of one shape, and a variance that broadcasts to it → [], or that shape with 'none'.
   * @throws SHAPE_MISMATCH if the shapes do not fit; INVALID_ARGUMENT if a variance is negative
   */
  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return gaussianNllLoss(input, target, variance, this.options)
  }
}
