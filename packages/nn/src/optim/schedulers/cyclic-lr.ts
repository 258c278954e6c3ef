/** Rates that go up and down between two bounds. PyTorch: `torch.optim.lr_scheduler.CyclicLR`. */
import { checkOption, LRScheduler, type LRSchedulerOptions, perGroup, type Scheduled } from './lr-scheduler.js'
import { checkMomentum } from './momentum.js'

const MODES = ['triangular', 'triangular2', 'exp_range'] as const

/** Options of `CyclicLR`. */
export interface CyclicLROptions extends LRSchedulerOptions {
  /** The lowest rate; one for all groups or one per group. */
  readonly baseLr: number | readonly number[]
  /** The highest rate; one for all groups or one per group. */
  readonly maxLr: number | readonly number[]
  /** The number of steps from the lowest to the highest rate; default 2000. */
  readonly stepSizeUp?: number
  /** The number of steps from the highest rate back to the lowest; default stepSizeUp. */
  readonly stepSizeDown?: number
  /** How the height of the cycles changes: 'triangular' (default) keeps it, 'triangular2' halves it each cycle, 'exp_range' multiplies it by gamma each step. */
  readonly mode?: (typeof MODES)[number]
  /** The factor of each step in mode 'exp_range'; default 1. */
  readonly gamma?: number
  /** A function that returns the factor of the height, instead of a mode. A state dict does not contain it. */
  readonly scaleFn?: (x: number) => number
  /** The argument of `scaleFn`: the number of the cycle, counted from 1 ('cycle', the default), or of the step, counted from 0. */
  readonly scaleMode?: 'cycle' | 'iterations'
  /** Whether `momentum` falls while the rate rises, and rises while it falls; default true. */
  readonly cycleMomentum?: boolean
  /** The lowest momentum; default 0.8. */
  readonly baseMomentum?: number | readonly number[]
  /** The highest momentum; default 0.9. */
  readonly maxMomentum?: number | readonly number[]
}

/**
 * Lets the rate rise from baseLr to maxLr and fall back, in cycles: baseLr + (maxLr − baseLr) · x · scale, with x from 0 to 1 and back. The momentum moves the
 * other way: maxMomentum − (maxMomentum − baseMomentum) · x · scale. PyTorch: `torch.optim.lr_scheduler.CyclicLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 0.1, momentum: 0.9 })
 * const scheduler = new CyclicLR(optimizer, { baseLr: 0.1, maxLr: 0.5, stepSizeUp: 4 })
 * for (let batch = 0; batch < 3; batch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.4]
 */
export class CyclicLR extends LRScheduler {
  private readonly maxLrs: number[]
  private readonly totalSize: number
  private readonly stepRatio: number
  private readonly scaleMode: 'cycle' | 'iterations'
  private readonly scaleFn: (x: number) => number
  private readonly baseMomentums: number[] | null
  private readonly maxMomentums: number[] | null
  private lastMomentum: number[] | null = null

  /** @throws INVALID_ARGUMENT if an option is not valid, or a group has no `momentum` and cycleMomentum is not false */
  constructor(optimizer: Scheduled, options: CyclicLROptions) {
    const { stepSizeUp = 2000, stepSizeDown = stepSizeUp, mode = 'triangular', cycleMomentum = true } = options
    checkOption('CyclicLR', stepSizeUp > 0 && stepSizeDown > 0, 'stepSizeUp and stepSizeDown > 0', `${stepSizeUp}, ${stepSizeDown}`)
    checkOption('CyclicLR', MODES.includes(mode) || options.scaleFn !== undefined, `mode ${MODES.join(', ')}`, mode)
    if (cycleMomentum) checkMomentum('CyclicLR', optimizer, false)
    const baseLrs = perGroup('CyclicLR', 'baseLr', options.baseLr, optimizer)
    const fresh = (options.lastEpoch ?? -1) === -1
    if (fresh) for (const [i, group] of optimizer.paramGroups.entries()) group.lr = baseLrs[i]!
    super(optimizer, options)
    this.maxLrs = perGroup(this.op, 'maxLr', options.maxLr, optimizer)
    this.totalSize = stepSizeUp + stepSizeDown
    this.stepRatio = stepSizeUp / this.totalSize
    const gamma = options.gamma ?? 1
    const scales = { triangular: () => 1, triangular2: (x: number) => 1 / 2 ** (x - 1), exp_range: (x: number) => gamma ** x }
    this.scaleFn = options.scaleFn ?? scales[mode]
    this.scaleMode = options.scaleFn !== undefined ? (options.scaleMode ?? 'cycle') : mode === 'exp_range' ? 'iterations' : 'cycle'
    this.baseMomentums = cycleMomentum ? perGroup(this.op, 'baseMomentum', options.baseMomentum ?? 0.8, optimizer) : null
    this.maxMomentums = cycleMomentum ? perGroup(this.op, 'maxMomentum', options.maxMomentum ?? 0.9, optimizer) : null
    this.baseLrs = baseLrs
    this.start()
  }

  protected override rates(): number[] {
    const { lastEpoch, totalSize, stepRatio } = this
    const cycle = Math.floor(1 + lastEpoch / totalSize)
    const x = 1 + lastEpoch / totalSize - cycle
    const height =
      (x <= stepRatio ? x / stepRatio : (x - 1) / (stepRatio - 1)) * this.scaleFn(this.scaleMode === 'cycle' ? cycle : lastEpoch)
    if (this.maxMomentums !== null && this.baseMomentums !== null) {
      const base = this.baseMomentums
      this.lastMomentum = this.maxMomentums.map((max, i) => max - (max - base[i]!) * height)
      this.setMomentums()
    }
    return this.baseLrs.map((base, i) => base + (this.maxLrs[i]! - base) * height)
  }

  protected override restore(): void {
    super.restore()
    this.setMomentums()
  }

  private setMomentums(): void {
    if (this.lastMomentum === null) return
    for (const [i, group] of this.optimizer.paramGroups.entries()) if (i < this.lastMomentum.length) group.momentum = this.lastMomentum[i]!
  }
}
