/** Rates from a function of the epoch. PyTorch: `torch.optim.lr_scheduler.LambdaLR`, `MultiplicativeLR`. */
import { checkOption, LRScheduler, type LRSchedulerOptions, perGroup, type Scheduled } from './lr-scheduler.js'

/** Options of `LambdaLR` and `MultiplicativeLR`. */
export interface LambdaLROptions extends LRSchedulerOptions {
  /** Returns the factor of an epoch; one function for all groups or one per group. A state dict does not contain it: the scheduler that loads keeps its own. */
  readonly lrLambda: ((epoch: number) => number) | readonly ((epoch: number) => number)[]
}

/** lr = initialLr · lrLambda(epoch). PyTorch: `torch.optim.lr_scheduler.LambdaLR`. */
export class LambdaLR extends LRScheduler {
  private readonly lrLambdas: readonly ((epoch: number) => number)[]

  /** @throws INVALID_ARGUMENT unless there is one function, or one per group */
  constructor(optimizer: Scheduled, options: LambdaLROptions) {
    super(optimizer, options)
    this.lrLambdas = lambdasOf(this.op, options, optimizer)
    this.start()
  }

  protected override rates(): number[] {
    return this.baseLrs.map((lr, i) => lr * this.lrLambdas[i]!(this.lastEpoch))
  }
}

/** lr ← lr · lrLambda(epoch), from epoch 1 on. PyTorch: `torch.optim.lr_scheduler.MultiplicativeLR`. */
export class MultiplicativeLR extends LRScheduler {
  private readonly lrLambdas: readonly ((epoch: number) => number)[]

  /** @throws INVALID_ARGUMENT unless there is one function, or one per group */
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
