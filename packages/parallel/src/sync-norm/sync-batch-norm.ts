/**
 * Batch normalisation by the statistics of all ranks' batches together. Each rank sends its own to the others, and all merge them alike: `channel-moments.ts` computes that.
 * `sync-norm-nodes.ts` is its backward, `rows-of-ranks.ts` the exchange. PyTorch: `torch.nn.SyncBatchNorm`.
 */
import { isGradEnabled } from '@postgrad/autograd'
import { setHistory } from '@postgrad/autograd/internal'
import { type BatchNorm1d, type BatchNorm2d, type BatchNormModuleOptions, Module } from '@postgrad/nn'
import { BatchNorm, replaceModules } from '@postgrad/nn/internal'
import type { ProcessGroup } from '@postgrad/process-group'
import { type Tensor, tensor } from '@postgrad/tensor'
import {
  argumentText,
  checkOptions,
  dtypeMismatch,
  invalidArgument,
  isFloating,
  raw,
  shapeMismatch,
  shapeText,
} from '@postgrad/tensor/internal'
import { groupOf } from '../ddp/replica.js'
import { merged, normalized, rowOf } from './channel-moments.js'
import { nextLayer, rowsOfRanks } from './rows-of-ranks.js'
import { SyncBatchNormBackward } from './sync-norm-nodes.js'

/** Options of `SyncBatchNorm`. */
export interface SyncBatchNormOptions extends BatchNormModuleOptions {
  /** The ranks whose batches count as one; default the default group. */
  readonly processGroup?: ProcessGroup
}

/**
 * Batch norm over the batches of all ranks together, for [N, C, …]; in eval mode it uses the running statistics. Ranks may have batches of different sizes. All
 * ranks of the group make the same layers in the same order. They may call different layers in any order, but must call one layer in the same order: its first
 * forward on this rank meets its first forward on the others. Run backward by `model.backward` of a DistributedDataParallel, or by `ctx.backward`, since these
 * can wait for other ranks; a stage of a pipeline cannot contain this layer. Defaults: eps 1e-5, momentum 0.1. PyTorch: `torch.nn.SyncBatchNorm`.
 * @example
 * const norm = new SyncBatchNorm(2)
 * const y = await norm.forward(x) // by the statistics of all ranks' batches
 * y.shape // [2, 2]
 */
export class SyncBatchNorm extends BatchNorm {
  /** The ranks whose batches count as one. */
  readonly processGroup: ProcessGroup
  private readonly layer: number
  private calls = 0

  /** Weight 1, bias 0, running mean 0, running variance 1. @throws INVALID_ARGUMENT, DTYPE_MISMATCH, PROCESS_GROUP_NOT_INITIALIZED */
  constructor(numFeatures: number, options: SyncBatchNormOptions = {}) {
    super(numFeatures, withoutGroup(options))
    this.processGroup = groupOf('SyncBatchNorm', options.processGroup)
    this.layer = nextLayer(this.processGroup)
  }

  /** @internal One that has the parameters, buffers and settings of another layer: the tensors themselves. */
  static from(layer: BatchNorm, processGroup: ProcessGroup): SyncBatchNorm {
    const { numFeatures, eps, momentum, weight, bias, runningMean, runningVar, numBatchesTracked, training } = layer
    const affine = weight !== null
    const synced = new SyncBatchNorm(numFeatures, { eps, momentum, affine, trackRunningStats: runningMean !== null, processGroup })
    return Object.assign(synced, { weight, bias, runningMean, runningVar, numBatchesTracked, training })
  }

  /**
   * x [N, C, …] → the same shape. In training all ranks of the group call it, each with its part of the batch, which may be empty. All parts together need no
   * value at all, or more than one for each channel. In eval mode only this rank is involved.
   * @throws SHAPE_MISMATCH or DTYPE_MISMATCH if x does not fit; COLLECTIVE_MISMATCH if x does not fit to those of other ranks; COLLECTIVE_TIMEOUT if a rank
   * does not call it in time; GROUP_BROKEN if a member died or the group is broken
   */
  async forward(x: Tensor): Promise<Tensor> {
    this.checkInput(x, (rank) => rank >= 2, '[N, C, …]')
    const { weight, bias, eps, processGroup: group } = this
    if (!this.training || group.size === 1) return this.normalize(x, [x.ndim], '[N, C, …]')
    const floats = [x, weight, bias].filter((t) => t !== null)
    if (!isFloating(x.dtype) || floats.some(({ dtype }) => dtype !== x.dtype)) {
      const got = floats.map(({ dtype }) => dtype).join(', ')
      throw dtypeMismatch('SyncBatchNorm', 'one floating point dtype for input, weight and bias', got, "Convert with to('float32').")
    }
    const isRecorded = isGradEnabled() && floats.some(({ requiresGrad }) => requiresGrad)
    const key = { layer: this.layer, call: this.calls++, channels: this.numFeatures }
    const rows = await rowsOfRanks(group, rowOf(x), { ...key, direction: 'forward' })
    const { count, mean, squares } = merged(rows)
    // No rank has any: all see the same, so each makes the empty result by itself.
    if (count === 0) return this.normalize(x, [x.ndim], '[N, C, …]')
    if (count <= 1) {
      throw shapeMismatch(
        'SyncBatchNorm',
        'more than one value for each channel when training',
        shapeText(x.shape),
        'Use a larger batch, or eval().',
      )
    }
    this.keep(count, mean, squares)
    const statistics = { count, mean, rstd: squares.map((square) => 1 / Math.sqrt(square / count + eps)) }
    const y = normalized(x.detach(), weight, bias, statistics)
    if (isRecorded) setHistory(y, new SyncBatchNormBackward({ group, key, x, weight, bias, statistics }, y), 0)
    return y
  }

  /** As PyTorch: the running variance is of the unbiased ones, over all ranks. */
  private keep(count: number, mean: Float64Array, squares: Float64Array): void {
    const momentum = this.share()
    const blend = (running: Tensor | null, now: Float64Array): void => {
      if (running === null) return
      raw.mul_(running, 1 - momentum)
      raw.add_(running, raw.to(tensor(now), running.dtype), momentum)
    }
    blend(this.runningMean, mean)
    blend(
      this.runningVar,
      squares.map((square) => square / (count - 1)),
    )
  }
}

/**
 * Replaces each batch norm of the tree by a SyncBatchNorm of `processGroup` (default the default group), also a SyncBatchNorm of another group. Returns the
 * module, or its replacement if the module is a batch norm itself. The new layers have the old parameters and buffers, so an optimizer made earlier still
 * works, but not the old hooks. A forward that calls such a layer must await it; `Sequential` does. All ranks convert the same modules in the same order,
 * before `DistributedDataParallel.create`. PyTorch: `SyncBatchNorm.convert_sync_batchnorm`.
 * @throws INVALID_ARGUMENT if `module` is not a module; PROCESS_GROUP_NOT_INITIALIZED if the default group does not exist
 * @example
 * const model = convertSyncBatchNorm(new Sequential(new Linear(2, 8), new BatchNorm1d(8)))
 * using replica = await DistributedDataParallel.create(model)
 */
export function convertSyncBatchNorm(module: BatchNorm1d | BatchNorm2d, processGroup?: ProcessGroup): SyncBatchNorm
export function convertSyncBatchNorm<M extends Module>(module: M, processGroup?: ProcessGroup): M
export function convertSyncBatchNorm(module: Module, processGroup?: ProcessGroup): Module {
  if (!(module instanceof Module)) throw invalidArgument('convertSyncBatchNorm', 'a module', argumentText(module))
  const group = groupOf('convertSyncBatchNorm', processGroup)
  const isConverted = (each: BatchNorm): boolean => each instanceof SyncBatchNorm && each.processGroup === group
  const convert = (each: Module): Module => (each instanceof BatchNorm && !isConverted(each) ? SyncBatchNorm.from(each, group) : each)
  return replaceModules(module, convert)
}

/** @throws INVALID_ARGUMENT */
function withoutGroup(options: SyncBatchNormOptions): BatchNormModuleOptions {
  checkOptions('SyncBatchNorm', options, ['eps', 'momentum', 'affine', 'trackRunningStats', 'dtype', 'processGroup'])
  const { processGroup: _, ...others } = options
  return others
}
