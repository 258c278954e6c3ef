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
  /** Before the first forward pass, and before the next one after each forward pass whose gradients are reduced, all ranks take rank 0's buffers. That next one may be in `noSync`. Default true. */
  readonly broadcastBuffers?: boolean
  /** How much is reduced at once, in MiB; default 25. */
  readonly bucketCapMb?: number
  /** The same of the first bucket to be full, which need not be as large to be worth while; in MiB, default 1. PyTorch has it as a constant. */
  readonly firstBucketMb?: number
  /** Parameters that a backward pass does not lead to count as unused; default false: all must get a gradient. */
  readonly findUnusedParameters?: boolean
  /**
   * Gradients that are reduced in a bucket's buffer stay there, and `.grad` is a part of the buffer, which saves a copy. These are small gradients, and with a hook all. Not in distributed contexts. Large ones are reduced in place
   * anyway. Default false.
   */
  readonly gradientAsBucketView?: boolean
  /** All iterations use the same parameters, which the first one shows. Default false. */
  readonly staticGraph?: boolean
  /**
   * After every so many reductions the next forward compares a digest of all parameters and buffers between the ranks, and rejects with REPLICAS_DIFFER where they are not the same to the last bit. Default 0, never.
   * Buffers are compared as rank 0's, or a hook, has made them, so not with `broadcastBuffers: false`; and nothing is under `postLocalSGDHook` or `PeriodicModelAverager`, where replicas differ by design.
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
 * A module that several ranks train together. Its collectives are those of its process group, in the order in which forward and backward passes call them: a program
 * that calls other collectives of that group awaits passes first, or gives the module a group of its own. PyTorch: `torch.nn.parallel.DistributedDataParallel`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1)) // all ranks have rank 0's weights
 * const optimizer = new SGD(model.parameters(), { lr: 0.1 })
 * optimizer.zeroGrad()
 * const loss = (await model.forward(x)).square().mean()
 * await model.backward(loss) // instead of loss.backward(): gradients become the mean over all ranks
 * optimizer.step()
 */
export class DistributedDataParallel<M extends ForwardModule = ForwardModule> extends Module implements Joinable {
  /** The module itself, this rank's replica. */
  readonly module: M
  /** The ranks that train together. */
  readonly processGroup: ProcessGroup
  /** Set by `join`. */
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
   * All ranks of the group call it, each with its replica. They check that these are alike, and take rank 0's parameters and buffers.
   * @throws (rejects) INVALID_ARGUMENT, NO_PARAMETERS, DDP_MODEL_MISMATCH, and as all collectives
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
   * The module's forward. Where gradients are recorded, and not in `noSync`, the next backward pass through it is the ranks' together. The first one in `noSync` waits for the others if the module has buffers.
   * Rejects with what the module's forward throws, INVALID_ARGUMENT, DDP_REDUCTION_UNFINISHED, REPLICAS_DIFFER, OPTIMIZER_STEP_UNFINISHED, DDP_PARAMETERS_CHANGED, DDP_DISPOSED, JOIN_TERMINATED, and as all collectives.
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
   * Adds d(Σ roots) / d(leaf) to `.grad` of all leaves, of the model's parameters the mean over all ranks. Outside of distributed contexts, where a backward pass in one turn
   * (`loss.backward()`) could not wait for the other ranks; in a context the pass is `ctx.backward(roots)`, and gradients are in `ctx.gradients()`. Rejects with DDP_REDUCTION_UNFINISHED, which names parameters that
   * receive no gradient, DDP_FORWARD_MISSING, DDP_GRAPH_CHANGED, DDP_DISPOSED, as `backward`, and as all collectives.
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
   * Runs `fn`. Passes that `fn` begins stay this rank's own: their gradients add up in `.grad`, and the next pass outside reduces them. Code that `fn` did not begin is outside, even if it runs at the same time. Several `noSync` may
   * run at once. The first forward may wait for the other ranks' buffers. If an optimizer steps before a pass outside has reduced the gradients, it throws GRADIENTS_NOT_REDUCED. PyTorch: `no_sync`.
   */
  async noSync<T>(fn: () => T | Promise<T>): Promise<T> {
    checkFunction('noSync', 'what to run', fn)
    return quietly(this.reducer('noSync'), fn)
  }

  /** Runs `fn`, a loop over this rank's inputs, of which other ranks may have more or fewer. See `join`. */
  async join<T>(fn: () => T | Promise<T>, options: UnevenInputsOptions = {}): Promise<T> {
    this.reducer('join')
    return join([this], fn, options)
  }

  /** Joinable */
  get joinGroup(): ProcessGroup {
    return this.processGroup
  }

  /** Joinable: what other ranks' forward and backward passes need of one without inputs. */
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
   * Reduces gradients by `hook` instead of an all-reduce and a division. Once, before the first backward pass, on all ranks alike. PyTorch: `register_comm_hook`.
   * @throws INVALID_ARGUMENT, DDP_COMM_HOOK_EXISTS, DDP_REDUCTION_UNFINISHED, DDP_DISPOSED
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
   * Makes buffers alike by `hook` instead of rank 0's broadcast, with the first forward pass, and with the next one after each forward pass whose gradients are reduced, before it or after it (`location`); a rank without inputs in `join` calls it, too. Once, on
   * all ranks alike, with `broadcastBuffers`. PyTorch: `_register_buffer_comm_hook`.
   * @throws INVALID_ARGUMENT, DDP_COMM_HOOK_EXISTS, DDP_DISPOSED
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

  /** Counts and times of its passes on this rank. PyTorch: `_get_ddp_logging_data`. @throws DDP_DISPOSED */
  stats(): DistributedDataParallelStats {
    return this.reducer('stats').stats
  }

  /** Ends it: the module trains by itself again, or in another group. */
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
