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
 * Normalizes each channel of [N, C, …] by the statistics of all ranks' batches together, in eval by the running ones; ranks may have batches of different sizes. All
 * ranks make the same ones of a group in the same order. They may call different layers in any order, but one layer in the same order on all ranks: its first forward here
 * meets the first of the others, and nobody can see that another one was meant. Backward passes are those that can wait: `model.backward` of a DistributedDataParallel, or
 * `ctx.backward`; a stage of a pipeline, whose passes wait for nobody, cannot have one. Defaults: eps 1e-5, momentum 0.1. PyTorch: `torch.nn.SyncBatchNorm`.
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
   * x [N, C, …] → the same shape. In training all ranks of the group call it, each with its part of the batch, which may be empty; all parts together need none, or more than one value
   * for each channel. In eval it is this rank's alone. Rejects with SHAPE_MISMATCH, DTYPE_MISMATCH, COLLECTIVE_MISMATCH, COLLECTIVE_TIMEOUT, GROUP_BROKEN.
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
 * Puts a SyncBatchNorm of `processGroup` (default the default group) in the place of each batch norm of the tree, also of a SyncBatchNorm of another group; it has the
 * parameters and buffers of that one, so optimizers may have been made before. Forwards of modules that have such layers must await them; `Sequential` does. Hooks of the
 * layers are not taken along. All ranks convert the same modules in the same order, before `DistributedDataParallel.create`. PyTorch: `SyncBatchNorm.convert_sync_batchnorm`.
 * @returns the module, or what takes its place if it is a batch norm itself
 * @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED
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
