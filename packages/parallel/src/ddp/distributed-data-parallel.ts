/**
 * A module that several ranks train together: each has a replica and computes gradients of its own batch; all ranks receive the mean. `reducer.ts` does
 * that in backward; this file does the rest: when it is made, before and after each forward pass, and when a rank has no inputs any more. PyTorch:
 * `torch.nn.parallel.DistributedDataParallel`.
 */
import { isGradEnabled, noGrad } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { Embedding, EmbeddingBag, Module } from '@postgrad/nn'
import type { ProcessGroup } from '@postgrad/process-group'
import type { Future } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, checkFunction, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import type { ForwardModule } from '../remote-module.js'
import type { BufferCommHook, BufferCommHookLocation, BufferCommHookOptions, BufferHook } from './buffer-hook.js'
import { commHookExists, modelDisposed, parametersChanged } from './ddp-errors.js'
import type { DistributedDataParallelStats } from './ddp-stats.js'
import type { CommHook } from './grad-bucket.js'
import { type Joinable, type JoinContext, type JoinHook, join, numbersOf, ranksThat, type UnevenInputsOptions } from './join.js'
import { type LocalBackwardOptions, LocalPass } from './local-pass.js'
import { quietly } from './no-sync.js'
import { Reducer } from './reducer.js'
import { copyFrom, groupOf, verifyReplicas } from './replica.js'
import { ReplicaCheck } from './replica-check.js'
import { checkStepped } from './steps-under-way.js'
import { checkHooked } from './zero-redundancy-optimizer.js'

/** Options of `DistributedDataParallel.create`. */
export interface DistributedDataParallelOptions {
  /** The ranks that train together; default the default group. */
  readonly processGroup?: ProcessGroup
  /**
   * Whether all ranks take the buffers of rank 0; default true. They do so before the first forward pass, and before the next forward pass after each one whose
   * gradients were reduced, also if that next pass is in `noSync`.
   */
  readonly broadcastBuffers?: boolean
  /** The size of the buckets in which gradients are reduced, in MiB; default 25. */
  readonly bucketCapMb?: number
  /** The size of the first bucket that becomes full, in MiB; default 1. It may be smaller than the others. In PyTorch this is a constant. */
  readonly firstBucketMb?: number
  /** Whether a backward pass may leave out parameters, which then count as unused; default false: every parameter must get a gradient. */
  readonly findUnusedParameters?: boolean
  /**
   * Whether `.grad` of small gradients, and of all gradients if there is a hook, is a view of the bucket's buffer; default false. That saves a copy. Large
   * gradients are reduced in place in any case. It has no effect in distributed contexts.
   */
  readonly gradientAsBucketView?: boolean
  /** Whether all iterations use the same parameters as the first one; default false. */
  readonly staticGraph?: boolean
  /**
   * After how many reductions the ranks compare a digest of all parameters and buffers; default 0: never. The next forward compares them, and rejects with
   * REPLICAS_DIFFER if one bit differs. With `broadcastBuffers: false` buffers are not compared. With `postLocalSGDHook` or `PeriodicModelAverager` nothing is
   * compared, since replicas then differ by design.
   */
  readonly checkReplicas?: number
}

type ForwardArgs<M extends ForwardModule> = Parameters<M['forward']>
type ForwardResult<M extends ForwardModule> = Awaited<ReturnType<M['forward']>>

const MIB = 1024 * 1024
/** Flags that a rank with inputs sends of a forward pass in `join`: synchronised; the first after a synchronised one. */
const [IS_SYNCED, IS_FIRST] = [1, 2]
const OPTIONS = [
  'processGroup',
  'broadcastBuffers',
  'bucketCapMb',
  'firstBucketMb',
  'findUnusedParameters',
  'gradientAsBucketView',
  'staticGraph',
  'checkReplicas',
] as const satisfies readonly (keyof DistributedDataParallelOptions)[]

/**
 * A module that several ranks train together: `backward` makes each gradient the mean over all ranks. Its collectives belong to its process group and run in
 * the order of forward and backward passes. If your program calls other collectives of that group, await passes first, or give the module a group of its own.
 * PyTorch: `torch.nn.parallel.DistributedDataParallel`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1)) // all ranks have rank 0's weights
 * const optimizer = new SGD(model.parameters(), { lr: 0.1 })
 * optimizer.zeroGrad()
 * const loss = (await model.forward(x)).square().mean()
 * await model.backward(loss) // instead of loss.backward(): gradients become the mean over all ranks
 * optimizer.step()
 */
export class DistributedDataParallel<M extends ForwardModule = ForwardModule> extends Module implements Joinable {
  /** The module that was passed to `create`: this rank's replica. */
  readonly module: M
  /** The ranks that train together. */
  readonly processGroup: ProcessGroup
  /** The `join` that is under way; `join` sets it. Null outside of a `join`. */
  joinContext: JoinContext | null = null
  /** @throws DDP_DISPOSED */
  private reducer: (op: string) => Reducer
  private readonly broadcastBuffers: boolean
  private bufferHook: BufferHook | null = null
  private readonly check: ReplicaCheck
  private isDisposed = false
  /** Settles when ranks have done together what the last forward pass needs; null: they have. */
  private turn: Promise<void> | null = null
  /** Whether the next forward pass that is recorded is the first after a synchronised one, or of all: buffers become alike then. PyTorch: `require_forward_param_sync`. */
  private isFirst = true

  private constructor(module: M, processGroup: ProcessGroup, reducer: Reducer, broadcastBuffers: boolean, checkReplicas: number) {
    super()
    // For programs whose types nobody has checked.
    if (!(reducer instanceof Reducer)) throw constructorCalled()
    this.module = module
    this.processGroup = processGroup
    this.reducer = () => reducer
    this.broadcastBuffers = broadcastBuffers
    this.check = new ReplicaCheck(processGroup, checkReplicas)
  }

  /**
   * Makes the model. All ranks of the group call it, each with its own replica. The ranks check that the replicas have the same structure, and take the
   * parameters and buffers of rank 0.
   * @throws INVALID_ARGUMENT if an option is not valid; NO_PARAMETERS if no parameter requires a gradient; DDP_MODEL_MISMATCH if parameters, buffers or options
   * differ between ranks; the errors of `allReduce`
   */
  static async create<M extends ForwardModule>(
    module: M,
    options: DistributedDataParallelOptions = {},
  ): Promise<DistributedDataParallel<M>> {
    checkOptions('DistributedDataParallel', options, OPTIONS)
    if (!(module instanceof Module)) throw invalidArgument('DistributedDataParallel', 'a module', argumentText(module))
    const { broadcastBuffers = true, bucketCapMb = 25, firstBucketMb = 1, findUnusedParameters = false } = options
    const { gradientAsBucketView = false, staticGraph = false, checkReplicas = 0 } = options
    const flags = { broadcastBuffers, findUnusedParameters, gradientAsBucketView, staticGraph }
    const limits = { bucketCapMb, firstBucketMb }
    for (const [name, value] of Object.entries(limits)) {
      if (!(value > 0)) throw invalidArgument('DistributedDataParallel', `${name} above 0`, value)
    }
    for (const [name, value] of Object.entries(flags)) {
      if (typeof value !== 'boolean') throw invalidArgument('DistributedDataParallel', `true or false as ${name}`, argumentText(value))
    }
    if (!Number.isSafeInteger(checkReplicas) || checkReplicas < 0)
      throw invalidArgument('DistributedDataParallel', 'checkReplicas to be an integer ≥ 0', argumentText(checkReplicas))
    const group = groupOf('DistributedDataParallel', options.processGroup)
    const named = module.namedParameters()
    const trained = named.filter(([, { requiresGrad }]) => requiresGrad)
    if (trained.length === 0) throw nothingToTrain()
    const buffers = module.namedBuffers()
    await verifyReplicas(group, [...named, ...buffers], { ...flags, ...limits, checkReplicas })
    await copyFrom(
      group,
      0,
      [...named, ...buffers].map(([, value]) => value),
    )
    const sparse = sparseWeights(module)
    const parameters = trained.map(([name, value]) => ({ name, value, isSparse: sparse.has(value) }))
    const { clock } = currentRuntime()
    const reducer = new Reducer(parameters, {
      group,
      findUnusedParameters,
      staticGraph,
      gradientAsBucketView,
      bucketLimits: [firstBucketMb * MIB, bucketCapMb * MIB],
      now: () => clock.now(),
    })
    return new DistributedDataParallel(module, group, reducer, broadcastBuffers, checkReplicas)
  }

  /**
   * Runs the forward of the module. If gradients are recorded, and it is not in `noSync`, the next backward pass through it reduces gradients over all ranks.
   * The first forward in a `noSync` waits for the other ranks if the module has buffers.
   * @throws the errors of the module's forward; INVALID_ARGUMENT, DDP_REDUCTION_UNFINISHED, REPLICAS_DIFFER, OPTIMIZER_STEP_UNFINISHED, DDP_PARAMETERS_CHANGED,
   * DDP_DISPOSED or JOIN_TERMINATED; the errors of `allReduce`
   */
  async forward(...args: ForwardArgs<M>): Promise<ForwardResult<M>> {
    // Ranks without inputs do what each forward pass needs, one pass after the other.
    return this.joinContext === null ? this.goForward(args) : this.inTurn(() => this.goForward(args))
  }

  private async goForward(args: ForwardArgs<M>): Promise<ForwardResult<M>> {
    const reducer = this.reducer('forward')
    checkStepped('forward', () => this.module.parameters())
    const isRecorded = isGradEnabled()
    const isSynced = isRecorded && !reducer.isQuiet
    if (isSynced) this.ensureReady(reducer)
    const isFirst = isRecorded && this.isFirst
    // By the order of the calls, which is the same on all ranks.
    if (isRecorded) this.isFirst = isSynced
    const prepare = (): Promise<void> => this.prepare(reducer, isSynced, isFirst)
    const compute = async (): Promise<ForwardResult<M>> =>
      (await reducer.watch.forward(() => this.module.forward(...args))) as ForwardResult<M>
    const isSyncedBehind = isFirst && this.bufferHook?.location === 'postForward'
    const all = async (): Promise<ForwardResult<M>> => {
      await prepare()
      const outputs = await compute()
      if (isSyncedBehind) await this.syncReplicas(reducer, 'postForward')
      return outputs
    }
    let outputs: ForwardResult<M>
    if (this.joinContext !== null) outputs = await all()
    else if (isSyncedBehind) outputs = await this.inTurn(all)
    else {
      if (isSynced || isFirst) await this.inTurn(prepare)
      else if (isRecorded) await this.turn
      outputs = await compute()
    }
    // It may have been disposed meanwhile.
    if (isSynced) this.reducer('forward').prepareForBackward(this.divisor)
    else if (isRecorded) reducer.expectPassAlone()
    return outputs
  }

  /** The ranks' joint work before a forward pass. */
  private async prepare(reducer: Reducer, isSynced: boolean, isFirst: boolean): Promise<void> {
    const { joinContext, processGroup } = this
    await joinContext?.notify(this)
    // Those that have no inputs any more must know what follows.
    if (joinContext !== null) await numbersOf((isSynced ? IS_SYNCED : 0) + (isFirst ? IS_FIRST : 0), processGroup)
    if (isFirst) await reducer.reductionEnded()
    if (isSynced || isFirst) await reducer.rebuildBuckets()
    if (!isFirst) return
    try {
      await this.syncReplicas(reducer, 'preForward')
    } catch (error) {
      this.isFirst = true
      throw error
    }
  }

  /** Runs what ranks do together one after the other, in the order of the calls. */
  private inTurn<T>(fn: () => Promise<T>): Promise<T> {
    const run = this.turn === null ? fn() : this.turn.then(fn)
    const over: Promise<void> = run
      .then(
        () => {},
        () => {},
      )
      .then(() => {
        if (this.turn === over) this.turn = null
      })
    this.turn = over
    return run
  }

  /** @throws DDP_REDUCTION_UNFINISHED, DDP_PARAMETERS_CHANGED, INVALID_ARGUMENT */
  private ensureReady(reducer: Reducer): void {
    reducer.ensureFinished('forward')
    const parameters = this.module.parameters()
    checkHooked('forward', parameters)
    const isNew = (p: Tensor): boolean => p.requiresGrad && !reducer.reduces(p)
    if (!parameters.some(isNew)) return
    throw parametersChanged(
      this.module
        .namedParameters()
        .filter(([, p]) => isNew(p))
        .map(([name]) => name),
    )
  }

  private get divisor(): number {
    const { joinContext, processGroup } = this
    return joinContext === null || joinContext.options.divideByInitialWorldSize ? processGroup.size : joinContext.active.length
  }

  /** The ranks' joint work before or after a forward pass: buffers become alike, and then replicas are compared. */
  private async syncReplicas(reducer: Reducer, at: BufferCommHookLocation): Promise<void> {
    if (this.broadcastBuffers) await this.syncBuffers(at)
    if (at !== (this.bufferHook?.location ?? 'preForward')) return
    const { module, broadcastBuffers, joinContext, processGroup } = this
    if (reducer.isLocalSGD) return
    const buffers = broadcastBuffers ? module.namedBuffers() : []
    await this.check.run(reducer.reductions, module.namedParameters(), buffers, joinContext?.active.includes(processGroup.rank) ?? true)
  }

  private async syncBuffers(at: BufferCommHookLocation): Promise<void> {
    const { bufferHook, joinContext, module, processGroup } = this
    if (bufferHook === null) {
      if (at === 'preForward') await copyFrom(processGroup, joinContext === null ? 0 : joinContext.active.at(-1)!, module.buffers())
    } else if (bufferHook.location === at) {
      const buffers = new Map(module.namedBuffers())
      if (buffers.size > 0) await noGrad(() => bufferHook.run(buffers))
    }
  }

  /**
   * Adds d(Σ roots) / d(leaf) to `.grad` of all leaves. Parameters of the model get the mean over all ranks. Call it instead of `loss.backward()`, which runs
   * in one turn and cannot wait for other ranks. In a distributed context call `ctx.backward(roots)` instead; the gradients are then in `ctx.gradients()`.
   * @throws DDP_REDUCTION_UNFINISHED if parameters receive no gradient (the error names them); DDP_FORWARD_MISSING if the pass does not come from a forward of
   * the model; DDP_GRAPH_CHANGED if `staticGraph` is set and other parameters are used; DDP_DISPOSED if the model was disposed; the errors of the function
   * `backward` and of `allReduce`
   */
  backward(roots: Tensor | readonly Tensor[], options: LocalBackwardOptions = {}): Promise<void> {
    return this.run(Array.isArray(roots) ? roots : [roots as Tensor], options)
  }

  private async run(roots: readonly Tensor[], options: LocalBackwardOptions): Promise<void> {
    checkOptions('backward', options, ['gradTensors', 'retainGraph', 'timeoutMs'])
    const reducer = this.reducer('backward')
    for (;;) {
      // The collectives of forward passes that were called before come first.
      if (this.turn !== null && this.joinContext === null && !reducer.isQuiet) await this.turn
      else if (reducer.mustWait) await reducer.aloneEnded()
      else break
    }
    this.reducer('backward')
    const { ended }: { readonly ended: Future<void> } = LocalPass.start(roots, options, (task, end) => reducer.onPass(task, end))
    await ended
  }

  /**
   * @internal A step of a pipeline begins, of which the module is a stage: several forwards and backwards, none of which is reduced. Gives whether their sum is, by
   * `reduceGradients`; under `noSync` it is not. Rejects as `forward`.
   */
  async beginStep(): Promise<boolean> {
    if (this.joinContext !== null)
      throw invalidArgument('Pipeline.step', 'a stage outside of join', 'one inside', 'Give all pipelines as many batches.')
    const reducer = this.reducer('Pipeline.step')
    checkStepped('Pipeline.step', () => this.module.parameters())
    reducer.forgetForwards()
    if (reducer.isQuiet) return false
    this.ensureReady(reducer)
    await this.syncReplicas(reducer, 'preForward')
    return true
  }

  /** @internal Whether the group ends if such a step fails here: others wait for this rank's gradients, and what it would give them later are those of another step. Under `noSync` nobody waits. */
  get endsWithStep(): boolean {
    return !this.isDisposed && !this.reducer('Pipeline.step').isQuiet
  }

  /** @internal Such a step has failed here. */
  abandonStep(reason: unknown): void {
    if (this.endsWithStep) this.processGroup.abort(reason)
  }

  /** @internal Such a step has put its gradients into `.grad`, and they are not reduced. */
  keepAlone(): void {
    this.reducer('Pipeline.step').keepAllAlone()
  }

  /** @internal Reduces the gradients in `.grad`. Rejects as `backward`. */
  async reduceGradients(): Promise<void> {
    // Asked twice: a hook of buffers in between may have disposed the model.
    await this.syncReplicas(this.reducer('Pipeline.step'), 'postForward')
    await this.reducer('Pipeline.step').reduceGradients(this.divisor)
  }

  /**
   * Runs `fn`, and keeps the gradients of its backward passes on this rank. They add up in `.grad`, and the next pass outside reduces them. Code that `fn` did
   * not begin is outside, even if it runs at the same time. Several `noSync` may run at once. The first forward may wait for the buffers of other ranks. If an
   * optimizer steps before a pass outside has reduced the gradients, its step fails with GRADIENTS_NOT_REDUCED. PyTorch: `no_sync`.
   */
  async noSync<T>(fn: () => T | Promise<T>): Promise<T> {
    checkFunction('noSync', 'what to run', fn)
    return quietly(this.reducer('noSync'), fn)
  }

  /** Runs `fn`, a loop over this rank's inputs. Other ranks may have more or fewer inputs. See the function `join`. */
  async join<T>(fn: () => T | Promise<T>, options: UnevenInputsOptions = {}): Promise<T> {
    this.reducer('join')
    return join([this], fn, options)
  }

  /** The group of the model, for `join`. */
  get joinGroup(): ProcessGroup {
    return this.processGroup
  }

  /** The part of a rank without inputs in the forward and backward passes of the others, for `join`. */
  joinHook(_options: Required<UnevenInputsOptions>): JoinHook {
    return {
      mainHook: async () => {
        const reducer = this.reducer('join')
        const others = await numbersOf(0, this.processGroup)
        const [isSynced, isFirst] = [IS_SYNCED, IS_FIRST].map((flag) => others.some((each) => (each & flag) !== 0))
        if (isSynced || isFirst) this.isFirst = isSynced!
        if (isSynced || isFirst) await reducer.rebuildBuckets()
        if (isFirst) await this.syncReplicas(reducer, 'preForward')
        if (isFirst) await this.syncReplicas(reducer, 'postForward')
        if (isSynced) await reducer.shadowBackward(this.divisor)
      },
      postHook: async (isLastJoiner) => {
        const last = await ranksThat(isLastJoiner, this.processGroup)
        const tensors = [...this.module.parameters(), ...this.module.buffers()]
        await copyFrom(this.processGroup, last.at(-1)!, tensors)
      },
    }
  }

  /**
   * Reduces gradients by `hook`, instead of an all-reduce and a division by the number of ranks. Call it once, on all ranks alike, before the first backward
   * pass. PyTorch: `register_comm_hook`.
   * @throws INVALID_ARGUMENT if `hook` is not a function; DDP_COMM_HOOK_EXISTS if there is a hook; DDP_REDUCTION_UNFINISHED if a reduction is under way;
   * DDP_DISPOSED if the model was disposed
   */
  registerCommHook<S>(state: S, hook: CommHook<S>): void {
    const reducer = this.reducer('registerCommHook')
    if (typeof hook !== 'function')
      throw invalidArgument('registerCommHook', 'a function', argumentText(hook), 'Communication hook must be callable.')
    if (reducer.hasCommHook) throw commHookExists('registerCommHook')
    reducer.ensureFinished('registerCommHook')
    reducer.setCommHook(state, hook)
  }

  /**
   * Makes buffers alike by `hook`, instead of a broadcast from rank 0. It runs with the first forward pass, and with the next one after each forward pass whose
   * gradients are reduced; `location` chooses before or after that pass. In a `join`, ranks without inputs call it, too. Call this once, on all ranks alike;
   * the model must have `broadcastBuffers`. PyTorch: `_register_buffer_comm_hook`.
   * @throws INVALID_ARGUMENT if an argument is not valid, or the model has `broadcastBuffers: false`; DDP_COMM_HOOK_EXISTS if there is a buffer hook;
   * DDP_DISPOSED if the model was disposed
   * @example
   * // Running statistics become the mean over all ranks.
   * model.registerBufferCommHook(model.processGroup, async (group, buffers) => {
   *   for (const [name, buffer] of buffers) {
   *     if (name.endsWith('num_batches_tracked')) continue
   *     buffer.mul_(1 / group.size)
   *     await allReduce(buffer, { group })
   *   }
   * })
   */
  registerBufferCommHook<S>(state: S, hook: BufferCommHook<S>, options: BufferCommHookOptions = {}): void {
    this.reducer('registerBufferCommHook')
    checkFunction('registerBufferCommHook', 'the hook', hook)
    checkOptions('registerBufferCommHook', options, ['location'])
    const { location = 'postForward' } = options
    if (location !== 'preForward' && location !== 'postForward') {
      throw invalidArgument('registerBufferCommHook', "'preForward' or 'postForward' as location", argumentText(location))
    }
    if (!this.broadcastBuffers) {
      const remedy = 'Make the model with broadcastBuffers: without it buffers stay as they are, and no hook is called.'
      throw invalidArgument('registerBufferCommHook', 'a model whose buffers are synchronised', '{ broadcastBuffers: false }', remedy)
    }
    if (this.bufferHook !== null) throw commHookExists('registerBufferCommHook')
    this.bufferHook = { location, run: (buffers) => hook(state, buffers) }
  }

  /** The numbers of the parameters in each bucket, in the order in which buckets are reduced. */
  get buckets(): readonly (readonly number[])[] {
    return this.reducer('buckets').assignment
  }

  /** Counts and times of the passes of this rank. PyTorch: `_get_ddp_logging_data`. @throws DDP_DISPOSED if the model was disposed */
  stats(): DistributedDataParallelStats {
    return this.reducer('stats').stats
  }

  /** Releases the module: it trains by itself again, or can be wrapped again, in another group. */
  dispose(): void {
    if (this.isDisposed) return
    this.isDisposed = true
    this.reducer('dispose').dispose()
    this.reducer = (op) => {
      throw modelDisposed(op)
    }
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

function sparseWeights(module: Module): Set<Tensor> {
  const weights = new Set<Tensor>()
  for (const each of module.modules())
    if ((each instanceof Embedding || each instanceof EmbeddingBag) && each.sparse) weights.add(each.weight)
  return weights
}

function constructorCalled(): PostgradError {
  const remedy = 'Write `await DistributedDataParallel.create(model)`, with options after the model: ranks compare their models in it.'
  return invalidArgument('DistributedDataParallel', 'to be made by create', 'new DistributedDataParallel', remedy)
}

function nothingToTrain(): PostgradError {
  return new PostgradError('NO_PARAMETERS', {
    op: 'DistributedDataParallel',
    expected: 'at least one parameter that requires a gradient',
    got: 'none',
    remedy: "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.",
  })
}
