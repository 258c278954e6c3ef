/** Activations as modules, for Sequential. The operations of the same names document the formulas. PyTorch: `torch.nn.ReLU` and its siblings. */
import {
  elu,
  gelu,
  hardtanh,
  leakyRelu,
  logSigmoid,
  logSoftmax,
  mish,
  relu,
  relu6,
  sigmoid,
  silu,
  softmax,
  softplus,
  softsign,
  tanh,
  tanhshrink,
} from '@postgrad/autograd'
import type { GeluOptions, SoftplusOptions, Tensor } from '@postgrad/tensor'
import { checkOptions } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

/**
 * relu as a module: x where x is positive, else 0. PyTorch: `torch.nn.ReLU`, without `inplace`.
 * @example new ReLU().forward(tensor([-1, 2])) // [0, 2]
 */
export class ReLU extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return relu(x)
  }
}

/**
 * relu6 as a module: x kept between 0 and 6. PyTorch: `torch.nn.ReLU6`.
 * @example new ReLU6().forward(tensor([-1, 2, 8])) // [0, 2, 6]
 */
export class ReLU6 extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return relu6(x)
  }
}

/**
 * leakyRelu as a module: x where x is positive, else x · negativeSlope (default 0.01). PyTorch: `torch.nn.LeakyReLU`.
 * @example new LeakyReLU(0.1).forward(tensor([-1, 2])) // [-0.1, 2]
 */
export class LeakyReLU extends Module {
  /** The slope for x below 0. */
  readonly negativeSlope: number

  constructor(negativeSlope = 0.01) {
    super()
    this.negativeSlope = negativeSlope
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return leakyRelu(x, this.negativeSlope)
  }

  override extraRepr(): string {
    return extraRepr({ negativeSlope: this.negativeSlope })
  }
}

/**
 * elu as a module: x where x is positive, else alpha · (eˣ − 1), with alpha 1 by default. PyTorch: `torch.nn.ELU`.
 * @example new ELU(0.5).forward(tensor([-1, 2])) // [-0.3161, 2]
 */
export class ELU extends Module {
  /** The negative of the value that the result approaches for x → −∞. */
  readonly alpha: number

  constructor(alpha = 1) {
    super()
    this.alpha = alpha
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return elu(x, this.alpha)
  }

  override extraRepr(): string {
    return extraRepr({ alpha: this.alpha })
  }
}

/**
 * gelu as a module: x Φ(x), where Φ is the distribution function of the standard normal; `{ approximate: 'tanh' }` approximates Φ. PyTorch: `torch.nn.GELU`.
 * @example new GELU({ approximate: 'tanh' }).forward(tensor([-1, 2])) // [-0.1588, 1.9546]
 */
export class GELU extends Module {
  /** The options of the constructor. */
  readonly options: GeluOptions

  /** @throws INVALID_ARGUMENT if an option is not valid */
  constructor(options: GeluOptions = {}) {
    super()
    checkOptions('GELU', options, ['approximate'])
    this.options = options
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return gelu(x, this.options)
  }

  override extraRepr(): string {
    return extraRepr({ approximate: this.options.approximate ?? 'none' })
  }
}

/**
 * silu as a module: x σ(x), where σ is the sigmoid. PyTorch: `torch.nn.SiLU`.
 * @example new SiLU().forward(tensor([-1, 2])) // [-0.2689, 1.7616]
 */
export class SiLU extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return silu(x)
  }
}

/**
 * mish as a module: x tanh(softplus(x)). PyTorch: `torch.nn.Mish`.
 * @example new Mish().forward(tensor([-1, 2])) // [-0.3034, 1.944]
 */
export class Mish extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return mish(x)
  }
}

/**
 * softplus as a module: log(1 + exp(beta x)) / beta, with beta 1 and threshold 20 by default. PyTorch: `torch.nn.Softplus`.
 * @example new Softplus({ beta: 2 }).forward(tensor([-1, 2])) // [0.0635, 2.0091]
 */
export class Softplus extends Module {
  /** The options of the constructor. */
  readonly options: SoftplusOptions

  /** @throws INVALID_ARGUMENT if an option is not valid */
  constructor(options: SoftplusOptions = {}) {
    super()
    checkOptions('Softplus', options, ['beta', 'threshold'])
    this.options = options
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return softplus(x, this.options)
  }

  override extraRepr(): string {
    return extraRepr({ beta: this.options.beta ?? 1, threshold: this.options.threshold ?? 20 })
  }
}

/**
 * softsign as a module: x / (1 + |x|). PyTorch: `torch.nn.Softsign`.
 * @example new Softsign().forward(tensor([-1, 3])) // [-0.5, 0.75]
 */
export class Softsign extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return softsign(x)
  }
}

/**
 * sigmoid as a module: 1 / (1 + e⁻ˣ). PyTorch: `torch.nn.Sigmoid`.
 * @example new Sigmoid().forward(tensor([-1, 0, 2])) // [0.2689, 0.5, 0.8808]
 */
export class Sigmoid extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return sigmoid(x)
  }
}

/**
 * logSigmoid as a module: log σ(x), where σ is the sigmoid. PyTorch: `torch.nn.LogSigmoid`.
 * @example new LogSigmoid().forward(tensor([-100, 0])) // [-100, -0.6931]
 */
export class LogSigmoid extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return logSigmoid(x)
  }
}

/**
 * tanh as a module: the hyperbolic tangent of x. PyTorch: `torch.nn.Tanh`.
 * @example new Tanh().forward(tensor([-1, 2])) // [-0.7616, 0.964]
 */
export class Tanh extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return tanh(x)
  }
}

/**
 * tanhshrink as a module: x − tanh x. PyTorch: `torch.nn.Tanhshrink`.
 * @example new Tanhshrink().forward(tensor([-1, 2])) // [-0.2384, 1.036]
 */
export class Tanhshrink extends Module {
  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return tanhshrink(x)
  }
}

/**
 * hardtanh as a module: x kept between min (default −1) and max (default 1). PyTorch: `torch.nn.Hardtanh`.
 * @example new Hardtanh(0, 6).forward(tensor([-1, 2, 8])) // [0, 2, 6]
 */
export class Hardtanh extends Module {
  /** The smallest result. */
  readonly min: number
  /** The largest result. */
  readonly max: number

  constructor(min = -1, max = 1) {
    super()
    this.min = min
    this.max = max
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return hardtanh(x, this.min, this.max)
  }

  override extraRepr(): string {
    return extraRepr({ min: this.min, max: this.max })
  }
}

/**
 * softmax along `dim` as a module: eˣ / Σ eˣ. `dim` is required. PyTorch: `torch.nn.Softmax`.
 * @example new Softmax(-1).forward(tensor([[1, 1], [0, 2]])) // [[0.5, 0.5], [0.1192, 0.8808]]
 */
export class Softmax extends Module {
  /** The dimension along which the result sums to 1. */
  readonly dim: number

  constructor(dim: number) {
    super()
    this.dim = dim
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return softmax(x, this.dim)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim })
  }
}

/**
 * logSoftmax along `dim` as a module: the logarithm of softmax. `dim` is required. PyTorch: `torch.nn.LogSoftmax`.
 * @example new LogSoftmax(-1).forward(tensor([[1, 1], [0, 100]])) // [[-0.6931, -0.6931], [-100, 0]]
 */
export class LogSoftmax extends Module {
  /** The dimension along which the exponentials of the result sum to 1. */
  readonly dim: number

  constructor(dim: number) {
    super()
    this.dim = dim
  }

  /** x of any shape → the same shape. */
  forward(x: Tensor): Tensor {
    return logSoftmax(x, this.dim)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim })
  }
}
