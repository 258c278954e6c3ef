/**
 * The graph of one forward of a SyncBatchNorm. Its gradient needs two sums over the batches of all ranks, so a part of the pass waits for other ranks while the rest continues:
 *
 *     y ──→ SyncBatchNormBackward ──→ weight, bias       their gradients are this rank's alone
 *             │  the sums of this rank leave
 *             ├────────────────────────────────────┐
 *             │ gradient of y                      ↓ SumsOfRanks, when those of all ranks are there (`GraphTask.awaitFrom`)
 *             └──→ SyncBatchNormInputBackward ←────┘
 *                    └──→ x
 *
 * With x̂ = (x − mean) / σ, and N values of all ranks: dx = w / σ · (g − Σ g / N − x̂ · Σ (g x̂) / N). PyTorch: `torch/nn/modules/_functions.py`.
 */

import {
  type Edge,
  type Grads,
  GraphTask,
  gradientEdge,
  HIGHEST_PRIORITY,
  metaOfOutput,
  Node,
  type PassView,
  SavedVariable,
} from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import type { ProcessGroup } from '@postgrad/process-group'
import { tensor } from '@postgrad/tensor'
import { CPU, raw, Tensor } from '@postgrad/tensor/internal'
import { type RowKey, rowsOfRanks } from './rows-of-ranks.js'

/** Statistics of a batch over all ranks, each [C]. */
export interface Statistics {
  /** How many values of each channel all ranks have. */
  readonly count: number
  readonly mean: Float64Array
  /** 1 / √(variance + eps) */
  readonly rstd: Float64Array
}

/** One forward, as its backward needs it. */
export interface NormCall {
  readonly group: ProcessGroup
  readonly key: Omit<RowKey, 'direction'>
  readonly x: Tensor
  readonly weight: Tensor | null
  readonly bias: Tensor | null
  readonly statistics: Statistics
}

/** [C] as a tensor that broadcasts along x [N, C, …]. */
export function column(values: Float64Array, x: Tensor): Tensor {
  const [, c] = x.shape as readonly [number, number]
  return raw.to(tensor(values).reshape([c, ...new Array<number>(x.ndim - 2).fill(1)]), x.dtype)
}

/** Σ over all but the channels: x [N, C, …] → [C]. */
function channelSums(x: Tensor): Float64Array {
  return Float64Array.from(raw.sum(x, dimsBesideChannels(x)).dataSync(), Number)
}

const dimsBesideChannels = (x: Tensor): number[] => [...x.shape.keys()].filter((dim) => dim !== 1)

export class SyncBatchNormBackward extends Node {
  private readonly call: Pick<NormCall, 'group' | 'key' | 'statistics'>
  private readonly x: SavedVariable
  private readonly weight: SavedVariable | null
  private readonly isAffine: readonly [weight: boolean, bias: boolean]
  private readonly inner: Edge | null

  /** `y`: what it is the gradient of. */
  constructor({ group, key, x, weight, bias, statistics }: NormCall, y: Tensor) {
    const toX = gradientEdge(x)
    const inner = toX === null ? null : { node: new SyncBatchNormInputBackward(toX, x, statistics), inputNr: 0 }
    super([inner, weight && gradientEdge(weight), bias && gradientEdge(bias)], [metaOfOutput(y)])
    this.inner = inner
    this.call = { group, key, statistics }
    this.x = new SavedVariable(x)
    this.weight = weight && new SavedVariable(weight)
    this.isAffine = [weight !== null, bias !== null]
  }

  get name(): string {
    return 'SyncBatchNormBackward'
  }

  apply([given]: Grads, pass: PassView): Grads {
    const { group, key, statistics } = this.call
    const task = awaitable(pass)
    const x = this.x.unpack(this.name)
    const grad = given ?? Tensor.empty(x.dtype, x.shape, x.storage.memory)
    const { mean, rstd } = statistics
    const sums = channelSums(grad)
    const slopes = channelSums(raw.mul(grad, raw.sub(x, column(mean, x)))).map((sum, c) => sum * rstd[c]!)
    if (this.inner !== null) {
      const arrival = new SumsOfRanks({ node: this.inner.node, inputNr: 1 }, this.factors())
      const proceed = task.awaitFrom(arrival)
      rowsOfRanks(group, Float64Array.of(...sums, ...slopes), { ...key, direction: 'backward' }).then(
        (rows) => {
          arrival.rows = rows
          proceed()
        },
        (error: unknown) => {
          arrival.error = error
          proceed()
        },
      )
    }
    const [hasWeight, hasBias] = this.isAffine
    return [grad, hasWeight ? raw.to(tensor(slopes), x.dtype) : null, hasBias ? raw.to(tensor(sums), x.dtype) : null]
  }

  /** weight / σ, [C]. Read now: once the weight has its gradient, a step in backward writes to it. */
  private factors(): Float64Array {
    const { rstd } = this.call.statistics
    const weights = this.weight === null ? null : this.weight.unpack(this.name).dataSync()
    return rstd.map((value, c) => value * Number(weights?.[c] ?? 1))
  }

  override release(): void {
    this.x.release()
    this.weight?.release()
  }
}

/** Brings the sums of all ranks, in their order: [2 C]. */
class SumsOfRanks extends Node {
  rows: readonly Float64Array[] = []
  error: unknown = null
  private readonly factors: Float64Array

  constructor(to: Edge, factors: Float64Array) {
    super([to], [], HIGHEST_PRIORITY)
    this.factors = factors
  }

  get name(): string {
    return 'SumsOfRanks'
  }

  apply(): Grads {
    if (this.error !== null) throw this.error
    const total = new Float64Array(this.rows[0]!.length)
    for (const row of this.rows) for (let i = 0; i < total.length; i++) total[i]! += row[i]!
    return [tensor(Float64Array.of(...total, ...this.factors))]
  }
}

class SyncBatchNormInputBackward extends Node {
  private readonly x: SavedVariable
  private readonly statistics: Statistics

  constructor(toX: Edge, x: Tensor, statistics: Statistics) {
    // The ranks' sums are in this process.
    const ofSums = { shape: [3 * statistics.mean.length], dtype: 'float64', memory: CPU } as const
    super([toX], [metaOfOutput(x), ofSums])
    this.x = new SavedVariable(x)
    this.statistics = statistics
  }

  get name(): string {
    return 'SyncBatchNormInputBackward'
  }

  apply([grad, sums]: Grads): Grads {
    const { count, mean, rstd } = this.statistics
    const x = this.x.unpack(this.name)
    const c = mean.length
    const total = sums!.dataSync()
    const ofChannel = (fn: (channel: number) => number): Tensor =>
      column(
        Float64Array.from({ length: c }, (_, i) => fn(i)),
        x,
      )
    const offset = ofChannel((i) => Number(total[i]!) / count)
    const slope = ofChannel((i) => (rstd[i]! * Number(total[c + i]!)) / count)
    const factor = ofChannel((i) => Number(total[2 * c + i]!))
    const centred = raw.sub(x, column(mean, x))
    return [raw.mul(raw.sub(raw.sub(grad!, offset), raw.mul(centred, slope)), factor)]
  }

  override release(): void {
    this.x.release()
  }
}

/** @throws SYNC_BATCH_NORM_BACKWARD */
function awaitable(pass: PassView): GraphTask {
  const isTask = pass instanceof GraphTask && pass.sink.awaitable !== undefined
  if (isTask && !pass.createGraph) return pass
  throw new PostgradError('SYNC_BATCH_NORM_BACKWARD', {
    op: 'SyncBatchNorm',
    message: isTask
      ? 'its gradients have no history: second derivatives over several ranks are not supported'
      : '`loss.backward()` cannot wait for the other ranks',
    remedy: isTask
      ? 'Leave { createGraph } out.'
      : 'Write `await model.backward(loss)` of a DistributedDataParallel, or `await ctx.backward([loss])` in a distributed context.',
  })
}
