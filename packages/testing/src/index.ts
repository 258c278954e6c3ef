export type { TestCluster, TestWorker } from './cluster.js'
export { type CleanOptions, type DebugInfos, expectClean, leaks } from './expect-clean.js'
export { type InlinedOptions, inlined } from './inlined.js'
export { type SimCluster, type SimulateOptions, type Simulation, simulate } from './simulate.js'
