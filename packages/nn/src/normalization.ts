/** Normalisation without a memory. PyTorch: `torch.nn.LayerNorm`, `GroupNorm`. Beside: `batch-norm.ts`, which keeps statistics. */
import { groupNorm, layerNorm } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import { checkSizes } from './check.js'
import { extraRepr } from './extra-repr.js'
import { Module } from './module.js'
import { constant, type ParameterOptions } from './parameter.js'

export interface LayerNormOptions extends ParameterOptions {
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
  /** With a weight and a bias; default true. */
  readonly elementwiseAffine?: boolean
}

export class LayerNorm extends Module {
  readonly normalizedShape: readonly number[]
  readonly eps: number
  /** Of normalizedShape, or null. */
  readonly weight: Tensor | null
  readonly bias: Tensor | null

  /** Weight 1, bias 0. @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
  constructor(normalizedShape: number | readonly number[], options: LayerNormOptions = {}) {
    super()
    const { eps = 1e-5, elementwiseAffine = true, ...parameters } = options
    const shape = typeof normalizedShape === 'number' ? [normalizedShape] : [...normalizedShape]
    if (shape.length === 0) throw invalidArgument('LayerNorm', 'at least one dimension to normalise', 'none')
    for (const extent of shape) checkSizes('LayerNorm', { normalizedShape: extent })
    this.normalizedShape = shape
    this.eps = eps
    this.weight = elementwiseAffine ? constant(shape, 1, parameters) : null
    this.bias = elementwiseAffine ? constant(shape, 0, parameters) : null
  }

  /** x […, ...normalizedShape] → the same shape. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return layerNorm(x, this.normalizedShape, this.weight, this.bias, { eps: this.eps })
  }

  override extraRepr(): string {
    return extraRepr({ normalizedShape: this.normalizedShape, eps: this.eps, elementwiseAffine: this.weight !== null })
  }
}

export interface GroupNormOptions extends ParameterOptions {
  /** Added to the variance; default 1e-5. */
  readonly eps?: number
  /** With a weight and a bias; default true. */
  readonly affine?: boolean
}

export class GroupNorm extends Module {
  readonly numGroups: number
  readonly numChannels: number
  readonly eps: number
  /** [numChannels], or null */
  readonly weight: Tensor | null
  readonly bias: Tensor | null

  /** Weight 1, bias 0. @throws INVALID_ARGUMENT unless the groups divide the channels, DTYPE_MISMATCH */
  constructor(numGroups: number, numChannels: number, { eps = 1e-5, affine = true, ...parameters }: GroupNormOptions = {}) {
    super()
    checkSizes('GroupNorm', { numGroups, numChannels })
    if (numChannels % numGroups !== 0) throw invalidArgument('GroupNorm', `groups that divide ${numChannels} channels`, numGroups)
    this.numGroups = numGroups
    this.numChannels = numChannels
    this.eps = eps
    this.weight = affine ? constant([numChannels], 1, parameters) : null
    this.bias = affine ? constant([numChannels], 0, parameters) : null
  }

  /** x [N, numChannels, …] → the same shape. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
  forward(x: Tensor): Tensor {
    return groupNorm(x, this.numGroups, this.weight, this.bias, { eps: this.eps })
  }

  override extraRepr(): string {
    const { numGroups, numChannels, eps } = this
    return extraRepr({ numGroups, numChannels, eps, affine: this.weight !== null })
  }
}
