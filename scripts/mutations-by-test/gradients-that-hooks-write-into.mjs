/** Gradients that hooks write into. */
import { t } from './mutation.mjs'

export const gradientsThatHooksWriteInto = [
  t(
    'node-hook-writes-for-others',
    'packages/autograd/src/engine/autograd.test.ts',
    'a hook of a node that writes into the gradients',
    'packages/autograd/src/graph/hooks.ts',
    'current = withOwnGradients(current, ownsNow, fn)',
    'current = fn(current) ?? current',
    'a pre-hook of a node that writes in place changes the gradient of another branch',
  ),
  t(
    'node-hook-writes-for-edges',
    'packages/autograd/src/engine/autograd.test.ts',
    'a hook of a node that writes into one of two',
    'packages/autograd/src/engine/engine.ts',
    'known && returned[i] != null && isExclusive(returned[i], i, returned, grads, null)',
    'true',
    'a hook of a node writes into one gradient of an addition, and the other is the same tensor',
  ),
  t(
    'node-hook-writes-into-arrived',
    'packages/autograd/src/engine/autograd.test.ts',
    'a hook of a node that writes into the gradients',
    'packages/autograd/src/graph/hooks.ts',
    'ownGradient(grad, ownsOutput(slot))',
    'grad',
    'a hook of a node that writes into what the node was given changes what others get',
  ),
  t(
    'module-hook-writes-for-others',
    'packages/nn/src/module/module.test.ts',
    'a backward hook that writes into',
    'packages/nn/src/module/module-hooks.ts',
    'gradOutputs.map((grad) => ownGradient(grad, false))',
    'gradOutputs',
    'a backward hook of a module writes into the gradients of the results, and others get that',
  ),
  t(
    'module-hook-writes-for-arguments',
    'packages/nn/src/module/module.test.ts',
    'a backward hook that writes into',
    'packages/nn/src/module/module-hooks.ts',
    'const ownsNone = () => false',
    'const ownsNone = () => true',
    'a backward hook of a module writes into the gradient of an argument, and another module has the same',
  ),
  t(
    'backward-writes-into-gradient',
    'packages/autograd/src/engine/autograd.test.ts',
    'a backward that writes into',
    'packages/autograd/src/record/custom-function.ts',
    'if (written >= 0) throw',
    'if (written < -1) throw',
    'the backward of a custom function writes into its gradient, and other branches get that',
  ),
]
