/**
 * Base of all learning-rate schedulers. PyTorch: `torch.optim.lr_scheduler`; the formulas are its chainable ones: they compute a new rate
 * from the group's present rate, so that several schedulers can work on one optimizer, and a rate set by hand is kept.
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

/** The settings of a parameter group that schedulers read and change. */
export interface ScheduledGroup {
  /** The learning rate. */
  lr: number
  /** The learning rate at epoch 0. The first scheduler sets it, and the optimizer's state dict contains it. */
  initialLr?: number
  /** The momentum, which some schedulers move in the opposite direction of the rate. */
  momentum?: number
  /** The decay rates of Adam. If a group has no `momentum`, OneCycleLR moves the first of them instead. */
  betas?: readonly [number, number]
}

/** An optimizer, or another object with parameter groups. */
export interface Scheduled {
  /** The groups whose rates the scheduler sets. */
  readonly paramGroups: readonly ScheduledGroup[]
  /** The number of steps so far. If it is there, a scheduler warns if it steps before its optimizer. */
  readonly stepCount?: number
}

/**
 * The state of a scheduler, as plain data that fits into JSON: settings and counters, without the optimizer and functions. The names are PyTorch's in camelCase
 * (`last_epoch` is `lastEpoch`, `_last_lr` is `lastLr`, `T_max` is `tMax`).
 */
export type SchedulerState = { readonly [name: string]: SchedulerValue }
/** A value in a scheduler's state. */
export type SchedulerValue = number | string | boolean | null | readonly SchedulerValue[] | SchedulerState

/** The interface of schedulers: objects that change the learning rates of an optimizer from epoch to epoch. */
export interface Scheduler {
  /** The optimizer whose rates the scheduler sets. */
  readonly optimizer: Scheduled
  /** The rates that the last step set, one for each group. */
  getLastLr(): number[]
  /** The state as plain data, for `loadStateDict`. */
  stateDict(): SchedulerState
  /**
   * Loads a state, and sets the rates of the groups to the last rates in it. So you may load optimizer and scheduler in any order; in PyTorch the order
   * matters.
   * @throws STATE_DICT_MISMATCH if the state does not fit; nothing is changed then
   */
  loadStateDict(state: SchedulerState): void
}

/** Options of every scheduler with a formula. */
export interface LRSchedulerOptions {
  /** The last epoch of an earlier run, to continue after it; the groups must then have an `initialLr`. Default −1: begin at the start. */
  readonly lastEpoch?: number
}

/**
 * The base class of schedulers. To write your own, extend it: set the fields, then call `start()` at the end of the constructor. PyTorch:
 * `torch.optim.lr_scheduler.LRScheduler`.
 * @example
 * class Halving extends LRScheduler {
 *   constructor(optimizer: Scheduled) { super(optimizer, {}); this.start() }
 *   protected override rates() { return this.baseLrs.map((lr) => lr * 0.5 ** this.lastEpoch) }
 * }
 * const optimizer = new SGD([zeros([1], { requiresGrad: true })], { lr: 1 })
 * const scheduler = new Halving(optimizer)
 * for (let epoch = 0; epoch < 3; epoch++) { optimizer.step(); scheduler.step() }
 * scheduler.getLastLr() // [0.125]
 */
export abstract class LRScheduler implements Scheduler {
  /** The optimizer whose rates the scheduler sets. */
  readonly optimizer: Scheduled
  /** The epoch of the last step. */
  lastEpoch: number
  protected stepCount = 0
  protected baseLrs: number[]
  protected lastLr: number[]
  /** How many steps the optimizer had taken when this began. */
  private readonly optimizerStart: number

  /** @throws INVALID_ARGUMENT if `optimizer` has no parameter groups, or if `lastEpoch` is given and a group has no `initialLr` */
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

  /** Continues by one epoch, and sets the rates. If the optimizer has not stepped yet, it warns with SCHEDULER_BEFORE_OPTIMIZER, since the first rate is then skipped. */
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

  /** Sets the rates of the first epoch. Call it at the end of the constructor of your own scheduler. SequentialLR calls it again when it begins. */
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

  /** The state as plain data, for `loadStateDict`. */
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

/** A copy of a scheduler's fields, without the optimizer and without functions. */
export function plainFields(scheduler: object): SchedulerState {
  const fields = Object.entries(scheduler).filter(
    ([name, value]) => name !== 'optimizer' && name !== 'optimizerStart' && typeof value !== 'function',
  )
  return structuredClone(
    Object.fromEntries(fields.filter(([, value]) => !(Array.isArray(value) && value.some((v) => typeof v === 'function')))),
  )
}

const PER_GROUP = ['baseLrs', 'lastLr', 'maxLrs', 'minLrs', 'baseMomentums', 'maxMomentums', 'lastMomentum']

/** Fields of this package's schedulers that always have a value. Others, and those of users' schedulers, may be null as long as nothing is known. */
const NEVER_NULL = new Set([
  ...['annealStrategy', 'baseLrs', 'cooldown', 'cooldownCounter', 'endFactor', 'eps', 'etaMin', 'factor', 'gamma', 'lastEpoch', 'lastLr'],
  ...['maxLrs', 'milestones', 'minLrs', 'mode', 'numBadEpochs', 'patience', 'pctStart', 'power', 'scaleMode', 'schedulers', 'startFactor'],
  ...['stepCount', 'stepRatio', 'stepSize', 't0', 'tCur', 'tI', 'tMax', 'tMult', 'threePhase', 'threshold', 'thresholdMode', 'totalIters'],
  ...['totalSize', 'totalSteps'],
])

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
    const isUnknown = !NEVER_NULL.has(name) && (value === null || own[name] === null)
    if (kindOf(value) !== kindOf(own[name]!) && !isUnknown) {
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
