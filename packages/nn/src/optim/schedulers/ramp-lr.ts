/** Rates that go from one factor to another within some epochs. PyTorch: `torch.optim.lr_scheduler.ConstantLR`, `LinearLR`, `PolynomialLR`. */
import { checkOption, LRScheduler, type LRSchedulerOptions, type Scheduled } from './lr-scheduler.js'

/** Options of `ConstantLR`. */
export interface ConstantLROptions extends LRSchedulerOptions {
  /** The factor of the rate in the first epochs, in (0, 1]; default 1/3. */
  readonly factor?: number
  /** For how many epochs the factor holds; default 5. */
  readonly totalIters?: number
}

/**
 * Multiplies the rate by `factor` until epoch `totalIters`; after that it is initialLr. PyTorch: `torch.optim.lr_scheduler.ConstantLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new ConstantLR(optimizer, { factor: 0.5, totalIters: 4 })
 * scheduler.getLastLr() // [0.5]
 * for (let epoch = 0; epoch < 4; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [1]
 */
export class ConstantLR extends LRScheduler {
  private readonly factor: number
  private readonly totalIters: number

  /** @throws INVALID_ARGUMENT if the factor is not in (0, 1] (PyTorch accepts 0, and divides by it at the end) */
  constructor(optimizer: Scheduled, options: ConstantLROptions = {}) {
    super(optimizer, options)
    const { factor = 1 / 3, totalIters = 5 } = options
    checkOption(this.op, factor > 0 && factor <= 1, 'a factor in (0, 1]', factor)
    this.factor = factor
    this.totalIters = totalIters
    this.start()
  }

  protected override rates(): number[] {
    const factor = this.lastEpoch === 0 ? this.factor : this.lastEpoch === this.totalIters ? 1 / this.factor : 1
    return this.currentLrs().map((lr) => lr * factor)
  }

  protected override closedForm(): number[] {
    return this.baseLrs.map((lr) => lr * (this.lastEpoch >= this.totalIters ? 1 : this.factor))
  }
}

/** Options of `LinearLR`. */
export interface LinearLROptions extends LRSchedulerOptions {
  /** The factor of the rate in the first epoch, in (0, 1]; default 1/3. */
  readonly startFactor?: number
  /** The factor of the rate after `totalIters` epochs, in [0, 1]; default 1. */
  readonly endFactor?: number
  /** In how many epochs the factor goes from `startFactor` to `endFactor`; default 5. */
  readonly totalIters?: number
}

/**
 * Moves the rate from initialLr · startFactor to initialLr · endFactor in equal steps, over `totalIters` epochs: a warm-up. PyTorch:
 * `torch.optim.lr_scheduler.LinearLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new LinearLR(optimizer, { startFactor: 0.2, totalIters: 4 })
 * for (let epoch = 0; epoch < 2; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.6]
 */
export class LinearLR extends LRScheduler {
  private readonly startFactor: number
  private readonly endFactor: number
  private readonly totalIters: number

  /** @throws INVALID_ARGUMENT if a factor is outside of its range (PyTorch accepts a startFactor of 0, and divides by it) */
  constructor(optimizer: Scheduled, options: LinearLROptions = {}) {
    super(optimizer, options)
    const { startFactor = 1 / 3, endFactor = 1, totalIters = 5 } = options
    checkOption(this.op, startFactor > 0 && startFactor <= 1, 'a startFactor in (0, 1]', startFactor)
    checkOption(this.op, endFactor >= 0 && endFactor <= 1, 'an endFactor in [0, 1]', endFactor)
    this.startFactor = startFactor
    this.endFactor = endFactor
    this.totalIters = totalIters
    this.start()
  }

  protected override rates(): number[] {
    const { startFactor, endFactor, totalIters, lastEpoch } = this
    const rates = this.currentLrs()
    if (lastEpoch === 0) return rates.map((lr) => lr * startFactor)
    if (lastEpoch > totalIters) return rates
    const change = endFactor - startFactor
    return rates.map((lr) => lr * (1 + change / (totalIters * startFactor + (lastEpoch - 1) * change)))
  }

  protected override closedForm(): number[] {
    const { startFactor, endFactor, totalIters, lastEpoch } = this
    const factor = startFactor + ((endFactor - startFactor) * Math.min(totalIters, lastEpoch)) / totalIters
    return this.baseLrs.map((lr) => lr * factor)
  }
}

/** Options of `PolynomialLR`. */
export interface PolynomialLROptions extends LRSchedulerOptions {
  /** In how many epochs the rate falls to 0; default 5. */
  readonly totalIters?: number
  /** The exponent; default 1, a line. */
  readonly power?: number
}

/**
 * Lets the rate fall as a power: initialLr · (1 − epoch / totalIters)^power, and 0 from epoch `totalIters` on. PyTorch:
 * `torch.optim.lr_scheduler.PolynomialLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new PolynomialLR(optimizer, { totalIters: 10, power: 2 })
 * for (let epoch = 0; epoch < 5; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.25]
 */
export class PolynomialLR extends LRScheduler {
  private readonly totalIters: number
  private readonly power: number

  constructor(optimizer: Scheduled, options: PolynomialLROptions = {}) {
    super(optimizer, options)
    this.totalIters = options.totalIters ?? 5
    this.power = options.power ?? 1
    this.start()
  }

  protected override rates(): number[] {
    const { totalIters, power, lastEpoch } = this
    const rates = this.currentLrs()
    if (lastEpoch === 0 || lastEpoch > totalIters) return rates
    const factor = ((1 - lastEpoch / totalIters) / (1 - (lastEpoch - 1) / totalIters)) ** power
    return rates.map((lr) => lr * factor)
  }

  protected override closedForm(): number[] {
    return this.baseLrs.map((lr) => lr * (1 - Math.min(this.totalIters, this.lastEpoch) / this.totalIters) ** this.power)
  }
}
