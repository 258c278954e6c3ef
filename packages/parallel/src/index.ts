/** Public exports: training over several workers. */
export {
  type CheckpointCallOptions,
  type CheckpointInfo,
  type CheckpointLookOptions,
  type CheckpointProgress,
  Checkpoints,
  type CheckpointsOptions,
  type LoadedCheckpoint,
} from './checkpoint/checkpoints.js'
export type { Stateful } from './checkpoint/entry.js'
export type { CheckpointParts } from './checkpoint/parts.js'
export type { CheckpointStepsOptions } from './checkpoint/training-steps.js'
export { type ClipNormOptions, clipGradNorm, clipGradValue } from './clip-grad.js'
export type { BufferCommHook, BufferCommHookLocation, BufferCommHookOptions } from './ddp/buffer-hook.js'
export {
  allReduceHook,
  noopHook,
  PostLocalSGDState,
  type PostLocalSGDStateOptions,
  postLocalSGDHook,
} from './ddp/comm-hooks.js'
export type { DistributedDataParallelStats, DistributedDataParallelTimes } from './ddp/ddp-stats.js'
export { DistributedDataParallel, type DistributedDataParallelOptions } from './ddp/distributed-data-parallel.js'
export { type CommHook, GradBucket } from './ddp/grad-bucket.js'
export { bf16CompressHook, fp16CompressHook } from './ddp/half-hooks.js'
export { type Joinable, JoinContext, type JoinHook, join, type UnevenInputsOptions } from './ddp/join.js'
export type { LocalBackwardOptions } from './ddp/local-pass.js'
export { PeriodicModelAverager, type PeriodicModelAveragerOptions, PostLocalSGDOptimizer } from './ddp/local-sgd.js'
export { PowerSGDState, type PowerSGDStateDict, type PowerSGDStateOptions, powerSGDHook } from './ddp/power-sgd.js'
export {
  hookWithZeroStep,
  type ZeroRedundancyClass,
  ZeroRedundancyOptimizer,
  type ZeroRedundancyOptions,
} from './ddp/zero-redundancy-optimizer.js'
export { DistributedOptimizer, type OptionsOf, type SettingsOf, type StepOptions } from './distributed-optimizer.js'
export { type LoadModelOptions, loadModel } from './full-state/load-model.js'
export type { DistributedModel } from './full-state/model-parts.js'
export { type SaveModelOptions, saveModel } from './full-state/save-model.js'
export type { OptimizerClass } from './local-optimizer.js'
export type { DistributedGroupOptions, DistributedParamGroup } from './optimizer-groups.js'
export type { PipelineAction, PipelineActionKind } from './pipelining/action.js'
export { PIPELINE_SCHEDULES, type PipelineScheduleName, type PipelineSizes, pipelineSchedule } from './pipelining/generators.js'
export { measuredCosts, measuredSteps } from './pipelining/measured-steps.js'
export type { ChunkSpec } from './pipelining/microbatches.js'
export { drawPipeline, type PipelineDrawing } from './pipelining/picture.js'
export { Pipeline, type PipelineOptions, type PipelineStepOptions } from './pipelining/pipeline.js'
export { type PipelineSchedule, scheduleFromCsv, scheduleOf, withCommunications } from './pipelining/schedule.js'
export {
  formatSchedule,
  type PipelineCosts,
  type PipelineSimulation,
  scheduleToCsv,
  simulateSchedule,
  type TimedAction,
} from './pipelining/simulation.js'
export { type SplitOptions, splitSequential } from './pipelining/split-sequential.js'
export { PipelineStage, type PipelineStageOptions } from './pipelining/stage.js'
export type { PipelineResult } from './pipelining/step-run.js'
export { type ForwardModule, type ModuleClass, RemoteModule } from './remote-module.js'
export { getAllRemoteParams } from './remote-params.js'
export { convertSyncBatchNorm, SyncBatchNorm, type SyncBatchNormOptions } from './sync-norm/sync-batch-norm.js'
