/** The door `postgrad/distributed`: process groups and their collectives, data-parallel training. PyTorch: `torch.distributed`, `torch.nn.parallel`. */

export {
  allReduceHook,
  bf16CompressHook,
  type CommHook,
  DistributedDataParallel,
  type DistributedDataParallelOptions,
  type DistributedDataParallelStats,
  type DistributedDataParallelTimes,
  fp16CompressHook,
  GradBucket,
  type Joinable,
  JoinContext,
  type JoinHook,
  join,
  noopHook,
  PeriodicModelAverager,
  PostLocalSGDOptimizer,
  PostLocalSGDState,
  PowerSGDState,
  postLocalSGDHook,
  powerSGDHook,
  type UnevenInputsOptions,
  ZeroRedundancyOptimizer,
} from '@postgrad/parallel'
export * from '@postgrad/process-group'
