/**
 * Makes tensors' methods differentiable: puts autograd's operations into the one handler of the `tensor` package. Imported by both doors of this
 * package for this effect, once per thread.
 */
import { Tensor } from '@postgrad/tensor'
import { installOpHandler } from '@postgrad/tensor/internal'
import { backward } from './backward.js'
import { operations } from './functions.js'
import { registerTensorHook, setRequiresGrad } from './variable.js'

/** The same storage, without history: what happens to the result is not recorded, what is written to it is seen by both. */
export function detach(x: Tensor): Tensor {
  return Tensor.view(x, x.shape, x.strides, x.offset)
}

installOpHandler({
  ...operations,
  detach,
  backward: (x, gradient, options) => backward([x], gradient ? [gradient] : undefined, options),
  registerHook: (x, hook) => {
    const handle = registerTensorHook(x, hook as (grad: Tensor) => Tensor | undefined)
    return () => handle.remove()
  },
  requiresGrad_: (x, flag) => {
    setRequiresGrad(x, flag)
    return x
  },
})
