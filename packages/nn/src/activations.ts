/** Activations as modules, for Sequential. What they compute stands at the operations of the same names. PyTorch: `torch.nn.ReLU` and its siblings. */
import type { GeluOptions, SoftplusOptions, Tensor } from '@postgrad/tensor'
import { extraRepr } from './extra-repr.js'
import { Module } from './module.js'

export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return x.relu()
  }
}

export class ReLU6 extends Module {
  forward(x: Tensor): Tensor {
    return x.relu6()
  }
}

export class LeakyReLU extends Module {
  readonly negativeSlope: number

  constructor(negativeSlope = 0.01) {
    super()
    this.negativeSlope = negativeSlope
  }

  forward(x: Tensor): Tensor {
    return x.leakyRelu(this.negativeSlope)
  }

  override extraRepr(): string {
    return extraRepr({ negativeSlope: this.negativeSlope })
  }
}

export class ELU extends Module {
  readonly alpha: number

  constructor(alpha = 1) {
    super()
    this.alpha = alpha
  }

  forward(x: Tensor): Tensor {
    return x.elu(this.alpha)
  }

  override extraRepr(): string {
    return extraRepr({ alpha: this.alpha })
  }
}

export class GELU extends Module {
  readonly options: GeluOptions

  constructor(options: GeluOptions = {}) {
    super()
    this.options = options
  }

  forward(x: Tensor): Tensor {
    return x.gelu(this.options)
  }

  override extraRepr(): string {
    return extraRepr({ approximate: this.options.approximate ?? 'none' })
  }
}

export class SiLU extends Module {
  forward(x: Tensor): Tensor {
    return x.silu()
  }
}

export class Mish extends Module {
  forward(x: Tensor): Tensor {
    return x.mish()
  }
}

export class Softplus extends Module {
  readonly options: SoftplusOptions

  constructor(options: SoftplusOptions = {}) {
    super()
    this.options = options
  }

  forward(x: Tensor): Tensor {
    return x.softplus(this.options)
  }

  override extraRepr(): string {
    return extraRepr({ beta: this.options.beta ?? 1, threshold: this.options.threshold ?? 20 })
  }
}

export class Softsign extends Module {
  forward(x: Tensor): Tensor {
    return x.softsign()
  }
}

export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return x.sigmoid()
  }
}

export class LogSigmoid extends Module {
  forward(x: Tensor): Tensor {
    return x.logSigmoid()
  }
}

export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return x.tanh()
  }
}

export class Tanhshrink extends Module {
  forward(x: Tensor): Tensor {
    return x.tanhshrink()
  }
}

export class Hardtanh extends Module {
  readonly min: number
  readonly max: number

  constructor(min = -1, max = 1) {
    super()
    this.min = min
    this.max = max
  }

  forward(x: Tensor): Tensor {
    return x.hardtanh(this.min, this.max)
  }

  override extraRepr(): string {
    return extraRepr({ min: this.min, max: this.max })
  }
}

export class Softmax extends Module {
  readonly dim: number

  constructor(dim: number) {
    super()
    this.dim = dim
  }

  forward(x: Tensor): Tensor {
    return x.softmax(this.dim)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim })
  }
}

export class LogSoftmax extends Module {
  readonly dim: number

  constructor(dim: number) {
    super()
    this.dim = dim
  }

  forward(x: Tensor): Tensor {
    return x.logSoftmax(this.dim)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim })
  }
}
