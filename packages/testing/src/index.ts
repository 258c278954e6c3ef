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
export type { TestCluster, TestWorker } from './cluster.js'
export { type CleanOptions, type DebugInfos, expectClean, leaks } from './expect-clean.js'
export { type Counted, expectConserved, expectCreditsReturned, expectExecutedOnce } from './expect-conserved.js'
export { type Checked, expectSound, type SoundOptions, simulateAgainstInlined } from './expect-sound.js'
export { type Exploration, type ExploreOptions, type ExploreProgress, explore } from './explore/explore.js'
export { type ExploreProgramOptions, exploreProgram } from './explore/explore-program.js'
export { type FaultsOption, failFirst, planText, type RandomFaults, type RandomFaultsOptions, randomFaults } from './fault-plan.js'
export { type InlinedOptions, inlined } from './inlined.js'
export { checkLiveness, checkSafety, type LivenessOptions, type SafetyEnd, type SafetyOptions } from './liveness.js'
export { type MatcherResult, matchers, type PostgradMatchers } from './matchers.js'
export type { FaultMatch, FaultRule, MessageKind } from './message-kind.js'
export type { CreditCount, MessageCount, Messages, RepeatedRequest } from './message-ledger.js'
export type { Disturbance, SlowLine } from './network.js'
export { type ProgramRef, replayProgram, simulateProgram } from './program-run.js'
export { runTrace } from './reproduce.js'
export { type BitDifference, bitDifference, expectSameBits } from './same-bits.js'
export type { ShrinkOptions } from './shrink.js'
export { type SimCluster, type SimulateOptions, type Simulation, simulate } from './simulate.js'
export type { SimulatedJobsOptions } from './simulated-jobs.js'
