/** Every scheduler against PyTorch: the rates and momentums of 50 steps, and where they lead a small net; values by `scripts/golden/optim.py`. */
import { describe, expect, test } from '@jest/globals'
import {
  Adam,
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  CyclicLR,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  type LRScheduler,
  MultiplicativeLR,
  MultiStepLR,
  OneCycleLR,
  PolynomialLR,
  ReduceLROnPlateau,
  type Scheduled,
  type ScheduledGroup,
  SequentialLR,
  SGD,
  StepLR,
  type SteppingScheduler,
} from '../../index.js'
import { checkClose, golden, type OptimizerClass, type Schedule, Training } from '../small-net.suite.js'

/** The functions of the script. */
const LAMBDAS: Readonly<Record<string, (x: number) => number>> = {
  harmonic: (epoch) => 1 / (1 + epoch / 4),
  stairs: (epoch) => 1 - 0.0625 * Math.floor(epoch / 10),
  shrink: () => 0.96875,
  scale: (x) => 1 / x,
}
const CLASSES = {
  LambdaLR,
  MultiplicativeLR,
  StepLR,
  MultiStepLR,
  ConstantLR,
  LinearLR,
  ExponentialLR,
  PolynomialLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  OneCycleLR,
  CyclicLR,
  ReduceLROnPlateau,
} as unknown as Readonly<Record<string, new (optimizer: Scheduled, options: object) => AnyScheduler>>

type AnyScheduler = ReduceLROnPlateau | SteppingScheduler

/** Names of functions become functions. */
function looked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(looked)
  return typeof value === 'string' ? (LAMBDAS[value] ?? value) : value
}

function make(optimizer: Scheduled, kind: string, options: Readonly<Record<string, unknown>>): AnyScheduler {
  const members = (options.schedulers ?? []) as [string, Record<string, unknown>][]
  const schedulers = members.map(([name, own]) => make(optimizer, name, own) as unknown as LRScheduler)
  if (kind === 'ChainedScheduler') return new ChainedScheduler(schedulers)
  if (kind === 'SequentialLR') return new SequentialLR(optimizer, { schedulers, milestones: options.milestones as number[] })
  return new CLASSES[kind]!(optimizer, Object.fromEntries(Object.entries(options).map(([name, value]) => [name, looked(value)])))
}

class Scheduling {
  readonly training: Training
  readonly scheduler: AnyScheduler
  readonly groups: readonly ScheduledGroup[]
  private at = 0

  constructor(schedule: Schedule, settings = schedule.settings) {
    const Class = { SGD, Adam }[schedule.optimizer] as unknown as OptimizerClass
    this.training = new Training('float64', Class, settings, [{}, { lr: 0.04 }])
    const optimizer = this.training.optimizer as unknown as Scheduled
    this.groups = optimizer.paramGroups
    this.scheduler = make(optimizer, schedule.scheduler, schedule.options)
  }

  step(): void {
    this.training.step()
    const metrics = golden.metrics[this.at++]!
    if (this.scheduler instanceof ReduceLROnPlateau) this.scheduler.step(metrics)
    else this.scheduler.step()
  }

  skipTo(step: number): this {
    this.at = step
    return this
  }

  rates(): number[] {
    return this.groups.map(({ lr }) => lr)
  }

  momentums(): number[] {
    return this.groups.map(({ momentum, betas }) => betas?.[0] ?? momentum!)
  }
}

const cases = golden.schedules.map((schedule) => [`${schedule.scheduler}, ${schedule.name}`, schedule] as const)

describe('50 steps as PyTorch schedules them', () => {
  test.each(cases)('%s', (_, schedule) => {
    const run = new Scheduling(schedule)
    for (let step = 0; step <= 50; step++) {
      if (step > 0) run.step()
      checkClose(run.rates(), schedule.lr[step]!, 1e-13, `lr of step ${step}`)
      if (schedule.momentum !== null) checkClose(run.momentums(), schedule.momentum[step]!, 1e-12, `momentum of step ${step}`)
      expect(run.scheduler.getLastLr()).toEqual(run.rates())
    }
    checkClose(run.training.values(), schedule.end, 1e-12, 'parameters')
  })
})

describe('saved as JSON in the middle and loaded, with the optimizer first or last: the same bits', () => {
  test.each(cases)('%s', (_, schedule) => {
    const run = new Scheduling(schedule)
    for (let step = 0; step < 22; step++) run.step()
    const [weights, optimizer] = [run.training.net.stateDict(), run.training.optimizer.stateDict()]
    const saved = JSON.parse(JSON.stringify(run.scheduler.stateDict()))
    const others = ['optimizer first', 'scheduler first'].map((order) => {
      const other = new Scheduling(schedule, { ...schedule.settings, lr: 5 }).skipTo(22)
      other.training.net.loadStateDict(weights)
      if (order === 'optimizer first') other.training.optimizer.loadStateDict(optimizer)
      other.scheduler.loadStateDict(saved)
      if (order !== 'optimizer first') other.training.optimizer.loadStateDict(optimizer)
      expect([other.rates(), other.momentums()]).toEqual([run.rates(), run.momentums()])
      return other
    })
    for (let step = 22; step < 50; step++) {
      run.step()
      for (const other of others) {
        other.step()
        expect(other.rates()).toEqual(run.rates())
      }
    }
    for (const other of others) expect(other.training.values()).toEqual(run.training.values())
  })
})
