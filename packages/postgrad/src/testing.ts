/** The door for users' own tests, `postgrad/testing`: the simulation, its oracle, and what they return. */
export {
  type CleanOptions,
  type DebugInfos,
  expectClean,
  type InlinedOptions,
  inlined,
  leaks,
  type SimCluster,
  type SimulateOptions,
  type Simulation,
  simulate,
  type TestCluster,
  type TestWorker,
} from '@postgrad/testing'
