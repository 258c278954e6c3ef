/**
 * Samplers give the order of a dataset's samples. Each iteration is one epoch; random ones draw one seed when it begins (`random.ts`).
 * PyTorch: `torch.utils.data.sampler` and `distributed`; the same sequences where they do not depend on the random generator.
 */
import { Generator, type GeneratorState, isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument, shapeText } from '@postgrad/tensor/internal'
import { checkGeneratorState, loadSamplerState, mismatch, type Stateful, samplerState } from './loader-state.js'
import { type RandomSource, shuffled, sourceOf } from './random.js'

/** Decides the order of a dataset's samples: an iterable of indices, or of lists of indices (`BatchSampler`). Each iteration is one epoch. */
export interface Sampler<I = number> extends Iterable<I>, Stateful {
  /** How many indices (or lists of indices) one iteration has. */
  readonly length: number
}

/** A sampler that draws its seed from a source: its own generator, if it has one, is its state. */
abstract class SeededSampler {
  protected abstract readonly source: RandomSource

  stateDict(): GeneratorState | null {
    return this.source.generator?.state() ?? null
  }

  /** @throws STATE_DICT_MISMATCH */
  loadStateDict(state: unknown): void {
    checkGeneratorState('sampler', state)
    if (this.source.generator === undefined) throw mismatch('a sampler without a generator, as this one', 'the state of one')
    this.source.generator.restore(state)
  }
}

/** Something with a length, such as a dataset or an array: the only part of a dataset that samplers need. */
export interface Sized {
  /** How many samples there are. */
  readonly length: number
}

/**
 * Yields the indices of a dataset in order: 0, 1, 2, …. PyTorch: `torch.utils.data.SequentialSampler`.
 * @example [...new SequentialSampler(['a', 'b', 'c'])] // [0, 1, 2]
 */
export class SequentialSampler implements Sampler {
  private readonly dataset: Sized

  constructor(dataset: Sized) {
    this.dataset = dataset
  }

  get length(): number {
    return this.dataset.length
  }

  *[Symbol.iterator](): Iterator<number> {
    for (let i = 0; i < this.dataset.length; i++) yield i
  }
}

/** Options of `RandomSampler`. */
export interface RandomSamplerOptions extends RandomSource {
  /** true: each index is drawn from all indices. false (default): each index comes once; if `numSamples` is larger, then again, in another order. */
  readonly replacement?: boolean
  /** How many indices one iteration has. Default: the dataset's length. */
  readonly numSamples?: number
}

/**
 * Yields the indices of a dataset in random order. PyTorch: `torch.utils.data.RandomSampler`.
 * @throws INVALID_ARGUMENT if `numSamples` is not an integer from 1, or is given for an empty dataset
 * @example
 * const sampler = new RandomSampler(['a', 'b', 'c'], { generator: new Generator(7) })
 * const indices = [...sampler] // [1, 2, 0]
 */
export class RandomSampler extends SeededSampler implements Sampler {
  protected readonly source: RandomSource
  private readonly dataset: Sized
  private readonly options: RandomSamplerOptions

  /** @throws INVALID_ARGUMENT for an invalid numSamples, or for numSamples with an empty dataset */
  constructor(dataset: Sized, options: RandomSamplerOptions = {}) {
    super()
    checkOptions('RandomSampler', options, ['replacement', 'numSamples', 'generator'])
    if (options.numSamples !== undefined) checkCount('RandomSampler', 'numSamples', options.numSamples)
    if (dataset.length === 0 && options.numSamples !== undefined) {
      throw invalidArgument('RandomSampler', 'a dataset with samples to draw from', 'an empty one', 'Leave numSamples out.')
    }
    this.dataset = dataset
    this.options = options
    this.source = options
  }

  get length(): number {
    return this.options.numSamples ?? this.dataset.length
  }

  [Symbol.iterator](): Iterator<number> {
    return this.draw(new Generator(sourceOf(this.options)))
  }

  private *draw(generator: Generator): Sequence<number> {
    const n = this.dataset.length
    if (this.options.replacement === true) {
      for (let i = 0; i < this.length; i++) yield generator.integer(0, n)
      return
    }
    for (let left = this.length; left > 0; left -= n) yield* shuffled(n, generator).slice(0, left)
  }
}

/** JavaScript's kind of generator; that name belongs to random numbers here. */
type Sequence<T> = globalThis.Generator<T, void, undefined>

/**
 * Yields the given indices in random order. PyTorch: `torch.utils.data.SubsetRandomSampler`.
 * @example [...new SubsetRandomSampler([2, 5, 9], { generator: new Generator(7) })] // [5, 9, 2]
 */
export class SubsetRandomSampler extends SeededSampler implements Sampler {
  private readonly indices: readonly number[]
  protected readonly source: RandomSource

  constructor(indices: readonly number[], options: RandomSource = {}) {
    super()
    checkOptions('SubsetRandomSampler', options, ['generator'])
    checkIterable('SubsetRandomSampler', 'indices', indices)
    this.indices = [...indices]
    this.source = options
  }

  get length(): number {
    return this.indices.length
  }

  [Symbol.iterator](): Iterator<number> {
    const order = shuffled(this.indices.length, new Generator(sourceOf(this.source)))
    return order.map((i) => this.indices[i] as number).values()
  }
}

/** Options of `WeightedRandomSampler`. */
export interface WeightedRandomSamplerOptions extends RandomSource {
  /** Whether an index may be drawn again. Default true. */
  readonly replacement?: boolean
}

/**
 * Yields `numSamples` random indices. The probability of index i is proportional to `weights[i]`. `weights` is a tensor of shape [n], or an iterable of numbers, and
 * need not add up to 1. PyTorch: `torch.utils.data.WeightedRandomSampler`.
 * @throws INVALID_ARGUMENT if a weight is negative or not finite, or all are 0; or if, without replacement, `numSamples` is larger than the number of weights above 0
 * @example
 * const sampler = new WeightedRandomSampler([0.1, 0.9], 4, { generator: new Generator(7) })
 * const indices = [...sampler] // [1, 1, 1, 1]
 */
export class WeightedRandomSampler extends SeededSampler implements Sampler {
  protected readonly source: RandomSource
  readonly length: number
  private readonly weights: readonly number[]
  private readonly options: WeightedRandomSamplerOptions

  /**
   * @param weights an iterable of numbers, or a tensor [n], which is read now
   * @throws INVALID_ARGUMENT for weights that are negative, not finite or all 0, and for more samples than weights above 0 without replacement
   */
  constructor(weights: Iterable<number> | Tensor, numSamples: number, options: WeightedRandomSamplerOptions = {}) {
    super()
    checkOptions('WeightedRandomSampler', options, ['replacement', 'generator'])
    if (isTensor(weights) && weights.ndim !== 1)
      throw invalidArgument('WeightedRandomSampler', 'weights of shape [n]', shapeText(weights.shape))
    this.weights = [...(isTensor(weights) ? weights.dataSync() : weights)]
    checkCount('WeightedRandomSampler', 'numSamples', numSamples)
    const bad = this.weights.findIndex((weight) => !(Number.isFinite(weight) && weight >= 0))
    if (bad >= 0) throw invalidArgument('WeightedRandomSampler', 'finite weights ≥ 0', `${this.weights[bad]} at ${bad}`)
    const possible = this.weights.filter((weight) => weight > 0).length
    if (possible === 0) throw invalidArgument('WeightedRandomSampler', 'at least one weight above 0', 'none')
    if (options.replacement === false && numSamples > possible) {
      throw invalidArgument(
        'WeightedRandomSampler',
        `at most ${possible} samples without replacement`,
        numSamples,
        'Pass { replacement: true }.',
      )
    }
    this.length = numSamples
    this.options = options
    this.source = options
  }

  [Symbol.iterator](): Iterator<number> {
    const generator = new Generator(sourceOf(this.options))
    return (this.options.replacement === false ? this.withoutReplacement(generator) : this.withReplacement(generator)).values()
  }

  private withReplacement(generator: Generator): number[] {
    const ends: number[] = []
    let sum = 0
    for (const weight of this.weights) {
      sum += weight
      ends.push(sum)
    }
    return Array.from({ length: this.length }, () => firstAbove(ends, generator.uniform64() * sum))
  }

  /** The smallest of exponential times, one per index with its weight as rate: drawing one after the other without putting back. */
  private withoutReplacement(generator: Generator): number[] {
    const times = this.weights.map((weight, index) => ({ index, time: -Math.log(1 - generator.uniform64()) / weight }))
    return times
      .sort((a, b) => a.time - b.time)
      .slice(0, this.length)
      .map(({ index }) => index)
  }
}

/** The first place whose value is greater: an index of weight 0 ends where the one before it does, and is never found. */
function firstAbove(ends: readonly number[], value: number): number {
  let [low, high] = [0, ends.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ends[middle] as number) > value) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * Yields lists of `batchSize` indices of another sampler. The last list may be shorter; `dropLast` (default false) leaves it out. PyTorch:
 * `torch.utils.data.BatchSampler`.
 * @throws INVALID_ARGUMENT if `batchSize` is not an integer from 1
 * @example [...new BatchSampler(new SequentialSampler(['a', 'b', 'c', 'd', 'e']), 2)] // [[0, 1], [2, 3], [4]]
 */
export class BatchSampler implements Sampler<number[]> {
  private readonly sampler: Sampler
  private readonly batchSize: number
  private readonly dropLast: boolean

  /** @throws INVALID_ARGUMENT */
  constructor(sampler: Sampler, batchSize: number, dropLast = false) {
    checkIterable('BatchSampler', 'a sampler', sampler)
    checkCount('BatchSampler', 'batchSize', batchSize)
    this.sampler = sampler
    this.batchSize = batchSize
    this.dropLast = dropLast
  }

  get length(): number {
    return batchCount(this.sampler.length, this.batchSize, this.dropLast)
  }

  stateDict(): unknown {
    return samplerState(this.sampler)
  }

  /** @throws STATE_DICT_MISMATCH */
  loadStateDict(state: unknown): void {
    loadSamplerState(this.sampler, state)
  }

  [Symbol.iterator](): Iterator<number[]> {
    // The inner iteration begins now, with its draw of a seed, and not with the first batch.
    return inBatches(this.sampler[Symbol.iterator](), this.batchSize, this.dropLast)
  }
}

export function batchCount(samples: number, batchSize: number, dropLast: boolean): number {
  return dropLast ? Math.floor(samples / batchSize) : Math.ceil(samples / batchSize)
}

function* inBatches(indices: Iterator<number>, batchSize: number, dropLast: boolean): Sequence<number[]> {
  let batch: number[] = []
  for (const index of restOf(indices)) {
    batch.push(index)
    if (batch.length < batchSize) continue
    yield batch
    batch = []
  }
  if (batch.length > 0 && !dropLast) yield batch
}

/** The rest of an iterator, for a loop that closes it if it ends early. */
export function restOf<T>(iterator: Iterator<T>): Iterable<T> {
  return { [Symbol.iterator]: () => iterator }
}

/** Options of `DistributedSampler`. */
export interface DistributedSamplerOptions {
  /** How many parts the dataset is divided into: one for each worker that trains. */
  readonly numReplicas: number
  /** Which part this sampler yields, from 0 to numReplicas−1. */
  readonly rank: number
  /** Whether each epoch has a random order. Default true. */
  readonly shuffle?: boolean
  /** The seed of the random order, which also depends on the epoch. Give all replicas the same seed. Default 0. */
  readonly seed?: number
  /** If the parts cannot have equal lengths: true leaves out the last samples, false (default) uses the first samples again. */
  readonly dropLast?: boolean
}

/** The position of a `DistributedSampler`: plain data, the same for every rank. */
export interface DistributedSamplerState {
  /** The epoch of the last `setEpoch`. */
  readonly epoch: number
  /** The option `numReplicas`. */
  readonly numReplicas: number
  /** The option `shuffle`. */
  readonly shuffle: boolean
  /** The option `seed`. */
  readonly seed: number
  /** The option `dropLast`. */
  readonly dropLast: boolean
}

/**
 * Yields one replica's part of a dataset: every numReplicas-th index, from number `rank` on. All replicas have the same number of indices. Call `setEpoch` before each
 * epoch. PyTorch: `torch.utils.data.DistributedSampler`.
 * @throws INVALID_ARGUMENT if an option is invalid
 * @example
 * const sampler = new DistributedSampler(new TensorDataset(zeros([6])), { numReplicas: 2, rank: 1, shuffle: false })
 * const indices = [...sampler] // [1, 3, 5]
 * sampler.setEpoch(1) // before each epoch, so that a shuffled order differs
 */
export class DistributedSampler implements Sampler {
  readonly length: number
  private readonly dataset: Sized
  private readonly options: DistributedSamplerOptions
  private readonly seed: number
  private epoch = 0

  /** @throws INVALID_ARGUMENT */
  constructor(dataset: Sized, options: DistributedSamplerOptions) {
    checkOptions('DistributedSampler', options, ['numReplicas', 'rank', 'shuffle', 'seed', 'dropLast'])
    const { numReplicas, rank, seed = 0, dropLast = false } = options
    checkCount('DistributedSampler', 'numReplicas', numReplicas)
    if (!Number.isSafeInteger(rank) || rank < 0 || rank >= numReplicas) {
      throw invalidArgument('DistributedSampler', `a rank in 0 … ${numReplicas - 1}`, rank)
    }
    if (!Number.isSafeInteger(seed)) throw invalidArgument('DistributedSampler', 'a seed that is a safe integer', seed)
    this.dataset = dataset
    this.options = options
    this.seed = seed
    this.length = batchCount(dataset.length, numReplicas, dropLast)
  }

  /** Sets the epoch, which with the seed decides the order. Without this call, all epochs have the same order. @throws INVALID_ARGUMENT if it is not an integer from 0 */
  setEpoch(epoch: number): void {
    if (!Number.isSafeInteger(epoch) || epoch < 0) throw invalidArgument('setEpoch', 'an integer ≥ 0', epoch)
    this.epoch = epoch
  }

  /** Returns the epoch, and the options that decide its order, as plain data. */
  stateDict(): DistributedSamplerState {
    const { numReplicas, shuffle = true, dropLast = false } = this.options
    return { epoch: this.epoch, numReplicas, shuffle, seed: this.seed, dropLast }
  }

  /**
   * Sets the epoch of a state. @throws STATE_DICT_MISMATCH if the state has other options than this sampler: its epoch would leave out samples, or repeat them
   */
  loadStateDict(state: unknown): void {
    const { epoch, ...order } = (state ?? {}) as Partial<DistributedSamplerState>
    if (!Number.isSafeInteger(epoch) || (epoch as number) < 0) throw mismatch('the epoch of a DistributedSampler', argumentText(state))
    const own = this.stateDict()
    for (const name of ['numReplicas', 'shuffle', 'seed', 'dropLast'] as const) {
      if (order[name] === own[name]) continue
      throw mismatch(
        `${name} ${own[name]}, as this DistributedSampler's`,
        argumentText(order[name]),
        'Use the options that the state was taken with.',
      )
    }
    this.setEpoch(epoch as number)
  }

  [Symbol.iterator](): Iterator<number> {
    const n = this.dataset.length
    const { numReplicas, rank, shuffle = true } = this.options
    const order = shuffle ? shuffled(n, new Generator(this.seed + this.epoch)) : Array.from({ length: n }, (_, i) => i)
    const own = Array.from({ length: this.length }, (_, i) => order[(rank + i * numReplicas) % n] as number)
    return own.values()
  }
}

/** @throws INVALID_ARGUMENT */
export function checkCount(op: string, name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) throw invalidArgument(op, `${name} to be an integer ≥ 1`, value)
}

/** @throws INVALID_ARGUMENT */
export function checkIterable(op: string, expected: string, value: unknown): void {
  if (!isTensor(value) && typeof (value as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] === 'function') return
  throw invalidArgument(op, `${expected}, which can be iterated`, value === null ? 'null' : isTensor(value) ? 'a tensor' : typeof value)
}
