/** What users get: distributed contexts and backward passes. */
export { type ContextOptions, distAutograd } from './api.js'
export { currentContext } from './context-scope.js'
export type { BackwardMode, DistAutogradContext, DistBackwardOptions, PassOptimizer } from './dist-autograd-context.js'
