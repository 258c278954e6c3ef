/** PyTorch's module with one weight, which the tests of the optimizer step; exposed by importing this. */
import { matmul } from '@postgrad/autograd'
import { expose, type RRef, rref } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'

/** PyTorch's MyModule: one 3×3 weight, the same on every worker. */
export class MyModule {
  readonly w: Tensor
  constructor(requiresGrad = true) {
    this.w = tensor(
      [
        [0.1, -0.2, 0.3],
        [0.4, 0.5, -0.6],
        [-0.7, 0.8, 0.9],
      ],
      { requiresGrad },
    )
  }
  forward(x: Tensor): Tensor {
    return matmul(this.w, x)
  }
  parameter(): RRef<Tensor> {
    return rref(this.w)
  }
  values(): unknown {
    return this.w.toArray()
  }
}

expose({ MyModule })
