/** One rise of the rate and one long fall. PyTorch: `torch.optim.lr_scheduler.OneCycleLR`. */
import { PostgradError } from '@postgrad/base'
import { checkOption, LRScheduler, type LRSchedulerOptions, perGroup, type Scheduled } from './lr-scheduler.js'
import { checkMomentum, setMomentum } from './momentum.js'

/** Options of `OneCycleLR`. */
export interface OneCycleLROptions extends LRSchedulerOptions {
  /** The highest rate; one for all groups or one per group. */
  readonly maxLr: number | readonly number[]
  /** The number of all steps of the training. Give it, or `epochs` and `stepsPerEpoch`. */
  readonly totalSteps?: number
  /** The number of epochs. Multiplied by `stepsPerEpoch`, it replaces `totalSteps`. */
  readonly epochs?: number
  /** The number of steps in each epoch. */
  readonly stepsPerEpoch?: number
  /** The part of the steps in which the rate rises; default 0.3. */
  readonly pctStart?: number
  /** The form of the curve, a cosine or a line; default 'cos'. */
  readonly annealStrategy?: 'cos' | 'linear'
  /** Whether `momentum`, or the first of `betas`, moves in the opposite direction of the rate; default true. */
  readonly cycleMomentum?: boolean
  /** The lowest momentum; default 0.85. */
  readonly baseMomentum?: number | readonly number[]
  /** The highest momentum; default 0.95. */
  readonly maxMomentum?: number | readonly number[]
  /** The divisor of maxLr that gives the first rate; default 25. */
  readonly divFactor?: number
  /** The divisor of the first rate that gives the last rate; default 1e4. */
  readonly finalDivFactor?: number
  /** Whether the rate first falls back to the first rate, in as many steps as it rose, and then to the last rate; default false. */
  readonly threePhase?: boolean
}

/** Start and end of rate and momentum, up to step `end`. */
interface Phase {
  readonly end: number
  readonly lr: readonly ['initial' | 'max' | 'min', 'initial' | 'max' | 'min']
  readonly momentum: readonly ['base' | 'max', 'base' | 'max']
}

/**
 * Lets the rate rise from maxLr / divFactor to maxLr, then fall to maxLr / divFactor / finalDivFactor. Step it after each batch. PyTorch:
 * `torch.optim.lr_scheduler.OneCycleLR`.
 * @example
 * const optimizer = new Adam([zeros([1], { requiresGrad: true })])
 * const scheduler = new OneCycleLR(optimizer, { maxLr: 0.01, totalSteps: 100 })
 * for (let batch = 0; batch < 29; batch++) { optimizer.step(); scheduler.step() } // 30 % of the steps up, then down
 * scheduler.getLastLr() // [0.01]
 */
export class OneCycleLR extends LRScheduler {
  private readonly totalSteps: number
  private readonly pctStart: number
  private readonly annealStrategy: 'cos' | 'linear'
  private readonly threePhase: boolean
  private readonly maxLrs: number[]
  private readonly minLrs: number[]
  private readonly baseMomentums: number[] | null
  private readonly maxMomentums: number[] | null
  private lastMomentum: number[] | null = null

  /** @throws INVALID_ARGUMENT if an option is not valid, or a group has neither `momentum` nor `betas` and cycleMomentum is not false */
  constructor(optimizer: Scheduled, options: OneCycleLROptions) {
    const { epochs, stepsPerEpoch, pctStart = 0.3, annealStrategy = 'cos', cycleMomentum = true, divFactor = 25 } = options
    const totalSteps = options.totalSteps ?? (epochs ?? Number.NaN) * (stepsPerEpoch ?? Number.NaN)
    const expected = 'totalSteps, or epochs and stepsPerEpoch, positive integers'
    checkOption('OneCycleLR', Number.isInteger(totalSteps) && totalSteps > 0, expected, totalSteps)
    checkOption('OneCycleLR', pctStart >= 0 && pctStart <= 1, 'pctStart in [0, 1]', pctStart)
    checkOption('OneCycleLR', annealStrategy === 'cos' || annealStrategy === 'linear', "annealStrategy 'cos' or 'linear'", annealStrategy)
    if (cycleMomentum) checkMomentum('OneCycleLR', optimizer, true)
    const maxLrs = perGroup('OneCycleLR', 'maxLr', options.maxLr, optimizer)
    if ((options.lastEpoch ?? -1) === -1) {
      for (const [i, group] of optimizer.paramGroups.entries()) group.initialLr = maxLrs[i]! / divFactor
    }
    super(optimizer, options)
    this.totalSteps = totalSteps
    this.pctStart = pctStart
    this.annealStrategy = annealStrategy
    this.threePhase = options.threePhase ?? false
    this.maxLrs = maxLrs
    this.minLrs = this.baseLrs.map((lr) => lr / (options.finalDivFactor ?? 1e4))
    this.baseMomentums = cycleMomentum ? perGroup(this.op, 'baseMomentum', options.baseMomentum ?? 0.85, optimizer) : null
    this.maxMomentums = cycleMomentum ? perGroup(this.op, 'maxMomentum', options.maxMomentum ?? 0.95, optimizer) : null
    this.start()
  }

  /** Begins the next step, and sets the rates. @throws SCHEDULE_ENDED if it is called more than totalSteps times */
  override step(): void {
    if (this.lastEpoch >= this.totalSteps) {
      throw new PostgradError('SCHEDULE_ENDED', {
        op: 'OneCycleLR.step',
        expected: `at most ${this.totalSteps} steps`,
        got: `step ${this.lastEpoch + 1}`,
        remedy: 'Give it the number of all steps of the training.',
        values: { totalSteps: this.totalSteps },
      })
    }
    super.step()
  }

  protected override rates(): number[] {
    const step = this.lastEpoch
    const phases = this.phases()
    const at = phases.findIndex((phase, i) => step <= phase.end || i === phases.length - 1)
    const { lr, momentum, end } = phases[at]!
    const start = at === 0 ? 0 : phases[at - 1]!.end
    const part = (step - start) / (end - start)
    if (this.baseMomentums !== null && this.maxMomentums !== null) {
      const ends = { base: this.baseMomentums, max: this.maxMomentums }
      this.lastMomentum = this.baseMomentums.map((_, i) => this.anneal(ends[momentum[0]][i]!, ends[momentum[1]][i]!, part))
      this.setMomentums()
    }
    const ends = { initial: this.baseLrs, max: this.maxLrs, min: this.minLrs }
    return this.baseLrs.map((_, i) => this.anneal(ends[lr[0]][i]!, ends[lr[1]][i]!, part))
  }

  protected override restore(): void {
    super.restore()
    this.setMomentums()
  }

  private phases(): Phase[] {
    const { totalSteps, pctStart } = this
    const rise: Phase = { end: pctStart * totalSteps - 1, lr: ['initial', 'max'], momentum: ['max', 'base'] }
    if (!this.threePhase) return [rise, { end: totalSteps - 1, lr: ['max', 'min'], momentum: ['base', 'max'] }]
    return [
      rise,
      { end: 2 * pctStart * totalSteps - 2, lr: ['max', 'initial'], momentum: ['base', 'max'] },
      { end: totalSteps - 1, lr: ['initial', 'min'], momentum: ['max', 'max'] },
    ]
  }

  /** From `start` to `end` as `part` goes from 0 to 1. */
  private anneal(start: number, end: number, part: number): number {
    return this.annealStrategy === 'linear' ? (end - start) * part + start : end + ((start - end) / 2) * (Math.cos(Math.PI * part) + 1)
  }

  private setMomentums(): void {
    if (this.lastMomentum === null) return
    for (const [i, group] of this.optimizer.paramGroups.entries())
      if (i < this.lastMomentum.length) setMomentum(group, this.lastMomentum[i]!)
  }
}
