/**
 * Datasets, which give a sample for an index or in an order of their own, and datasets made of others. PyTorch: `torch.utils.data.dataset`.
 */
import { Generator, type Tensor } from '@postgrad/tensor'
import { checkIterable, checkTensor, indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { type RandomSource, shuffled, sourceOf } from './random.js'

/** Samples by index, from 0 to length−1. Any object with these two members is a dataset. PyTorch: `Dataset` with `__len__` and `__getitem__`. */
export interface Dataset<T> {
  /** How many samples the dataset has. */
  readonly length: number
  /** Returns the sample at an index, or a promise of it. */
  get(index: number): T | Promise<T>
}

/** A dataset without indices: samples in its own order, anew in each iteration. PyTorch: `IterableDataset`. */
export type IterableDataset<T> = Iterable<T> | AsyncIterable<T>

/**
 * A dataset, or an array of samples, which counts as one, as a list does in PyTorch; else null.
 * `Array.isArray` also accepts an array of another realm.
 */
export function asDataset<T>(dataset: Dataset<T> | readonly T[]): Dataset<T>
export function asDataset(dataset: unknown): Dataset<unknown> | null
export function asDataset(dataset: unknown): Dataset<unknown> | null {
  if (Array.isArray(dataset)) return new ArrayDataset(dataset)
  return isMapStyle(dataset) ? dataset : null
}

/** Not for users, who pass the array. */
export class ArrayDataset<T> implements Dataset<T> {
  private readonly samples: readonly T[]

  constructor(samples: readonly T[]) {
    this.samples = samples
  }

  get length(): number {
    return this.samples.length
  }

  get(index: number): T {
    return this.samples[index] as T
  }
}

/** True for what has `length` and `get`: such a dataset is not iterated, even if it could be. */
function isMapStyle(dataset: unknown): dataset is Dataset<unknown> {
  const d = dataset as Partial<Dataset<unknown>> | null
  return typeof d === 'object' && d !== null && typeof d.length === 'number' && typeof d.get === 'function'
}

/**
 * A dataset of tensors, whose first dimensions all have the extent N, the number of samples. Sample i has the i-th slice of each tensor, `[x[i], y[i]]`, as views
 * without a copy. PyTorch: `TensorDataset`.
 * @throws INVALID_ARGUMENT without tensors; SHAPE_MISMATCH if their first extents differ
 * @example
 * const dataset = new TensorDataset(tensor([[1, 2], [3, 4]]), tensor([0, 1]))
 * dataset.length // 2
 * dataset.get(1)[0] // [3, 4]
 */
export class TensorDataset<T extends readonly Tensor[]> implements Dataset<T> {
  /** The tensors of the dataset. */
  readonly tensors: T
  /** How many samples the dataset has: the first extent of the tensors. */
  readonly length: number

  /** @throws INVALID_ARGUMENT without tensors, SHAPE_MISMATCH unless all have the same first extent */
  constructor(...tensors: T) {
    const first = tensors[0]
    if (first === undefined) throw invalidArgument('TensorDataset', 'at least one tensor', 'none')
    for (const one of tensors) {
      checkTensor('TensorDataset', 'each argument', one)
      if (one.ndim > 0 && one.shape[0] === first.shape[0]) continue
      throw shapeMismatch(
        'TensorDataset',
        'tensors of the same first extent',
        tensors.map(({ shape }) => shapeText(shape)).join(' and '),
        'The first dimension counts the samples; unsqueeze(0) makes one of extent 1.',
      )
    }
    this.tensors = tensors
    this.length = first.shape[0] as number
  }

  /** Returns the slices at this index of all tensors, as views. @throws INDEX_OUT_OF_RANGE */
  get(index: number): T {
    checkIndex('TensorDataset.get', index, this.length)
    return this.tensors.map((one) => one.select(0, index)) as readonly Tensor[] as T
  }
}

/**
 * The samples of another dataset at the given indices, in the order of the indices. PyTorch: `Subset`.
 * @throws INDEX_OUT_OF_RANGE if the dataset does not have an index; INVALID_ARGUMENT
 * @example
 * const vowels = new Subset(['a', 'b', 'c', 'd', 'e'], [0, 4])
 * vowels.get(1) // 'e'
 */
export class Subset<T> implements Dataset<T> {
  /** The dataset that the samples come from. */
  readonly dataset: Dataset<T>
  /** The indices of the samples in that dataset. */
  readonly indices: readonly number[]

  /** @throws INDEX_OUT_OF_RANGE for an index that the dataset does not have */
  constructor(dataset: Dataset<T> | readonly T[], indices: readonly number[]) {
    this.dataset = asDataset(dataset)
    checkIterable('Subset', 'indices', indices)
    for (const index of indices) checkIndex('Subset', index, this.dataset.length)
    this.indices = [...indices]
  }

  /** How many samples the subset has. */
  get length(): number {
    return this.indices.length
  }

  /** Returns the subset's sample number `index`, or a promise of it. @throws INDEX_OUT_OF_RANGE */
  get(index: number): T | Promise<T> {
    return this.dataset.get(this.indexOf(index))
  }

  /** Returns the index in `dataset` of the subset's sample number `index`. @throws INDEX_OUT_OF_RANGE */
  indexOf(index: number): number {
    checkIndex('Subset.get', index, this.length)
    return this.indices[index] as number
  }
}

/**
 * Several datasets as one, in their order. PyTorch: `ConcatDataset`.
 * @throws INVALID_ARGUMENT if the list is empty
 * @example
 * const both = new ConcatDataset([['a', 'b'], ['c']])
 * both.get(2) // 'c'
 * both.locate(2)[1] // 0
 */
export class ConcatDataset<T> implements Dataset<T> {
  /** The datasets, in their order. */
  readonly datasets: readonly Dataset<T>[]
  /** How many samples the datasets have together. */
  readonly length: number

  /** @throws INVALID_ARGUMENT for no datasets */
  constructor(datasets: readonly (Dataset<T> | readonly T[])[]) {
    if (datasets.length === 0) throw invalidArgument('ConcatDataset', 'at least one dataset', 'none')
    this.datasets = datasets.map((one) => asDataset(one))
    this.length = this.datasets.reduce((sum, { length }) => sum + length, 0)
  }

  /** Returns the sample at an index, which counts through all datasets, or a promise of it. @throws INDEX_OUT_OF_RANGE */
  get(index: number): T | Promise<T> {
    const [dataset, own] = this.locate(index)
    return dataset.get(own)
  }

  /** Returns the dataset that has the sample at an index, and the sample's index in that dataset. @throws INDEX_OUT_OF_RANGE */
  locate(index: number): readonly [dataset: Dataset<T>, index: number] {
    checkIndex('ConcatDataset.get', index, this.length)
    let own = index
    for (const dataset of this.datasets) {
      if (own < dataset.length) return [dataset, own]
      own -= dataset.length
    }
    throw invalidArgument('ConcatDataset.get', `datasets of ${this.length} samples together`, 'fewer', 'A dataset must keep its length.')
  }
}

/**
 * Splits a dataset into random subsets without common samples. `lengths` are the sizes of the subsets, or fractions that add up to 1. Sizes from fractions are
 * rounded down, and the remaining samples go to the first subsets, one to each. It draws one seed from `generator`, by default the current generator. PyTorch:
 * `random_split`.
 * @throws INVALID_ARGUMENT if sizes do not add up to the dataset's length, or fractions to 1
 * @example
 * const all = new TensorDataset(randn([100, 4]), zeros([100]))
 * const [train, test] = randomSplit(all, [0.8, 0.2], { generator: new Generator(7) })
 * train!.length // 80
 * test!.length // 20
 */
export function randomSplit<T>(dataset: Dataset<T> | readonly T[], lengths: readonly number[], options: RandomSource = {}): Subset<T>[] {
  const sizes = sizesOf(dataset.length, lengths)
  const order = shuffled(dataset.length, new Generator(sourceOf(options)))
  let from = 0
  return sizes.map((size) => {
    from += size
    return new Subset(dataset, order.slice(from - size, from))
  })
}

/** Sums of fractions that differ from 1 by less than this are 1; torch compares as `math.isclose` does. */
const CLOSE = 1e-9

function sizesOf(length: number, lengths: readonly number[]): readonly number[] {
  const sum = lengths.reduce((a, b) => a + b, 0)
  const areCounts = lengths.every((one) => Number.isSafeInteger(one) && one >= 0)
  if (areCounts && sum === length) return lengths
  if (lengths.every((one) => one >= 0 && one <= 1) && Math.abs(sum - 1) <= CLOSE) {
    const sizes = lengths.map((one) => Math.floor(one * length))
    const left = length - sizes.reduce((a, b) => a + b, 0)
    for (let i = 0; i < left; i++) sizes[i % sizes.length] = (sizes[i % sizes.length] as number) + 1
    return sizes
  }
  throw invalidArgument(
    'randomSplit',
    `lengths that add up to ${length}, or fractions of it that add up to 1`,
    `[${lengths.join(', ')}]`,
    'Leave out nothing: a part that is not wanted is a subset that is not used.',
  )
}

function checkIndex(op: string, index: number, length: number): void {
  if (Number.isSafeInteger(index) && index >= 0 && index < length) return
  throw indexOutOfRange(
    op,
    length === 0 ? 'no index: it is empty' : `an index in 0 … ${length - 1}`,
    index,
    'Negative indices do not count from the end here.',
  )
}
