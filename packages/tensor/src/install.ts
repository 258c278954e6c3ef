/** Loads the operations, which become methods of `Tensor`. Gradients need autograd, which replaces this handler. Imported for its effect. */
import { PostgradError } from '@postgrad/base'
import './ops/all.js'
import './ops/types.js'
import { detach } from './raw/copy.js'
import type { GradOps } from './tensor/grad-ops.js'
import { installOpHandler, type Tensor } from './tensor/tensor.js'

function needsAutograd(op: string): never {
  throw new PostgradError('AUTOGRAD_NOT_LOADED', {
    op,
    message: 'gradients need autograd, which is not loaded in this thread',
    remedy: "Import from 'postgrad' or '@postgrad/autograd'.",
  })
}

export const rawHandler: GradOps<Tensor> = {
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
