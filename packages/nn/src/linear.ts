/** A fully connected layer. PyTorch: `torch.nn.Linear`. */
import { linear } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { type ParameterOptions, uniform } from './init.js'
import { Module } from './module.js'

export interface LinearOptions extends ParameterOptions {
  /** Default true. */
  readonly bias?: boolean
}

export class Linear extends Module {
  /** [outFeatures, inFeatures] */
  readonly weight: Tensor
  /** [outFeatures], or null */
  readonly bias: Tensor | null

  /** Weight and bias uniform in ±1/√inFeatures (PyTorch's `kaiming_uniform_` with a = √5). */
  constructor(inFeatures: number, outFeatures: number, { bias = true, ...options }: LinearOptions = {}) {
    super()
    const bound = inFeatures > 0 ? 1 / Math.sqrt(inFeatures) : 0
    this.weight = uniform([outFeatures, inFeatures], bound, options)
    this.bias = bias ? uniform([outFeatures], bound, options) : null
  }

  /** x […, inFeatures] → […, outFeatures]. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return linear(x, this.weight, this.bias)
  }
}
