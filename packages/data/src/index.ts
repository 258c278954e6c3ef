/** The public names of data: datasets, samplers, the DataLoader, file readers. @packageDocumentation */
export { type Collated, defaultCollate } from './collate.js'
export { type CsvColumns, type CsvOptions, type CsvRow, type CsvSchema, type CsvSource, type CsvType, csvDataset, readCsv } from './csv.js'
export { DataLoader, type DataLoaderOptions } from './data-loader.js'
export { ConcatDataset, type Dataset, type IterableDataset, randomSplit, Subset, TensorDataset } from './dataset.js'
export { decodeIdx, encodeIdx, type IdxReadOptions, type IdxType, type IdxWriteOptions, readIdx, writeIdx } from './idx.js'
export type { DataLoaderState, EpochBegin, Stateful } from './loader-state.js'
export type { RandomSource } from './random.js'
export {
  BatchSampler,
  DistributedSampler,
  type DistributedSamplerOptions,
  type DistributedSamplerState,
  RandomSampler,
  type RandomSamplerOptions,
  type Sampler,
  SequentialSampler,
  type Sized,
  SubsetRandomSampler,
  WeightedRandomSampler,
  type WeightedRandomSamplerOptions,
} from './sampler.js'
export { type DatasetFactory, WorkerDataset, workerDataset } from './worker-dataset.js'
