/**
 * DataLoader: loads a dataset in batches. The sampler chooses the samples of a batch, collate puts them together, and this file decides when they load.
 * PyTorch: `torch.utils.data.DataLoader`.
 *
 * Note [What an epoch depends on]. When an iteration begins, it draws from the generator: one seed for the epoch's samples, then the sampler's own draw (one
 * seed). Nothing is drawn later. Each sample is loaded in a scope whose generator is seeded by the epoch's seed and the sample's place in the epoch.
 * So the state of the generator before an epoch decides all of it; the number of workers, the batches that were loaded ahead, and a loop that
 * ends early do not change it. PyTorch seeds by worker instead, so its random numbers change with the number of workers.
 */
import { PostgradError } from '@postgrad/base'
import { structuredClone, timeLimit, withScope } from '@postgrad/base/internal'
import { currentGenerator, Generator, isTensor } from '@postgrad/tensor'
import { checkOptions as checkNames, invalidArgument } from '@postgrad/tensor/internal'
import type { Timer } from '@postgrad/transport'
import { RealClock, setDeadline } from '@postgrad/transport/internal'
import { type BatchPlan, collateSamples, loadSamples } from './batch.js'
import { type Collated, defaultCollate } from './collate.js'
import { asDataset, type Dataset, type IterableDataset } from './dataset.js'
import {
  checkLoaderState,
  type DataLoaderState,
  type EpochBegin,
  type LoaderMade,
  loadSamplerState,
  mismatch,
  samplerState,
} from './loader-state.js'
import { sourceOf } from './random.js'
import {
  BatchSampler,
  checkCount,
  checkIterable,
  DistributedSampler,
  RandomSampler,
  restOf,
  type Sampler,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
} from './sampler.js'
import { type Sources, sourcesOf } from './worker-dataset.js'
import { WorkerPool } from './worker-pool.js'

/** Options of `DataLoader`. */
export interface DataLoaderOptions<T, B = Collated<T>> {
  /** How many samples a batch has. Default 1. For samples without a batch dimension (PyTorch: None), use 1 and `collate: ([sample]) => sample`. */
  readonly batchSize?: number
  /** Whether each epoch has a new random order. Default false. */
  readonly shuffle?: boolean
  /** Decides the order of the samples, in place of `shuffle`. */
  readonly sampler?: Sampler
  /** Decides the samples of each batch, in place of `batchSize`, `shuffle`, `sampler` and `dropLast`. */
  readonly batchSampler?: Sampler<readonly number[]>
  /** Whether to leave out the last batch if it is not full. Default false. */
  readonly dropLast?: boolean
  /** Makes a batch of a list of samples. Your own function runs in this thread, also with `workers`. Default: `defaultCollate`, which runs in the workers. */
  readonly collate?: (samples: readonly T[]) => B | Promise<B>
  /** The generator from which each epoch draws its seeds when it begins. Default: the current generator (`currentGenerator`) at that moment. */
  readonly generator?: Generator
  /** How many threads load batches. They need a dataset of `workerDataset`. Default 0: this thread loads a batch when the loop asks for it. PyTorch: `num_workers`. */
  readonly workers?: number
  /** How many batches each worker loads ahead. Default 2. */
  readonly prefetchFactor?: number
  /** Whether to keep the threads and their datasets from one epoch to the next, until `close`. Default false. */
  readonly persistentWorkers?: boolean
  /** How long to wait for a batch of a worker, in ms. For the first batch, this includes making the dataset. Default 60,000. 0: without a limit. */
  readonly timeoutMs?: number
}

/** Every option there is, and nothing else: the compiler holds the two together. */
const OPTIONS: Readonly<Record<keyof DataLoaderOptions<unknown>, true>> = {
  batchSize: true,
  shuffle: true,
  sampler: true,
  batchSampler: true,
  dropLast: true,
  collate: true,
  generator: true,
  workers: true,
  prefetchFactor: true,
  persistentWorkers: true,
  timeoutMs: true,
}

const PREFETCH_FACTOR = 2
const TIMEOUT_MS = 60_000
const clock = new RealClock()

/**
 * Loads a dataset in batches, for `for await`. Each loop is one epoch. Batches arrive in the order of the sampler, also with several workers. When a loop ends, early
 * or not, its threads end, too, unless `persistentWorkers` keeps them. `close`, or `await using`, ends all threads. PyTorch: `torch.utils.data.DataLoader`.
 * @throws INVALID_ARGUMENT, TIMEOUT_INVALID if an option is invalid; DATASET_NOT_SENDABLE if there are workers and the dataset is not of `workerDataset`. A loop fails
 * with DATASET_FAILED if the dataset fails (`values.index`, `values.batch`, and its error in `cause`); with the code of collate's error, or COLLATE_FAILED if
 * that error has no code; SAMPLE_NOT_SENDABLE if a worker cannot send a sample; WORKER_DIED; BATCH_TIMEOUT after `timeoutMs`; LOADER_CLOSED
 * @example
 * const dataset = new TensorDataset(randn([10, 4]), zeros([10]))
 * for await (const [inputs, targets] of new DataLoader(dataset, { batchSize: 4, shuffle: true })) {
 *   console.log(inputs.shape, targets.shape) // [4, 4] [4], twice; then [2, 4] [2]
 * }
 */
export class DataLoader<T, B = Collated<T>> implements AsyncIterable<B> {
  /** The dataset. An array of samples was wrapped in a `Dataset`. */
  readonly dataset: Dataset<T> | IterableDataset<T>
  /** How many samples a batch has. */
  readonly batchSize: number
  /** How many threads load batches. 0: this thread loads them. */
  readonly workers: number
  private readonly options: DataLoaderOptions<T, B>
  /** null for an IterableDataset. */
  private readonly batches: Sampler<readonly number[]> | null
  private readonly sources: Sources | null
  private readonly timeoutMs: number
  private readonly inFlightMax: number
  private readonly pools = new Set<WorkerPool>()
  private persistent: WorkerPool | null = null
  /** The epoch that began last, until it has ended. */
  private epoch: Epoch | null = null
  /** With which the next epoch begins, if a state said so. */
  private resumed: Epoch | null = null
  private closed = false

  /** @throws INVALID_ARGUMENT, TIMEOUT_INVALID, DATASET_NOT_SENDABLE if there are workers and the dataset was not made by `workerDataset` */
  constructor(dataset: Dataset<T> | readonly T[] | IterableDataset<T>, options: DataLoaderOptions<T, B> = {}) {
    checkOptions(options)
    const { batchSize = 1, workers = 0, prefetchFactor = PREFETCH_FACTOR, timeoutMs = TIMEOUT_MS } = options
    checkCount('DataLoader', 'batchSize', batchSize)
    checkCount('DataLoader', 'prefetchFactor', prefetchFactor)
    if (!Number.isSafeInteger(workers) || workers < 0) throw invalidArgument('DataLoader', 'workers to be an integer ≥ 0', workers)
    const mapStyle = asDataset(dataset) as Dataset<T> | null
    this.dataset = mapStyle ?? (dataset as IterableDataset<T>)
    this.batchSize = batchSize
    this.workers = workers
    this.options = options
    this.timeoutMs = timeLimit('timeoutMs', timeoutMs)
    this.inFlightMax = workers * prefetchFactor
    if (mapStyle !== null) {
      checkLength(mapStyle)
      this.batches = batchesOf(mapStyle, batchSize, options)
      this.sources = workers === 0 ? null : sourcesOf(mapStyle)
    } else {
      checkStream(dataset, options)
      this.batches = null
      this.sources = null
    }
  }

  /** How many batches an epoch has. @throws INVALID_ARGUMENT if the dataset is an `IterableDataset`, whose length is not known */
  get length(): number {
    if (this.batches !== null) return this.batches.length
    throw invalidArgument('DataLoader.length', 'a dataset with a length', 'an IterableDataset', 'Count the batches while they come.')
  }

  /** Begins an epoch. @throws LOADER_CLOSED */
  [Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    this.checkOpen()
    const { resumed } = this
    const epoch = resumed ?? { begin: this.begin(), batches: 0 }
    const skip = epoch.batches
    const { seed, batches } = resumed === null ? this.draw() : this.drawAgain(resumed.begin)
    this.epoch = epoch
    this.resumed = null
    if (batches === null) return this.stream(this.dataset as IterableDataset<T>, seed, epoch, skip)
    const plans = planned(batches, seed, skip)
    return this.sources === null ? this.here(this.dataset as Dataset<T>, plans, epoch) : this.inWorkers(this.sources, plans, epoch)
  }

  /**
   * Returns the loader's position as plain data (JSON): how many batches of the latest epoch the loop has received, and everything that this epoch depends on.
   * Batches that were loaded ahead do not count, and the number of workers does not matter. After a loop that ended early, the position is still in that epoch.
   *
   * The state includes the generator that was passed to the loader or its sampler. Without such a generator, later epochs depend on the current generator: save
   * `currentGenerator().state()`, too. If your own sampler has a state, give it `stateDict` and `loadStateDict`. PyTorch: torchdata's
   * `StatefulDataLoader.state_dict`.
   */
  stateDict(): DataLoaderState {
    const epoch = this.resumed ?? this.epoch
    return structuredClone({
      batches: epoch?.batches ?? 0,
      begin: epoch?.begin ?? null,
      generator: this.options.generator?.state() ?? null,
      sampler: samplerState(this.batches),
      ...this.made(),
    })
  }

  /**
   * Makes the next loop continue from a state: with the same batches, to the last bit, and then the same epochs. An `IterableDataset` is read again up to the position.
   * @throws STATE_DICT_MISMATCH if the value is not a state, or is of a loader with another length, batch size or kind of sampler. Then the loader has not changed
   */
  loadStateDict(state: DataLoaderState): void {
    checkLoaderState(state, this.made(), this.options.generator !== undefined)
    const { begin, batches, generator, sampler } = structuredClone(state)
    const before = samplerState(this.batches)
    if (begin !== null && (begin.sampler === null) !== (sampler === null)) throw mismatch('a sampler in both states, or in none', 'one')
    if ((before === null) !== (sampler === null)) {
      throw mismatch(
        `a state of a loader whose sampler has ${before === null ? 'none' : 'one'}`,
        'another',
        'Use the sampler that it was taken with.',
      )
    }
    try {
      if (begin !== null) loadSamplerState(this.batches, begin.sampler)
      loadSamplerState(this.batches, sampler)
    } catch (error) {
      loadSamplerState(this.batches, before)
      throw error
    }
    if (generator !== null) this.options.generator!.restore(generator)
    this.epoch = null
    this.resumed = begin === null ? null : { begin, batches }
  }

  private made(): LoaderMade {
    const { batchSize, batches, options, dataset } = this
    const samples = batches === null ? null : (dataset as Dataset<T>).length
    return { batchSize, samples, order: batches === null ? 'stream' : orderOf(options), dropLast: options.dropLast ?? false }
  }

  /** The state in which an epoch begins. */
  private begin(): EpochBegin {
    return {
      generator: this.options.generator?.state() ?? null,
      current: currentGenerator().state(),
      sampler: samplerState(this.batches),
    }
  }

  private draw(): { readonly seed: number; readonly batches: Iterator<readonly number[]> | null } {
    const seed = sourceOf(this.options)
    return { seed, batches: this.batches === null ? null : this.batches[Symbol.iterator]() }
  }

  /** Draws as that epoch did. Afterwards all generators are as they were before. */
  private drawAgain({ generator, current, sampler }: EpochBegin): ReturnType<DataLoader<T, B>['draw']> {
    const own = this.options.generator
    const now = { generator: own?.state(), sampler: samplerState(this.batches) }
    loadSamplerState(this.batches, sampler)
    if (generator !== null) own!.restore(generator)
    const instead = new Generator()
    instead.restore(current)
    try {
      return withScope({ generator: instead }, () => this.draw())
    } finally {
      loadSamplerState(this.batches, now.sampler)
      if (now.generator !== undefined) own!.restore(now.generator)
    }
  }

  /** Once all of its batches are handed out. */
  private ended(epoch: Epoch): void {
    if (this.epoch === epoch) this.epoch = null
  }

  /** Ends all threads of the loader. Loops that wait for a batch fail with LOADER_CLOSED. Idempotent. */
  async close(): Promise<void> {
    this.closed = true
    await Promise.all([...this.pools].map((pool) => this.end(pool)))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async *here(dataset: Dataset<T>, plans: Iterator<BatchPlan>, epoch: Epoch): AsyncGenerator<B, void, undefined> {
    for (const plan of restOf(plans)) {
      this.checkOpen()
      const samples = await loadSamples(plan, (index) => dataset.get(index))
      const batch = await this.collate(samples, plan)
      epoch.batches++
      yield batch
    }
    this.ended(epoch)
  }

  private async *inWorkers(sources: Sources, plans: Iterator<BatchPlan>, epoch: Epoch): AsyncGenerator<B, void, undefined> {
    this.checkOpen()
    const pool = this.openPool(sources)
    const inFlight: { readonly plan: BatchPlan; readonly batch: Promise<unknown> }[] = []
    try {
      for (;;) {
        this.checkOpen()
        while (inFlight.length < this.inFlightMax) {
          const next = plans.next()
          if (next.done === true) break
          const plan = next.value
          const batch = pool.load({ plan, items: plan.indices.map(sources.locate), collate: this.options.collate === undefined })
          // The loop awaits it later; until then nobody handles its failure.
          batch.catch(() => {})
          inFlight.push({ plan, batch })
        }
        const first = inFlight.shift()
        if (first === undefined) {
          this.ended(epoch)
          return
        }
        const answer = await this.arrival(first.batch, first.plan)
        const batch = this.options.collate === undefined ? (answer as B) : await this.collate(answer as readonly T[], first.plan)
        epoch.batches++
        yield batch
      }
    } catch (error) {
      // The pool cannot be used any more, or is ending.
      if (ENDS_POOL.has((error as { code?: string }).code ?? '')) await this.end(pool)
      throw error
    } finally {
      try {
        plans.return?.()
      } finally {
        if (this.options.persistentWorkers !== true) await this.end(pool)
      }
    }
  }

  /** Rejects with what the worker answered, BATCH_TIMEOUT, LOADER_CLOSED. */
  private async arrival(batch: Promise<unknown>, plan: BatchPlan): Promise<unknown> {
    let timer: Timer | null | undefined
    const limit = new Promise<never>((_, reject) => {
      timer = setDeadline(clock, this.timeoutMs, () => reject(timedOut(plan, this.timeoutMs)))
    })
    try {
      return await Promise.race([batch, limit])
    } catch (error) {
      this.checkOpen()
      throw isNotSendable(error) ? notSendable(plan, error) : error
    } finally {
      timer?.cancel()
    }
  }

  private openPool(sources: Sources): WorkerPool {
    if (this.persistent !== null && !this.persistent.isClosed) return this.persistent
    const pool = new WorkerPool({ sources: sources.sources }, this.workers)
    this.pools.add(pool)
    if (this.options.persistentWorkers === true) this.persistent = pool
    return pool
  }

  private async end(pool: WorkerPool): Promise<void> {
    await pool.close()
    this.pools.delete(pool)
  }

  private async *stream(dataset: IterableDataset<T>, seed: number, epoch: Epoch, skip: number): AsyncGenerator<B, void, undefined> {
    // One generator for all of it: what comes later in a stream may depend on what came before.
    const generator = new Generator(seed)
    const inStream = <R>(fn: () => R): R => withScope({ generator }, fn)
    const samples = inStream(() => (Symbol.asyncIterator in dataset ? dataset[Symbol.asyncIterator]() : dataset[Symbol.iterator]()))
    let [ended, number] = [false, 0]
    try {
      while (!ended) {
        this.checkOpen()
        const batch: T[] = []
        while (!ended && batch.length < this.batchSize) {
          const next = await inStream(() => samples.next())
          if (next.done === true) ended = true
          else batch.push(next.value)
        }
        if (batch.length < this.batchSize && (batch.length === 0 || this.options.dropLast === true)) continue
        const plan = { number: number++, seed }
        if (plan.number < skip) continue
        const collated = await this.collate(batch, plan)
        epoch.batches++
        yield collated
      }
      if (number < skip) throw tooFew(number, skip)
      this.ended(epoch)
    } finally {
      if (!ended) await samples.return?.()
    }
  }

  private collate(samples: readonly T[], plan: Pick<BatchPlan, 'number' | 'seed'>): Promise<B> {
    return collateSamples(this.options.collate ?? (defaultCollate as unknown as (samples: readonly T[]) => B), samples, plan)
  }

  private checkOpen(): void {
    if (!this.closed) return
    throw new PostgradError('LOADER_CLOSED', { op: 'DataLoader', message: 'it is closed', remedy: 'Make another one.' })
  }
}

/** One iteration: what it depends on, and how many of its batches were handed out. */
interface Epoch {
  readonly begin: EpochBegin
  batches: number
}

function tooFew(number: number, skip: number): PostgradError {
  return mismatch(`an epoch of at least ${skip} batches`, `${number}`, 'Load it into a loader of the same dataset with the same options.')
}

const ENDS_POOL = new Set(['WORKER_DIED', 'BATCH_TIMEOUT'])

/** @throws INVALID_ARGUMENT for options that are none: one that is passed over would be another training than was asked for */
function checkOptions<T, B>(options: DataLoaderOptions<T, B>): void {
  checkNames(
    'DataLoader',
    options,
    Object.keys(OPTIONS) as (keyof typeof OPTIONS)[],
    "Write { batchSize: 32, shuffle: true }; PyTorch's num_workers, collate_fn and timeout are workers, collate and timeoutMs.",
  )
  if ((options.batchSize as number | null | undefined) === null) {
    throw invalidArgument(
      'DataLoader',
      'a batchSize',
      'null',
      'For samples by themselves: { batchSize: 1, collate: ([sample]) => sample }.',
    )
  }
  if (options.collate !== undefined && typeof options.collate !== 'function') {
    throw invalidArgument('DataLoader', 'collate to be a function of the samples', typeof options.collate)
  }
}

/** @throws INVALID_ARGUMENT */
function checkLength({ length }: Dataset<unknown>): void {
  if (Number.isSafeInteger(length) && length >= 0) return
  throw invalidArgument(
    'DataLoader',
    'a dataset whose length is an integer ≥ 0',
    length,
    'A stream is given as an iterable, without length and get.',
  )
}

/** @throws INVALID_ARGUMENT for options that exclude each other, or a batchSampler that is none */
function batchesOf<T, B>(dataset: Dataset<T>, batchSize: number, options: DataLoaderOptions<T, B>): Sampler<readonly number[]> {
  const { shuffle = false, sampler, batchSampler, dropLast = false, generator } = options
  if (batchSampler !== undefined) {
    if (options.batchSize !== undefined || shuffle || sampler !== undefined || dropLast) {
      throw invalidArgument(
        'DataLoader',
        'batchSampler alone',
        'batchSize, shuffle, sampler or dropLast together with it',
        'The batchSampler decides all four.',
      )
    }
    checkIterable('DataLoader', 'a batchSampler', batchSampler)
    return batchSampler
  }
  if (sampler !== undefined && shuffle) {
    throw invalidArgument('DataLoader', 'sampler or shuffle', 'both', 'shuffle means RandomSampler.')
  }
  const order =
    sampler ?? (shuffle ? new RandomSampler(dataset, generator === undefined ? {} : { generator }) : new SequentialSampler(dataset))
  return new BatchSampler(order, batchSize, dropLast)
}

/** Which sampler gives the order, so that a state is not taken for that of another. By names that a bundler does not change. */
function orderOf({
  sampler,
  batchSampler,
  shuffle = false,
}: Pick<DataLoaderOptions<unknown>, 'sampler' | 'batchSampler' | 'shuffle'>): string {
  const given = batchSampler ?? sampler
  if (given === undefined) return shuffle ? 'RandomSampler' : 'SequentialSampler'
  return SAMPLERS.find(([, kind]) => given instanceof kind)?.[0] ?? 'own'
}

const SAMPLERS = [
  ['SequentialSampler', SequentialSampler],
  ['RandomSampler', RandomSampler],
  ['SubsetRandomSampler', SubsetRandomSampler],
  ['WeightedRandomSampler', WeightedRandomSampler],
  ['DistributedSampler', DistributedSampler],
  ['BatchSampler', BatchSampler],
] as const

/** @throws INVALID_ARGUMENT if it is not a stream, or for an option that needs indices */
function checkStream<T, B>(dataset: unknown, { shuffle, sampler, batchSampler, workers = 0 }: DataLoaderOptions<T, B>): void {
  const d = dataset as Partial<Iterable<T> & AsyncIterable<T>> | null
  if (isTensor(dataset) || (typeof d?.[Symbol.asyncIterator] !== 'function' && typeof d?.[Symbol.iterator] !== 'function')) {
    const got = dataset === null ? 'null' : isTensor(dataset) ? 'a tensor' : typeof dataset
    throw invalidArgument(
      'DataLoader',
      'a dataset: length and get(index), or an iterable',
      got,
      'new TensorDataset(x, y) makes one of tensors.',
    )
  }
  if (shuffle === true || sampler !== undefined || batchSampler !== undefined) {
    throw invalidArgument(
      'DataLoader',
      'an IterableDataset in its own order',
      'shuffle, sampler or batchSampler',
      'Shuffle inside the dataset.',
    )
  }
  if (workers > 0) {
    throw invalidArgument(
      'DataLoader',
      'a dataset with length and get(index) for workers',
      'an IterableDataset',
      'A stream is read in one place: leave out { workers }.',
    )
  }
}

/**
 * All batches but the first `skip`.
 * @throws INVALID_ARGUMENT when its turn comes, if a batch is not a list of indices; STATE_DICT_MISMATCH if there are not so many to skip
 */
function* planned(batches: Iterator<readonly number[]>, seed: number, skip: number): Iterator<BatchPlan> & Iterable<BatchPlan> {
  let [number, place] = [0, 0]
  for (const indices of restOf(batches)) {
    if (!Array.isArray(indices)) {
      throw invalidArgument(
        'DataLoader',
        `a list of indices as batch ${number}`,
        typeof indices,
        'One index after the other is what sampler gives.',
      )
    }
    if (number >= skip) yield { number, place, indices, seed }
    number++
    place += indices.length
  }
  if (number < skip) throw tooFew(number, skip)
}

/** The worker could not put its answer into a payload: errors of dataset and collate have other codes. */
function isNotSendable(error: unknown): boolean {
  return /^WIRE_/.test((error as { code?: string }).code ?? '')
}

function notSendable({ number, indices }: BatchPlan, cause: unknown): PostgradError {
  return new PostgradError('SAMPLE_NOT_SENDABLE', {
    op: 'DataLoader',
    message: `batch ${number} cannot be sent from its worker: ${(cause as Error).message}`,
    remedy: 'Only plain values, typed arrays and tensors can be sent.',
    values: { batch: number, indices },
    cause,
  })
}

function timedOut({ number, indices }: BatchPlan, timeoutMs: number): PostgradError {
  return new PostgradError('BATCH_TIMEOUT', {
    op: 'DataLoader',
    message: `batch ${number} did not arrive within ${timeoutMs} ms`,
    remedy: 'Pass a larger timeoutMs, or see what the dataset waits for at these indices.',
    values: { batch: number, indices, timeoutMs },
  })
}
