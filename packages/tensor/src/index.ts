/** The public names of this package: tensors, how to make them, random numbers, devices. Operations become methods of `Tensor`. */
import './install.js'

export { compile } from './chains/compile.js'
export type { MemoryStats } from './heap/memory.js'
export type { BackendName, KernelOp } from './kernels/table/table.js'
export { getComputeThreads, setComputeThreads } from './kernels/wasm/threads/compute-threads.js'
export type { Functional, WithInPlace } from './ops/define/define.js'
export { bernoulli, type MultinomialOptions, multinomial, normal, randperm, type SampleOptions } from './ops/sample.js'
export type { KernelSource, KernelThis } from './raw/user-kernel.js'
export { coalesce, toDense } from './sparse/operations.js'
export { SparseTensor } from './sparse/sparse-tensor.js'
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
} from './tensor/create.js'
export { currentDevice, Device, type DeviceSpec, device, type KernelInfo, withDevice } from './tensor/device.js'
export type { BackwardOptions, BackwardPassOptions, GradFunction, RemovableHandle } from './tensor/grad-ops.js'
export { memoryScope } from './tensor/memory-scope.js'
export { isTensor, Tensor } from './tensor/tensor.js'
export type { DType, TypedArray } from './values/dtype.js'
export { currentGenerator, Generator, type GeneratorState, manualSeed } from './values/generator.js'
export type { JsonNumber, TensorJson } from './values/json.js'
export type {
  AddmmOptions,
  DistanceOptions,
  DivOptions,
  GeluOptions,
  IndexSpec,
  IsCloseOptions,
  NanToNumOptions,
  PadMode,
  PadOptions,
  RangeText,
  ReduceOptions,
  SimilarityOptions,
  SoftplusOptions,
  SortOptions,
  TopkOptions,
  ValueOptions,
  ValuesAndIndices,
  VarianceOptions,
} from './values/options.js'
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
  Reduction,
  SmoothL1Options,
} from './values/options-neural.js'
export type { NestedArray } from './values/read.js'
export type { DimsArg } from './values/shape.js'
