/** What users get: training over several workers. */
export { DistributedOptimizer, type OptionsOf, type StepOptions } from './distributed-optimizer.js'
export type { OptimizerClass } from './local-optimizer.js'
