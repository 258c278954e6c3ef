/**
 * What all schedulers of the learning rate have in common. PyTorch: `torch.optim.lr_scheduler`; the formulas are its chainable ones: a new rate
 * comes from the rate that the group has, so that several schedulers can work on one optimizer, and so that a rate set by hand is kept.
 *
 * A scheduler is made after its optimizer, takes its first step at once (epoch 0), and then steps after each epoch (or batch):
 *
 *     const optimizer = new SGD(model.parameters(), { lr: 0.1 })
 *     const scheduler = new StepLR(optimizer, { stepSize: 30 })
 *     for (…) { optimizer.step(); scheduler.step() }
 *
 * It needs nothing of an optimizer but its groups, so it drives a DistributedOptimizer too: the new rate travels with the next step.
 */

import { PostgradError } from '@postgrad/base'
import { structuredClone } from '@postgrad/base/internal'
import { invalidArgument } from '@postgrad/tensor/internal'
import { checkRecord } from '../../module/check.js'

/** The settings of a group that schedulers look at and change. */
export interface ScheduledGroup {
  /** The rate. */
  lr: number
  /** The rate at epoch 0; left by the first scheduler, and saved with the optimizer. */
  initialLr?: number
  /** What some schedulers move against the rate. */
  momentum?: number
  /** The first takes the place of `momentum` where there is none. */
  betas?: readonly [number, number]
}

/** An optimizer, or anything else with groups. */
export interface Scheduled {
  /** The groups whose rates are set. */
  readonly paramGroups: readonly ScheduledGroup[]
  /** Steps taken so far: where it is known, a scheduler that steps before its optimizer warns. */
  readonly stepCount?: number
}

/**
 * Plain data that fits into JSON: settings and counters, without the optimizer and without functions. The names are PyTorch's in camelCase
 * (`last_epoch` is `lastEpoch`, `_last_lr` is `lastLr`, `T_max` is `tMax`).
 */
export type SchedulerState = { readonly [name: string]: SchedulerValue }
/** What a scheduler's state holds. */
export type SchedulerValue = number | string | boolean | null | readonly SchedulerValue[] | SchedulerState

/** What every scheduler offers. */
export interface Scheduler {
  /** Whose rates it sets. */
  readonly optimizer: Scheduled
  /** The rates that the last step has set, one per group. */
  getLastLr(): number[]
  /** Plain data, from which `loadStateDict` goes on. */
  stateDict(): SchedulerState
  /**
   * Takes over a state, and sets the rates that it had set last on the groups: the order in which optimizer and scheduler are loaded does not
   * matter (in PyTorch it does).
   * @throws STATE_DICT_MISMATCH; nothing is changed then
   */
  loadStateDict(state: SchedulerState): void
}

/** Of every scheduler with a formula. */
export interface LRSchedulerOptions {
  /** The epoch after which to go on; the groups must have an `initialLr` then. Default −1: from the start. */
  readonly lastEpoch?: number
}

/**
 * Extend it to write a scheduler of your own: set the fields, then call `start()` at the end of the constructor. PyTorch:
 * `torch.optim.lr_scheduler.LRScheduler`.
 */
export abstract class LRScheduler implements Scheduler {
  /** Whose rates it sets. */
  readonly optimizer: Scheduled
  /** The epoch of the last step. */
  lastEpoch: number
  protected stepCount = 0
  protected baseLrs: number[]
  protected lastLr: number[]
  /** How many steps the optimizer had taken when this began. */
  private readonly optimizerStart: number

  /** @throws INVALID_ARGUMENT for what is no optimizer, or when it is to go on and a group has no initialLr */
  constructor(optimizer: Scheduled, options: LRSchedulerOptions) {
    checkScheduled(this.op, optimizer)
    checkRecord(this.op, 'its settings', options)
    const { lastEpoch = -1 } = options
    this.optimizer = optimizer
    this.optimizerStart = optimizer.stepCount ?? 0
    this.lastEpoch = lastEpoch
    for (const [i, group] of optimizer.paramGroups.entries()) {
      if (lastEpoch === -1) group.initialLr ??= group.lr
      else if (group.initialLr === undefined) {
        throw invalidArgument(
          this.op,
          `an initialLr in group ${i} to continue from epoch ${lastEpoch}`,
          'none',
          'Load the optimizer first.',
        )
      }
    }
    this.baseLrs = optimizer.paramGroups.map((group) => group.initialLr!)
    this.lastLr = optimizer.paramGroups.map((group) => group.lr)
  }

  /** Goes on by one epoch. Warns (SCHEDULER_BEFORE_OPTIMIZER) where the optimizer has not stepped before: the first rate would be skipped. */
  step(): void {
    this.warnEarly()
    this.stepCount++
    this.lastEpoch++
    this.apply(this.rates())
  }

  /** @internal To epoch `epoch`, by the closed form where there is one: how SequentialLR begins with its next scheduler. */
  stepTo(epoch: number): void {
    this.stepCount++
    this.lastEpoch = epoch
    this.apply(this.closedForm() ?? this.rates())
  }

  /** @internal The first step, or the first one again: how SequentialLR begins. */
  start(): void {
    this.stepCount = 0
    this.step()
  }

  /** @internal As if a step had not been: how SequentialLR undoes the first steps of those that it is given. */
  stepBack(): void {
    this.lastEpoch--
  }

  getLastLr(): number[] {
    return [...this.lastLr]
  }

  /** Plain data, from which `loadStateDict` goes on. */
  stateDict(): SchedulerState {
    return plainFields(this)
  }

  loadStateDict(state: SchedulerState): void {
    checkState(this.op, this.stateDict(), state, this.optimizer.paramGroups.length)
    Object.assign(this, structuredClone(state))
    this.restore()
  }

  /** The rates of this epoch, one per group. */
  protected abstract rates(): number[]

  /** The rates of this epoch without those before; null where there is no such form. */
  protected closedForm(): number[] | null {
    return null
  }

  /** Sets on the groups what the last step had set. */
  protected restore(): void {
    for (const [i, group] of this.optimizer.paramGroups.entries()) group.lr = this.lastLr[i]!
  }

  /** @throws INVALID_ARGUMENT for a rate that is no number: it would make NaN of all parameters */
  protected apply(rates: readonly number[]): void {
    const at = rates.findIndex(Number.isNaN)
    if (at >= 0) throw invalidArgument(`${this.op}.step`, `a number as rate of group ${at}`, 'NaN', 'See what the options compute.')
    // A group that was added later has no rate here, as in PyTorch.
    for (const [i, group] of this.optimizer.paramGroups.entries()) if (i < rates.length) group.lr = rates[i]!
    this.lastLr = this.currentLrs()
  }

  protected currentLrs(): number[] {
    return this.optimizer.paramGroups.map((group) => group.lr)
  }

  protected get op(): string {
    return this.constructor.name
  }

  private warnEarly(): void {
    if (this.stepCount !== 1 || this.optimizer.stepCount === undefined || this.optimizer.stepCount > this.optimizerStart) return
    process.emitWarning(
      `${this.op}.step() was called before optimizer.step(): the first learning rate is skipped. Call optimizer.step() first.`,
      { type: 'PostgradWarning', code: 'SCHEDULER_BEFORE_OPTIMIZER' },
    )
  }
}

/** What a scheduler consists of, copied: its fields without the optimizer and without functions. */
export function plainFields(scheduler: object): SchedulerState {
  const fields = Object.entries(scheduler).filter(
    ([name, value]) => name !== 'optimizer' && name !== 'optimizerStart' && typeof value !== 'function',
  )
  return structuredClone(
    Object.fromEntries(fields.filter(([, value]) => !(Array.isArray(value) && value.some((v) => typeof v === 'function')))),
  )
}

const PER_GROUP = ['baseLrs', 'lastLr', 'maxLrs', 'minLrs', 'baseMomentums', 'maxMomentums', 'lastMomentum']

/** @throws STATE_DICT_MISMATCH unless `state` has the names of `own`, each with a value of its kind */
export function checkState(op: string, own: SchedulerState, state: SchedulerState, groups: number): void {
  const refuse = (expected: string, got: string): PostgradError =>
    new PostgradError('STATE_DICT_MISMATCH', {
      op: `${op}.loadStateDict`,
      expected,
      got,
      remedy: 'Load it into a scheduler of the same class over the same groups.',
    })
  if (typeof state !== 'object' || state === null) throw refuse('a state, as stateDict() gives', String(state))
  const names = Object.keys(own)
  for (const name of Object.keys(state)) if (!names.includes(name)) throw refuse(`the names ${names.join(', ')}`, name)
  for (const name of names) {
    const value = state[name]
    if (value === undefined) throw refuse(`a value for ${name}`, 'none')
    // null stands for what is not known yet.
    if (kindOf(value) !== kindOf(own[name]!) && value !== null && own[name] !== null) {
      throw refuse(`${name} to be ${kindOf(own[name]!)}`, kindOf(value))
    }
    if (!PER_GROUP.includes(name) || value === null) continue
    const list = value as readonly SchedulerValue[]
    if (list.length !== groups) throw refuse(`${name} for ${groups} groups`, `${list.length}`)
    if (!list.every((one) => typeof one === 'number')) throw refuse(`numbers as ${name}`, JSON.stringify(list))
  }
}

function kindOf(value: SchedulerValue): string {
  return Array.isArray(value) ? 'a list' : value === null ? 'null' : typeof value
}

/** One value per group, from one for all or from a list. @throws INVALID_ARGUMENT */
export function perGroup<T>(op: string, name: string, given: T | readonly T[], { paramGroups }: Scheduled): T[] {
  if (!Array.isArray(given)) return paramGroups.map(() => given as T)
  if (given.length !== paramGroups.length) {
    throw invalidArgument(op, `${paramGroups.length} values of ${name}, one per group`, String(given.length))
  }
  return [...given]
}

/** @throws INVALID_ARGUMENT unless it has groups */
export function checkScheduled(op: string, optimizer: Scheduled): void {
  if (Array.isArray((optimizer as Scheduled | null | undefined)?.paramGroups)) return
  throw invalidArgument(op, 'an optimizer first', optimizer === null ? 'null' : typeof optimizer, 'Pass (optimizer, { …options }).')
}

/** @throws INVALID_ARGUMENT unless `ok` */
export function checkOption(op: string, ok: boolean, expected: string, got: unknown): void {
  if (!ok) throw invalidArgument(op, expected, got, 'Check the options of the scheduler.')
}
