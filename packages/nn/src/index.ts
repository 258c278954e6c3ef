/** What users get from nn: modules, losses, optimizers. */
export {
  ELU,
  GELU,
  Hardtanh,
  LeakyReLU,
  LogSigmoid,
  LogSoftmax,
  Mish,
  ReLU,
  ReLU6,
  Sigmoid,
  SiLU,
  Softmax,
  Softplus,
  Softsign,
  Tanh,
  Tanhshrink,
} from './layers/activations.js'
export { CELU, Hardsigmoid, Hardswish, PReLU, type PReLUOptions, SELU } from './layers/activations-composed.js'
export { type AttentionCall, MultiheadAttention, type MultiheadAttentionOptions } from './layers/attention.js'
export { BatchNorm1d, BatchNorm2d, type BatchNormModuleOptions } from './layers/batch-norm.js'
export { Conv1d, Conv2d, type ConvModuleOptions, ConvTranspose1d, ConvTranspose2d, type ConvTransposeModuleOptions } from './layers/conv.js'
export { Dropout, Dropout1d, Dropout2d } from './layers/dropout.js'
export {
  type BagMode,
  Embedding,
  EmbeddingBag,
  type EmbeddingBagCall,
  type EmbeddingBagModuleOptions,
  type EmbeddingOptions,
  type FromPretrainedOptions,
} from './layers/embedding.js'
export { Linear, type LinearOptions } from './layers/linear.js'
export {
  BCELoss,
  BCEWithLogitsLoss,
  CrossEntropyLoss,
  crossEntropy,
  GaussianNLLLoss,
  HuberLoss,
  KLDivLoss,
  L1Loss,
  MSELoss,
  mseLoss,
  NLLLoss,
  nllLoss,
  SmoothL1Loss,
} from './layers/losses.js'
export {
  GroupNorm,
  type GroupNormOptions,
  InstanceNorm1d,
  InstanceNorm2d,
  type InstanceNormOptions,
  LayerNorm,
  type LayerNormOptions,
} from './layers/normalization.js'
export { AdaptiveAvgPool1d, AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d } from './layers/pooling.js'
export { Flatten, Identity, Unflatten } from './layers/shape-modules.js'
export {
  type EncoderCall,
  type EncoderLayerCall,
  TransformerEncoder,
  TransformerEncoderLayer,
  type TransformerEncoderLayerOptions,
} from './layers/transformer.js'
export { ModuleDict, ModuleList, ParameterList } from './module/containers.js'
/**
 * How parameters may begin: functions such as `init.kaimingUniform_(weight)` fill a tensor in place, unrecorded, and return it. PyTorch: `torch.nn.init`.
 */
export * as init from './module/init.js'
export {
  type BufferOptions,
  type LoadStateDictOptions,
  Module,
  type NamedWalkOptions,
  type StateDict,
  type StateDictDifference,
  type WalkOptions,
} from './module/module.js'
export type { ForwardHook, ForwardPreHook, FullBackwardHook } from './module/module-hooks.js'
export { type ParameterOptions, type ParameterSettings, parameter } from './module/parameter.js'
export { type Layer, Sequential } from './module/sequential.js'
export { Adadelta, type AdadeltaOptions, type AdadeltaSettings } from './optim/adadelta.js'
export { Adagrad, type AdagradOptions, type AdagradSettings } from './optim/adagrad.js'
export { Adam, type AdamOptions, type AdamSettings, AdamW } from './optim/adam.js'
export { Adamax, type AdamaxOptions, type AdamaxSettings } from './optim/adamax.js'
export { type ClipGradNormOptions, type ClipGradOptions, clipGradNorm_ } from './optim/clip-grad-norm.js'
export { clipGradValue_ } from './optim/clip-grad-value.js'
export { NAdam, type NAdamOptions, type NAdamSettings } from './optim/nadam.js'
export type { Optimizer, OptimizerState, ParamGroup, ParamGroupOptions, ParamState } from './optim/optimizer.js'
export { OptimizerBase, type StateLayout } from './optim/optimizer-base.js'
export { parametersToVector, vectorToParameters } from './optim/parameters-vector.js'
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
export { type CellOptions, GRUCell, LSTMCell, RNNCell, type RNNCellOptions } from './recurrent/cells.js'
export { GRU, type GRUOptions } from './recurrent/gru.js'
export { LSTM, type LSTMOptions, type LSTMState } from './recurrent/lstm.js'
export { RNN, type RNNOptions } from './recurrent/rnn.js'
export type { SafetensorsDType, SafetensorsInfo } from './safetensors/header.js'
export {
  type LoadSafetensorsOptions,
  loadSafetensors,
  openSafetensors,
  SafetensorsFile,
  type SafetensorsOptions,
} from './safetensors/read.js'
export { type SaveSafetensorsOptions, safetensorsBytes, saveSafetensors } from './safetensors/write.js'
