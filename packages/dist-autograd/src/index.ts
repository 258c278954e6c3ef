/** What users get: distributed contexts and backward passes. */
export { distAutograd } from './api.js'
export { currentContext } from './context-scope.js'
export type { DistAutogradContext, DistBackwardOptions } from './dist-autograd-context.js'
