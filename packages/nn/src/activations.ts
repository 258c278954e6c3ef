/** Activations as modules, for Sequential. PyTorch: `torch.nn.ReLU` and its siblings. */
import type { Tensor } from '@postgrad/tensor'
import { Module } from './module.js'

export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return x.relu()
  }
}

export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return x.tanh()
  }
}

export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return x.sigmoid()
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
}
