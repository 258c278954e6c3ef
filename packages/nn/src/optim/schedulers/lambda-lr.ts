/** Rates from a function of the epoch. PyTorch: `torch.optim.lr_scheduler.LambdaLR`, `MultiplicativeLR`. */
import { checkOption, LRScheduler, type LRSchedulerOptions, perGroup, type Scheduled } from './lr-scheduler.js'

/** Options of `LambdaLR` and `MultiplicativeLR`. */
export interface LambdaLROptions extends LRSchedulerOptions {
  /**
   * Returns the factor of an epoch: one function for all groups, or one for each group. A state dict does not contain functions, so the scheduler that loads it
   * keeps its own.
   */
  readonly lrLambda: ((epoch: number) => number) | readonly ((epoch: number) => number)[]
}

/**
 * Sets the rate to initialLr · lrLambda(epoch). PyTorch: `torch.optim.lr_scheduler.LambdaLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1 })
 * const scheduler = new LambdaLR(optimizer, { lrLambda: (epoch) => 1 / (1 + epoch) })
 * optimizer.step()
 * scheduler.step()
 * scheduler.getLastLr() // [0.05]
 */
export class LambdaLR extends LRScheduler {
  private readonly lrLambdas: readonly ((epoch: number) => number)[]

  /** @throws INVALID_ARGUMENT if there is not one function, or one for each group */
  constructor(optimizer: Scheduled, options: LambdaLROptions) {
    super(optimizer, options)
    this.lrLambdas = lambdasOf(this.op, options, optimizer)
    this.start()
  }

  protected override rates(): number[] {
    return this.baseLrs.map((lr, i) => lr * this.lrLambdas[i]!(this.lastEpoch))
  }
}

/**
 * Multiplies the rate by lrLambda(epoch), from epoch 1 on. PyTorch: `torch.optim.lr_scheduler.MultiplicativeLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1 })
 * const scheduler = new MultiplicativeLR(optimizer, { lrLambda: (epoch) => (epoch < 10 ? 1 : 0.5) })
 * for (let epoch = 0; epoch < 11; epoch++) { optimizer.step(); scheduler.step() } // halved at epochs 10 and 11
 * scheduler.getLastLr() // [0.025]
 */
export class MultiplicativeLR extends LRScheduler {
  private readonly lrLambdas: readonly ((epoch: number) => number)[]

  /** @throws INVALID_ARGUMENT if there is not one function, or one for each group */
  constructor(optimizer: Scheduled, options: LambdaLROptions) {
    super(optimizer, options)
    this.lrLambdas = lambdasOf(this.op, options, optimizer)
    this.start()
  }

  protected override rates(): number[] {
    const rates = this.currentLrs()
    return this.lastEpoch > 0 ? rates.map((lr, i) => (i < this.lrLambdas.length ? lr * this.lrLambdas[i]!(this.lastEpoch) : lr)) : rates
  }
}

/** @throws INVALID_ARGUMENT */
function lambdasOf(op: string, { lrLambda }: LambdaLROptions, optimizer: Scheduled): readonly ((epoch: number) => number)[] {
  const lambdas = perGroup(op, 'lrLambda', lrLambda, optimizer)
  const at = lambdas.findIndex((one) => typeof one !== 'function')
  checkOption(op, at < 0, 'lrLambda: a function of the epoch, or one per group', typeof lambdas[at])
  return lambdas
}
