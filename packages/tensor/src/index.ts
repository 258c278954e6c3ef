/** What users get from this package: tensors, how to make them, random numbers, devices. Operations become methods of `Tensor`. */
import './install.js'

export {
  arange,
  empty,
  emptyLike,
  eye,
  fromTypedArray,
  full,
  fullLike,
  linspace,
  logspace,
  ones,
  onesLike,
  type RandomOptions,
  rand,
  randint,
  randLike,
  randn,
  randnLike,
  type TensorOptions,
  tensor,
  zeros,
  zerosLike,
} from './create.js'
export { currentDevice, Device, device, type KernelInfo, withDevice } from './device.js'
export type { DType, TypedArray } from './dtype.js'
export { currentGenerator, Generator, type GeneratorState, manualSeed } from './generator.js'
export type { JsonNumber, TensorJson } from './json.js'
export type { DeviceSpec } from './kernels/backends.js'
export type { BackendName, KernelOp } from './kernels/table.js'
export { memoryScope } from './memory-scope.js'
export type { DimsArg, GeluOptions, NanToNumOptions, Reduction, SoftplusOptions } from './ops.js'
export type { DivOptions, IsCloseOptions, ValueOptions } from './ops-arithmetic.js'
export type { BackwardOptions, BackwardPassOptions, GradFunction, RemovableHandle } from './ops-grad.js'
export type { AddmmOptions, DistanceOptions, IndexSpec, PadMode, PadOptions, RangeText, SimilarityOptions } from './ops-indexing.js'
export type {
  AttentionOptions,
  AvgPoolOptions,
  BatchNormOptions,
  BceOptions,
  BceWithLogitsOptions,
  ConvOptions,
  ConvPadding,
  ConvTransposeOptions,
  CrossEntropyOptions,
  DropoutOptions,
  EmbeddingBagOptions,
  EmbedOptions,
  GaussianNllOptions,
  HuberOptions,
  KlDivOptions,
  LossArg,
  LossOptions,
  MaxPoolOptions,
  NllLossOptions,
  NormOptions,
  Pair,
  PoolOptions,
  SmoothL1Options,
} from './ops-neural.js'
export type { ReduceOptions, SortOptions, TopkOptions, ValuesAndIndices, VarianceOptions } from './ops-reduce.js'
export { coalesce, toDense } from './raw/sparse.js'
export type { KernelSource, KernelThis } from './raw/user-kernel.js'
export type { NestedArray } from './read.js'
export { bernoulli, type MultinomialOptions, multinomial, normal, randperm, type SampleOptions } from './sample.js'
export { SparseTensor } from './sparse.js'
export { isTensor, Tensor } from './tensor.js'
