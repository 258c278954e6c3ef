/** What sibling packages get: the owner's side of the distributed optimizer. */
export { LocalOptimizer, makeLocalOptimizer } from './local-optimizer.js'
