/**
 * Local SGD: each rank steps by itself, and now and then the parameters become the mean over all ranks. `comm-hooks.ts` has the hook that leaves gradients alone meanwhile.
 * PyTorch: `torch.distributed.algorithms.model_averaging`, `PostLocalSGDOptimizer`.
 */
import type { Optimizer, OptimizerState, ParamGroup } from '@postgrad/nn'
import { allReduceCoalesced, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument, markShared, raw } from '@postgrad/tensor/internal'
import { groupOf } from './replica.js'
import { letGoApart } from './replica-check.js'
import { checkStepped, whileStepping } from './steps-under-way.js'

/** Of `PeriodicModelAverager`. */
export interface PeriodicModelAveragerOptions {
  /** Averages every so many steps. */
  readonly period: number
  /** Not in so many first steps, in which gradients are reduced; default 0. */
  readonly warmupSteps?: number
  /** Who averages; default the default group. */
  readonly processGroup?: ProcessGroup
}

/** Makes parameters the mean over all ranks in every `period`-th call after the first `warmupSteps`. PyTorch: the same. */
export class PeriodicModelAverager {
  /** How many calls there were. */
  step = 0
  private readonly period: number
  private readonly warmupSteps: number
  private readonly group: ProcessGroup

  /** @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED */
  constructor(options: PeriodicModelAveragerOptions) {
    checkOptions('PeriodicModelAverager', options, ['period', 'warmupSteps', 'processGroup'])
    const { period, warmupSteps = 0, processGroup } = options
    if (!Number.isSafeInteger(period) || period < 1) throw invalidArgument('PeriodicModelAverager', 'period to be an integer ≥ 1', period)
    if (!Number.isSafeInteger(warmupSteps) || warmupSteps < 0) {
      throw invalidArgument('PeriodicModelAverager', 'warmupSteps to be an integer ≥ 0', warmupSteps)
    }
    this.period = period
    this.warmupSteps = warmupSteps
    this.group = groupOf('PeriodicModelAverager', processGroup)
  }

  /**
   * All ranks call it after each step, with their parameters, and await it: until it has ended, a forward of a DistributedDataParallel with these parameters fails with OPTIMIZER_STEP_UNFINISHED. Rejects with that, and as
   * all collectives. PyTorch: `average_parameters`.
   */
  async averageParameters(parameters: Iterable<Tensor>): Promise<void> {
    const all = [...parameters]
    checkStepped('averageParameters', () => all)
    letGoApart(all)
    const step = this.step++
    if (step < this.warmupSteps || (step - this.warmupSteps) % this.period !== 0) return
    await whileStepping(all, async () => {
      for (const tensors of byDtype(all).values()) {
        for (const each of tensors) raw.mul_(each, 1 / this.group.size)
        await allReduceCoalesced(tensors, { group: this.group })
      }
    })
  }
}

function byDtype(parameters: Iterable<Tensor>): Map<string, Tensor[]> {
  const groups = new Map<string, Tensor[]>()
  for (const each of parameters) groups.set(each.dtype, [...(groups.get(each.dtype) ?? []), each])
  return groups
}

/** Steps an optimizer, then lets an averager average. PyTorch: `torch.distributed.optim.PostLocalSGDOptimizer`. */
export class PostLocalSGDOptimizer<Settings = object> {
  private readonly optimizer: Optimizer<Settings>
  private readonly averager: PeriodicModelAverager

  constructor(optimizer: Optimizer<Settings>, averager: PeriodicModelAverager) {
    this.optimizer = optimizer
    this.averager = averager
  }

  /** The optimizer's. */
  get paramGroups(): readonly ParamGroup<Settings>[] {
    return this.optimizer.paramGroups
  }

  /** The optimizer's step, by `grads` or `.grad`; then the averager's. Await it. Rejects with OPTIMIZER_STEP_UNFINISHED, and as all collectives. */
  async step(grads?: ReadonlyMap<Tensor, Tensor>): Promise<void> {
    const parameters = this.paramGroups.flatMap(({ params }) => params)
    checkStepped('PostLocalSGDOptimizer.step', () => parameters)
    // What this rank alone has gathered is averaged in the parameters.
    for (const p of parameters) {
      const grad = grads === undefined ? p.grad : grads.get(p)
      if (grad) markShared(grad)
    }
    this.optimizer.step(grads)
    await this.averager.averageParameters(parameters)
  }

  /** The optimizer's. */
  zeroGrad(): void {
    this.optimizer.zeroGrad()
  }

  /** The optimizer's, and the averager's step. */
  stateDict(): OptimizerState<Settings> & { readonly step: number } {
    return { ...this.optimizer.stateDict(), step: this.averager.step }
  }

  /** Continues from a state dict; one without a step begins to average anew. @throws STATE_DICT_MISMATCH */
  loadStateDict({ step = 0, ...state }: OptimizerState<Settings> & { readonly step?: number }): void {
    this.optimizer.loadStateDict(state)
    this.averager.step = step
  }
}
