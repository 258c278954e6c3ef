/** Puts the raw operations behind the methods of `Tensor`, until autograd puts its own in their place. Imported for its effect. */
import { PostgradError } from '@postgrad/base'
import { operations } from './operations.js'
import { detach } from './raw/views.js'
import { checkedOperations } from './tensor/arguments.js'
import { installOpHandler, type OpHandler } from './tensor/tensor.js'

function needsAutograd(op: string): never {
  throw new PostgradError('AUTOGRAD_NOT_LOADED', {
    op,
    message: 'gradients need autograd, which is not loaded in this thread',
    remedy: "Import from 'postgrad' or '@postgrad/autograd'.",
  })
}

export const rawHandler: OpHandler = {
  ...checkedOperations(operations),
  detach,
  arrived: (_, elements) => elements,
  requiresGrad_: (x, flag) => (flag ? needsAutograd('requiresGrad_') : x),
  backward: () => needsAutograd('backward'),
  registerHook: () => needsAutograd('registerHook'),
  registerPostAccumulateGradHook: () => needsAutograd('registerPostAccumulateGradHook'),
  retainGrad: () => needsAutograd('retainGrad'),
  retainsGrad: () => false,
  detach_: (x) => x,
}

installOpHandler(rawHandler)
