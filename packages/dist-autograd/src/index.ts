/** For users: distributed contexts and backward passes. */
export { type ContextOptions, distAutograd } from './api.js'
export { currentContext } from './context/context-scope.js'
export type { BackwardMode, DistAutogradContext, DistBackwardOptions, PassOptimizer } from './context/dist-autograd-context.js'
