/** Rates along a cosine. PyTorch: `torch.optim.lr_scheduler.CosineAnnealingLR`, `CosineAnnealingWarmRestarts`. */
import { checkOption, LRScheduler, type LRSchedulerOptions, type Scheduled } from './lr-scheduler.js'

/** Options of `CosineAnnealingLR`. */
export interface CosineAnnealingLROptions extends LRSchedulerOptions {
  /** The number of epochs in which the rate falls to `etaMin`: half a period. */
  readonly tMax: number
  /** The lowest rate; default 0. */
  readonly etaMin?: number
}

/**
 * Lets the rate fall to `etaMin` along a cosine: etaMin + ½ (initialLr − etaMin) (1 + cos(π · epoch / tMax)). After tMax it rises again. PyTorch:
 * `torch.optim.lr_scheduler.CosineAnnealingLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new CosineAnnealingLR(optimizer, { tMax: 100, etaMin: 0.1 })
 * for (let epoch = 0; epoch < 50; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.55]
 */
export class CosineAnnealingLR extends LRScheduler {
  private readonly tMax: number
  private readonly etaMin: number

  /** @throws INVALID_ARGUMENT if tMax is not a positive integer */
  constructor(optimizer: Scheduled, options: CosineAnnealingLROptions) {
    super(optimizer, options)
    checkOption(this.op, Number.isInteger(options.tMax) && options.tMax > 0, 'a positive integer as tMax', options.tMax)
    this.tMax = options.tMax
    this.etaMin = options.etaMin ?? 0
    this.start()
  }

  protected override rates(): number[] {
    const { tMax, etaMin, lastEpoch } = this
    const rates = this.currentLrs()
    if (lastEpoch === 0) return rates
    if (this.stepCount === 1) return this.closedForm()
    // At the lowest point the quotient below would be 0 / 0: the first step up is taken from the closed form.
    if ((lastEpoch - 1 - tMax) % (2 * tMax) === 0) {
      return rates.map((lr, i) => lr + ((this.baseLrs[i]! - etaMin) * (1 - Math.cos(Math.PI / tMax))) / 2)
    }
    const height = (epoch: number) => 1 + Math.cos((Math.PI * epoch) / tMax)
    return rates.map((lr) => (height(lastEpoch) / height(lastEpoch - 1)) * (lr - etaMin) + etaMin)
  }

  protected override closedForm(): number[] {
    const { tMax, etaMin, lastEpoch } = this
    return this.baseLrs.map((lr) => etaMin + ((lr - etaMin) * (1 + Math.cos((Math.PI * lastEpoch) / tMax))) / 2)
  }
}

/** Options of `CosineAnnealingWarmRestarts`. */
export interface CosineAnnealingWarmRestartsOptions extends LRSchedulerOptions {
  /** The number of epochs until the first restart. */
  readonly t0: number
  /** How many times longer each interval between restarts is than the one before it; default 1. */
  readonly tMult?: number
  /** The lowest rate; default 0. */
  readonly etaMin?: number
}

/**
 * Lets the rate fall along a cosine again and again: etaMin + ½ (initialLr − etaMin) (1 + cos(π · tCur / tI)). tCur is the number of epochs since the last
 * restart, and tI that from this restart to the next. PyTorch: `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new CosineAnnealingWarmRestarts(optimizer, { t0: 10, tMult: 2 }) // restarts at epochs 10, 30, 70
 * for (let epoch = 0; epoch < 10; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [1]
 */
export class CosineAnnealingWarmRestarts extends LRScheduler {
  private readonly t0: number
  private readonly tMult: number
  private readonly etaMin: number
  private tI: number
  private tCur: number

  /** @throws INVALID_ARGUMENT if t0 or tMult is not a positive integer */
  constructor(optimizer: Scheduled, options: CosineAnnealingWarmRestartsOptions) {
    super(optimizer, options)
    const { t0, tMult = 1, etaMin = 0 } = options
    checkOption(this.op, Number.isInteger(t0) && t0 > 0, 'a positive integer as t0', t0)
    checkOption(this.op, Number.isInteger(tMult) && tMult > 0, 'a positive integer as tMult', tMult)
    this.t0 = t0
    this.tMult = tMult
    this.etaMin = etaMin
    this.tI = t0
    this.tCur = this.lastEpoch
    this.start()
  }

  /** Continues by one epoch, or goes to `epoch`, which may have a fraction: `step(epoch + batch / batches)`. @throws INVALID_ARGUMENT if `epoch` is negative */
  override step(epoch?: number): void {
    const target = epoch ?? (this.lastEpoch < 0 ? 0 : undefined)
    if (target !== undefined) {
      this.stepTo(target)
      return
    }
    this.tCur++
    if (this.tCur >= this.tI) {
      this.tCur -= this.tI
      this.tI *= this.tMult
    }
    super.step()
  }

  /** @internal */
  override stepTo(epoch: number): void {
    checkOption(`${this.op}.step`, epoch >= 0, 'an epoch ≥ 0', epoch)
    const { t0, tMult } = this
    if (epoch < t0) {
      this.tI = t0
      this.tCur = epoch
    } else if (tMult === 1) {
      this.tCur = epoch % t0
    } else {
      const restarts = Math.floor(Math.log((epoch / t0) * (tMult - 1) + 1) / Math.log(tMult))
      this.tCur = epoch - (t0 * (tMult ** restarts - 1)) / (tMult - 1)
      this.tI = t0 * tMult ** restarts
    }
    super.stepTo(Math.floor(epoch))
  }

  protected override rates(): number[] {
    return this.baseLrs.map((lr) => this.etaMin + ((lr - this.etaMin) * (1 + Math.cos((Math.PI * this.tCur) / this.tI))) / 2)
  }
}
