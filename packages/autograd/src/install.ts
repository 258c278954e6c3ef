/**
 * Makes tensors' methods differentiable: puts autograd's operations into the one handler of the `tensor` package. Imported by both doors of this
 * package for this effect, once per thread.
 */
import { installOpHandler } from '@postgrad/tensor/internal'
import { detach, operations } from './api/functions.js'
import { arrived } from './api/operations.js'
import { backward } from './engine/backward.js'
import { registerPostAccumulateGradHook, retainGrad, retainsGrad } from './graph/retain-grad.js'
import { detachInPlace, registerTensorHook, setRequiresGrad } from './graph/variable.js'

installOpHandler({
  ...operations,
  detach,
  arrived,
  backward: (x, gradient, options) => backward([x], gradient ? [gradient] : undefined, options),
  registerHook: registerTensorHook,
  registerPostAccumulateGradHook,
  retainGrad,
  retainsGrad,
  detach_: (x) => {
    detachInPlace(x)
    return x
  },
  requiresGrad_: (x, flag) => {
    setRequiresGrad(x, flag)
    return x
  },
})
