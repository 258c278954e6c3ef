/**
 * The reducer of one DistributedDataParallel module: sees the gradient of each parameter when a backward pass has it, gathers gradients in buckets, starts an all-reduce
 * for each full bucket while the pass continues, and lets the pass wait until the means have replaced the gradients. `bucket.ts` is one of its buckets,
 * `bucket-assignment.ts` assigns parameters to them, and `pass-gradients.ts` finds the gradients; the module calls it when a forward pass begins and ends. PyTorch: `torch/csrc/distributed/c10d/reducer.cpp`.
 *
 *     idle ── prepareForBackward ──→ armed ── a pass enters ──→ reducing ── all have been written back ──→ idle
 *                                     ↑  └─ again: one more pass is awaited                              └─ or armed: passes are left
 *     (under noSync it stays as it is, and gradients stay this rank's; a pass that breaks off leaves it reducing, for good)
 *
 * A pass is of noSync if the scope in which it begins here is, or, in a distributed one, its context. A pass that is reduced begins when passes that began before it here have
 * ended, since its means would replace the gradients that they add; to begin one while another is reduced is an error.
 *
 * Note [Buckets]
 *
 *     bucket 0   [ g9 | g8 | g7 ]   full: its all-reduce runs
 *     bucket 1   [ g6 | .. | g4 ]   g5 is missing
 *     bucket 2   [ g3 | .. | .. ]   if it is full before bucket 1 it waits: ranks must begin all-reduces in one order
 *
 * A gradient is divided by the number of ranks when its bucket takes it. Division by a power of two changes no bit, so there the result is that of one sum in the
 * order of the ranks. At construction there is one bucket per dtype, unless unused parameters are looked for. The first backward pass shows in which order gradients
 * are ready, and the buckets are made again, once, in rank 0's order: then the first of them are full early. A parameter whose gradient is sparse has a bucket of
 * its own.
 *
 * Note [Unused parameters]
 *
 * A parameter that a pass does not lead to gets no gradient, so its bucket would never be full. A pass has counted its graph before it runs (`GraphTask.dependencies`), on
 * each worker that it leads through, so the reducer knows who is missing when the pass enters. PyTorch walks the outputs' graph after forward, and can be wrong: with
 * several forward passes, outputs that do not enter the loss, or a graph that leads through another worker. Here missing parameters are refused before anything is
 * reduced; with findUnusedParameters they count as ready from the start, with staticGraph those of the first pass in all. Another rank may have used them, so ranks
 * also add up who has used what since the last reduction: a parameter that nobody has used keeps the `.grad` that it had.
 */
import assert from 'node:assert'
import { type AccumulateGrad, type GraphTask, gradientEdge } from '@postgrad/autograd/internal'
import { currentContext } from '@postgrad/dist-autograd/internal'
import { allReduce, broadcast, type ProcessGroup } from '@postgrad/process-group'
import { type RemovableHandle, type SparseTensor, tensor } from '@postgrad/tensor'
import { CPU, markAlone, markShared, raw, Tensor } from '@postgrad/tensor/internal'
import { Bucket, type ReducedParameter, scaled } from './bucket.js'
import { type BucketMember, computeBucketAssignmentBySize, decodeAssignment, encodeAssignment } from './bucket-assignment.js'
import { PostLocalSGDState, postLocalSGDHook } from './comm-hooks.js'
import {
  backwardNotAwaitable,
  createGraphRefused,
  forwardMissing,
  graphChanged,
  markedReadyTwice,
  modelDisposed,
  parametersMissing,
  reductionUnfinished,
} from './ddp-errors.js'
import { type DistributedDataParallelStats, Stopwatch } from './ddp-stats.js'
import { type CommHook, checkedReduction, GradBucket } from './grad-bucket.js'
import { isQuiet } from './no-sync.js'
import { contextOf, gradOf, writeMean, writeSparse } from './pass-gradients.js'
import { ReducedGradients } from './reduced-gradients.js'

export interface ReducerOptions {
  readonly group: ProcessGroup
  readonly findUnusedParameters: boolean
  readonly staticGraph: boolean
  readonly gradientAsBucketView: boolean
  /** Limits in bytes: of the first bucket, and of the others. */
  readonly bucketLimits: readonly [first: number, others: number]
  /** In ms. */
  readonly now: () => number
}

export class Reducer {
  readonly watch: Stopwatch
  private iterations = 0
  /** Reductions that have ended, those of other ranks among them to which this one has brought zeros. */
  reductions = 0
  /** Whether the hook lets replicas go apart. */
  isLocalSGD = false
  /** Of the last iteration, or of the first with staticGraph, on this rank. */
  private readonly unused = new Set<number>()
  private isGraphAlwaysTheSame = true
  private readonly parameters: readonly ReducedParameter[]
  private readonly known: ReadonlySet<Tensor>
  private readonly leaves: readonly AccumulateGrad[]
  private readonly options: ReducerOptions
  private readonly hooks: RemovableHandle[]
  private state: 'idle' | 'armed' | 'reducing' = 'idle'
  /** Forward passes whose backward passes have not come: of those that are reduced, and of those of noSync. */
  private awaited = 0
  private awaitedQuietly = 0
  /** Distributed contexts in which noSync has gone forward. */
  private readonly quietContexts = new Set<bigint>()
  private buckets: Bucket[]
  /** Of each parameter: its bucket, and which one it is there. */
  private readonly places: { readonly bucket: Bucket; readonly k: number }[] = []
  private hasRebuilt = false
  /** The order in which gradients were ready, until buckets have been made of it. */
  private readyOrder: number[] = []
  private commHook: ((bucket: GradBucket) => Tensor | PromiseLike<Tensor>) | null = null
  /** Of the bucket before. */
  private lastHook: Promise<unknown> = Promise.resolve()
  /** Passes whose gradients stay this rank's; and those of them that are under way, and add to `.grad`. */
  private readonly alone = new WeakSet<object>()
  private readonly aloneUnderWay = new Set<PromiseLike<void>>()
  private isDisposed = false

  // Of the iteration that is under way.
  private task: GraphTask | null = null
  /** The end of the pass that is reduced, if it is of this worker alone. */
  private reduced: PromiseLike<void> | null = null
  private divisor: number
  private ready = new Set<number>()
  private launched = 0
  /** Why the last reduction cannot come to its end. */
  private failure: unknown = null
  /** 1 for each parameter that this rank has used, then how many ranks have. */
  private uses: Int32Array | null = null
  /** Whether that is known on all ranks, of this iteration or, with staticGraph, of all. */
  private isUseKnown = false
  /** Parameters with gradients that may be unreduced. */
  private readonly usedAlone = new Set<number>()

  constructor(parameters: readonly ReducedParameter[], options: ReducerOptions) {
    this.parameters = parameters
    this.known = new Set(parameters.map(({ value }) => value))
    this.leaves = parameters.map(({ value }) => leafOf(value))
    this.options = options
    this.divisor = options.group.size
    this.watch = new Stopwatch(options.now)
    const limits = options.findUnusedParameters && !options.staticGraph ? options.bucketLimits : [Number.POSITIVE_INFINITY]
    const { buckets } = computeBucketAssignmentBySize(parameters.map(memberOf), limits)
    this.buckets = this.make([...buckets].reverse())
    this.hooks = this.leaves.map((leaf, i) => leaf.addLeafHook((task, grad) => this.onGradient(i, task as GraphTask, grad)))
  }

  /** Numbers of the parameters of each bucket. */
  get assignment(): readonly (readonly number[])[] {
    return this.buckets.map(({ numbers }) => numbers)
  }

  get stats(): DistributedDataParallelStats {
    const names = (numbers: Iterable<number>): string[] => [...numbers].map((i) => this.parameters[i]!.name)
    return {
      iterations: this.iterations,
      buckets: this.buckets.map(({ numbers, bytes }) => ({ parameters: names(numbers), bytes })),
      hasRebuiltBuckets: this.hasRebuilt,
      unusedParameters: names(this.unused),
      canSetStaticGraph: this.isGraphAlwaysTheSame,
      last: this.watch.last,
    }
  }

  /** A reduction that is under way comes to its end first, for the other ranks, and its pass rejects with DDP_DISPOSED. */
  dispose(): void {
    this.isDisposed = true
    if (!this.isReducing) this.release()
  }

  private release(): void {
    for (const hook of this.hooks) hook.remove()
    for (const bucket of this.buckets) bucket.drop()
    this.buckets = []
    // No replicas are left that a step could differ from.
    for (const { value } of this.parameters) if (value.grad !== null) markShared(value.grad)
  }

  /** Whether the running code is inside of noSync. */
  get isQuiet(): boolean {
    return isQuiet(this)
  }

  /** Whether gradients are on their way, and may arrive. */
  private get isReducing(): boolean {
    return this.state === 'reducing' && this.failure === null && (this.task?.error ?? null) === null
  }

  /** Whether another hook is there already is for the caller to say. */
  setCommHook<S>(state: S, hook: CommHook<S>): void {
    this.commHook = (bucket) => hook(state, bucket)
    this.isLocalSGD = state instanceof PostLocalSGDState || (hook as unknown) === postLocalSGDHook
    const { assignment } = this
    for (const bucket of this.buckets) bucket.drop()
    this.buckets = this.make(assignment)
  }

  get hasCommHook(): boolean {
    return this.commHook !== null
  }

  /** Whether it knows a parameter. */
  reduces(parameter: Tensor): boolean {
    return this.known.has(parameter)
  }

  // --- forward

  /** @throws DDP_REDUCTION_UNFINISHED */
  ensureFinished(op: string): void {
    if (this.state === 'reducing') throw reductionUnfinished(op, this.options.group.rank, this.failure ?? this.task?.error ?? null)
  }

  /** Once, when a first iteration has shown the order of gradients: makes the buckets again. All ranks call it before the same forward pass. */
  async rebuildBuckets(): Promise<void> {
    const { findUnusedParameters, staticGraph, group, bucketLimits } = this.options
    if (this.hasRebuilt || (findUnusedParameters && !staticGraph) || this.readyOrder.length < this.parameters.length) return
    this.hasRebuilt = true
    const order = this.readyOrder
    this.readyOrder = []
    const members = order.map((i) => memberOf(this.parameters[i]!))
    const { buckets } = computeBucketAssignmentBySize(members, bucketLimits, order)
    const numbers = tensor(encodeAssignment(buckets), { dtype: 'int32', device: 'cpu' })
    const padded = raw.cat([numbers, Tensor.empty('int32', [2 * order.length + 1 - numbers.numel], CPU)], 0)
    await broadcast(padded, group.ranks[0]!, { group })
    for (const bucket of this.buckets) bucket.drop()
    this.buckets = this.make(decodeAssignment([...padded.dataSync()]))
  }

  /** As if this rank's gradients had been ready in the order of the parameters: for one that has no iteration of its own. */
  pushAllReady(): void {
    if (!this.hasRebuilt && this.readyOrder.length === 0) this.readyOrder = [...this.parameters.keys()]
  }

  /** A forward pass under noSync: the backward pass that follows is not reduced. */
  expectPassAlone(): void {
    this.awaitedQuietly++
    const context = currentContext()
    if (context !== null) this.quietContexts.add(context.id)
  }

  /** From here on one more backward pass is awaited whose gradients are reduced. `divisor`: what sums are divided by. @throws DDP_REDUCTION_UNFINISHED */
  prepareForBackward(divisor: number): void {
    this.ensureFinished('forward')
    this.state = 'armed'
    this.awaited++
    this.divisor = divisor
  }

  /**
   * Takes part in a backward pass of the others, for a rank without inputs: with zeros, or with gradients left by passes of this rank alone. The means are in `.grad` here, too: optimizers that are cut over the
   * ranks continue.
   */
  async shadowBackward(divisor: number): Promise<void> {
    await this.aloneEnded()
    this.begin()
    this.divisor = divisor
    // Gradients of this rank alone go along, once.
    const left = (i: number): Tensor | null => (this.usedAlone.has(i) ? this.parameters[i]!.value.grad : null)
    if (!this.isUseKnown) this.uses = Int32Array.from(this.parameters, (_, i) => (left(i) === null ? 0 : 1))
    await this.reduceFilled((bucket) => {
      for (const [k, i] of bucket.numbers.entries()) bucket.fill(k, left(i), this.factor, false)
    })
    this.reductions++
    this.pushAllReady()
  }

  /** Passes that come from here on are this rank's alone, whatever a forward has prepared. */
  forgetForwards(): void {
    if (this.state === 'armed') this.state = 'idle'
    this.awaited = 0
    this.forgetQuiet()
  }

  private forgetQuiet(): void {
    this.awaitedQuietly = 0
    this.quietContexts.clear()
  }

  /**
   * All gradients in `.grad` at once, after backward passes of this rank alone, those of a pipeline's micro-batches. A parameter without a new gradient since the last reduction is unused.
   * Rejects with DDP_REDUCTION_UNFINISHED, DDP_GRAPH_CHANGED, a hook's error, and as all collectives.
   */
  async reduceGradients(divisor: number): Promise<void> {
    await this.aloneEnded()
    this.ensureFinished('backward')
    // A gradient of an earlier reduction is not a use.
    const isUsed = (i: number): boolean => this.usedAlone.has(i) && this.parameters[i]!.value.grad !== null
    const missing = new Set([...this.parameters.keys()].filter((i) => !isUsed(i)))
    this.beginReduction(missing, divisor, null)
    try {
      await this.reduceFilled((bucket) => {
        for (const [k, i] of bucket.numbers.entries()) bucket.fill(k, this.parameters[i]!.value.grad, this.factor, !missing.has(i))
      })
      this.endReduction(null)
      this.state = 'idle'
      this.ensureKept()
    } catch (error) {
      this.failure = error
      throw error
    }
  }

  /** The course of a reduction that no pass carries: `fill` gives each bucket all that it takes at once, and the means go to `.grad`. */
  private async reduceFilled(fill: (bucket: Bucket) => void): Promise<void> {
    for (const bucket of this.buckets) {
      fill(bucket)
      this.launch(bucket)
    }
    this.watch.ready()
    this.write(null, await this.allReduced())
  }

  private begin(): void {
    this.ready.clear()
    this.launched = 0
    if (!this.hasRebuilt) this.readyOrder = []
    for (const bucket of this.buckets) bucket.begin()
    if (!this.options.staticGraph) this.isUseKnown = !this.options.findUnusedParameters
  }

  // --- backward

  /**
   * A pass that is this module's own begins, and none of its nodes has run; `ended` settles at its end. Refused, it has changed nothing.
   * @throws DDP_FORWARD_MISSING, and as `enter`
   */
  onPass(task: GraphTask, ended: PromiseLike<void>): void {
    if (this.state === 'idle' && !this.isQuiet && this.awaitedQuietly === 0) throw forwardMissing()
    if (!this.isAlone(task)) {
      this.enter(task)
      this.reduced = ended
      return
    }
    this.leaveAlone(task)
    const done = (): unknown => this.aloneUnderWay.delete(ended)
    this.aloneUnderWay.add(ended)
    ended.then(done, done)
  }

  /** Whether a pass that is begun now would meet passes of this rank alone, which end by themselves. */
  get mustWait(): boolean {
    return this.aloneUnderWay.size > 0 && this.state === 'armed' && !this.isAlone(null)
  }

  /** When passes of this rank alone have ended that are under way. Never rejects. */
  async aloneEnded(): Promise<void> {
    while (this.aloneUnderWay.size > 0) await Promise.allSettled(this.aloneUnderWay)
  }

  /** When the reduction that is under way has ended: what ranks do together next follows its collectives. Never rejects. */
  async reductionEnded(): Promise<void> {
    if (this.isReducing && this.reduced !== null) await Promise.allSettled([this.reduced])
  }

  /** Whether gradients of a pass (null: one that is begun here) that comes now stay this rank's: no forward has prepared one, or it follows one of noSync. */
  private isAlone(task: GraphTask | null): boolean {
    if (this.state !== 'armed') return this.state === 'idle'
    const context = contextOf(task)
    return this.awaitedQuietly > 0 && (context === null ? this.isQuiet : this.quietContexts.has(context))
  }

  private leaveAlone(task: GraphTask): void {
    this.alone.add(task)
    if (this.awaitedQuietly > 0) this.awaitedQuietly--
    const context = contextOf(task)
    if (context !== null) this.quietContexts.delete(context)
  }

  /** A pass has done with parameter i. */
  private onGradient(i: number, task: GraphTask, grad: Tensor | null): void {
    if (task !== this.task) {
      // The module trains by itself again.
      if (this.isDisposed && !this.isReducing) return
      if (!this.alone.has(task)) {
        if (this.isAlone(task)) this.leaveAlone(task)
        else this.enterFrom(i, task)
      }
      if (task !== this.task) {
        if (grad !== null) this.keepAlone(i, task)
        return
      }
    }
    if (grad !== null && !this.isUseKnown) this.uses![i] = 1
    this.markReady(i, task, grad !== null)
  }

  /** A pass of this rank alone has given parameter i a gradient. */
  private keepAlone(i: number, task: GraphTask): void {
    const grad = gradOf(task, this.parameters[i]!.value)
    if (grad !== null && this.options.group.size > 1) markAlone(grad)
    // In a context it stays in the context.
    if (contextOf(task) === null) this.usedAlone.add(i)
  }

  /** The same of a pipeline's step, which puts what its passes have given into `.grad` when the last of them has ended. */
  keepAllAlone(): void {
    if (this.options.group.size === 1) return
    for (const i of this.usedAlone) {
      const { grad } = this.parameters[i]!.value
      if (grad !== null) markAlone(grad)
    }
  }

  private enterFrom(i: number, task: GraphTask): void {
    if (this.isReducing) throw markedReadyTwice(this.parameters[i]!.name, i)
    this.enter(task)
  }

  /** @throws DDP_REDUCTION_UNFINISHED, DDP_BACKWARD_SYNCHRONOUS, DDP_CREATE_GRAPH, DDP_GRAPH_CHANGED */
  private enter(task: GraphTask): void {
    this.ensureFinished('backward')
    if (task.sink.awaitable === undefined) throw backwardNotAwaitable()
    if (task.createGraph) throw createGraphRefused()
    const missing = new Set([...this.leaves.keys()].filter((i) => !task.dependencies.has(this.leaves[i]!)))
    this.beginReduction(missing, this.divisor, task)
    this.task = task
    for (const i of missing) this.markReady(i, task, false)
  }

  /**
   * `missing`: parameters without a gradient. `task`: the pass that gives the others; null: they are in `.grad`.
   * @throws DDP_REDUCTION_UNFINISHED, DDP_GRAPH_CHANGED; then it has changed nothing
   */
  private beginReduction(missing: ReadonlySet<number>, divisor: number, task: GraphTask | null): void {
    const { findUnusedParameters, staticGraph, gradientAsBucketView } = this.options
    // In a context nothing is left of other passes.
    const left = contextOf(task) !== null ? [] : [...this.usedAlone].filter((i) => this.parameters[i]!.value.grad !== null)
    if (staticGraph && this.isUseKnown) this.checkGraph(missing, left)
    else if (missing.size > 0 && !findUnusedParameters && !staticGraph) throw this.unreached([...missing])
    this.begin()
    this.divisor = divisor
    if (gradientAsBucketView && contextOf(task) !== null) for (const bucket of this.buckets) bucket.freeGrads()
    this.state = 'reducing'
    this.watch.begin()
    if (this.iterations > 0 && !this.wereMissing(missing)) this.isGraphAlwaysTheSame = false
    this.unused.clear()
    for (const i of missing) this.unused.add(i)
    if (!this.isUseKnown) {
      this.uses = new Int32Array(this.parameters.length)
      for (const i of left) this.uses[i] = 1
    }
  }

  /** The factor of a gradient when its bucket takes it. */
  private get factor(): number {
    return this.commHook === null ? 1 / this.divisor : 1
  }

  /** Whether just these were missing the last time. */
  private wereMissing(missing: ReadonlySet<number>): boolean {
    return missing.size === this.unused.size && [...missing].every((i) => this.unused.has(i))
  }

  /** @throws DDP_GRAPH_CHANGED */
  private checkGraph(missing: ReadonlySet<number>, left: readonly number[]): void {
    for (const [i, { name }] of this.parameters.entries()) {
      if (missing.has(i) !== this.unused.has(i)) throw graphChanged(name, i, missing.has(i))
    }
    const alone = left.find((i) => this.isUnusedEverywhere(i))
    if (alone !== undefined) throw graphChanged(this.parameters[alone]!.name, alone, false)
  }

  private unreached(numbers: readonly number[]): Error {
    const names = numbers.map((i) => this.parameters[i]!.name)
    return parametersMissing(this.options.group.rank, names, numbers)
  }

  /** `isOurs`: the pass has given a gradient. */
  private markReady(i: number, task: GraphTask, isOurs: boolean): void {
    assert(!this.ready.has(i), 'a leaf is done once in a pass')
    this.ready.add(i)
    if (!this.hasRebuilt) this.readyOrder.push(i)
    const { bucket, k } = this.places[i]!
    bucket.fill(k, gradOf(task, this.parameters[i]!.value), this.factor, isOurs)
    if (--bucket.pending > 0) return
    while (this.launched < this.buckets.length && this.buckets[this.launched]!.pending === 0) this.launch(this.buckets[this.launched++]!)
    if (this.launched === this.buckets.length) this.finishWith(task)
  }

  private launch(bucket: Bucket): void {
    this.watch.launch()
    bucket.work = this.commHook === null ? bucket.allReduce(this.options.group) : this.hooked(this.commHook, bucket)
    // A pass that fails has nobody left who waits for it.
    bucket.work.then(undefined, () => {})
  }

  /**
   * Hooks run one after the other, so that ranks begin what they begin in one order. The first of an iteration begins at once. Sparse gradients have no hook, but their turn.
   */
  private hooked(commHook: (bucket: GradBucket) => Tensor | PromiseLike<Tensor>, bucket: Bucket): PromiseLike<unknown> {
    const index = this.buckets.indexOf(bucket)
    const run = async (): Promise<unknown> => {
      const { flat, numbers, values } = bucket
      if (flat === null) return bucket.allReduce(this.options.group)
      const areSparse = (others: readonly Bucket[]): boolean => others.every((other) => other.flat === null)
      const [isFirst, isLast] = [areSparse(this.buckets.slice(0, index)), areSparse(this.buckets.slice(index + 1))]
      const parameterCount = this.parameters.length
      const given = new GradBucket({ index, isFirst, isLast, parameters: values, numbers, parameterCount, buffer: flat })
      return checkedReduction(await commHook(given), flat)
    }
    const result = index === 0 ? run() : this.lastHook.then(run)
    this.lastHook = result
    return result
  }

  /** All buckets are on their way: the pass ends when they are back. */
  private finishWith(task: GraphTask): void {
    this.watch.ready()
    const end = new ReducedGradients((results) => this.finish(task, results))
    const proceed = task.waitFor(end)
    this.allReduced().then(
      (results) => {
        end.results = results
        proceed()
      },
      (error) => {
        this.failure = error
        end.error = error
        if (this.isDisposed) this.release()
        proceed()
      },
    )
  }

  /** Of all buckets, and of who has used what. */
  private async allReduced(): Promise<unknown[]> {
    const { uses, isUseKnown } = this
    const works = this.buckets.map(({ work }) => work!)
    const used = uses === null || isUseKnown ? null : tensor(uses, { device: 'cpu' })
    // After all that hooks begin.
    if (used !== null && this.commHook !== null) await Promise.all(works)
    const reduced = used === null ? null : allReduce(used, { group: this.options.group })
    const results = await Promise.all(works)
    await reduced
    if (used !== null) this.uses = (await used.data()) as Int32Array
    return results
  }

  private finish(task: GraphTask, results: readonly unknown[]): void {
    this.write(task, results)
    this.endReduction(task)
    this.awaited--
    this.state = this.awaited > 0 ? 'armed' : 'idle'
    if (this.state === 'idle') this.forgetQuiet()
    this.ensureKept()
  }

  /** After a reduction. @throws DDP_DISPOSED */
  private ensureKept(): void {
    if (!this.isDisposed) return
    this.release()
    throw modelDisposed('backward')
  }

  private endReduction(task: GraphTask | null): void {
    if (contextOf(task) === null) this.usedAlone.clear()
    this.iterations++
    this.reductions++
    this.watch.end()
    this.task = null
  }

  /** Puts means where a pass (null: nobody's) has its gradients. */
  private write(task: GraphTask | null, results: readonly unknown[]): void {
    for (const [b, bucket] of this.buckets.entries()) {
      bucket.work = null
      bucket.take(results[b])
      for (const [k, i] of bucket.numbers.entries()) {
        if (this.isUnusedEverywhere(i)) {
          bucket.restore(k)
          continue
        }
        const { value } = this.parameters[i]!
        const { tensor: mean, isView } = bucket.mean(k)
        if (bucket.isSparse) writeSparse(task, value, scaled(mean as SparseTensor, 1 / this.divisor))
        else writeMean(task, value, mean, isView, this.options.gradientAsBucketView)
        markShared(gradOf(task, value)!)
        if (contextOf(task) === null) this.usedAlone.delete(i)
      }
      bucket.begin()
    }
    this.isUseKnown = true
  }

  private isUnusedEverywhere(i: number): boolean {
    return this.uses !== null && this.uses[i] === 0
  }

  private make(assignment: readonly (readonly number[])[]): Bucket[] {
    const inOneBuffer = this.commHook !== null
    const buckets = assignment.map((numbers) => new Bucket(numbers, this.parameters, inOneBuffer))
    for (const bucket of buckets) for (const [k, i] of bucket.numbers.entries()) this.places[i] = { bucket, k }
    return buckets
  }
}

const memberOf = ({ value: { dtype, numel }, isSparse: sparse }: ReducedParameter): BucketMember => ({ dtype, numel, isSparse: sparse })

function leafOf(parameter: Tensor): AccumulateGrad {
  const edge = gradientEdge(parameter)
  assert(edge !== null, 'a reduced parameter requires a gradient')
  return edge.node as AccumulateGrad
}
