/** What users get from autograd: differentiable operations, backward passes, grad mode, functions of their own. */
import './install.js'

export { type BackwardOptions, backward, type GradOptions, grad } from './backward.js'
export { defineFunction, type FunctionContext, type FunctionDefinition } from './custom-function.js'
export * from './functions.js'
export { enableGrad, isGradEnabled, noGrad } from './grad-mode.js'
export { type GradcheckOptions, gradcheck } from './gradcheck.js'
export type { Grads, NodePostHook, NodePreHook, RemovableHandle, TensorHook } from './hooks.js'
export { detach } from './install.js'
export type { Edge, InputMeta, Node } from './node.js'
