/** Tests of schedulers, but not of their formulas: warnings, errors, groups without an optimizer. */
import { describe, expect, jest, test } from '@jest/globals'
import { ones, tensor } from '@postgrad/tensor'
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
  MultiplicativeLR,
  MultiStepLR,
  OneCycleLR,
  ReduceLROnPlateau,
  type ScheduledGroup,
  SequentialLR,
  SGD,
  StepLR,
} from '../../index.js'

const groups = (...rates: number[]) => ({ paramGroups: rates.map((lr): ScheduledGroup => ({ lr, momentum: 0.9 })) })
const sgd = () => new SGD([tensor([1], { requiresGrad: true })], { lr: 1 })

function refusal(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  throw new Error('expected it to throw')
}

describe('a step before the optimizer’s', () => {
  const warnings = (fn: () => void): unknown[] => {
    const spy = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      fn()
      return spy.mock.calls.map(([, options]) => (options as { code?: string }).code)
    } finally {
      spy.mockRestore()
    }
  }

  test('warns once', () => {
    const scheduler = new StepLR(sgd(), { stepSize: 2 })
    const seen = warnings(() => {
      for (let i = 0; i < 3; i++) scheduler.step()
    })
    expect(seen).toEqual(['SCHEDULER_BEFORE_OPTIMIZER'])
  })

  test('does not when the optimizer has stepped, or when nobody can know', () => {
    const optimizer = sgd()
    const [known, unknown] = [new StepLR(optimizer, { stepSize: 2 }), new StepLR(groups(1), { stepSize: 2 })]
    optimizer.step(new Map([[optimizer.paramGroups[0]!.params[0]!, ones([1])]]))
    expect(
      warnings(() => {
        known.step()
        unknown.step()
      }),
    ).toEqual([])
  })

  test('steps of the optimizer before the scheduler was made do not count', () => {
    const optimizer = sgd()
    optimizer.step()
    expect(warnings(() => new StepLR(optimizer, { stepSize: 2 }).step())).toEqual(['SCHEDULER_BEFORE_OPTIMIZER'])
  })
})

test('groups that belong to no optimizer are scheduled as well', () => {
  const scheduler = new ExponentialLR(groups(1, 2), { gamma: 0.5 })
  scheduler.step()
  expect(scheduler.getLastLr()).toEqual([0.5, 1])
})

test('goes on from an epoch, with the rates that the groups began with', () => {
  expect(refusal(() => new StepLR(groups(1), { stepSize: 3, lastEpoch: 4 }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  const optimizer = { paramGroups: [{ lr: 0.5, initialLr: 1 }] }
  const scheduler = new CosineAnnealingLR(optimizer, { tMax: 10, lastEpoch: 4 })
  expect(scheduler.getLastLr()[0]).toBeCloseTo(0.5, 12)
  expect(scheduler.lastEpoch).toBe(5)
})

test('CosineAnnealingWarmRestarts steps to any epoch, also between two', () => {
  // PyTorch 1.13: T_0 = 4, T_mult = 2, lr = 1; step(e) for these epochs.
  const optimizer = groups(1)
  const scheduler = new CosineAnnealingWarmRestarts(optimizer, { t0: 4, tMult: 2 })
  const rates = [0.5, 3, 4, 9.5, 12, 27.75].map((epoch) => {
    scheduler.step(epoch)
    return scheduler.getLastLr()[0]!
  })
  const expected = [
    [0.5, 4],
    [3, 4],
    [0, 8],
    [5.5, 8],
    [0, 16],
    [15.75, 16],
  ].map(([t, of]) => (1 + Math.cos((Math.PI * t!) / of!)) / 2)
  for (const [i, rate] of rates.entries()) expect(rate).toBeCloseTo(expected[i]!, 12)
  expect(refusal(() => scheduler.step(-1))).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test.each<[string, () => unknown]>([
  ['stepSize 0', () => new StepLR(groups(1), { stepSize: 0 })],
  ['a factor of 0', () => new ConstantLR(groups(1), { factor: 0 })],
  ['a startFactor of 2', () => new LinearLR(groups(1), { startFactor: 2 })],
  ['functions for other groups', () => new LambdaLR(groups(1), { lrLambda: [() => 1, () => 1] })],
  ['t0 1.5', () => new CosineAnnealingWarmRestarts(groups(1), { t0: 1.5 })],
  ['no number of steps', () => new OneCycleLR(groups(1), { maxLr: 1, epochs: 3 })],
  ['pctStart 2', () => new OneCycleLR(groups(1), { maxLr: 1, totalSteps: 3, pctStart: 2 })],
  ['a cycled momentum that is not there', () => new CyclicLR(new Adam([ones([1])]), { baseLr: 0.1, maxLr: 1 })],
  ['rates for other groups', () => new CyclicLR(groups(1), { baseLr: [0.1, 0.2], maxLr: 1 })],
  ['no optimizer', () => new StepLR(undefined as unknown as ReturnType<typeof groups>, { stepSize: 1 })],
  ['no optimizer, a plateau', () => new ReduceLROnPlateau({} as ReturnType<typeof groups>)],
  ['a function that gives no number', () => new LambdaLR(groups(1), { lrLambda: (() => undefined) as unknown as () => number })],
  [
    'a function that gives no factor',
    () => new MultiplicativeLR(groups(1), { lrLambda: (() => undefined) as unknown as () => number }).step(),
  ],
  ['no function', () => new LambdaLR(groups(1), { lrLambda: 0.5 as unknown as () => number })],
  ['a factor of 1', () => new ReduceLROnPlateau(groups(1), { factor: 1 })],
  ['a measure that is none', () => new ReduceLROnPlateau(groups(1)).step(undefined as unknown as number)],
  ['no schedulers', () => new ChainedScheduler([])],
  [
    'schedulers of two optimizers',
    () => new ChainedScheduler([new StepLR(groups(1), { stepSize: 1 }), new StepLR(groups(1), { stepSize: 1 })]),
  ],
  [
    'milestones that do not fit',
    () => {
      const optimizer = groups(1)
      return new SequentialLR(optimizer, { schedulers: [new StepLR(optimizer, { stepSize: 1 })], milestones: [3] })
    },
  ],
])('INVALID_ARGUMENT for %s', (_, fn) => {
  expect(refusal(fn)).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('OneCycleLR ends, and stays as it was', () => {
  const optimizer = groups(1)
  const scheduler = new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 4 })
  for (let step = 0; step < 4; step++) scheduler.step()
  const rate = scheduler.getLastLr()
  expect(refusal(() => scheduler.step())).toMatchObject({ code: 'SCHEDULE_ENDED', values: { totalSteps: 4 } })
  expect([scheduler.getLastLr(), scheduler.lastEpoch]).toEqual([rate, 4])
})

describe('STATE_DICT_MISMATCH', () => {
  const state = () => new StepLR(groups(1, 2), { stepSize: 3 }).stateDict()

  test.each<[string, object]>([
    ['a name of another scheduler', { ...state(), tMax: 3 }],
    ['a name that is missing', (({ lastEpoch: _, ...rest }) => rest)(state() as { lastEpoch: number })],
    ['a value of another kind', { ...state(), gamma: 'half' }],
    ['rates of other groups', { ...state(), baseLrs: [1] }],
    ['rates that are none', { ...state(), baseLrs: ['1', '2'] }],
    ['a setting that is null', { ...state(), gamma: null }],
    ['rates that are null', { ...state(), lastLr: null }],
    ['null', null as unknown as object],
  ])('%s; nothing is loaded', (_, bad) => {
    const optimizer = groups(5, 6)
    const scheduler = new StepLR(optimizer, { stepSize: 7 })
    const before = scheduler.stateDict()
    expect(refusal(() => scheduler.loadStateDict(bad as ReturnType<typeof state>))).toMatchObject({ code: 'STATE_DICT_MISMATCH' })
    expect([scheduler.stateDict(), optimizer.paramGroups.map(({ lr }) => lr)]).toEqual([before, [5, 6]])
  })

  test('null is refused wherever no scheduler of this package has null; where one has, it loads', () => {
    const optimizer = groups(1)
    const kinds = [
      new MultiStepLR(optimizer, { milestones: [3] }),
      new ReduceLROnPlateau(optimizer),
      new CosineAnnealingWarmRestarts(optimizer, { t0: 3 }),
      new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 9, cycleMomentum: false }),
      new CyclicLR(optimizer, { baseLr: 1, maxLr: 2, cycleMomentum: false }),
      new SequentialLR(optimizer, { schedulers: [new StepLR(optimizer, { stepSize: 1 })], milestones: [] }),
    ]
    for (const scheduler of kinds) {
      const before = scheduler.stateDict()
      for (const name of Object.keys(before)) {
        const load = () => scheduler.loadStateDict({ ...before, [name]: null })
        if (before[name] === null) load()
        else expect(refusal(load)).toMatchObject({ code: 'STATE_DICT_MISMATCH' })
        expect(scheduler.stateDict()).toEqual(before)
      }
    }
    const plateau = new ReduceLROnPlateau(optimizer)
    const fresh = plateau.stateDict()
    plateau.step(3)
    plateau.loadStateDict(fresh)
    expect(plateau.stateDict()).toEqual(fresh)
  })

  test('SequentialLR takes over the milestones, as it does the settings of its members; others than fit it are refused', () => {
    const make = (...milestones: number[]) => {
      const optimizer = groups(1)
      const schedulers = [1, 2].map((stepSize) => new StepLR(optimizer, { stepSize, gamma: 0.5 }))
      return new SequentialLR(optimizer, { schedulers, milestones })
    }
    const scheduler = make(3)
    scheduler.loadStateDict(make(5).stateDict())
    expect(scheduler.stateDict()).toEqual(make(5).stateDict())
    const rates = (one: SequentialLR) =>
      Array.from({ length: 8 }, () => {
        one.step()
        return one.getLastLr()
      })
    expect(rates(scheduler)).toEqual(rates(make(5)))
    for (const milestones of [[], [1, 2], ['3']]) {
      const load = () => scheduler.loadStateDict({ ...scheduler.stateDict(), milestones })
      expect(refusal(load)).toMatchObject({ code: 'STATE_DICT_MISMATCH' })
    }
  })

  test('a composed scheduler refuses the state of another number of schedulers', () => {
    const optimizer = groups(1)
    const schedulers = [1, 2].map((stepSize) => new StepLR(optimizer, { stepSize }))
    for (const scheduler of [new ChainedScheduler(schedulers), new SequentialLR(optimizer, { schedulers, milestones: [3] })]) {
      const before = scheduler.stateDict()
      const { schedulers: states } = before as unknown as { readonly schedulers: readonly object[] }
      for (const other of [states.slice(1), [...states, ...states]]) {
        const load = () => scheduler.loadStateDict({ ...before, schedulers: other } as unknown as typeof before)
        expect(refusal(load)).toMatchObject({
          code: 'STATE_DICT_MISMATCH',
          message: expect.stringContaining(`expected states of 2 schedulers, got ${other.length}.`),
        })
        expect(scheduler.stateDict()).toEqual(before)
      }
    }
  })

  test('a composed scheduler loads all members or none', () => {
    const make = () => {
      const optimizer = groups(1)
      return new ChainedScheduler([new StepLR(optimizer, { stepSize: 2 }), new ExponentialLR(optimizer, { gamma: 0.5 })])
    }
    const other = make()
    other.step()
    const saved = other.stateDict() as unknown as { lastLr: number[]; schedulers: object[] }
    const scheduler = make()
    const before = scheduler.stateDict()
    const bad = { ...saved, schedulers: [saved.schedulers[0]!, {}] }
    expect(refusal(() => scheduler.loadStateDict(bad as unknown as typeof before))).toMatchObject({ code: 'STATE_DICT_MISMATCH' })
    expect(scheduler.stateDict()).toEqual(before)
  })
})
