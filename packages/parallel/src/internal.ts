/** What sibling packages get: the owner's side of the distributed optimizer. */
export { LocalOptimizer, makeLocalOptimizer, stepLocalOptimizer } from './local-optimizer.js'
