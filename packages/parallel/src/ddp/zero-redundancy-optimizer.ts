/**
 * An optimizer whose state is cut over the ranks: each steps its own parameters, and sends their values to the others. So n ranks keep one n-th each of
 * the state, and the step's bits are those of the whole optimizer. PyTorch: `torch.distributed.optim.ZeroRedundancyOptimizer`.
 *
 * Each rank has a local optimizer over all parameters, which gathers state only for those that it steps: so groups, settings and schedulers work as usual.
 *
 *     step                  all gradients are there: own parameters, then one broadcast from each rank
 *     hookWithZeroStep      the same bucket by bucket, while backward continues: no node reads a parameter any more whose gradient is final
 */
import { PostgradError } from '@postgrad/base'
import type { OptimizerState, ParamGroup, ParamGroupOptions, ParamState } from '@postgrad/nn'
import { OptimizerBase } from '@postgrad/nn'
import { checkReduced, ensureHeld } from '@postgrad/nn/internal'
import { broadcastCoalesced, gatherObject, type ProcessGroup } from '@postgrad/process-group'
import { WorkerSlot } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, checkFunction, checkOptions, invalidArgument, raw } from '@postgrad/tensor/internal'
import { type CommHook, checkedReduction, type GradBucket, viewsOf } from './grad-bucket.js'
import type { Joinable, JoinContext, JoinHook, UnevenInputsOptions } from './join.js'
import { groupOf } from './replica.js'
import { checkStepped, whileStepping } from './steps-under-way.js'

/** Options of `ZeroRedundancyOptimizer`. */
export interface ZeroRedundancyOptions {
  /** The ranks over which the state is divided; default the default group. */
  readonly processGroup?: ProcessGroup
  /** Whether the optimizer steps in backward, by `hookWithZeroStep`, and not by `step`; default false. PyTorch: `overlap_with_ddp`. */
  readonly overlapWithDdp?: boolean
}

/** Of a worker, by parameter: of the optimizer that is to step it in backward. The one that was made last over it, or had a hook made of it last, takes the others' place. */
const HOOKS = new WorkerSlot('zeroHooks', () => new WeakMap<Tensor, HookState>())

interface HookState {
  isHooked: boolean
}

/** Before a forward of a model. @throws INVALID_ARGUMENT if an optimizer was made to step these in its backward, and no hook would have it do so */
export function checkHooked(op: string, parameters: readonly Tensor[]): void {
  const hooks = HOOKS.here
  if (parameters.some((p) => hooks.get(p)?.isHooked === false)) throw hookMissing(op)
}

function hookMissing(op: string): PostgradError {
  const expected = 'a hook of the ZeroRedundancyOptimizer, which was made with { overlapWithDdp: true }'
  return invalidArgument(
    op,
    expected,
    'none',
    'Write model.registerCommHook(null, hookWithZeroStep(allReduceHook, optimizer)) before the first step.',
  )
}

type Local<S extends object> = OptimizerBase<S, ParamState>
/** A class of optimizers, such as those of `postgrad/optim`. */
export type ZeroRedundancyClass<S extends object, O> = new (
  params: Iterable<Tensor> | Iterable<ParamGroupOptions<S>>,
  options: O,
) => Local<S>

/**
 * An optimizer whose state is divided over the ranks of a group. All ranks step together. PyTorch: `ZeroRedundancyOptimizer`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * const optimizer = new ZeroRedundancyOptimizer(model.parameters(), Adam, { lr: 1e-3 })
 * await model.backward((await model.forward(x)).sum())
 * await optimizer.step() // each rank steps its part of the parameters
 * optimizer.parametersOf(getRank()).length // 1
 */
export class ZeroRedundancyOptimizer<S extends object, O = Partial<S>> implements Joinable {
  /** The `join` that is under way; `join` sets it. Null outside of a `join`. */
  joinContext: JoinContext | null = null
  private readonly local: Local<S>
  private readonly group: ProcessGroup
  private readonly ownerOf = new Map<Tensor, number>()
  /** How many elements each rank has. */
  private readonly sizes: number[]
  private consolidated: OptimizerState<S> | null = null
  /** Whether it steps in backward. */
  private readonly overlaps: boolean
  private readonly hook: HookState = { isHooked: false }
  /** Of the iteration that is under way: what has been stepped; and how many have ended. */
  private readonly stepped = new Set<Tensor>()
  private overlapped = 0

  /**
   * Makes the optimizer. All ranks make it with the same arguments.
   * @throws INVALID_ARGUMENT if an argument is not valid; PROCESS_GROUP_NOT_INITIALIZED if the default group does not exist; the errors of the constructor of
   * `optimizerClass`
   */
  constructor(
    params: Iterable<Tensor> | Iterable<ParamGroupOptions<S>>,
    optimizerClass: ZeroRedundancyClass<S, O>,
    settings: O,
    options: ZeroRedundancyOptions = {},
  ) {
    if (!(optimizerClass?.prototype instanceof OptimizerBase)) {
      throw invalidArgument(
        'ZeroRedundancyOptimizer',
        'a class that extends OptimizerBase, as those of postgrad/optim',
        argumentText(optimizerClass),
        'Write new ZeroRedundancyOptimizer(model.parameters(), Adam, { lr: 0.01 }).',
      )
    }
    checkOptions('ZeroRedundancyOptimizer', options, ['processGroup', 'overlapWithDdp'])
    const { overlapWithDdp = false } = options
    if (typeof overlapWithDdp !== 'boolean')
      throw invalidArgument('ZeroRedundancyOptimizer', 'true or false as overlapWithDdp', argumentText(overlapWithDdp))
    this.overlaps = overlapWithDdp
    this.group = groupOf('ZeroRedundancyOptimizer', options.processGroup)
    this.local = new optimizerClass(params, settings)
    this.sizes = new Array<number>(this.group.size).fill(0)
    for (const { params: each } of this.paramGroups) this.assign(each)
  }

  /** @internal A hook was made of it. */
  onHooked(): void {
    this.hook.isHooked = true
    this.claim([...this.ownerOf.keys()])
  }

  /** From here on it is this optimizer that steps them. */
  private claim(params: readonly Tensor[]): void {
    const hooks = HOOKS.here
    for (const p of params) {
      if (this.overlaps) hooks.set(p, this.hook)
      else hooks.delete(p)
    }
  }

  /** The largest first, each to the rank that has least. */
  private assign(params: readonly Tensor[]): void {
    const sorted = [...params].sort((a, b) => b.numel - a.numel)
    for (const p of sorted) {
      const rank = this.sizes.indexOf(Math.min(...this.sizes))
      this.ownerOf.set(p, rank)
      this.sizes[rank]! += p.numel
    }
    this.claim(sorted)
  }

  /** The parameter groups with their settings. You may change the settings between steps, on all ranks alike. */
  get paramGroups(): readonly ParamGroup<S>[] {
    return this.local.paramGroups
  }

  /** The number of steps so far. From it a scheduler knows whether it was called too early. */
  get stepCount(): number {
    return this.overlaps ? this.overlapped : this.local.stepCount
  }

  /** The parameters that rank `rank` of the group steps. */
  parametersOf(rank: number): Tensor[] {
    return [...this.ownerOf].filter(([, owner]) => owner === rank).map(([p]) => p)
  }

  /**
   * Steps the parameters of this rank by `grads`, or else by `.grad`, and receives the other parameters from their ranks. Gradients must be the same on all
   * ranks, as DistributedDataParallel makes them; they are read before the call returns. Await it: until then `zeroGrad`, `step`, and a forward of a
   * DistributedDataParallel with these parameters fail with OPTIMIZER_STEP_UNFINISHED.
   * @throws OPTIMIZER_STEP_UNFINISHED if a step is under way; INVALID_ARGUMENT if the optimizer has `overlapWithDdp`; GRADIENTS_NOT_REDUCED if a gradient was
   * not reduced over the ranks; GRAD_MISMATCH if a gradient has another shape or dtype than its parameter; JOIN_TERMINATED; the errors of `allReduce`
   */
  async step(grads?: ReadonlyMap<Tensor, Tensor>): Promise<void> {
    if (this.overlaps) {
      const remedy = 'Leave the call out, or make the optimizer without overlapWithDdp.'
      throw invalidArgument(
        'ZeroRedundancyOptimizer.step',
        'an optimizer that does not step in backward',
        '{ overlapWithDdp: true }',
        remedy,
      )
    }
    this.ensureStepped('step')
    checkReduced('ZeroRedundancyOptimizer.step', this.ownerOf.keys(), grads)
    ensureHeld('ZeroRedundancyOptimizer.step', this.ownerOf.keys())
    // Before anything is awaited: after the call `.grad` is the caller's again.
    const own = new Map<Tensor, Tensor>()
    for (const p of this.parametersOf(this.group.rank)) {
      const grad = grads === undefined ? p.grad : grads.get(p)
      if (grad) own.set(p, grad)
    }
    await whileStepping(this.ownerOf.keys(), async () => {
      if (this.joinContext !== null) await this.joinContext.notify(this)
      this.local.step(own)
      await this.share([...this.ownerOf.keys()])
    })
  }

  /** @throws OPTIMIZER_STEP_UNFINISHED */
  private ensureStepped(op: string): void {
    checkStepped(`ZeroRedundancyOptimizer.${op}`, () => this.ownerOf.keys())
  }

  /** Gives all ranks the values of these parameters that their owners have. */
  private async share(params: readonly Tensor[]): Promise<void> {
    const { ranks, size } = this.group
    const works = Array.from({ length: size }, (_, owner) => params.filter((p) => this.ownerOf.get(p) === owner)).map((owned, owner) =>
      owned.length === 0 ? null : broadcastCoalesced(owned, ranks[owner]!, { group: this.group }),
    )
    await Promise.all(works)
  }

  /** @internal Steps a bucket's parameters by their means, on all ranks alike. Rejects with INVALID_ARGUMENT if the last bucket leaves some out. */
  async stepBucket({ parameters, isFirst, isLast }: GradBucket, mean: Tensor): Promise<void> {
    if (!this.overlaps) throw invalidArgument('hookWithZeroStep', 'an optimizer made with { overlapWithDdp: true }', 'one without')
    // Of an iteration that broke off some may be left.
    if (isFirst) this.stepped.clear()
    const known = parameters.filter((p) => this.ownerOf.has(p))
    const grads = viewsOf(raw.reshape(mean, [mean.numel]), parameters)
    const own = new Map(parameters.map((p, i) => [p, grads[i]!] as const).filter(([p]) => this.ownerOf.get(p) === this.group.rank))
    if (own.size > 0) this.local.step(own)
    await this.share(known)
    for (const p of known) this.stepped.add(p)
    if (!isLast) return
    const left = this.ownerOf.size - this.stepped.size
    this.stepped.clear()
    if (left === 0) this.overlapped++
    else {
      const remedy = 'Give it parameters of the model whose gradients are dense, or make it without overlapWithDdp and call step().'
      throw invalidArgument(
        'hookWithZeroStep',
        'all parameters of the optimizer in buckets that hooks reduce',
        `${left} that are in none`,
        remedy,
      )
    }
  }

  /** The group of the optimizer, for `join`. */
  get joinGroup(): ProcessGroup {
    return this.group
  }

  /**
   * The part of a rank without inputs, for `join`: it steps its own parameters once in each iteration of the others. In the list of `join` the optimizer comes
   * after a DistributedDataParallel, which puts the means into `.grad`.
   */
  joinHook(_options: Required<UnevenInputsOptions>): JoinHook {
    // With overlap the hook of the buckets has done so.
    return { mainHook: () => (this.overlaps ? undefined : this.step()), postHook: () => {} }
  }

  /**
   * Sets `.grad` of all parameters to null.
   * @throws OPTIMIZER_STEP_UNFINISHED if a step is under way; INVALID_ARGUMENT if the optimizer has `overlapWithDdp` and no hook of it exists, since nothing
   * would ever step
   */
  zeroGrad(): void {
    this.ensureStepped('zeroGrad')
    if (this.overlaps && !this.hook.isHooked) throw hookMissing('ZeroRedundancyOptimizer.zeroGrad')
    this.local.zeroGrad()
  }

  /** Changes settings of all groups. Call it on all ranks alike. @throws INVALID_ARGUMENT if a name or a value is not valid */
  set(settings: Partial<S>): void {
    this.local.set(settings)
  }

  /**
   * Adds a group of parameters. Call it on all ranks alike.
   * @throws INVALID_ARGUMENT if a setting is not valid; DUPLICATE_PARAMETER if a parameter is listed twice; PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  addParamGroup(group: ParamGroupOptions<S>): void {
    this.local.addParamGroup(group)
    this.assign(this.paramGroups.at(-1)!.params)
  }

  /** Gathers the state of all ranks on rank `to` of the group (default 0), where `stateDict` then returns it. All ranks call it. PyTorch: `consolidate_state_dict`. */
  async consolidateStateDict(to = 0): Promise<void> {
    const { group } = this
    if (group.ranks[to] === undefined) throw invalidArgument('consolidateStateDict', `a rank in 0 … ${group.size - 1}`, to)
    const own = this.local.stateDict()
    const states = await gatherObject(own.state, { group, dst: group.ranks[to] })
    this.consolidated = states === null ? null : { ...own, state: Object.assign({}, ...states) as OptimizerState<S>['state'] }
  }

  /**
   * The state of all parameters, as of the last `consolidateStateDict` to this rank. It has the layout of a local optimizer over all parameters.
   * @throws STATE_NOT_CONSOLIDATED if `consolidateStateDict` has not gathered a state on this rank
   */
  stateDict(): OptimizerState<S> {
    if (this.consolidated !== null) return this.consolidated
    throw new PostgradError('STATE_NOT_CONSOLIDATED', {
      op: 'stateDict',
      message: 'Optimizer state has not been consolidated on this rank',
      remedy: 'Call `await optimizer.consolidateStateDict(to)` on all ranks first, and stateDict() on that rank.',
    })
  }

  /** Loads the state of all parameters. Call it on all ranks with the same state; each rank keeps its own part. @throws STATE_DICT_MISMATCH if the state does not fit */
  loadStateDict(saved: OptimizerState<S>): void {
    this.local.loadStateDict(saved)
    const own = this.local.stateDict()
    const places = this.paramGroups.flatMap(({ params }) => params)
    const state = Object.fromEntries(
      Object.entries(own.state).filter(([place]) => this.ownerOf.get(places[Number(place)]!) === this.group.rank),
    )
    this.local.loadStateDict({ ...own, state })
  }
}

/**
 * Makes a communication hook that reduces a bucket by `hook`, and then steps the parameters of the bucket at once, while backward continues. Register it with
 * the state of `hook`, and do not call `step`: each synchronised backward pass is a step. Parameters that no rank has used are stepped with gradients of 0. A
 * pass that breaks off may have stepped some parameters. The optimizer and the model must have the same group. PyTorch: `hook_with_zero_step`.
 * @throws INVALID_ARGUMENT if an argument is not valid; from the backward pass, if the optimizer was made without `overlapWithDdp`, or no hook reduces the
 * gradients of one of its parameters
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * const optimizer = new ZeroRedundancyOptimizer(model.parameters(), Adam, { lr: 1e-3 }, { overlapWithDdp: true })
 * model.registerCommHook(null, hookWithZeroStep(allReduceHook, optimizer))
 * await model.backward((await model.forward(x)).sum()) // steps as well
 */
export function hookWithZeroStep<State, S extends object, O>(
  hook: CommHook<State>,
  optimizer: ZeroRedundancyOptimizer<S, O>,
): CommHook<State> {
  checkFunction('hookWithZeroStep', 'the hook', hook)
  if (!(optimizer instanceof ZeroRedundancyOptimizer)) {
    throw invalidArgument('hookWithZeroStep', 'a ZeroRedundancyOptimizer', argumentText(optimizer))
  }
  optimizer.onHooked()
  return async (state, bucket) => {
    const mean = checkedReduction(await hook(state, bucket), bucket.buffer)
    await optimizer.stepBucket(bucket, mean)
    return mean
  }
}
