/** Counts and times of a DistributedDataParallel on this rank: the result of `model.stats()`. PyTorch: `_get_ddp_logging_data`. */

export interface DistributedDataParallelStats {
  /** How many iterations the ranks have reduced. */
  readonly iterations: number
  /** The buckets, in the order in which they are reduced: names of parameters, and size in bytes. Sparse gradients count as 0 bytes. */
  readonly buckets: readonly { readonly parameters: readonly string[]; readonly bytes: number }[]
  /** Whether the buckets have been made again, in the order of the gradients of the first backward pass. */
  readonly hasRebuiltBuckets: boolean
  /** Names of the parameters to which the last pass of this rank did not lead. */
  readonly unusedParameters: readonly string[]
  /** Whether all passes of this rank have led to the same parameters so far; then `staticGraph` can replace `findUnusedParameters`. */
  readonly canSetStaticGraph: boolean
  /** The times of the last iteration on this rank; null before the first iteration has ended. */
  readonly last: DistributedDataParallelTimes | null
}

/** The times of one iteration, in ms. */
export interface DistributedDataParallelTimes {
  /** The time of the module's forward, in ms. */
  readonly forwardMs: number
  /** The time from the beginning of the backward pass to its last gradient, in ms. */
  readonly backwardMs: number
  /** The time from the beginning of the first all-reduce to the end of the last, in ms. */
  readonly communicationMs: number
  /** The part of `communicationMs` before the last gradient, in ms. */
  readonly overlapMs: number
}

/** Of one iteration, as it goes. */
export class Stopwatch {
  /** Of the last iteration that has ended. */
  last: DistributedDataParallelTimes | null = null
  forwardMs = 0
  private readonly now: () => number
  private beganMs = 0
  private launchedMs: number | null = null
  private readyMs = 0

  /** `now` in ms. */
  constructor(now: () => number) {
    this.now = now
  }

  async forward<T>(run: () => T | PromiseLike<T>): Promise<T> {
    const started = this.now()
    const result = await run()
    this.forwardMs = this.now() - started
    return result
  }

  begin(): void {
    this.beganMs = this.now()
    this.launchedMs = null
  }

  /** An all-reduce begins. */
  launch(): void {
    this.launchedMs ??= this.now()
  }

  /** All gradients are there. */
  ready(): void {
    this.readyMs = this.now()
  }

  end(): void {
    const launched = this.launchedMs ?? this.readyMs
    this.last = {
      forwardMs: this.forwardMs,
      backwardMs: this.readyMs - this.beganMs,
      communicationMs: this.now() - launched,
      overlapMs: Math.max(0, this.readyMs - launched),
    }
  }
}
