/** Normalisation without running statistics. PyTorch: `torch.nn.LayerNorm`, `GroupNorm`, `InstanceNorm1d`, `InstanceNorm2d`. `batch-norm.ts` has those that keep statistics. */
import { groupNorm, instanceNorm, layerNorm } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { checkIterable, invalidArgument, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOptions, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { constant, type ParameterOptions } from '../module/parameter.js'

/** Options of `LayerNorm`. */
export interface LayerNormOptions extends ParameterOptions {
  /** The number that is added to the variance; default 1e-5. */
  readonly eps?: number
  /** Whether the layer has a weight and a bias; default true. */
  readonly elementwiseAffine?: boolean
}

/**
 * Normalizes over the last dimensions, whose shape is `normalizedShape`. eps is 1e-5; weight and bias are there by default. PyTorch: `torch.nn.LayerNorm`.
 * @example new LayerNorm(3).forward(tensor([[1, 2, 3], [10, 20, 30]])) // [[-1.2247, 0, 1.2247], [-1.2247, 0, 1.2247]]
 */
export class LayerNorm extends Module {
  /** The last extents of the input. */
  readonly normalizedShape: readonly number[]
  /** The number that is added to the variance. */
  readonly eps: number
  /** The factors, in the shape normalizedShape, or null. */
  readonly weight: Tensor | null
  /** The bias, in the shape normalizedShape, or null. */
  readonly bias: Tensor | null

  /** The weight begins with 1, the bias with 0. @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64 */
  constructor(normalizedShape: number | readonly number[], options: LayerNormOptions = {}) {
    super()
    checkOptions('LayerNorm', options, ['eps', 'elementwiseAffine', 'dtype'])
    const { eps = 1e-5, elementwiseAffine = true, ...parameters } = options
    if (typeof normalizedShape !== 'number') checkIterable('LayerNorm', 'the shape to normalise, or a number,', normalizedShape)
    const shape = typeof normalizedShape === 'number' ? [normalizedShape] : [...normalizedShape]
    if (shape.length === 0) throw invalidArgument('LayerNorm', 'at least one dimension to normalise', 'none')
    for (const extent of shape) checkSizes('LayerNorm', { normalizedShape: extent })
    this.normalizedShape = shape
    this.eps = eps
    this.weight = elementwiseAffine ? constant(shape, 1, parameters) : null
    this.bias = elementwiseAffine ? constant(shape, 0, parameters) : null
    noteMembers(this)
  }

  /** x […, ...normalizedShape] → the same shape. @throws SHAPE_MISMATCH if the last extents of x are not normalizedShape */
  forward(x: Tensor): Tensor {
    return layerNorm(x, this.normalizedShape, this.weight, this.bias, { eps: this.eps })
  }

  override extraRepr(): string {
    return extraRepr({ normalizedShape: this.normalizedShape, eps: this.eps, elementwiseAffine: this.weight !== null })
  }
}

/** Options of `GroupNorm`. */
export interface GroupNormOptions extends ParameterOptions {
  /** The number that is added to the variance; default 1e-5. */
  readonly eps?: number
  /** Whether the layer has a weight and a bias; default true. */
  readonly affine?: boolean
}

/**
 * Normalizes groups of channels of each image. eps is 1e-5; weight and bias are there by default. PyTorch: `torch.nn.GroupNorm`.
 * @example new GroupNorm(2, 6).forward(randn([4, 6, 5, 5])).shape // [4, 6, 5, 5]
 */
export class GroupNorm extends Module {
  /** The number of groups, which divides the number of channels. */
  readonly numGroups: number
  /** The number of channels of the input. */
  readonly numChannels: number
  /** The number that is added to the variance. */
  readonly eps: number
  /** The factor of each channel, [numChannels], or null. */
  readonly weight: Tensor | null
  /** The bias of each channel, [numChannels], or null. */
  readonly bias: Tensor | null

  /**
   * The weight begins with 1, the bias with 0.
   * @throws INVALID_ARGUMENT if the groups do not divide the channels; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(numGroups: number, numChannels: number, options: GroupNormOptions = {}) {
    super()
    checkOptions('GroupNorm', options, ['eps', 'affine', 'dtype'])
    const { eps = 1e-5, affine = true, ...parameters } = options
    checkSizes('GroupNorm', { numGroups, numChannels })
    if (numChannels % numGroups !== 0) throw invalidArgument('GroupNorm', `groups that divide ${numChannels} channels`, numGroups)
    this.numGroups = numGroups
    this.numChannels = numChannels
    this.eps = eps
    this.weight = affine ? constant([numChannels], 1, parameters) : null
    this.bias = affine ? constant([numChannels], 0, parameters) : null
    noteMembers(this)
  }

  /**
   * x [N, numChannels, …] → the same shape.
   * @throws SHAPE_MISMATCH if x does not have numChannels channels; INVALID_ARGUMENT if the groups do not divide the channels of x
   */
  forward(x: Tensor): Tensor {
    return groupNorm(x, this.numGroups, this.weight, this.bias, { eps: this.eps })
  }

  override extraRepr(): string {
    const { numGroups, numChannels, eps } = this
    return extraRepr({ numGroups, numChannels, eps, affine: this.weight !== null })
  }
}

/** Options of `InstanceNorm1d` and `InstanceNorm2d`. */
export interface InstanceNormOptions extends ParameterOptions {
  /** The number that is added to the variance; default 1e-5. */
  readonly eps?: number
  /** Whether the layer has a weight and a bias; default false. */
  readonly affine?: boolean
}

abstract class InstanceNorm extends Module {
  /** The number of channels. */
  readonly numFeatures: number
  /** The number that is added to the variance. */
  readonly eps: number
  /** The factor of each channel, [numFeatures], or null. */
  readonly weight: Tensor | null
  /** The bias of each channel, [numFeatures], or null. */
  readonly bias: Tensor | null

  /** The weight begins with 1, the bias with 0. @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64 */
  constructor(numFeatures: number, options: InstanceNormOptions = {}) {
    super()
    checkOptions(new.target.name, options, ['eps', 'affine', 'dtype'])
    const { eps = 1e-5, affine = false, ...parameters } = options
    checkSizes(new.target.name, { numFeatures })
    this.numFeatures = numFeatures
    this.eps = eps
    this.weight = affine ? constant([numFeatures], 1, parameters) : null
    this.bias = affine ? constant([numFeatures], 0, parameters) : null
    noteMembers(this)
  }

  override extraRepr(): string {
    return extraRepr({ numFeatures: this.numFeatures, eps: this.eps, affine: this.weight !== null })
  }

  /** `rank` counts N, which may be left out. */
  protected normalize(x: Tensor, rank: number, expected: string): Tensor {
    const single = x.ndim === rank - 1
    if ((x.ndim !== rank && !single) || x.shape[single ? 0 : 1] !== this.numFeatures) {
      throw shapeMismatch(
        this.constructor.name,
        `input ${expected} with C = ${this.numFeatures}`,
        shapeText(x.shape),
        'Look at the channels.',
      )
    }
    const normal = instanceNorm(single ? x.unsqueeze(0) : x, this.weight, this.bias, { eps: this.eps })
    return single ? normal.squeeze(0) : normal
  }
}

/**
 * Normalizes each channel of each image of [N, C, L]. eps is 1e-5; by default without weight and bias. PyTorch: `torch.nn.InstanceNorm1d`, without running
 * statistics.
 * @example new InstanceNorm1d(1).forward(tensor([[[1, 2, 3]]])) // [[[-1.2247, 0, 1.2247]]]
 */
export class InstanceNorm1d extends InstanceNorm {
  /** x [N, C, L] or [C, L] → the same shape. @throws SHAPE_MISMATCH if x does not have this shape */
  forward(x: Tensor): Tensor {
    return this.normalize(x, 3, '[N, C, L] or [C, L]')
  }
}

/**
 * Normalizes each channel of each image of [N, C, H, W]. eps is 1e-5; by default without weight and bias. PyTorch: `torch.nn.InstanceNorm2d`, without running
 * statistics.
 * @example new InstanceNorm2d(3).forward(randn([2, 3, 8, 8])).shape // [2, 3, 8, 8]
 */
export class InstanceNorm2d extends InstanceNorm {
  /** x [N, C, H, W] or [C, H, W] → the same shape. @throws SHAPE_MISMATCH if x does not have this shape */
  forward(x: Tensor): Tensor {
    return this.normalize(x, 4, '[N, C, H, W] or [C, H, W]')
  }
}
