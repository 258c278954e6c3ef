/** Rates that fall when a measure stops getting better. PyTorch: `torch.optim.lr_scheduler.ReduceLROnPlateau`. */
import { structuredClone } from '@postgrad/base/internal'
import {
  checkOption,
  checkScheduled,
  checkState,
  perGroup,
  plainFields,
  type Scheduled,
  type Scheduler,
  type SchedulerState,
} from './lr-scheduler.js'

/** Options of `ReduceLROnPlateau`. */
export interface ReduceLROnPlateauOptions {
  /** Whether a smaller ('min') or a greater ('max') measure is better; default 'min'. */
  readonly mode?: 'min' | 'max'
  /** The factor below 1 by which a reduction multiplies the rate; default 0.1. */
  readonly factor?: number
  /** How many epochs in a row may pass without improvement. The next such epoch reduces the rate. Default 10. */
  readonly patience?: number
  /** By how much a measure must be better than the best one to count as an improvement; default 1e-4. `thresholdMode` says how it is meant. */
  readonly threshold?: number
  /** Whether `threshold` is a part of the best measure ('rel', the default) or a difference ('abs'). */
  readonly thresholdMode?: 'rel' | 'abs'
  /** For how many epochs after a reduction missing improvements do not count; default 0. */
  readonly cooldown?: number
  /** The lowest rate, one for all groups or one per group; default 0. */
  readonly minLr?: number | readonly number[]
  /** The least reduction: a smaller one is not made. Default 1e-8. */
  readonly eps?: number
}

/**
 * Reduces the rate when a measure has stopped improving. Call `step(loss)` once an epoch. PyTorch: `torch.optim.lr_scheduler.ReduceLROnPlateau`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1 })
 * const scheduler = new ReduceLROnPlateau(optimizer, { factor: 0.5, patience: 1 })
 * for (const loss of [3, 2, 2, 2]) scheduler.step(loss) // no improvement twice
 * scheduler.getLastLr() // [0.05]
 */
export class ReduceLROnPlateau implements Scheduler {
  /** The optimizer whose rates the scheduler sets. */
  readonly optimizer: Scheduled
  /** The number of steps so far. */
  lastEpoch = 0
  private readonly mode: 'min' | 'max'
  private readonly factor: number
  private readonly patience: number
  private readonly threshold: number
  private readonly thresholdMode: 'rel' | 'abs'
  private readonly cooldown: number
  private readonly minLrs: number[]
  private readonly eps: number
  /** null before the first step. */
  private best: number | null = null
  private numBadEpochs = 0
  private cooldownCounter = 0
  private lastLr: number[]

  /** @throws INVALID_ARGUMENT if an option is not valid */
  constructor(optimizer: Scheduled, options: ReduceLROnPlateauOptions = {}) {
    checkScheduled('ReduceLROnPlateau', optimizer)
    const { mode = 'min', factor = 0.1, thresholdMode = 'rel' } = options
    checkOption('ReduceLROnPlateau', factor < 1, 'a factor < 1', factor)
    checkOption('ReduceLROnPlateau', mode === 'min' || mode === 'max', "mode 'min' or 'max'", mode)
    checkOption('ReduceLROnPlateau', thresholdMode === 'rel' || thresholdMode === 'abs', "thresholdMode 'rel' or 'abs'", thresholdMode)
    this.optimizer = optimizer
    this.mode = mode
    this.factor = factor
    this.patience = options.patience ?? 10
    this.threshold = options.threshold ?? 1e-4
    this.thresholdMode = thresholdMode
    this.cooldown = options.cooldown ?? 0
    this.minLrs = perGroup('ReduceLROnPlateau', 'minLr', options.minLr ?? 0, optimizer)
    this.eps = options.eps ?? 1e-8
    this.lastLr = optimizer.paramGroups.map((group) => group.lr)
  }

  /** Ends an epoch. @param metrics the measure of this epoch, such as `await loss.item()` @throws INVALID_ARGUMENT if `metrics` is not a number */
  step(metrics: number): void {
    checkOption('ReduceLROnPlateau.step', typeof metrics === 'number', 'a number', typeof metrics)
    this.lastEpoch++
    if (this.isBetter(metrics)) {
      this.best = metrics
      this.numBadEpochs = 0
    } else {
      this.numBadEpochs++
    }
    if (this.cooldownCounter > 0) {
      this.cooldownCounter--
      this.numBadEpochs = 0
    }
    if (this.numBadEpochs > this.patience) {
      this.reduce()
      this.cooldownCounter = this.cooldown
      this.numBadEpochs = 0
    }
    this.lastLr = this.optimizer.paramGroups.map((group) => group.lr)
  }

  getLastLr(): number[] {
    return [...this.lastLr]
  }

  /** The state as plain data, for `loadStateDict`. */
  stateDict(): SchedulerState {
    return plainFields(this)
  }

  loadStateDict(state: SchedulerState): void {
    checkState('ReduceLROnPlateau', this.stateDict(), state, this.optimizer.paramGroups.length)
    Object.assign(this, structuredClone(state))
    for (const [i, group] of this.optimizer.paramGroups.entries()) group.lr = this.lastLr[i]!
  }

  private isBetter(value: number): boolean {
    const { threshold, thresholdMode } = this
    const best = this.best ?? (this.mode === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
    if (this.mode === 'min') return value < (thresholdMode === 'rel' ? best * (1 - threshold) : best - threshold)
    return value > (thresholdMode === 'rel' ? best * (1 + threshold) : best + threshold)
  }

  private reduce(): void {
    for (const [i, group] of this.optimizer.paramGroups.entries()) {
      const next = Math.max(group.lr * this.factor, this.minLrs[i] ?? 0)
      if (group.lr - next > this.eps) group.lr = next
    }
  }
}
