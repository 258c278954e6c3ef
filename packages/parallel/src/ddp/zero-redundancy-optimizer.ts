/**
 * An optimizer whose state is cut over the ranks: each steps the parameters that are its own, and gives their values to the others. So n ranks keep one n-th each of
 * what an optimizer gathers, and the step's bits are those of the whole. PyTorch: `torch.distributed.optim.ZeroRedundancyOptimizer`.
 *
 * On each rank stands a local optimizer over all parameters, which gathers state only for those that it steps: so groups, settings and schedulers are as they are.
 */
import { PostgradError } from '@postgrad/base'
import type { OptimizerState, ParamGroup, ParamGroupOptions, ParamState } from '@postgrad/nn'
import { OptimizerBase } from '@postgrad/nn'
import { broadcastCoalesced, gatherObject, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import type { Joinable, JoinContext, JoinHook, UnevenInputsOptions } from './join.js'
import { groupOf } from './replica.js'

/** Of `ZeroRedundancyOptimizer`. */
export interface ZeroRedundancyOptions {
  /** Default the default group. */
  readonly processGroup?: ProcessGroup
}

type Local<S extends object> = OptimizerBase<S, ParamState>
/** A class of optimizers, as those of `postgrad/optim`. */
export type ZeroRedundancyClass<S extends object, O> = new (
  params: Iterable<Tensor> | Iterable<ParamGroupOptions<S>>,
  options: O,
) => Local<S>

/** An optimizer whose state is cut over the ranks of a group; all step together. PyTorch: the same. */
export class ZeroRedundancyOptimizer<S extends object, O = Partial<S>> implements Joinable {
  /** Set by `join`. */
  joinContext: JoinContext | null = null
  private readonly local: Local<S>
  private readonly group: ProcessGroup
  private readonly ownerOf = new Map<Tensor, number>()
  /** How many elements each rank has. */
  private readonly sizes: number[]
  private consolidated: OptimizerState<S> | null = null

  /** On all ranks alike. @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED, and what `optimizerClass` throws */
  constructor(
    params: Iterable<Tensor> | Iterable<ParamGroupOptions<S>>,
    optimizerClass: ZeroRedundancyClass<S, O>,
    settings: O,
    options: ZeroRedundancyOptions = {},
  ) {
    checkOptions('ZeroRedundancyOptimizer', options, ['processGroup'])
    this.group = groupOf('ZeroRedundancyOptimizer', options.processGroup)
    this.local = new optimizerClass(params, settings)
    if (!(this.local instanceof OptimizerBase)) {
      throw invalidArgument(
        'ZeroRedundancyOptimizer',
        'a class that extends OptimizerBase, as those of postgrad/optim',
        argumentText(optimizerClass),
      )
    }
    this.sizes = new Array<number>(this.group.size).fill(0)
    for (const { params: each } of this.paramGroups) this.assign(each)
  }

  /** The largest first, each to the rank that has least. */
  private assign(params: readonly Tensor[]): void {
    const sorted = [...params].sort((a, b) => b.numel - a.numel)
    for (const p of sorted) {
      const rank = this.sizes.indexOf(Math.min(...this.sizes))
      this.ownerOf.set(p, rank)
      this.sizes[rank]! += p.numel
    }
  }

  /** The groups with their settings, which may be written to between steps, on all ranks alike. */
  get paramGroups(): readonly ParamGroup<S>[] {
    return this.local.paramGroups
  }

  /** How many steps were taken; a scheduler looks at it. */
  get stepCount(): number {
    return this.local.stepCount
  }

  /** The parameters that a rank of the group steps. */
  parametersOf(rank: number): Tensor[] {
    return [...this.ownerOf].filter(([, owner]) => owner === rank).map(([p]) => p)
  }

  /**
   * Steps this rank's parameters by `grads`, if it is given, else `.grad`, and takes the others' from their ranks. Gradients must be the same on all ranks, as those that
   * DistributedDataParallel has reduced are. Rejects with GRAD_MISMATCH, JOIN_TERMINATED, and as all collectives.
   */
  async step(grads?: ReadonlyMap<Tensor, Tensor>): Promise<void> {
    await this.joinContext?.notify(this)
    const { rank, size, ranks } = this.group
    const own = new Map<Tensor, Tensor>()
    for (const p of this.parametersOf(rank)) {
      const grad = grads === undefined ? p.grad : grads.get(p)
      if (grad) own.set(p, grad)
    }
    this.local.step(own)
    const works = Array.from({ length: size }, (_, owner) => this.parametersOf(owner)).map((params, owner) =>
      params.length === 0 ? null : broadcastCoalesced(params, ranks[owner]!, { group: this.group }),
    )
    await Promise.all(works)
  }

  /** Joinable */
  get joinGroup(): ProcessGroup {
    return this.group
  }

  /**
   * Joinable: a rank without inputs goes on stepping the parameters that are its own, in each iteration of the others, which step once in each. Behind a DistributedDataParallel in
   * the list of `join`, which has left the means in `.grad`.
   */
  joinHook(_options: Required<UnevenInputsOptions>): JoinHook {
    return { mainHook: () => this.step(), postHook: () => {} }
  }

  /** As an optimizer's. */
  zeroGrad(): void {
    this.local.zeroGrad()
  }

  /** As an optimizer's, on all ranks alike. @throws INVALID_ARGUMENT */
  set(settings: Partial<S>): void {
    this.local.set(settings)
  }

  /** As an optimizer's, on all ranks alike. @throws INVALID_ARGUMENT, DUPLICATE_PARAMETER, PARAMETER_NOT_A_LEAF */
  addParamGroup(group: ParamGroupOptions<S>): void {
    this.local.addParamGroup(group)
    this.assign(this.paramGroups.at(-1)!.params)
  }

  /** Gathers all ranks' state on one, a rank of the group, where `stateDict` gives it then: a collective. PyTorch: `consolidate_state_dict`. */
  async consolidateStateDict(to = 0): Promise<void> {
    const { group } = this
    if (group.ranks[to] === undefined) throw invalidArgument('consolidateStateDict', `a rank in 0 … ${group.size - 1}`, to)
    const own = this.local.stateDict()
    const states = await gatherObject(own.state, { group, dst: group.ranks[to] })
    this.consolidated = states === null ? null : { ...own, state: Object.assign({}, ...states) as OptimizerState<S>['state'] }
  }

  /** The state of all parameters, in the layout of the local optimizer over them, as it was when it was last consolidated here. @throws STATE_NOT_CONSOLIDATED */
  stateDict(): OptimizerState<S> {
    if (this.consolidated !== null) return this.consolidated
    throw new PostgradError('STATE_NOT_CONSOLIDATED', {
      op: 'stateDict',
      message: 'Optimizer state has not been consolidated on this rank',
      remedy: 'Call `await optimizer.consolidateStateDict(to)` on all ranks first, and stateDict() on that rank.',
    })
  }

  /** Goes on from the state of all parameters, on all ranks alike; each keeps what is its own. @throws STATE_DICT_MISMATCH */
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
