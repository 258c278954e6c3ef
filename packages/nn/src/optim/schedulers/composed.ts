/** Schedulers made of schedulers. PyTorch: `torch.optim.lr_scheduler.SequentialLR`, `ChainedScheduler`. */
import { PostgradError } from '@postgrad/base'
import { invalidArgument } from '@postgrad/tensor/internal'
import { checkOption, checkState, type LRScheduler, type Scheduled, type Scheduler, type SchedulerState } from './lr-scheduler.js'

/** A scheduler whose `step` takes no argument. */
export type SteppingScheduler = Scheduler & { step(): void }

/** Options of `SequentialLR`. */
export interface SequentialLROptions {
  /** The schedulers, in order, all of the same optimizer. */
  readonly schedulers: readonly LRScheduler[]
  /** The epochs at which the next scheduler takes over, in ascending order: one fewer than schedulers. */
  readonly milestones: readonly number[]
}

/**
 * Runs several schedulers, one after the other. Each begins at its own epoch 0. PyTorch: `torch.optim.lr_scheduler.SequentialLR`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const warmUp = new LinearLR(optimizer, { startFactor: 0.1, totalIters: 5 })
 * const decay = new ExponentialLR(optimizer, { gamma: 0.9 })
 * const scheduler = new SequentialLR(optimizer, { schedulers: [warmUp, decay], milestones: [5] })
 * for (let epoch = 0; epoch < 7; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.81]
 */
export class SequentialLR implements Scheduler {
  /** The optimizer whose rates the schedulers set. */
  readonly optimizer: Scheduled
  /** The epoch of the last step. */
  lastEpoch = 0
  private readonly schedulers: readonly LRScheduler[]
  private milestones: readonly number[]
  private lastLr: number[]

  /** @throws INVALID_ARGUMENT if a scheduler has another optimizer, or the milestones do not fit the schedulers */
  constructor(optimizer: Scheduled, { schedulers, milestones }: SequentialLROptions) {
    checkMembers('SequentialLR', optimizer, schedulers)
    checkOption('SequentialLR', areMilestones(milestones, schedulers), milestonesOf(schedulers), milestones)
    this.optimizer = optimizer
    this.schedulers = [...schedulers]
    this.milestones = [...milestones]
    // All have taken their first step while they were made: it is undone for all of them, and done again by the first one alone.
    for (const group of optimizer.paramGroups) group.lr = group.initialLr!
    for (const scheduler of schedulers) scheduler.stepBack()
    schedulers[0]!.start()
    this.lastLr = schedulers[0]!.getLastLr()
  }

  /** Begins the next epoch: the scheduler in force for that epoch sets the rates. */
  step(): void {
    this.lastEpoch++
    const at = this.milestones.filter((epoch) => epoch <= this.lastEpoch).length
    const scheduler = this.schedulers[at]!
    if (at > 0 && this.milestones[at - 1] === this.lastEpoch) scheduler.stepTo(0)
    else scheduler.step()
    this.lastLr = scheduler.getLastLr()
  }

  getLastLr(): number[] {
    return [...this.lastLr]
  }

  /** The state as plain data, for `loadStateDict`. */
  stateDict(): SchedulerState {
    const { lastEpoch, milestones, lastLr } = this
    return { lastEpoch, milestones: [...milestones], lastLr: [...lastLr], schedulers: this.schedulers.map((one) => one.stateDict()) }
  }

  loadStateDict(state: SchedulerState): void {
    checkState('SequentialLR', this.stateDict(), state, this.optimizer.paramGroups.length)
    const milestones = state.milestones as readonly number[]
    if (!areMilestones(milestones, this.schedulers))
      throw mismatch('SequentialLR', milestonesOf(this.schedulers), JSON.stringify(milestones))
    loadMembers('SequentialLR', this.schedulers, state.schedulers as readonly SchedulerState[])
    this.milestones = [...milestones]
    this.lastEpoch = state.lastEpoch as number
    this.lastLr = [...(state.lastLr as number[])]
    setRates(this.optimizer, this.lastLr)
  }
}

/**
 * Runs several schedulers at the same time, so that their factors multiply. PyTorch: `torch.optim.lr_scheduler.ChainedScheduler`.
 * @example
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const warmUp = new ConstantLR(optimizer, { factor: 0.1, totalIters: 2 })
 * const scheduler = new ChainedScheduler([warmUp, new ExponentialLR(optimizer, { gamma: 0.9 })])
 * optimizer.step()
 * scheduler.step() // the factors 0.1 and 0.9
 * scheduler.getLastLr() // [0.09]
 */
export class ChainedScheduler implements Scheduler {
  /** The optimizer whose rates the schedulers set. */
  readonly optimizer: Scheduled
  private readonly schedulers: readonly SteppingScheduler[]
  private lastLr: number[]

  /** @throws INVALID_ARGUMENT if the list is empty, or the schedulers have different optimizers */
  constructor(schedulers: readonly SteppingScheduler[]) {
    const optimizer = schedulers[0]?.optimizer
    if (optimizer === undefined) throw invalidArgument('ChainedScheduler', 'at least one scheduler', 'none')
    checkMembers('ChainedScheduler', optimizer, schedulers)
    this.optimizer = optimizer
    this.schedulers = [...schedulers]
    this.lastLr = optimizer.paramGroups.map((group) => group.lr)
  }

  /** Begins the next epoch: every scheduler steps. */
  step(): void {
    for (const scheduler of this.schedulers) scheduler.step()
    this.lastLr = this.optimizer.paramGroups.map((group) => group.lr)
  }

  getLastLr(): number[] {
    return [...this.lastLr]
  }

  /** The state as plain data, for `loadStateDict`. */
  stateDict(): SchedulerState {
    return { lastLr: [...this.lastLr], schedulers: this.schedulers.map((one) => one.stateDict()) }
  }

  loadStateDict(state: SchedulerState): void {
    checkState('ChainedScheduler', this.stateDict(), state, this.optimizer.paramGroups.length)
    loadMembers('ChainedScheduler', this.schedulers, state.schedulers as readonly SchedulerState[])
    this.lastLr = [...(state.lastLr as number[])]
    setRates(this.optimizer, this.lastLr)
  }
}

function areMilestones(milestones: readonly number[], schedulers: readonly Scheduler[]): boolean {
  const areAscending = milestones.every((epoch, i) => Number.isFinite(epoch) && (i === 0 || epoch > milestones[i - 1]!))
  return milestones.length === schedulers.length - 1 && areAscending
}

const milestonesOf = (schedulers: readonly Scheduler[]): string => `${schedulers.length - 1} ascending milestones`

function checkMembers(op: string, optimizer: Scheduled, schedulers: readonly Scheduler[]): void {
  checkOption(op, schedulers.length > 0, 'at least one scheduler', schedulers.length)
  const at = schedulers.findIndex((one) => one.optimizer !== optimizer)
  checkOption(op, at < 0, 'schedulers of one and the same optimizer', `another one of scheduler ${at}`)
}

function mismatch(op: string, expected: string, got: string): PostgradError {
  return new PostgradError('STATE_DICT_MISMATCH', {
    op: `${op}.loadStateDict`,
    expected,
    got,
    remedy: `Load it into a ${op} with as many schedulers.`,
  })
}

/** All or none: what one refuses is undone in those before. @throws STATE_DICT_MISMATCH */
function loadMembers(op: string, schedulers: readonly Scheduler[], states: readonly SchedulerState[]): void {
  if (states.length !== schedulers.length) throw mismatch(op, `states of ${schedulers.length} schedulers`, `${states.length}`)
  const before = schedulers.map((one) => one.stateDict())
  for (const [i, scheduler] of schedulers.entries()) {
    try {
      scheduler.loadStateDict(states[i]!)
    } catch (error) {
      for (let j = 0; j < i; j++) schedulers[j]!.loadStateDict(before[j]!)
      throw error
    }
  }
}

function setRates({ paramGroups }: Scheduled, rates: readonly number[]): void {
  for (const [i, group] of paramGroups.entries()) group.lr = rates[i]!
}
