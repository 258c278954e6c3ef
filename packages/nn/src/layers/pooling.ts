/** Pooling. PyTorch: `torch.nn.MaxPool1d`, `MaxPool2d`, `AvgPool1d`, `AvgPool2d`, `AdaptiveAvgPool1d`, `AdaptiveAvgPool2d`. */
import { adaptiveAvgPool1d, adaptiveAvgPool2d, avgPool1d, avgPool2d, maxPool1d, maxPool2d } from '@postgrad/autograd'
import type { AvgPoolOptions, MaxPoolOptions, Pair, Tensor } from '@postgrad/tensor'
import { checkOptions, sizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

const MAX = ['stride', 'padding', 'ceilMode', 'dilation'] as const satisfies readonly (keyof MaxPoolOptions<Pair>)[]
const AVG = [
  'stride',
  'padding',
  'ceilMode',
  'countIncludePad',
  'divisorOverride',
] as const satisfies readonly (keyof AvgPoolOptions<Pair>)[]

/** A window of `kernelSize`; options as the operation has them, which checks them with each input. */
abstract class Pool<P extends Pair, Options extends object> extends Module {
  /** The extents of the window. */
  readonly kernelSize: P
  /** The options of the constructor. */
  readonly options: Options

  protected constructor(dims: 1 | 2, kernelSize: P, options: Options, known: readonly (keyof Options)[]) {
    super()
    checkOptions(new.target.name, options, known)
    sizes(new.target.name, 'kernelSize', dims, kernelSize, 1)
    this.kernelSize = kernelSize
    this.options = options
  }

  override extraRepr(): string {
    return extraRepr({ kernelSize: this.kernelSize, ...this.options })
  }
}

/**
 * maxPool1d as a module: the largest element of each window. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch: `torch.nn.MaxPool1d`, without
 * `return_indices`.
 * @example new MaxPool1d(2).forward(tensor([[1, 2, 4, 3]])) // [[2, 4]]
 */
export class MaxPool1d extends Pool<number, MaxPoolOptions<number>> {
  /** @throws INVALID_ARGUMENT if kernelSize or an option is not valid */
  constructor(kernelSize: number, options: MaxPoolOptions<number> = {}) {
    super(1, kernelSize, options, MAX)
  }

  /**
   * x [N, C, L] or [C, L] → [N, C, oL] or [C, oL].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; INVALID_ARGUMENT if an option is not valid; DTYPE_MISMATCH if x is
   * int32 or bool
   */
  forward(x: Tensor): Tensor {
    return maxPool1d(x, this.kernelSize, this.options)
  }
}

/**
 * maxPool2d as a module: the largest element of each window. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch: `torch.nn.MaxPool2d`, without
 * `return_indices`.
 * @example new MaxPool2d(3, { stride: 2, padding: 1 }).forward(randn([2, 8, 6, 6])).shape // [2, 8, 3, 3]
 */
export class MaxPool2d extends Pool<Pair, MaxPoolOptions<Pair>> {
  /** @throws INVALID_ARGUMENT if kernelSize or an option is not valid */
  constructor(kernelSize: Pair, options: MaxPoolOptions<Pair> = {}) {
    super(2, kernelSize, options, MAX)
  }

  /**
   * x [N, C, H, W] or [C, H, W] → [N, C, oH, oW] or [C, oH, oW].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; INVALID_ARGUMENT if an option is not valid; DTYPE_MISMATCH if x is
   * int32 or bool
   */
  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options)
  }
}

/**
 * avgPool1d as a module: the mean of each window. Defaults: stride = kernelSize, padding 0. Padding counts as zeros. PyTorch: `torch.nn.AvgPool1d`.
 * @example new AvgPool1d(2).forward(tensor([[1, 2, 3, 4]])) // [[1.5, 3.5]]
 */
export class AvgPool1d extends Pool<number, AvgPoolOptions<number>> {
  /** @throws INVALID_ARGUMENT if kernelSize or an option is not valid */
  constructor(kernelSize: number, options: AvgPoolOptions<number> = {}) {
    super(1, kernelSize, options, AVG)
  }

  /**
   * x [N, C, L] or [C, L] → [N, C, oL] or [C, oL].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; INVALID_ARGUMENT if an option is not valid; DTYPE_MISMATCH if x is
   * int32 or bool
   */
  forward(x: Tensor): Tensor {
    return avgPool1d(x, this.kernelSize, this.options)
  }
}

/**
 * avgPool2d as a module: the mean of each window. Defaults: stride = kernelSize, padding 0. Padding counts as zeros. PyTorch: `torch.nn.AvgPool2d`.
 * @example new AvgPool2d(2).forward(randn([2, 8, 6, 6])).shape // [2, 8, 3, 3]
 */
export class AvgPool2d extends Pool<Pair, AvgPoolOptions<Pair>> {
  /** @throws INVALID_ARGUMENT if kernelSize or an option is not valid */
  constructor(kernelSize: Pair, options: AvgPoolOptions<Pair> = {}) {
    super(2, kernelSize, options, AVG)
  }

  /**
   * x [N, C, H, W] or [C, H, W] → [N, C, oH, oW] or [C, oH, oW].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; INVALID_ARGUMENT if an option is not valid; DTYPE_MISMATCH if x is
   * int32 or bool
   */
  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options)
  }
}

/**
 * Means over `outputSize` windows of (nearly) equal size, for an input of any length. PyTorch: `torch.nn.AdaptiveAvgPool1d`.
 * @example new AdaptiveAvgPool1d(2).forward(tensor([[1, 2, 3, 4, 5, 6]])) // [[2, 5]]
 */
export class AdaptiveAvgPool1d extends Module {
  /** The length of the result. */
  readonly outputSize: number

  /** @throws INVALID_ARGUMENT if outputSize is not valid */
  constructor(outputSize: number) {
    super()
    sizes('AdaptiveAvgPool1d', 'outputSize', 1, outputSize, 0)
    this.outputSize = outputSize
  }

  /** x [N, C, L] or [C, L] → [N, C, outputSize] or [C, outputSize]. @throws SHAPE_MISMATCH if x does not have this shape; DTYPE_MISMATCH if x is int32 or bool */
  forward(x: Tensor): Tensor {
    return adaptiveAvgPool1d(x, this.outputSize)
  }

  override extraRepr(): string {
    return extraRepr({ outputSize: this.outputSize })
  }
}

/**
 * Means over a grid of windows of (nearly) equal size, for an input of any height and width. PyTorch: `torch.nn.AdaptiveAvgPool2d`.
 * @example new AdaptiveAvgPool2d(1).forward(randn([2, 8, 7, 5])).shape // [2, 8, 1, 1]
 */
export class AdaptiveAvgPool2d extends Module {
  /** Height and width of the result: one number for both, or [height, width]. */
  readonly outputSize: Pair

  /** @throws INVALID_ARGUMENT if outputSize is not valid */
  constructor(outputSize: Pair) {
    super()
    sizes('AdaptiveAvgPool2d', 'outputSize', 2, outputSize, 0)
    this.outputSize = outputSize
  }

  /**
   * x [N, C, H, W] or [C, H, W] → [N, C, oH, oW] or [C, oH, oW], where outputSize is [oH, oW].
   * @throws SHAPE_MISMATCH if x does not have this shape; DTYPE_MISMATCH if x is int32 or bool
   */
  forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.outputSize)
  }

  override extraRepr(): string {
    return extraRepr({ outputSize: this.outputSize })
  }
}
