/** The public names of autograd: differentiable operations, backward passes, grad mode, custom functions. */
import './install.js'

export type { BackwardPassOptions, GradFunction, RemovableHandle } from '@postgrad/tensor'
export {
  type DefinedKernel,
  defineKernel,
  type KernelAttributes,
  type KernelContext,
  type KernelDefinition,
  type KernelDerivative,
} from './api/define-kernel.js'
export { type FunctionalOptions, hessian, hvp, jacobian, jvp, vjp } from './api/functional.js'
export * from './api/functions.js'
export { type GradcheckOptions, type GradgradcheckOptions, gradcheck, gradgradcheck } from './api/gradcheck.js'
export { backward, type GradOptions, grad } from './engine/backward.js'
export { type AnomalyOptions, withAnomalyDetection } from './graph/anomaly.js'
export { enableGrad, isGradEnabled, noGrad, setGradEnabled } from './graph/grad-mode.js'
export type { Grads, NodePostHook, NodePreHook, TensorHook } from './graph/hooks.js'
export type { Edge, InputMeta, Node, PassView } from './graph/node.js'
export { checkpoint, checkpointSequential } from './record/checkpoint.js'
export { defineFunction, type FunctionContext, type FunctionDefinition } from './record/custom-function.js'
