/**
 * Local SGD: each rank steps by itself, and from time to time all ranks average their parameters. `comm-hooks.ts` has the hook that does not reduce gradients meanwhile.
 * PyTorch: `torch.distributed.algorithms.model_averaging`, `PostLocalSGDOptimizer`.
 */
import type { Optimizer, OptimizerState, ParamGroup } from '@postgrad/nn'
import { allReduceCoalesced, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument, markShared, raw } from '@postgrad/tensor/internal'
import { groupOf } from './replica.js'
import { letGoApart } from './replica-check.js'
import { checkStepped, whileStepping } from './steps-under-way.js'

/** Options of `PeriodicModelAverager`. */
export interface PeriodicModelAveragerOptions {
  /** The number of steps from one average to the next. */
  readonly period: number
  /** How many steps at the start do not average parameters, since gradients are still reduced; default 0. */
  readonly warmupSteps?: number
  /** The ranks that average their parameters; default the default group. */
  readonly processGroup?: ProcessGroup
}

/**
 * Sets parameters to their mean over all ranks. It does so in the first call after `warmupSteps` calls, and then in every `period`-th call. PyTorch:
 * `PeriodicModelAverager`.
 * @example
 * const w = parameter(tensor([getRank() * 2]))
 * const averager = new PeriodicModelAverager({ period: 1 })
 * await averager.averageParameters([w]) // after each optimizer.step()
 * w // [1]
 */
export class PeriodicModelAverager {
  /** The number of calls so far. */
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
   * Averages the parameters, if it is time. All ranks call it after each step and await it. Until then, a forward of a DistributedDataParallel with these
   * parameters fails with OPTIMIZER_STEP_UNFINISHED. PyTorch: `average_parameters`.
   * @throws OPTIMIZER_STEP_UNFINISHED if a step over these parameters is under way; the errors of `allReduce`
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

/**
 * Steps a local optimizer, then averages the parameters by an averager. PyTorch: `torch.distributed.optim.PostLocalSGDOptimizer`.
 * @example
 * const w = parameter(tensor([1, 2]))
 * const optimizer = new PostLocalSGDOptimizer(new SGD([w], { lr: 0.1 }), new PeriodicModelAverager({ period: 4 }))
 * w.mul(getRank()).sum().backward()
 * await optimizer.step() // rank 0 steps by 0, rank 1 by 0.1; then the ranks average
 * w // [0.95, 1.95]
 */
export class PostLocalSGDOptimizer<Settings = object> {
  private readonly optimizer: Optimizer<Settings>
  private readonly averager: PeriodicModelAverager

  constructor(optimizer: Optimizer<Settings>, averager: PeriodicModelAverager) {
    this.optimizer = optimizer
    this.averager = averager
  }

  /** The parameter groups of the local optimizer. */
  get paramGroups(): readonly ParamGroup<Settings>[] {
    return this.optimizer.paramGroups
  }

  /**
   * Steps the optimizer by `grads` or `.grad`, then averages the parameters if it is time. Await it.
   * @throws OPTIMIZER_STEP_UNFINISHED if a step over these parameters is under way; the errors of `allReduce`
   */
  async step(grads?: ReadonlyMap<Tensor, Tensor>): Promise<void> {
    const parameters = this.paramGroups.flatMap(({ params }) => params)
    checkStepped('PostLocalSGDOptimizer.step', () => parameters)
    // Gradients of this rank alone are averaged as parameters.
    for (const p of parameters) {
      const grad = grads === undefined ? p.grad : grads.get(p)
      if (grad) markShared(grad)
    }
    this.optimizer.step(grads)
    await this.averager.averageParameters(parameters)
  }

  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void {
    this.optimizer.zeroGrad()
  }

  /** The state dict of the local optimizer, with the averager's `step`. */
  stateDict(): OptimizerState<Settings> & { readonly step: number } {
    return { ...this.optimizer.stateDict(), step: this.averager.step }
  }

  /** Loads a state dict. If it has no `step`, the averager begins at 0. @throws STATE_DICT_MISMATCH if the state does not fit */
  loadStateDict({ step = 0, ...state }: OptimizerState<Settings> & { readonly step?: number }): void {
    this.optimizer.loadStateDict(state)
    this.averager.step = step
  }
}
