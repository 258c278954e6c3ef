/** The result of `model.stats()` of a DistributedDataParallel: `reducer.ts` measures it. PyTorch: `_get_ddp_logging_data`. */

export interface DistributedDataParallelStats {
  /** How many iterations have been reduced. */
  readonly iterations: number
  /** The buckets, in the order in which they are reduced. Sparse gradients count as 0 bytes. */
  readonly buckets: readonly { readonly parameters: readonly string[]; readonly bytes: number }[]
  /** Whether buckets are in the order of gradients already. */
  readonly hasRebuiltBuckets: boolean
  /** Names of the parameters that this rank's last pass did not lead to. */
  readonly unusedParameters: readonly string[]
  /** All passes of this rank have led to the same parameters so far: `staticGraph` would do where `findUnusedParameters` is set. */
  readonly canSetStaticGraph: boolean
  /** Times of the last iteration on this rank; null before the first iteration has ended. */
  readonly last: DistributedDataParallelTimes | null
}

/** The times of one iteration, in ms. */
export interface DistributedDataParallelTimes {
  /** Time of the module's forward. */
  readonly forwardMs: number
  /** Time from the beginning of the pass to the last gradient. */
  readonly backwardMs: number
  /** Time from the first all-reduce to the end of the last. */
  readonly communicationMs: number
  /** The part of `communicationMs` before the last gradient. */
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
