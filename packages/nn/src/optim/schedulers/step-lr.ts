/** Rates that fall by a factor now and then. PyTorch: `torch.optim.lr_scheduler.StepLR`, `MultiStepLR`, `ExponentialLR`. */
import { checkIterable } from '@postgrad/tensor/internal'
import { checkOption, LRScheduler, type LRSchedulerOptions, type Scheduled } from './lr-scheduler.js'

/** Options of `StepLR`. */
export interface StepLROptions extends LRSchedulerOptions {
  /** The number of epochs from one reduction to the next. */
  readonly stepSize: number
  /** The factor of each reduction; default 0.1. */
  readonly gamma?: number
}

/**
 * Multiplies the rate by gamma every `stepSize` epochs. PyTorch: `torch.optim.lr_scheduler.StepLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1 })
 * const scheduler = new StepLR(optimizer, { stepSize: 30 })
 * for (let epoch = 0; epoch < 30; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.01]
 */
export class StepLR extends LRScheduler {
  private readonly stepSize: number
  private readonly gamma: number

  /** @throws INVALID_ARGUMENT if stepSize is not a positive integer */
  constructor(optimizer: Scheduled, options: StepLROptions) {
    super(optimizer, options)
    const { stepSize, gamma = 0.1 } = options
    checkOption(this.op, Number.isInteger(stepSize) && stepSize > 0, 'a positive integer as stepSize', stepSize)
    this.stepSize = stepSize
    this.gamma = gamma
    this.start()
  }

  protected override rates(): number[] {
    const now = this.lastEpoch !== 0 && this.lastEpoch % this.stepSize === 0
    return this.currentLrs().map((lr) => (now ? lr * this.gamma : lr))
  }

  protected override closedForm(): number[] {
    return this.baseLrs.map((lr) => lr * this.gamma ** Math.floor(this.lastEpoch / this.stepSize))
  }
}

/** Options of `MultiStepLR`. */
export interface MultiStepLROptions extends LRSchedulerOptions {
  /** The epochs at which the rate is reduced. An epoch that is listed twice counts twice. */
  readonly milestones: readonly number[]
  /** The factor of each reduction; default 0.1. */
  readonly gamma?: number
}

/**
 * Multiplies the rate by gamma at each of the milestones. PyTorch: `torch.optim.lr_scheduler.MultiStepLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1 })
 * const scheduler = new MultiStepLR(optimizer, { milestones: [30, 80], gamma: 0.1 })
 * for (let epoch = 0; epoch < 30; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.01]
 */
export class MultiStepLR extends LRScheduler {
  private readonly milestones: readonly number[]
  private readonly gamma: number

  constructor(optimizer: Scheduled, options: MultiStepLROptions) {
    super(optimizer, options)
    checkIterable(this.op, 'milestones', options.milestones)
    this.milestones = [...options.milestones]
    this.gamma = options.gamma ?? 0.1
    this.start()
  }

  protected override rates(): number[] {
    const times = this.milestones.filter((epoch) => epoch === this.lastEpoch).length
    return this.currentLrs().map((lr) => (times === 0 ? lr : lr * this.gamma ** times))
  }

  protected override closedForm(): number[] {
    const passed = this.milestones.filter((epoch) => epoch <= this.lastEpoch).length
    return this.baseLrs.map((lr) => lr * this.gamma ** passed)
  }
}

/** Options of `ExponentialLR`. */
export interface ExponentialLROptions extends LRSchedulerOptions {
  /** The factor of each epoch. */
  readonly gamma: number
}

/**
 * Multiplies the rate by gamma every epoch. PyTorch: `torch.optim.lr_scheduler.ExponentialLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new ExponentialLR(optimizer, { gamma: 0.9 })
 * for (let epoch = 0; epoch < 2; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.81]
 */
export class ExponentialLR extends LRScheduler {
  private readonly gamma: number

  constructor(optimizer: Scheduled, options: ExponentialLROptions) {
    super(optimizer, options)
    checkOption(this.op, typeof options.gamma === 'number', 'a number as gamma', options.gamma)
    this.gamma = options.gamma
    this.start()
  }

  protected override rates(): number[] {
    return this.currentLrs().map((lr) => (this.lastEpoch === 0 ? lr : lr * this.gamma))
  }

  protected override closedForm(): number[] {
    return this.baseLrs.map((lr) => lr * this.gamma ** this.lastEpoch)
  }
}
