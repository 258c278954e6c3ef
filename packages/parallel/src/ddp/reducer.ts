/**
 * The reducer of one DistributedDataParallel module: sees the gradient of each parameter when a backward pass has it, gathers gradients in buckets, starts an all-reduce
 * for each full bucket while the pass goes on, and lets the pass wait until what was reduced stands where the gradients were. `bucket-assignment.ts` says
 * who is in which bucket; the module above says when a forward pass begins and ends. PyTorch: `torch/csrc/distributed/c10d/reducer.cpp`.
 *
 *     idle ── prepareForBackward ──→ armed ── first gradient ──→ reducing ── all have been written back ──→ idle
 *                                     ↑  └─ again: forward passes without a backward pass
 *     (under noSync it stays idle, and gradients stay this rank's)
 *
 * Note [Buckets]
 *
 *     bucket 0   [ g9 | g8 | g7 ]   full: its all-reduce runs
 *     bucket 1   [ g6 | .. | g4 ]   g5 is missing
 *     bucket 2   [ g3 | .. | .. ]   if it is full before bucket 1 it waits: ranks must begin all-reduces in one order
 *
 * A gradient is copied into its bucket divided by the number of ranks. Division by a power of two changes no bit, so there the result is that of one sum in the
 * order of the ranks. At construction there is one bucket per dtype, unless unused parameters are looked for. The first backward pass shows in which order gradients
 * are ready, and the buckets are made again, once, in rank 0's order: then the first of them are full early. A parameter whose gradient is sparse has a bucket of
 * its own, and its reduction is not in place.
 *
 * Note [Unused parameters]
 *
 * A parameter that the outputs do not depend on gets no gradient, so its bucket would never be full. With findUnusedParameters the graph is walked after each forward, and such
 * parameters count as ready from the first gradient on; with staticGraph only after the first forward. Another rank may have used them, so ranks
 * also add up who has used what: a parameter that nobody has used keeps the `.grad` that it had.
 */
import assert from 'node:assert'
import {
  type AccumulateGrad,
  dotGradSink,
  type Grads,
  type GraphTask,
  gradientEdge,
  HIGHEST_PRIORITY,
  Node,
} from '@postgrad/autograd/internal'
import { DistPass } from '@postgrad/dist-autograd/internal'
import { allReduce, broadcast, type ProcessGroup } from '@postgrad/process-group'
import { type RemovableHandle, SparseTensor, tensor } from '@postgrad/tensor'
import {
  argumentText,
  binaryScalarInto,
  copyInto,
  invalidArgument,
  isSparse,
  isTensor,
  raw,
  Tensor,
  toDense,
  wrote,
} from '@postgrad/tensor/internal'
import { type BucketMember, computeBucketAssignmentBySize } from './bucket-assignment.js'
import { backwardNotAwaitable, createGraphRefused, graphChanged, markedReadyTwice, reductionUnfinished } from './ddp-errors.js'
import { type CommHook, GradBucket, viewsOf } from './grad-bucket.js'
import { LocalPass } from './local-pass.js'
import { nodesBehind } from './used-parameters.js'

/** A parameter that requires a gradient. */
export interface ReducedParameter {
  readonly name: string
  readonly value: Tensor
  /** Its gradients are sparse. */
  readonly isSparse: boolean
}

export interface ReducerOptions {
  readonly group: ProcessGroup
  readonly findUnusedParameters: boolean
  readonly staticGraph: boolean
  readonly gradientAsBucketView: boolean
  /** Limits in bytes: of the first bucket, and of the others. */
  readonly bucketLimits: readonly [first: number, others: number]
}

export class Reducer {
  private readonly parameters: readonly ReducedParameter[]
  private readonly options: ReducerOptions
  private readonly hooks: RemovableHandle[]
  private state: 'idle' | 'armed' | 'reducing' = 'idle'
  private buckets: Bucket[]
  /** Of each parameter. */
  private readonly places: { readonly bucket: Bucket; readonly view: Tensor | null }[] = []
  private hasRebuilt = false
  /** The order in which gradients were ready, until buckets have been made of it. */
  private readyOrder: number[] = []
  private commHook: ((bucket: GradBucket) => Tensor | PromiseLike<Tensor>) | null = null

  /** Of the bucket before. */
  private lastHook: Promise<unknown> = Promise.resolve()

  // Of the iteration that is under way.
  private divisor: number
  private ready = new Set<number>()
  private readonly unused: Set<number> = new Set()
  private unusedMarked = false
  private launched = 0
  /** Why the last reduction cannot come to its end. */
  private failure: unknown = null
  /** 1 for each parameter that this rank has used, then how many ranks have. */
  private usedMap: Tensor | null = null
  /** Where unused parameters are looked for: whether who uses what is known on all ranks, of this iteration or, with staticGraph, of all. */
  private isUseKnown = false

  constructor(parameters: readonly ReducedParameter[], options: ReducerOptions) {
    this.parameters = parameters
    this.options = options
    this.divisor = options.group.size
    const limits = options.findUnusedParameters && !options.staticGraph ? options.bucketLimits : [Number.POSITIVE_INFINITY]
    const { buckets } = computeBucketAssignmentBySize(parameters.map(memberOf), limits)
    this.buckets = this.make([...buckets].reverse())
    this.hooks = parameters.map(({ value }, i) => leafOf(value).addLeafHook((task, grad) => this.onGradient(i, task as GraphTask, grad)))
  }

  /** Numbers of the parameters of each bucket. */
  get assignment(): readonly (readonly number[])[] {
    return this.buckets.map(({ numbers }) => numbers)
  }

  dispose(): void {
    for (const hook of this.hooks) hook.remove()
    for (const bucket of this.buckets) drop(bucket)
    this.buckets = []
  }

  /** Whether another hook is there already is for the caller to say. */
  setCommHook<S>(state: S, hook: CommHook<S>): void {
    this.commHook = (bucket) => hook(state, bucket)
  }

  get hasCommHook(): boolean {
    return this.commHook !== null
  }

  // --- forward

  /** @throws DDP_REDUCTION_UNFINISHED */
  ensureFinished(op: string): void {
    if (this.state !== 'reducing') return
    const missing = this.missing()
    throw reductionUnfinished(
      op,
      this.options.group.rank,
      missing.map((i) => this.parameters[i]!.name),
      missing,
      this.failure,
    )
  }

  private missing(): number[] {
    return [...this.parameters.keys()].filter((i) => !this.ready.has(i))
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
    // How many there are, the numbers of each, one behind the other.
    const encoded = tensor([buckets.length, ...buckets.map(({ length }) => length), ...buckets.flat()], { dtype: 'int32' })
    const padded = raw.cat([encoded, Tensor.empty('int32', [2 * order.length + 1 - encoded.numel])], 0)
    await broadcast(padded, group.ranks[0]!, { group })
    for (const bucket of this.buckets) drop(bucket)
    this.buckets = this.make(decode([...padded.dataSync()]))
  }

  /** As if this rank's gradients had been ready in the order of the parameters: for one that has no iteration of its own. */
  pushAllReady(): void {
    if (!this.hasRebuilt && this.readyOrder.length === 0) this.readyOrder = [...this.parameters.keys()]
  }

  /** What follows the next forward pass is not reduced. */
  disarm(): void {
    if (this.state === 'armed') this.state = 'idle'
  }

  /** From here on a backward pass is awaited whose gradients are reduced. `divisor`: what sums are divided by. @throws DDP_REDUCTION_UNFINISHED */
  prepareForBackward(outputs: readonly Tensor[], divisor: number): void {
    this.ensureFinished('forward')
    this.state = 'armed'
    this.beginIteration(divisor)
    if (!this.looksForUnused) return
    const reached = nodesBehind(outputs)
    this.lookFor((value) => reached.has(leafOf(value)))
  }

  private beginIteration(divisor: number): void {
    this.divisor = divisor
    this.ready.clear()
    this.unusedMarked = false
    this.launched = 0
    if (!this.hasRebuilt) this.readyOrder = []
    for (const bucket of this.buckets) {
      bucket.pending = bucket.numbers.length
      bucket.work = null
      bucket.sparse = null
    }
  }

  private lookFor(isUsed: (parameter: Tensor) => boolean): void {
    this.unused.clear()
    for (const [i, { value }] of this.parameters.entries()) if (!isUsed(value)) this.unused.add(i)
    this.usedMap = Tensor.empty('int32', [this.parameters.length])
    this.isUseKnown = false
  }

  /** Whether this iteration shows who uses what. */
  private get looksForUnused(): boolean {
    const { findUnusedParameters, staticGraph } = this.options
    return staticGraph ? !this.isUseKnown : findUnusedParameters
  }

  /** Begins what a backward pass of the others begins, with zeros: for a rank that has no inputs any more. */
  async shadowBackward(): Promise<void> {
    const { group } = this.options
    const works: PromiseLike<Tensor>[] = []
    for (const bucket of this.buckets) {
      if (bucket.flat === null) works.push(allReduce(zeroRows(this.parameters[bucket.numbers[0]!]!.value), { group }))
      else {
        bucket.flat.storage.prepareWrite()
        raw.fill_(bucket.flat, 0)
        works.push(this.reduce(bucket, bucket.flat))
      }
    }
    if (this.looksForUnused) {
      this.usedMap = Tensor.empty('int32', [this.parameters.length])
      this.isUseKnown = false
    }
    await this.allReduced(works)
    this.isUseKnown = true
    this.pushAllReady()
  }

  // --- backward

  /** A pass has done with parameter i. */
  private onGradient(i: number, task: GraphTask, grad: Tensor | null): void {
    if (this.state === 'idle') return
    if (!(task.sink instanceof DistPass || task.sink instanceof LocalPass)) throw backwardNotAwaitable()
    if (task.createGraph) throw createGraphRefused()
    this.state = 'reducing'
    if (this.unused.has(i) && this.options.staticGraph && this.isUseKnown) throw graphChanged(this.parameters[i]!.name, i)
    if (grad !== null && !this.isUseKnown && this.usedMap !== null) this.usedMap.storage.array[i] = 1
    if (!this.unusedMarked) {
      this.unusedMarked = true
      for (const each of this.unused) this.markReady(each, task)
    }
    // What was taken to be unused is: the graph behind it lies on another worker, or it was used outside of forward.
    this.markReady(i, task)
  }

  private markReady(i: number, task: GraphTask): void {
    if (this.ready.has(i)) throw markedReadyTwice(this.parameters[i]!.name, i)
    this.ready.add(i)
    if (!this.hasRebuilt) this.readyOrder.push(i)
    const { bucket, view } = this.places[i]!
    this.fill(bucket, view, gradOf(task, this.parameters[i]!.value))
    if (--bucket.pending > 0) return
    while (this.launched < this.buckets.length && this.buckets[this.launched]!.pending === 0) this.launch(this.buckets[this.launched++]!)
    if (this.launched < this.buckets.length) return
    this.finishWith(task)
  }

  /**
   * All gradients at once, as they stand in `.grad`: behind backward passes that were this rank's alone, those of a pipeline's micro-batches. What has no gradient is unused.
   * Rejects with DDP_REDUCTION_UNFINISHED, DDP_GRAPH_CHANGED, what a hook throws, and as all collectives.
   */
  async reduceGradients(divisor: number): Promise<void> {
    const { staticGraph, group } = this.options
    this.beginIteration(divisor)
    const isUsed = ({ grad }: Tensor): boolean => grad !== null
    if (this.looksForUnused) {
      this.lookFor(isUsed)
      for (const [i, { value }] of this.parameters.entries()) if (isUsed(value)) this.usedMap!.storage.array[i] = 1
    }
    for (const [i, { name, value }] of this.parameters.entries()) {
      // Its mean would be left out.
      if (isUsed(value) && staticGraph && this.isUseKnown && this.isUnusedEverywhere(i)) throw graphChanged(name, i)
      if (isUsed(value) || this.unused.has(i)) this.ready.add(i)
    }
    const missing = this.missing()
    if (missing.length > 0) {
      const names = missing.map((i) => this.parameters[i]!.name)
      throw reductionUnfinished('Pipeline.step', group.rank, names, missing, null)
    }
    this.state = 'reducing'
    try {
      for (const [i, { value }] of this.parameters.entries()) this.fill(this.places[i]!.bucket, this.places[i]!.view, value.grad)
      for (const bucket of this.buckets) this.launch(bucket)
      const results = await this.allReduced(this.buckets.map(({ work }) => work!))
      for (const [k, bucket] of this.buckets.entries()) bucket.result = results[k]!
      this.finish({ sink: dotGradSink })
    } catch (error) {
      this.failure = error
      throw error
    }
  }

  /** Puts a gradient where its bucket has a place for it. `view`: null in a sparse one. */
  private fill(bucket: Bucket, view: Tensor | null, grad: Tensor | null): void {
    const { flat } = bucket
    if (flat === null || view === null) {
      bucket.sparse = grad ?? zeroRows(this.parameters[bucket.numbers[0]!]!.value)
      return
    }
    flat.storage.prepareWrite()
    if (grad === null) {
      raw.fill_(view, 0)
      return
    }
    const dense = isSparse(grad) ? toDense(grad) : grad
    const factor = this.commHook === null ? 1 / this.divisor : 1
    const isThere = isSame(dense, view)
    if (factor !== 1) binaryScalarInto('mul', dense.isContiguous ? dense : raw.contiguous(dense), factor, view)
    else if (!isThere) copyInto(dense.isContiguous ? dense : raw.contiguous(dense), view)
    wrote('allReduce', view)
  }

  private launch(bucket: Bucket): void {
    if (bucket.flat === null) bucket.work = allReduce(bucket.sparse!, { group: this.options.group })
    else bucket.work = this.reduce(bucket, bucket.flat)
    // A pass that fails has nobody left who waits for it.
    bucket.work.then(undefined, () => {})
  }

  /**
   * Hooks run one after the other, so that ranks begin what they begin in one order. The first of an iteration begins at once.
   */
  private reduce(bucket: Bucket, flat: Tensor): PromiseLike<Tensor> {
    const { commHook } = this
    if (commHook === null) return allReduce(flat, { group: this.options.group })
    const index = this.buckets.indexOf(bucket)
    const parameters = bucket.numbers.map((i) => this.parameters[i]!.value)
    const run = async (): Promise<Tensor> => {
      const result: unknown = await commHook(new GradBucket(index, index === this.buckets.length - 1, parameters, flat))
      if (isTensor(result) && result.numel === flat.numel) return result
      throw invalidArgument('a communication hook', `to give a tensor of ${flat.numel} elements, as its bucket has`, argumentText(result))
    }
    const result = index === 0 ? run() : this.lastHook.then(run)
    this.lastHook = result
    result.catch(() => {})
    return result
  }

  /** All buckets are on their way: the pass ends when they are back. */
  private finishWith(task: GraphTask): void {
    const works = this.buckets.map(({ work }) => work!)
    const end = new ReducedGradients(() => this.finish(task))
    const proceed = task.waitFor(end)
    this.allReduced(works).then(
      (results) => {
        for (const [k, bucket] of this.buckets.entries()) bucket.result = results[k]!
        proceed()
      },
      (error) => {
        this.failure = error
        end.error = error
        proceed()
      },
    )
  }

  /** Of all buckets, and of who has used what. */
  private async allReduced(works: readonly PromiseLike<Tensor>[]): Promise<Tensor[]> {
    const { usedMap, isUseKnown } = this
    const isAsked = usedMap !== null && !isUseKnown
    // Behind all that hooks begin.
    if (isAsked && this.commHook !== null) await Promise.all(works)
    const used = isAsked ? allReduce(usedMap, { group: this.options.group }) : null
    const results = await Promise.all(works)
    await used
    return results
  }

  private finish(task: Destination): void {
    for (const bucket of this.buckets) {
      const { flat, result, numbers, views } = bucket
      assert(result !== null)
      bucket.result = null
      bucket.work = null
      if (flat === null) {
        const { value } = this.parameters[numbers[0]!]!
        if (!this.isUnusedEverywhere(numbers[0]!)) setGrad(task, value, scaled(result as SparseTensor, 1 / this.divisor))
        continue
      }
      if (result !== flat) {
        flat.storage.prepareWrite()
        raw.copy_(flat, raw.reshape(result, flat.shape))
      }
      for (const [k, i] of numbers.entries()) if (!this.isUnusedEverywhere(i)) this.writeBack(task, this.parameters[i]!.value, views[k]!)
    }
    this.isUseKnown = true
    this.state = 'idle'
  }

  private isUnusedEverywhere(i: number): boolean {
    return this.usedMap !== null && this.usedMap.storage.array[i] === 0
  }

  private writeBack(task: Destination, parameter: Tensor, view: Tensor): void {
    // A context keeps the gradients of each pass, while the next one writes to the bucket.
    if (this.options.gradientAsBucketView && !(task.sink instanceof DistPass)) {
      if (parameter.grad === null || !isSame(parameter.grad, view)) parameter.grad = view
      return
    }
    const grad = gradOf(task, parameter)
    if (grad === null || isSparse(grad)) setGrad(task, parameter, raw.clone(view))
    else raw.copy_(grad, view)
  }

  private make(assignment: readonly (readonly number[])[]): Bucket[] {
    const buckets = assignment.map((numbers): Bucket => {
      const members = numbers.map((i) => this.parameters[i]!)
      const base = { numbers, pending: numbers.length, work: null, sparse: null, result: null }
      if (members[0]!.isSparse) return { ...base, flat: null, views: [] }
      const values = members.map(({ value }) => value)
      const flat = Tensor.empty(values[0]!.dtype, [values.reduce((sum, { numel }) => sum + numel, 0)])
      // Made in a forward pass, perhaps inside of a memoryScope.
      flat.storage.isKept = true
      return { ...base, flat, views: viewsOf(flat, values) }
    })
    for (const bucket of buckets) for (const [k, i] of bucket.numbers.entries()) this.places[i] = { bucket, view: bucket.views[k] ?? null }
    return buckets
  }
}

/** Where gradients are. */
type Destination = Pick<GraphTask, 'sink'>

interface Bucket {
  /** Of its parameters, in the order of their gradients in `flat`. */
  readonly numbers: readonly number[]
  /** [n]; null: that of one sparse gradient. */
  readonly flat: Tensor | null
  readonly views: readonly Tensor[]
  /** How many gradients are missing. */
  pending: number
  sparse: Tensor | null
  work: PromiseLike<Tensor> | null
  result: Tensor | null
}

/** The end of a pass, behind all buckets: no gradient leads to it. */
class ReducedGradients extends Node {
  error: unknown = null
  private readonly finish: () => void

  constructor(finish: () => void) {
    super([], [], HIGHEST_PRIORITY)
    this.finish = finish
  }

  get name(): string {
    return 'ReducedGradients'
  }

  apply(): Grads {
    if (this.error !== null) throw this.error
    this.finish()
    return []
  }
}

const memberOf = ({ value: { dtype, numel }, isSparse: sparse }: ReducedParameter): BucketMember => ({ dtype, numel, isSparse: sparse })

function leafOf(parameter: Tensor): AccumulateGrad {
  const edge = gradientEdge(parameter)
  assert(edge !== null, 'a reduced parameter requires a gradient')
  return edge.node as AccumulateGrad
}

/** Where this pass has put the gradient of a leaf. */
function gradOf({ sink }: Destination, parameter: Tensor): Tensor | null {
  return sink instanceof DistPass ? (sink.gradients.get(parameter) ?? null) : parameter.grad
}

function setGrad({ sink }: Destination, parameter: Tensor, grad: Tensor): void {
  if (sink instanceof DistPass) sink.gradients.set(parameter, grad)
  else parameter.grad = grad
}

function zeroRows({ dtype, shape }: Tensor): SparseTensor {
  return new SparseTensor(Tensor.empty('int32', [0]), Tensor.empty(dtype, [0, ...shape.slice(1)]), shape)
}

function scaled(rows: SparseTensor, factor: number): SparseTensor {
  return new SparseTensor(rows.indices(), raw.mul(rows.values(), factor), rows.shape)
}

const isSame = (a: Tensor, b: Tensor): boolean => a.storage === b.storage && a.offset === b.offset

function drop({ flat }: Bucket): void {
  // Its views may be somebody's `.grad`.
  if (flat !== null) flat.storage.isKept = false
}

function decode(numbers: readonly number[]): number[][] {
  const count = numbers[0]!
  let at = count + 1
  return numbers.slice(1, count + 1).map((length) => {
    at += length
    return numbers.slice(at - length, at)
  })
}
