/** nn's public exports: modules, losses, weights in files. */
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
 * Functions that fill a tensor with initial values, such as `init.kaimingUniform_(weight)`. They write in place, are not recorded, and return the tensor.
 * PyTorch: `torch.nn.init`.
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
export { type ClipGradNormOptions, type ClipGradOptions, clipGradNorm_, clipGradValue_ } from './optim/clip-grad.js'
export { parametersToVector, vectorToParameters } from './optim/parameters-vector.js'
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
