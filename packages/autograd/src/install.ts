/**
 * Makes operations record, and gives tensors autograd's methods. `index.ts` and `internal.ts` import it for this effect, once per thread.
 */
import { installOpHandler } from '@postgrad/tensor/internal'
import { detach } from './api/functions.js'
import { backward } from './engine/backward.js'
import { operations } from './graph/recorded.js'
import { registerPostAccumulateGradHook, retainGrad, retainsGrad } from './graph/retain-grad.js'
import { detachInPlace, registerTensorHook, setRequiresGrad } from './graph/variable.js'
import './record/operations.js'

installOpHandler({
  detach,
  arrived: (x, elements) => operations.arrived(x, elements, x.device),
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
