export type {
  DiagramOptions,
  FaultAction,
  FaultFrame,
  FaultKind,
  FrameCounts,
  NamedEvent,
  Trace,
  TraceEvent,
  TraceKind,
} from '@postgrad/sim'
export { type CleanOptions, type DebugInfos, expectClean, leaks } from './check/expect-clean.js'
export { type Counted, expectConserved, expectCreditsReturned, expectExecutedOnce } from './check/expect-conserved.js'
export { type Checked, expectSound, type SoundOptions, simulateAgainstInlined } from './check/expect-sound.js'
export { checkLiveness, checkSafety, type LivenessOptions, type SafetyEnd, type SafetyOptions } from './check/liveness.js'
export { type MatcherResult, matchers, type PostgradMatchers } from './check/matchers.js'
export { type Exploration, type ExploreOptions, type ExploreProgress, explore } from './explore/explore.js'
export { type ExploreProgramOptions, exploreProgram } from './explore/explore-program.js'
export { type FaultsOption, failFirst, planText, type RandomFaults, type RandomFaultsOptions, randomFaults } from './faults/fault-plan.js'
export type { FaultMatch, FaultRule, MessageKind } from './faults/message-kind.js'
export { type InlinedOptions, inlined } from './inlined/inlined.js'
export { runTrace } from './replay/reproduce.js'
export { type BitDifference, bitDifference, expectSameBits } from './replay/same-bits.js'
export type { ShrinkOptions } from './replay/shrink.js'
export type { TestCluster, TestWorker } from './simulate/cluster.js'
export type { CreditCount, MessageCount, Messages, RepeatedRequest } from './simulate/message-ledger.js'
export type { Disturbance, SlowLine } from './simulate/network.js'
export { type ProgramRef, replayProgram, simulateProgram } from './simulate/program-run.js'
export { type SimCluster, type SimulateOptions, type Simulation, simulate } from './simulate/simulate.js'
export type { SimulatedJobsOptions } from './simulate/simulated-jobs.js'
