/**
 * Activations without an operation of their own, which combine others. PyTorch: `torch.nn.PReLU`, `SELU`, `CELU`, `Hardsigmoid`, `Hardswish`.
 * See also `activations.ts`.
 */
import { add, elu } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOptions, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { constant, type ParameterOptions } from '../module/parameter.js'

/** Options of `PReLU`. */
export interface PReLUOptions extends ParameterOptions {
  /** The number of learned slopes: 1 for all channels, or one for each channel (dimension 1 of x). Default 1. */
  readonly numParameters?: number
  /** The initial value of the slopes; default 0.25. */
  readonly init?: number
}

/**
 * x where x is positive, else x times a learned slope. PyTorch: `torch.nn.PReLU`.
 * @example
 * const layer = new PReLU({ numParameters: 3 }) // one slope for each channel, 0.25 at first
 * layer.forward(tensor([[-4, -8, 2]])) // [[-1, -2, 2]]
 */
export class PReLU extends Module {
  /** The number of learned slopes: 1, or one for each channel. */
  readonly numParameters: number
  /** The slopes, [numParameters]. */
  readonly weight: Tensor

  /** @throws INVALID_ARGUMENT if an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64 */
  constructor(options: PReLUOptions = {}) {
    super()
    checkOptions('PReLU', options, ['numParameters', 'init', 'dtype'])
    const { numParameters = 1, init = 0.25, ...parameters } = options
    checkSizes('PReLU', { numParameters })
    this.numParameters = numParameters
    this.weight = constant([numParameters], init, parameters)
    noteMembers(this)
  }

  /** x [N, C, …] with C = numParameters, or any shape if there is one slope → the same shape. @throws SHAPE_MISMATCH if C is not numParameters */
  forward(x: Tensor): Tensor {
    const { weight, numParameters } = this
    // Nothing of a positive x reaches the product: 0 · ∞ would be the gradient of the slope.
    const positive = x.gt(0)
    const rest = positive.where(0, x)
    if (numParameters === 1) return positive.where(x, rest.mul(weight))
    if (x.ndim < 2 || x.shape[1] !== numParameters) {
      throw shapeMismatch('PReLU', `input [N, ${numParameters}, …]`, shapeText(x.shape), 'There is one slope for each channel.')
    }
    const slopes = weight.reshape([numParameters, ...new Array<number>(x.ndim - 2).fill(1)])
    return positive.where(x, rest.mul(slopes))
  }

  override extraRepr(): string {
    return extraRepr({ numParameters: this.numParameters })
  }
}

/** PyTorch's constants, which keep mean 0 and variance 1 from layer to layer (arXiv 1706.02515). */
const SELU_ALPHA = 1.6732632423543772
const SELU_SCALE = 1.0507009873554805

/**
 * scale · elu(x), with constants that keep the mean 0 and the variance 1 from layer to layer. PyTorch: `torch.nn.SELU`.
 * @example new SELU().forward(tensor([-1, 2])) // [-1.1113, 2.1014]
 */
export class SELU extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return elu(x, SELU_ALPHA).mul(SELU_SCALE)
  }
}

/**
 * x where x is positive, else alpha · (exp(x / alpha) − 1), with alpha 1 by default. PyTorch: `torch.nn.CELU`.
 * @example new CELU().forward(tensor([-1, 2])) // [-0.6321, 2]
 */
export class CELU extends Module {
  /** The negative of the value that the result approaches for x → −∞. */
  readonly alpha: number

  /** @throws INVALID_ARGUMENT if alpha is 0 */
  constructor(alpha = 1) {
    super()
    if (!Number.isFinite(alpha) || alpha === 0) throw invalidArgument('CELU', 'a finite alpha that is not 0', alpha)
    this.alpha = alpha
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    // 0 belongs to the line: minimum(x, 0) would share its gradient with the number.
    const negative = x.lt(0)
    return negative.where(negative.where(x, 0).div(this.alpha).expm1().mul(this.alpha), x)
  }

  override extraRepr(): string {
    return extraRepr({ alpha: this.alpha })
  }
}

/**
 * 0 below −3, 1 above 3, and a straight line between them. PyTorch: `torch.nn.Hardsigmoid`.
 * @example new Hardsigmoid().forward(tensor([-4, 0, 1, 4])) // [0, 0.5, 0.6667, 1]
 */
export class Hardsigmoid extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return add(x, 3).relu6().div(6)
  }
}

/**
 * x times its hard sigmoid: 0 below −3, x above 3. At −3 and 3 the derivative is that of the middle piece. PyTorch: `torch.nn.Hardswish`.
 * @example new Hardswish().forward(tensor([-4, 1, 4])) // [0, 0.6667, 4]
 */
export class Hardswish extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    const [below, within] = [x.lt(-3), x.le(3)]
    const middle = x.abs().le(3).where(x, 0)
    return below.where(x.mul(0), within.where(middle.mul(middle.add(3)).div(6), x))
  }
}
