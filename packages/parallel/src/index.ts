/** What users get: training over several workers. */
export { DistributedOptimizer, type OptionsOf, type StepOptions } from './distributed-optimizer.js'
export type { OptimizerClass } from './local-optimizer.js'
export { type ForwardModule, type ModuleClass, RemoteModule } from './remote-module.js'
