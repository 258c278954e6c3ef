/** The public optimizers and schedulers. */
export { Adadelta, type AdadeltaOptions, type AdadeltaSettings } from './optim/adadelta.js'
export { Adagrad, type AdagradOptions, type AdagradSettings } from './optim/adagrad.js'
export { Adam, type AdamOptions, type AdamSettings, AdamW } from './optim/adam.js'
export { Adamax, type AdamaxOptions, type AdamaxSettings } from './optim/adamax.js'
export { NAdam, type NAdamOptions, type NAdamSettings } from './optim/nadam.js'
export type { Optimizer, OptimizerState, ParamGroup, ParamGroupOptions, ParamState } from './optim/optimizer.js'
export { OptimizerBase, type StateLayout } from './optim/optimizer-base.js'
export { RAdam, type RAdamOptions, type RAdamSettings } from './optim/radam.js'
export { RMSprop, type RMSpropOptions, type RMSpropSettings } from './optim/rmsprop.js'
export { Rprop, type RpropOptions, type RpropSettings } from './optim/rprop.js'
export {
  ChainedScheduler,
  SequentialLR,
  type SequentialLROptions,
  type SteppingScheduler,
} from './optim/schedulers/composed.js'
export {
  CosineAnnealingLR,
  type CosineAnnealingLROptions,
  CosineAnnealingWarmRestarts,
  type CosineAnnealingWarmRestartsOptions,
} from './optim/schedulers/cosine-lr.js'
export { CyclicLR, type CyclicLROptions } from './optim/schedulers/cyclic-lr.js'
export { LambdaLR, type LambdaLROptions, MultiplicativeLR } from './optim/schedulers/lambda-lr.js'
export {
  LRScheduler,
  type LRSchedulerOptions,
  type Scheduled,
  type ScheduledGroup,
  type Scheduler,
  type SchedulerState,
  type SchedulerValue,
} from './optim/schedulers/lr-scheduler.js'
export { OneCycleLR, type OneCycleLROptions } from './optim/schedulers/one-cycle-lr.js'
export {
  ConstantLR,
  type ConstantLROptions,
  LinearLR,
  type LinearLROptions,
  PolynomialLR,
  type PolynomialLROptions,
} from './optim/schedulers/ramp-lr.js'
export { ReduceLROnPlateau, type ReduceLROnPlateauOptions } from './optim/schedulers/reduce-lr-on-plateau.js'
export {
  ExponentialLR,
  type ExponentialLROptions,
  MultiStepLR,
  type MultiStepLROptions,
  StepLR,
  type StepLROptions,
} from './optim/schedulers/step-lr.js'
export { SGD, type SGDGroup, type SGDOptions, type SGDSettings } from './optim/sgd.js'
export { SparseAdam, type SparseAdamOptions, type SparseAdamSettings } from './optim/sparse-adam.js'
export { fromTorchOptimizerState, type TorchOptimizerState, toTorchOptimizerState } from './optim/torch-state.js'
