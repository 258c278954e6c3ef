/** The door for users' own tests, `postgrad/testing`: the simulation, its oracle, and what they return. */
export {
  type InlinedOptions,
  inlined,
  type SimCluster,
  type SimulateOptions,
  type Simulation,
  simulate,
  type TestCluster,
  type TestWorker,
} from '@postgrad/testing'
