/** Communication hooks that do no more than PyTorch's simplest, and local SGD's. PyTorch: `torch.distributed.algorithms.ddp_comm_hooks`. */
import { allReduce, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument, raw } from '@postgrad/tensor/internal'
import type { GradBucket } from './grad-bucket.js'
import { groupOf } from './replica.js'

/** The hook that a model has by default: the mean over the ranks of `group` (null: of the default group). PyTorch: `allreduce_hook`. */
export async function allReduceHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOf(bucket.buffer, groupOf('allReduceHook', group ?? undefined))
}

/** Reduces nothing, to measure what reducing costs: replicas go apart. PyTorch: `noop_hook`. */
export function noopHook(_state: unknown, bucket: GradBucket): Tensor {
  return bucket.buffer
}

/** @internal In place. As the reducer, divided first. */
export function meanOf(buffer: Tensor, group: ProcessGroup): PromiseLike<Tensor> {
  raw.mul_(buffer, 1 / group.size)
  return allReduce(buffer, { group })
}

/** Of `PostLocalSGDState`. */
export interface PostLocalSGDStateOptions {
  /** Of all ranks; default the default group. */
  readonly processGroup?: ProcessGroup
  /** Ranks that go on reducing gradients among each other; null, the default: each alone. */
  readonly subgroup?: ProcessGroup | null
  /** So many iterations reduce over all ranks first. */
  readonly startLocalSGDIter: number
}

/** Of `postLocalSGDHook`: which iteration it is. PyTorch: the same; there the default subgroup is the ranks of one machine. */
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

/** The mean over all ranks at first, then over a subgroup, or this rank's gradients as they are; with `PostLocalSGDOptimizer`. PyTorch: `post_localSGD_hook`. */
export async function postLocalSGDHook(state: PostLocalSGDState, bucket: GradBucket): Promise<Tensor> {
  const isGlobal = state.iteration < state.startLocalSGDIter
  if (bucket.isLast) state.iteration++
  const group = isGlobal ? state.processGroup : state.subgroup
  return group === null ? bucket.buffer : meanOf(bucket.buffer, group)
}
