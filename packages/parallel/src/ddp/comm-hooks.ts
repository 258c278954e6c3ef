/** Simple communication hooks, as PyTorch has them, and that of local SGD. PyTorch: `torch.distributed.algorithms.ddp_comm_hooks`. */
import { allReduce, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument, raw } from '@postgrad/tensor/internal'
import type { GradBucket } from './grad-bucket.js'
import { groupOf } from './replica.js'

/**
 * Reduces gradients in the way of a model without a hook: to the mean over the ranks of `group` (null: the default group). PyTorch: `allreduce_hook`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(null, allReduceHook) // what a model without a hook does
 * await model.backward((await model.forward(x)).sum())
 */
export async function allReduceHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOf(bucket.buffer, groupOf('allReduceHook', group ?? undefined))
}

/**
 * Reduces nothing, so that you can measure what reducing costs. The replicas become different. PyTorch: `noop_hook`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(null, noopHook) // to measure a step without communication
 * await model.backward((await model.forward(x)).sum())
 */
export function noopHook(_state: unknown, bucket: GradBucket): Tensor {
  return bucket.buffer
}

/** @internal In place. As the reducer, divided first. */
export function meanOf(buffer: Tensor, group: ProcessGroup): PromiseLike<Tensor> {
  raw.mul_(buffer, 1 / group.size)
  return allReduce(buffer, { group })
}

/** Options of `PostLocalSGDState`. */
export interface PostLocalSGDStateOptions {
  /** The group of all ranks; default the default group. */
  readonly processGroup?: ProcessGroup
  /** The ranks that still reduce gradients with each other after the first iterations. Default null: each rank then keeps its own gradients. */
  readonly subgroup?: ProcessGroup | null
  /** For how many iterations at the start all ranks reduce gradients. */
  readonly startLocalSGDIter: number
}

/**
 * The state of `postLocalSGDHook`: its groups, and the number of the iteration. PyTorch: `PostLocalSGDState`, whose default subgroup is the ranks of one
 * machine.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * const { current: subgroup } = await newSubgroups(2) // after 100 iterations, pairs of ranks reduce their gradients
 * model.registerCommHook(new PostLocalSGDState({ subgroup, startLocalSGDIter: 100 }), postLocalSGDHook)
 */
export class PostLocalSGDState {
  readonly processGroup: ProcessGroup
  readonly subgroup: ProcessGroup | null
  readonly startLocalSGDIter: number
  /** How many iterations have ended. */
  iteration = 0

  /** @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED */
  constructor(options: PostLocalSGDStateOptions) {
    checkOptions('PostLocalSGDState', options, ['processGroup', 'subgroup', 'startLocalSGDIter'])
    const { processGroup, subgroup = null, startLocalSGDIter } = options
    if (!Number.isSafeInteger(startLocalSGDIter) || startLocalSGDIter < 0) {
      throw invalidArgument('PostLocalSGDState', 'startLocalSGDIter to be an integer ≥ 0', startLocalSGDIter)
    }
    this.processGroup = groupOf('PostLocalSGDState', processGroup)
    this.subgroup = subgroup
    this.startLocalSGDIter = startLocalSGDIter
  }
}

/**
 * Reduces gradients to the mean over all ranks at first; after `startLocalSGDIter` iterations only over the subgroup, or not at all if there is none. Use it
 * with `PostLocalSGDOptimizer`. PyTorch: `post_localSGD_hook`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(new PostLocalSGDState({ subgroup: null, startLocalSGDIter: 100 }), postLocalSGDHook)
 * const averager = new PeriodicModelAverager({ period: 4, warmupSteps: 100 })
 * const optimizer = new PostLocalSGDOptimizer(new SGD(model.parameters(), { lr: 0.1 }), averager)
 * await model.backward((await model.forward(x)).sum())
 * await optimizer.step()
 */
export async function postLocalSGDHook(state: PostLocalSGDState, bucket: GradBucket): Promise<Tensor> {
  const isGlobal = state.iteration < state.startLocalSGDIter
  if (bucket.isLast) state.iteration++
  const group = isGlobal ? state.processGroup : state.subgroup
  return group === null ? bucket.buffer : meanOf(bucket.buffer, group)
}
