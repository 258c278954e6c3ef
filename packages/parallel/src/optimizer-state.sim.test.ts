/** Groups, schedulers and state of a distributed optimizer, each time against a local one over the same parameters in one place. */
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import {
  Adam,
  AdamW,
  CyclicLR,
  ExponentialLR,
  fromTorchOptimizerState,
  LambdaLR,
  loadSafetensors,
  OneCycleLR,
  openSafetensors,
  ReduceLROnPlateau,
  type Scheduled,
  type Scheduler,
  SequentialLR,
  SGD,
  type StateDict,
  StepLR,
  safetensorsBytes,
  toTorchOptimizerState,
} from '@postgrad/nn'
import { call, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { rand, type Tensor, tensor } from '@postgrad/tensor'
import { DistributedOptimizer } from './distributed-optimizer.js'
import { MyModule } from './my-module.suite.js'
import { arrays, failure, overSeeds } from './sim-workers.suite.js'

/** The workers on which one was made. */
const made: string[] = []

class CountedAdam extends Adam {
  constructor(...args: ConstructorParameters<typeof Adam>) {
    super(...args)
    made.push(currentRuntime().info.name)
  }
}

/** On each owner another than here. */
class OwnMomentum extends SGD {
  constructor(params: ConstructorParameters<typeof SGD>[0], options: { lr: number }) {
    super(params, { ...options, momentum: currentRuntime().info.name === 'worker0' ? 0 : 0.5 })
  }
}

/** Called on worker 1 when its optimizer has loaded a state, or has got a group after it was made. */
const watched: { loaded: (() => void) | null; added: (() => void) | null } = { loaded: null, added: null }

class Watched extends SGD {
  private readonly isMade = true

  override loadStateDict(saved: Parameters<SGD['loadStateDict']>[0]): void {
    super.loadStateDict(saved)
    if (currentRuntime().info.name === 'worker1') watched.loaded?.()
  }

  override addParamGroup(group: Parameters<SGD['addParamGroup']>[0]): void {
    super.addParamGroup(group)
    if (this.isMade && currentRuntime().info.name === 'worker1') watched.added?.()
  }
}

/** A program that another call runs. */
const program = { run: async (): Promise<void> => {} }
const runsProgram = (): Promise<void> => program.run()

expose({ CountedAdam, OwnMomentum, Watched, runsProgram })

/** Three modules on two workers, and the same here. */
class Pair {
  readonly local = [new MyModule(), new MyModule(), new MyModule()]
  readonly remote = [remote(1, MyModule, []), remote(2, MyModule, []), remote(1, MyModule, [])]
  readonly params = Promise.all(this.remote.map((module) => module.call('parameter', [])))

  /** One step of both, on the same numbers; `order`: the modules in the order of the data. */
  async step(localStep: () => void, step: (ctx: DistAutogradContext) => Promise<unknown>): Promise<void> {
    const x = rand([3, 3])
    for (const { w } of this.local) w.grad = null
    this.local
      .reduce((y, module) => module.forward(y), x)
      .sum()
      .backward()
    localStep()
    await distAutograd.context(async (ctx) => {
      let y: Tensor = x
      for (const module of this.remote) y = await module.call('forward', [y])
      await ctx.backward([y.sum()])
      await step(ctx)
    })
  }

  async same(): Promise<void> {
    for (const [i, module] of this.remote.entries()) expect(await module.call('values', [])).toEqual(this.local[i]!.values())
  }

  async steps(count: number, local: { step(): void }, optimizer: DistributedOptimizer): Promise<void> {
    for (let n = 0; n < count; n++) {
      await this.step(
        () => local.step(),
        (ctx) => optimizer.step(ctx),
      )
    }
  }
}

async function three(): Promise<[Pair, RRef<Tensor>[]]> {
  const pair = new Pair()
  return [pair, await pair.params]
}

const schedulers: [string, (optimizer: Scheduled) => Scheduler & { step(metrics: number): void }][] = [
  ['StepLR', (optimizer) => new StepLR(optimizer, { stepSize: 2 })],
  ['LambdaLR', (optimizer) => new LambdaLR(optimizer, { lrLambda: (epoch) => 1 / (epoch + 1) })],
  ['OneCycleLR, which moves betas too', (optimizer) => new OneCycleLR(optimizer, { maxLr: [0.1, 0.2], totalSteps: 9 })],
  ['CyclicLR', (optimizer) => new CyclicLR(optimizer, { baseLr: 0.01, maxLr: 0.1, stepSizeUp: 2, cycleMomentum: false })],
  ['ReduceLROnPlateau', (optimizer) => new ReduceLROnPlateau(optimizer, { patience: 0 })],
  [
    'SequentialLR',
    (optimizer) =>
      new SequentialLR(optimizer, {
        schedulers: [new ExponentialLR(optimizer, { gamma: 0.5 }), new StepLR(optimizer, { stepSize: 1 })],
        milestones: [2],
      }),
  ],
]

describe('groups', () => {
  test('OPT-3 groups with settings of their own, spread over owners in any way, are a local optimizer with these groups', () =>
    overSeeds(3, async () => {
      const [pair, [a, b, c]] = await three()
      const optimizer = new DistributedOptimizer(
        AdamW,
        [
          { params: [b!, a!], lr: 0.1 },
          { params: [c!], weightDecay: 0.5 },
        ],
        { lr: 0.01 },
      )
      const [{ w: wa }, { w: wb }, { w: wc }] = pair.local as [MyModule, MyModule, MyModule]
      const local = new AdamW(
        [
          { params: [wb, wa], lr: 0.1 },
          { params: [wc], weightDecay: 0.5 },
        ],
        { lr: 0.01 },
      )
      expect(optimizer.paramGroups.map(({ params: _, ...group }) => group)).toEqual(
        local.paramGroups.map(({ params: _, ...group }) => group),
      )
      await pair.steps(3, local, optimizer)
      await pair.same()
      optimizer.dispose()
    }))

  test('OPT-5 what somebody writes into a group holds from the next step on', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(SGD, [{ params: params.slice(0, 1) }, { params: params.slice(1) }], {
        lr: 0.1,
        momentum: 0.5,
      })
      const local = new SGD([{ params: [pair.local[0]!.w] }, { params: pair.local.slice(1).map(({ w }) => w) }], { lr: 0.1, momentum: 0.5 })
      for (const [group, change] of [
        [1, { lr: 0.5 }],
        [0, { momentum: 0 }],
        [1, {}],
        [0, { lr: 0, maximize: true }],
      ] as const) {
        Object.assign(optimizer.paramGroups[group]!, change)
        Object.assign(local.paramGroups[group]!, change)
        await pair.steps(1, local, optimizer)
        await pair.same()
      }
    }))

  test('OPT-5 a write into a list of settings is seen', () =>
    overSeeds(
      3,
      async () => {
        const [pair, params] = await three()
        const betas = (): [number, number] => [0.9, 0.999]
        const [here, there] = [betas(), betas()]
        const optimizer = new DistributedOptimizer(Adam, params, { betas: there })
        const local = new Adam(
          pair.local.map(({ w }) => w),
          { betas: here },
        )
        for (const beta of [0.5, 0.25]) {
          ;(optimizer.paramGroups[0]!.betas as unknown as number[])[0] = beta
          here[0] = beta
          await pair.steps(2, local, optimizer)
          await pair.same()
        }
      },
      2,
    ))

  test('OPT-17 the class is constructed on each owner, and here only when somebody first asks for settings', () =>
    overSeeds(3, async () => {
      made.length = 0
      const [pair, params] = await three()
      const betas = (): [number, number] => [0.9, 0.999]
      const given = betas()
      const optimizer = new DistributedOptimizer(CountedAdam, [{ params: params.slice(1), betas: given }], { lr: 0.1 })
      const local = new Adam([{ params: pair.local.slice(1).map(({ w }) => w), betas: betas() }], { lr: 0.1 })
      // Of the user's own list the owners have what it held when the optimizer was made.
      given[0] = 0.5
      await pair.steps(2, local, optimizer)
      await optimizer.addParamGroup({ params: [params[0]!], lr: 0.2 })
      local.addParamGroup({ params: [pair.local[0]!.w], lr: 0.2 })
      await pair.steps(1, local, optimizer)
      await pair.same()
      expect([...made].sort()).toEqual(['worker1', 'worker2'])
      // Now one is made here; it serves for all that is asked and written later.
      const group = optimizer.paramGroups[1]!
      expect([group.lr, group.betas, optimizer.paramGroups[0]!.betas]).toEqual([0.2, betas(), betas()])
      for (const lr of [0.05, 0.01]) {
        group.lr = lr
        local.paramGroups[1]!.lr = lr
        await pair.steps(1, local, optimizer)
        await pair.same()
      }
      await optimizer.loadStateDict(await optimizer.stateDict())
      expect(await optimizer.stateDict().then(arrays)).toEqual(arrays(local.stateDict()))
      await pair.steps(1, local, optimizer)
      await pair.same()
      expect(made.slice(2)).toEqual(['worker0'])
    }))

  test('OPT-17 what is written goes to the owners, and not what the one that was made here has of its own', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(OwnMomentum, params, { lr: 0.1 })
      const local = new SGD(
        pair.local.map(({ w }) => w),
        { lr: 0.1, momentum: 0.5 },
      )
      await pair.steps(1, local, optimizer)
      optimizer.paramGroups[0]!.lr = 0.5
      local.paramGroups[0]!.lr = 0.5
      await pair.steps(2, local, optimizer)
      await pair.same()
    }))

  test('OPT-6 what the class refuses is refused before a message leaves, by whatever road it came; nobody has stepped', () =>
    overSeeds(3, async (workers) => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(SGD, params, { lr: 0.1 })
      await optimizer.ready()
      const before = new MyModule().values()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await pair.remote[0]!.call('forward', [rand([3, 3])])).sum()])
        const sent = workers[0]!.debugInfo().pendingCalls
        for (const bad of [{ lr: Number.NaN }, { momentum: '0.9' as unknown as number }]) {
          const good = { lr: 0.1, momentum: 0 }
          Object.assign(optimizer.paramGroups[0]!, bad)
          // As often as it is tried.
          for (let n = 0; n < 2; n++) expect((await failure(optimizer.step(ctx))).code).toBe('INVALID_ARGUMENT')
          Object.assign(optimizer.paramGroups[0]!, good)
        }
        expect(workers[0]!.debugInfo().pendingCalls).toBe(sent)
        expect(await pair.remote[0]!.call('values', [])).toEqual(before)
        await optimizer.step(ctx)
        expect(await pair.remote[0]!.call('values', [])).not.toEqual(before)
      })
    }))

  test('OPT-9 wrong groups: no reference, a tensor, a list without an array, a reference twice, one tensor by two references', () =>
    overSeeds(2, async () => {
      const w = new MyModule().w
      const ref = rref(w)
      const make = (params: unknown) => () => new DistributedOptimizer(SGD, params as RRef<Tensor>[], { lr: 1 })
      for (const [params, code] of [
        [[], 'NO_PARAMETERS'],
        [[{ params: [] }], 'NO_PARAMETERS'],
        [[w], 'INVALID_ARGUMENT'],
        [ref, 'INVALID_ARGUMENT'],
        [null, 'INVALID_ARGUMENT'],
        [[{ lr: 1 }], 'INVALID_ARGUMENT'],
        [[{ params: ref }], 'INVALID_ARGUMENT'],
        [[{ params: [1] }], 'INVALID_ARGUMENT'],
        [[ref, ref], 'DUPLICATE_PARAMETER'],
        [[{ params: [ref] }, { params: [ref] }], 'DUPLICATE_PARAMETER'],
      ] as const) {
        expect(make(params)).toThrow(expect.objectContaining({ code }))
      }
      const twice = new DistributedOptimizer(SGD, [ref, rref(w)], { lr: 1 })
      expect(await failure(twice.ready())).toMatchObject({ code: 'OPTIMIZER_CREATION_FAILED', cause: { code: 'DUPLICATE_PARAMETER' } })
      const settings = new DistributedOptimizer(SGD, [ref], { lr: -1 })
      expect(await failure(settings.ready())).toMatchObject({ code: 'OPTIMIZER_CREATION_FAILED', cause: { code: 'INVALID_ARGUMENT' } })
    }))
})

describe('schedulers', () => {
  test.each(schedulers)('OPT-5 %s drives it as it drives a local one, without a message of its own', (_, make) =>
    overSeeds(
      3,
      async (workers) => {
        const [pair, params] = await three()
        const optimizer = new DistributedOptimizer(AdamW, [{ params: params.slice(1) }, { params: params.slice(0, 1) }])
        const local = new AdamW([{ params: pair.local.slice(1).map(({ w }) => w) }, { params: [pair.local[0]!.w] }])
        const [schedule, localSchedule] = [make(optimizer), make(local)]
        for (let n = 0; n < 4; n++) {
          await pair.steps(1, local, optimizer)
          const pending = workers[0]!.debugInfo().pendingCalls
          schedule.step(1)
          localSchedule.step(1)
          expect(workers[0]!.debugInfo().pendingCalls).toBe(pending)
          expect(schedule.getLastLr()).toEqual(localSchedule.getLastLr())
          await pair.same()
        }
      },
      2,
    ),
  )
})

describe('state', () => {
  test('OPT-10 the gathered state is that of a local optimizer, loads into one, and goes on with the same bits in a new one', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const groups = [{ params: [params[1]!, params[2]!], lr: 0.1 }, { params: [params[0]!] }]
      const locals = () => [{ params: [pair.local[1]!.w, pair.local[2]!.w], lr: 0.1 }, { params: [pair.local[0]!.w] }]
      const optimizer = new DistributedOptimizer(Adam, groups, { lr: 0.01, amsgrad: true })
      const local = new Adam(locals(), { lr: 0.01, amsgrad: true })
      const schedule = new ExponentialLR(optimizer, { gamma: 0.5 })
      const localSchedule = new ExponentialLR(local, { gamma: 0.5 })
      await pair.steps(2, local, optimizer)
      schedule.step()
      localSchedule.step()
      const saved = await optimizer.stateDict()
      expect(arrays(saved)).toEqual(arrays(local.stateDict()))
      // As a file, through PyTorch's names, into another optimizer whose settings must come from there.
      const torch = toTorchOptimizerState(saved)
      const bytes = await safetensorsBytes(torch.tensors as StateDict, { metadata: torch.metadata })
      const { metadata } = await openSafetensors(bytes)
      const read = fromTorchOptimizerState<(typeof saved)['paramGroups'][number]>({ tensors: await loadSafetensors(bytes), metadata })
      const other = new DistributedOptimizer(Adam, [{ params: groups[0]!.params }, { params: groups[1]!.params }], { lr: 99 })
      await other.loadStateDict(read as typeof saved)
      optimizer.dispose()
      await pair.steps(2, local, other)
      await pair.same()
      const back = new Adam(locals())
      back.loadStateDict(await other.stateDict())
      await pair.steps(1, back, other)
      await pair.same()
    }))

  test('OPT-10 a state that does not fit is refused whole: no owner has taken anything over', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Adam, params)
      const local = new Adam(pair.local.map(({ w }) => w))
      await pair.steps(2, local, optimizer)
      const saved = await optimizer.stateDict()
      const before = arrays(saved)
      const entry = saved.state[1]!
      const bad: [unknown, string][] = [
        [null, 'STATE_DICT_MISMATCH'],
        [{ state: {} }, 'STATE_DICT_MISMATCH'],
        [{ ...saved, paramGroups: [{ ...saved.paramGroups[0]!, params: [0, 1] }] }, 'STATE_DICT_MISMATCH'],
        [{ ...saved, paramGroups: [{ ...saved.paramGroups[0]!, lr: 'fast' }] }, 'INVALID_ARGUMENT'],
        [{ ...saved, state: { 0: saved.state[0], 1: { ...entry, expAvg: tensor([1]) }, 2: saved.state[2] } }, 'OPTIMIZER_STATE_FAILED'],
        [{ ...saved, state: { 0: saved.state[0], 2: { ...entry, more: 1 } } }, 'OPTIMIZER_STATE_FAILED'],
      ]
      for (const [state, code] of bad) {
        const error = await failure(optimizer.loadStateDict(state as typeof saved))
        expect(error.code).toBe(code)
        if (code === 'OPTIMIZER_STATE_FAILED') expect((error.cause as PostgradError).code).toBe('STATE_DICT_MISMATCH')
        expect(arrays(await optimizer.stateDict())).toEqual(before)
      }
      await pair.steps(1, local, optimizer)
      await pair.same()
    }))

  test('OPT-10 a load that is aborted when an owner has loaded, by its signal or with the call that it is part of: no owner has taken anything over', () =>
    overSeeds(3, async (workers) => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Watched, params, { lr: 0.1, momentum: 0.5 })
      const local = new SGD(
        pair.local.map(({ w }) => w),
        { lr: 0.1, momentum: 0.5 },
      )
      await pair.steps(1, local, optimizer)
      const saved = await optimizer.stateDict()
      await pair.steps(1, local, optimizer)
      const before = arrays(await optimizer.stateDict())
      const aborts = (ending: AbortController) => () => workers[0]!.run(() => ending.abort())
      const cancelled = { code: 'OPTIMIZER_STATE_FAILED', cause: { code: 'CALL_CANCELLED' } }

      const ending = new AbortController()
      watched.loaded = aborts(ending)
      expect(await failure(optimizer.loadStateDict(saved, { signal: ending.signal }))).toMatchObject(cancelled)
      watched.loaded = null
      expect(arrays(await optimizer.stateDict())).toEqual(before)

      const outer = new AbortController()
      const inner: { load?: Promise<unknown> } = {}
      program.run = async () => {
        inner.load = failure(optimizer.loadStateDict(saved))
        await inner.load
      }
      watched.loaded = aborts(outer)
      expect((await failure(call('worker0', runsProgram, [], { signal: outer.signal }))).code).toBe('CALL_CANCELLED')
      expect(await inner.load).toMatchObject(cancelled)
      watched.loaded = null
      expect(arrays(await optimizer.stateDict())).toEqual(before)
      await pair.steps(1, local, optimizer)
      await pair.same()
    }))

  test('OPT-10 a load that fails takes back nothing of the load before it', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Adam, params)
      const local = new Adam(pair.local.map(({ w }) => w))
      await pair.steps(1, local, optimizer)
      const saved = await optimizer.stateDict()
      await pair.steps(1, local, optimizer)
      await optimizer.loadStateDict(saved)
      const bad = { ...saved, state: { ...saved.state, 1: { ...saved.state[1]!, expAvg: tensor([1]) } } }
      expect((await failure(optimizer.loadStateDict(bad as typeof saved))).code).toBe('OPTIMIZER_STATE_FAILED')
      expect(arrays(await optimizer.stateDict())).toEqual(arrays(saved))
      const ended = new AbortController()
      ended.abort()
      expect((await failure(optimizer.loadStateDict(saved, { signal: ended.signal }))).code).toBe('OPTIMIZER_STATE_FAILED')
      expect(arrays(await optimizer.stateDict())).toEqual(arrays(saved))
    }))

  test('OPT-11 an abort: before all owners have agreed no owner has the group, after that all have it', () =>
    overSeeds(3, async (workers) => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Watched, [params[0]!, params[1]!], { lr: 0.1, momentum: 0.5 })
      const local = new SGD([pair.local[0]!.w, pair.local[1]!.w], { lr: 0.1, momentum: 0.5 })
      const other = await remote(2, MyModule, []).call('parameter', [])
      const group = { params: [params[2]!, other], lr: 0.2 }
      const ending = new AbortController()
      ending.abort()
      for (const each of [group, { params: [params[2]!] }]) {
        expect(await failure(optimizer.addParamGroup(each, { signal: ending.signal }))).toMatchObject({
          code: 'OPTIMIZER_GROUP_REFUSED',
          cause: { code: 'CALL_CANCELLED' },
        })
      }
      const later = new AbortController()
      watched.added = () => workers[0]!.run(() => later.abort())
      await optimizer.addParamGroup(group, { signal: later.signal })
      watched.added = null
      expect(later.signal.aborted).toBe(true)
      local.addParamGroup({ params: [pair.local[2]!.w, new MyModule().w], lr: 0.2 })
      await pair.steps(1, local, optimizer)
      await pair.same()
      // Each owner has all groups: it refuses a state of fewer.
      await optimizer.loadStateDict(await optimizer.stateDict())
    }))

  test('OPT-11 a group joins: on owners old and new, with what the optimizer has gathered kept', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Adam, [params[0]!], { lr: 0.1 })
      const local = new Adam([pair.local[0]!.w], { lr: 0.1 })
      await pair.steps(1, local, optimizer)
      await optimizer.addParamGroup({ params: [params[1]!, params[2]!], lr: 0.5 })
      local.addParamGroup({ params: [pair.local[1]!.w, pair.local[2]!.w], lr: 0.5 })
      await pair.steps(2, local, optimizer)
      await pair.same()
      expect(arrays(await optimizer.stateDict())).toEqual(arrays(local.stateDict()))
      optimizer.paramGroups[1]!.lr = 0.25
      local.paramGroups[1]!.lr = 0.25
      await pair.steps(1, local, optimizer)
      await pair.same()
    }))

  test('OPT-11 a group that one owner refuses joins on none', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const optimizer = new DistributedOptimizer(Adam, [params[0]!, params[1]!], { lr: 0.1 })
      const local = new Adam([pair.local[0]!.w, pair.local[1]!.w], { lr: 0.1 })
      const noTensor = remote(2, MyModule, []) as unknown as RRef<Tensor>
      const computed = rref(new MyModule().w.mul(2))
      for (const [group, cause] of [
        [[params[2]!, noTensor], 'NOT_A_PARAMETER'],
        // Its owner has no parameters of this optimizer yet.
        [[computed], 'NOT_A_PARAMETER'],
        [[params[2]!, computed], 'NOT_A_PARAMETER'],
        [[params[2]!, await pair.remote[1]!.call('parameter', [])], 'DUPLICATE_PARAMETER'],
        [[await pair.remote[0]!.call('parameter', [])], 'DUPLICATE_PARAMETER'],
      ] as const) {
        expect(await failure(optimizer.addParamGroup({ params: [...group] }))).toMatchObject({
          code: 'OPTIMIZER_GROUP_REFUSED',
          op: 'addParamGroup',
          cause: { code: cause },
        })
        expect(optimizer.paramGroups.length).toBe(1)
      }
      expect((await failure(optimizer.addParamGroup({ params: [] }))).code).toBe('NO_PARAMETERS')
      expect((await failure(optimizer.addParamGroup({ params: [params[0]!] }))).code).toBe('DUPLICATE_PARAMETER')
      await pair.steps(2, local, optimizer)
      await pair.same()
      expect(arrays(await optimizer.stateDict())).toEqual(arrays(local.stateDict()))
    }))

  test('OPT-7 several optimizers on the same parameters: each step whole, each with what it has gathered itself', () =>
    overSeeds(3, async () => {
      const [pair, params] = await three()
      const [one, two] = [new DistributedOptimizer(SGD, params, { lr: 0.1, momentum: 0.5 }), new DistributedOptimizer(Adam, params)]
      const weights = pair.local.map(({ w }) => w)
      const [localOne, localTwo] = [new SGD(weights, { lr: 0.1, momentum: 0.5 }), new Adam(weights)]
      for (let n = 0; n < 2; n++) {
        await pair.step(
          () => {
            localOne.step()
            localTwo.step()
          },
          (ctx) => Promise.all([one.step(ctx), two.step(ctx)]),
        )
        await pair.same()
      }
    }))

  test('OPT-8 an owner that is dead: the others have stepped, and the error says so', () =>
    overSeeds(3, async (workers) => {
      const own = new MyModule()
      const there = await remote(1, MyModule, []).call('parameter', [])
      const optimizer = new DistributedOptimizer(SGD, [rref(own.w), there], { lr: 1 })
      await optimizer.ready()
      const before = own.values()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([own.w.sum()])
        await workers[1]!.close()
        const error = await failure(optimizer.step(ctx))
        expect(error).toMatchObject({
          code: 'OPTIMIZER_STEP_FAILED',
          message: expect.stringContaining("the optimizer on 'worker1' failed, and those on 'worker0' have stepped: "),
          cause: { code: 'WORKER_DIED' },
          values: { owners: ['worker1'], stepped: ['worker0'] },
        })
        expect(own.values()).not.toEqual(before)
        for (const rest of [
          optimizer.stateDict(),
          optimizer.loadStateDict({ state: {}, paramGroups: [{ ...optimizer.paramGroups[0]!, params: [0, 1] }] }),
        ]) {
          expect(await failure(rest)).toMatchObject({ code: 'OPTIMIZER_STATE_FAILED', values: { owners: ['worker1'] } })
        }
      })
    }))
})
