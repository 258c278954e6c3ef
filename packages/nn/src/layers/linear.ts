/** A fully connected layer. PyTorch: `torch.nn.Linear`. */
import { linear } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { fanInBound, type ParameterOptions, uniform } from '../module/parameter.js'

/** Options of `Linear`. */
export interface LinearOptions extends ParameterOptions {
  /** Whether there is a bias; default true. */
  readonly bias?: boolean
}

/**
 * A fully connected layer: x · weightᵀ + bias, with a bias by default. PyTorch: `torch.nn.Linear`.
 * @example new Linear(2, 4).forward(randn([8, 2])).shape // [8, 4]
 */
export class Linear extends Module {
  /** The last extent of the input. */
  readonly inFeatures: number
  /** The last extent of the result. */
  readonly outFeatures: number
  /** The weights, [outFeatures, inFeatures]. */
  readonly weight: Tensor
  /** The bias, [outFeatures], or null. */
  readonly bias: Tensor | null

  /**
   * Weight and bias begin uniform in ±1/√inFeatures (PyTorch's `kaiming_uniform_` with a = √5).
   * @throws INVALID_ARGUMENT if a size is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inFeatures: number, outFeatures: number, options: LinearOptions = {}) {
    super()
    checkOptions('Linear', options, ['bias', 'dtype'])
    checkSizes('Linear', { inFeatures, outFeatures }, 0)
    this.inFeatures = inFeatures
    this.outFeatures = outFeatures
    const bound = fanInBound(inFeatures)
    const { bias = true } = options
    this.weight = uniform([outFeatures, inFeatures], bound, options)
    this.bias = bias ? uniform([outFeatures], bound, options) : null
    noteMembers(this)
  }

  /**
   * x […, inFeatures] → […, outFeatures].
   * @throws SHAPE_MISMATCH if the last extent of x is not inFeatures; DTYPE_MISMATCH if x does not have the dtype of the parameters
   */
  forward(x: Tensor): Tensor {
    return linear(x, this.weight, this.bias)
  }

  override extraRepr(): string {
    return extraRepr({ inFeatures: this.inFeatures, outFeatures: this.outFeatures, bias: this.bias !== null })
  }
}
