/**
 * Samplers: in which order a dataset's samples come. Each iteration is one epoch; random ones draw one seed when it begins (`random.ts`).
 * PyTorch: `torch.utils.data.sampler` and `distributed`; the same sequences where they do not depend on the random generator.
 */
import { Generator, type GeneratorState, isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument, shapeText } from '@postgrad/tensor/internal'
import { checkGeneratorState, loadSamplerState, mismatch, type Stateful, samplerState } from './loader-state.js'
import { type RandomSource, shuffled, sourceOf } from './random.js'

/** Indices (of a `BatchSampler`: lists of them), a new sequence each time it is iterated. */
export interface Sampler<I = number> extends Iterable<I>, Stateful {
  /** How many an iteration gives. */
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

/** What a sampler needs of a dataset. */
export interface Sized {
  /** How many samples there are. */
  readonly length: number
}

/** 0, 1, 2, …. PyTorch: `torch.utils.data.SequentialSampler`. */
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

/** Of `RandomSampler`. */
export interface RandomSamplerOptions extends RandomSource {
  /** Draw each index from all; default false: every index once, then, if numSamples asks for more, again in another order. */
  readonly replacement?: boolean
  /** Default: as many as the dataset has. */
  readonly numSamples?: number
}

/** Random order. PyTorch: `torch.utils.data.RandomSampler`. */
export class RandomSampler extends SeededSampler implements Sampler {
  protected readonly source: RandomSource
  private readonly dataset: Sized
  private readonly options: RandomSamplerOptions

  /** @throws INVALID_ARGUMENT for a bad numSamples, or for an empty dataset from which something shall be drawn */
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

/** These indices in random order. PyTorch: `torch.utils.data.SubsetRandomSampler`. */
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

/** Of `WeightedRandomSampler`. */
export interface WeightedRandomSamplerOptions extends RandomSource {
  /** Default true. */
  readonly replacement?: boolean
}

/** Index i with a probability in proportion to weights[i], which need not add up to 1. PyTorch: `torch.utils.data.WeightedRandomSampler`. */
export class WeightedRandomSampler extends SeededSampler implements Sampler {
  protected readonly source: RandomSource
  readonly length: number
  private readonly weights: readonly number[]
  private readonly options: WeightedRandomSamplerOptions

  /**
   * @param weights also a tensor [n], which is read here
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

/** Lists of `batchSize` indices of another sampler; the last may be shorter, or is left out. PyTorch: `torch.utils.data.BatchSampler`. */
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

/** What an iterator has left, for a loop that closes it where it ends early. */
export function restOf<T>(iterator: Iterator<T>): Iterable<T> {
  return { [Symbol.iterator]: () => iterator }
}

/** Of `DistributedSampler`. */
export interface DistributedSamplerOptions {
  /** Into how many parts the dataset is cut: one per worker that trains. */
  readonly numReplicas: number
  /** Which part this is, 0 … numReplicas−1. */
  readonly rank: number
  /** Default true. */
  readonly shuffle?: boolean
  /** Of the shuffling, the same at all replicas; with the epoch it gives the order. Default 0. */
  readonly seed?: number
  /** Leave the last samples out where the dataset cannot be cut evenly; default: the first ones come twice. */
  readonly dropLast?: boolean
}

/** Where a `DistributedSampler` stands: plain data, the same for every rank. */
export interface DistributedSamplerState {
  /** As `setEpoch` has set it. */
  readonly epoch: number
  /** Of the options. */
  readonly numReplicas: number
  /** Of the options. */
  readonly shuffle: boolean
  /** Of the options. */
  readonly seed: number
  /** Of the options. */
  readonly dropLast: boolean
}

/**
 * This replica's part of the dataset: every numReplicas-th index from `rank` on, equally many for each. Call `setEpoch` before each epoch. PyTorch:
 * `torch.utils.data.DistributedSampler`.
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

  /** Without it every epoch has the same order: the replicas must agree, so the order comes from seed and epoch alone. @throws INVALID_ARGUMENT */
  setEpoch(epoch: number): void {
    if (!Number.isSafeInteger(epoch) || epoch < 0) throw invalidArgument('setEpoch', 'an integer ≥ 0', epoch)
    this.epoch = epoch
  }

  /** The epoch, and what decides its order: a state of another order would leave samples out, or give them twice. */
  stateDict(): DistributedSamplerState {
    const { numReplicas, shuffle = true, dropLast = false } = this.options
    return { epoch: this.epoch, numReplicas, shuffle, seed: this.seed, dropLast }
  }

  /** @throws STATE_DICT_MISMATCH */
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
