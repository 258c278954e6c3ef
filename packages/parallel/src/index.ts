/** What users get: training over several workers. */
export {
  type CheckpointCallOptions,
  type CheckpointInfo,
  type CheckpointProgress,
  Checkpoints,
  type CheckpointsOptions,
  type LoadedCheckpoint,
} from './checkpoint/checkpoints.js'
export type { CheckpointParts } from './checkpoint/parts.js'
export type { Stateful } from './checkpoint/worker-file.js'
export { type ClipNormOptions, clipGradNorm, clipGradValue } from './clip-grad.js'
export { DistributedOptimizer, type OptionsOf, type SettingsOf, type StepOptions } from './distributed-optimizer.js'
export type { OptimizerClass } from './local-optimizer.js'
export type { DistributedGroupOptions, DistributedParamGroup } from './optimizer-groups.js'
export { type ForwardModule, type ModuleClass, RemoteModule } from './remote-module.js'
export { getAllRemoteParams } from './remote-params.js'
