/** The distributed optimizer against the local one, after PyTorch's `dist_optimizer_test.py`. */
import { describe, expect, test } from '@jest/globals'
import { add, matmul, noGrad } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { distAutograd, type PassOptimizer } from '@postgrad/dist-autograd'
import { Adadelta, Adagrad, Adam, Adamax, AdamW, ExponentialLR, NAdam, type Optimizer, RAdam, RMSprop, Rprop, SGD } from '@postgrad/nn'
import { call, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { rand, type Tensor, tensor } from '@postgrad/tensor'
import { clipGradNorm, clipGradValue } from './clip-grad.js'
import { DistributedOptimizer } from './distributed-optimizer.js'
import type { OptimizerClass } from './local-optimizer.js'
import { MyModule } from './my-module.suite.js'
import { failure, overSeeds } from './sim-workers.suite.js'

class FailingOptimizer implements Optimizer {
  readonly paramGroups = []
  step(): void {
    throw new Error('Error running optimizer.')
  }
  zeroGrad(): void {}
  stateDict() {
    return {} as ReturnType<Optimizer['stateDict']>
  }
  loadStateDict(): void {}
  set(): void {}
}

class FailingToMake extends FailingOptimizer {
  constructor() {
    super()
    throw new RangeError('Error creating optimizer.')
  }
}

class NeverExposed extends FailingOptimizer {}

/** A worker's own passes in the context that it is called in. */
async function passesOfItsOwn(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const weight = rand([3, 3], { requiresGrad: true })
    await distAutograd.currentContext()!.backward([(await call(0, add, [weight, weight])).sum()])
  }
}

/** The same with clipping before each step. */
const clipsFirst = (optimizer: DistributedOptimizer): PassOptimizer => ({
  announce: (ctx) => optimizer.announce(ctx),
  step: async (ctx) => {
    await optimizer.clipGradNorm(ctx, 1)
    await optimizer.step(ctx)
  },
})

expose({ FailingOptimizer, FailingToMake, passesOfItsOwn })

const settings: [string, OptimizerClass, object][] = [
  ['SGD .05', SGD, { lr: 0.05 }],
  ['SGD with momentum, weight decay, nesterov', SGD, { lr: 1e-3, momentum: 1, weightDecay: 1, nesterov: true }],
  ['Adam with amsgrad', Adam, { lr: 1e-2, amsgrad: true }],
  ['AdamW with amsgrad', AdamW, { lr: 0.05, amsgrad: true }],
  ['Adagrad .05', Adagrad, { lr: 0.05 }],
  ['Adadelta', Adadelta, { rho: 0.95 }],
  ['RMSprop .05', RMSprop, { lr: 0.05 }],
  ['RMSprop, centered, with momentum', RMSprop, { centered: true, momentum: 0.5 }],
  ['Adamax .05', Adamax, { lr: 0.05 }],
  ['Rprop .05', Rprop, { lr: 0.05 }],
  ['NAdam with its defaults', NAdam, {}],
  ['RAdam with its defaults', RAdam, {}],
]

describe('DistributedOptimizer', () => {
  test('OPT-15 a step under a pass that nobody has awaited: PASS_UNDER_WAY, nobody has stepped; clipping likewise', () =>
    overSeeds(3, async () => {
      const [local, module] = [new MyModule(), remote(1, MyModule, [])]
      const params = [rref(local.w), await module.call('parameter', [])]
      const optimizer = new DistributedOptimizer(SGD, params, { lr: 1 })
      await optimizer.ready()
      const values = async () => [local.values(), await module.call('values', [])]
      await distAutograd.context(async (ctx) => {
        const loss = (await module.call('forward', [local.forward(rand([3, 3]))])).sum()
        const before = await values()
        const pass = ctx.backward([loss])
        const underWay = { code: 'PASS_UNDER_WAY', remedy: expect.stringContaining('await ctx.backward') }
        expect(await failure(optimizer.step(ctx))).toMatchObject(underWay)
        expect(await failure(optimizer.step(ctx.id))).toMatchObject(underWay)
        expect(await failure(optimizer.clipGradNorm(ctx, 1))).toMatchObject(underWay)
        expect(await failure(clipGradValue(ctx, params, 1))).toMatchObject(underWay)
        expect(await values()).toEqual(before)
        expect(optimizer.stepCount).toBe(0)
        await pass
        await optimizer.step(ctx)
        const after = await values()
        for (const i of [0, 1]) expect(after[i]).not.toEqual(before[i])
      })
      optimizer.dispose()
    }))

  test('OPT-16 options of another name are refused here, of a step and of clipping', () =>
    overSeeds(2, async () => {
      const module = remote(1, MyModule, [])
      const params = [await module.call('parameter', [])]
      const optimizer = new DistributedOptimizer(SGD, params, { lr: 1 })
      await optimizer.ready()
      await distAutograd.context(async (ctx) => {
        const wrong = { timeout: 1 } as never
        const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('got timeout') }
        expect(await failure(optimizer.step(ctx, wrong))).toMatchObject(refused)
        expect(await failure(optimizer.clipGradNorm(ctx, 1, wrong))).toMatchObject(refused)
        expect(await failure(optimizer.clipGradValue(ctx, 1, wrong))).toMatchObject(refused)
        expect(await failure(clipGradNorm(ctx, params, 1, wrong))).toMatchObject(refused)
        expect(await failure(clipGradValue(ctx, params, 1, wrong))).toMatchObject(refused)
        await optimizer.clipGradNorm(ctx, 1, { normType: 1, errorIfNonfinite: true, timeoutMs: 1000, ordered: true })
        await optimizer.step(ctx, { settings: { lr: 2 }, timeoutMs: 1000 })
      })
      optimizer.dispose()
    }))

  test('OPT-7 a pass that another trainer’s step overtakes says so', () =>
    overSeeds(3, async () => {
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(SGD, [await module.call('parameter', [])], { lr: 1 })
      const lossOf = async () => (await module.call('forward', [rand([3, 3], { requiresGrad: true })])).sum()
      await distAutograd.context(async (slow) => {
        const loss = await lossOf()
        await distAutograd.context(async (fast) => {
          await fast.backward([await lossOf()])
          await optimizer.step(fast)
        })
        expect(await failure(slow.backward([loss]))).toMatchObject({
          code: 'SAVED_VARIABLE_MODIFIED',
          message: expect.stringContaining('a step of an optimizer has written to it'),
          remedy: expect.stringContaining('one step at a time'),
        })
      })
      optimizer.dispose()
    }))

  test('OPT-15 the whole program with a forgotten await: one error, that of the step, and no unhandled rejection', () =>
    overSeeds(3, async () => {
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(SGD, [await module.call('parameter', [])], { lr: 1 })
      await optimizer.ready()
      const error = await failure(
        distAutograd.context(async (ctx) => {
          const loss = (await module.call('forward', [rand([3, 3])])).sum()
          void ctx.backward([loss])
          await optimizer.step(ctx)
        }),
      )
      expect(error.code).toBe('PASS_UNDER_WAY')
      optimizer.dispose()
    }))

  test.each([
    ['steps', (optimizer: DistributedOptimizer): PassOptimizer => optimizer],
    ['clips and steps', clipsFirst],
  ])('OPT-15 passes at once, each with an optimizer of its own that %s, when each has ended', (_, stepping) =>
    overSeeds(3, async () => {
      const near = remote(1, MyModule, [])
      const far = [remote(1, MyModule, []), remote(2, MyModule, []), remote(1, MyModule, [])]
      const nearOptimizer = new DistributedOptimizer(SGD, [await near.call('parameter', [])], { lr: 1 })
      const farOptimizer = new DistributedOptimizer(SGD, await Promise.all(far.map((each) => each.call('parameter', []))), { lr: 1 })
      await Promise.all([nearOptimizer.ready(), farOptimizer.ready()])
      await distAutograd.context(async (ctx) => {
        const one = (await near.call('forward', [rand([3, 3])])).sum()
        let x = rand([3, 3])
        for (const module of far) x = await module.call('forward', [x])
        const passes = [
          ctx.backward([one], { optimizer: stepping(nearOptimizer) }),
          ctx.backward([x.sum()], { optimizer: stepping(farOptimizer) }),
        ]
        await Promise.all(passes)
      })
      expect([nearOptimizer.stepCount, farOptimizer.stepCount]).toEqual([1, 1])
      nearOptimizer.dispose()
      farOptimizer.dispose()
    }),
  )

  test('OPT-15 the owners of a trainer that steps may have passes of their own in its context', () =>
    overSeeds(3, async () => {
      const [local, module] = [new MyModule(), remote(1, MyModule, [])]
      const optimizer = new DistributedOptimizer(SGD, [rref(local.w), await module.call('parameter', [])], { lr: 1 })
      await optimizer.ready()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await module.call('forward', [local.forward(rand([3, 3]))])).sum()])
        const theirs = call(1, passesOfItsOwn, [5])
        for (let n = 0; n < 3; n++) await optimizer.step(ctx)
        await theirs
      })
      expect(optimizer.stepCount).toBe(3)
      optimizer.dispose()
    }))

  test.each(settings)('OPT-1 %s: remote weights move as local ones do', (_, Class, options) =>
    overSeeds(3, async () => {
      const [local1, local2] = [new MyModule(), new MyModule()]
      const localOptimizer = new Class([local1.w, local2.w], options)
      const [remote1, remote2] = [remote(1, MyModule, []), remote(2, MyModule, [])]
      const parameters = [await remote1.call('parameter', []), await remote2.call('parameter', [])]
      const optimizer = new DistributedOptimizer(Class, parameters, options)
      for (let n = 0; n < 3; n++) {
        const [t1, t2] = [rand([3, 3]), rand([3, 3])]
        localOptimizer.zeroGrad()
        add(local2.forward(local1.forward(t2)), t1)
          .sum()
          .backward()
        localOptimizer.step()
        await distAutograd.context(async (ctx) => {
          const out1 = await remote1.call('forward', [t2])
          const out2 = await remote2.call('forward', [out1])
          await ctx.backward([add(out2, t1).sum()])
          await optimizer.step(ctx)
        })
        expect(await remote1.call('values', [])).toEqual(local1.values())
        expect(await remote2.call('values', [])).toEqual(local2.values())
      }
      optimizer.dispose()
    }),
  )

  test('OPT-5 settings of a step hold from that step on, as on local groups; a name that the groups do not have is refused', () =>
    overSeeds(2, async () => {
      const local = new MyModule()
      const localOptimizer = new SGD([local.w], { lr: 1, momentum: 0.5 })
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(SGD, [await module.call('parameter', [])], { lr: 1, momentum: 0.5 })
      for (const settings of [undefined, { lr: 0.25 }, {}, { lr: 0.125, momentum: 0 }]) {
        const x = rand([3, 3])
        localOptimizer.zeroGrad()
        local.forward(x).sum().backward()
        Object.assign(localOptimizer.paramGroups[0]!, settings)
        localOptimizer.step()
        await distAutograd.context(async (ctx) => {
          await ctx.backward([(await module.call('forward', [x])).sum()])
          await optimizer.step(ctx, settings === undefined ? {} : { settings })
        })
        expect(await module.call('values', [])).toEqual(local.values())
      }
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await module.call('forward', [rand([3, 3])])).sum()])
        const refused = optimizer.step(ctx, { settings: { rate: 1 } as object })
        await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      })
      expect(await module.call('values', [])).toEqual(local.values())
      optimizer.dispose()
    }))

  test('OPT-5 a schedule of a group of its own travels with the steps', () =>
    overSeeds(2, async () => {
      const local = new MyModule()
      const localOptimizer = new SGD([local.w], { lr: 1 })
      const localSchedule = new ExponentialLR(localOptimizer, { gamma: 0.5 })
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(SGD, [await module.call('parameter', [])], { lr: 1 })
      const schedule = new ExponentialLR({ paramGroups: [{ lr: 1 }] }, { gamma: 0.5 })
      for (let step = 0; step < 3; step++) {
        const x = rand([3, 3])
        localOptimizer.zeroGrad()
        local.forward(x).sum().backward()
        localOptimizer.step()
        localSchedule.step()
        await distAutograd.context(async (ctx) => {
          await ctx.backward([(await module.call('forward', [x])).sum()])
          await optimizer.step(ctx, { settings: { lr: schedule.getLastLr()[0]! } })
        })
        schedule.step()
        expect(await module.call('values', [])).toEqual(local.values())
      }
      optimizer.dispose()
    }))

  test('OPT-2 a parameter without a gradient stays untouched, and so does an owner that the context has not reached', () =>
    overSeeds(3, async () => {
      const modules = [remote(1, MyModule, []), remote(1, MyModule, []), remote(2, MyModule, [])]
      const before = new MyModule().values()
      const optimizer = new DistributedOptimizer(SGD, await Promise.all(modules.map((module) => module.call('parameter', []))), {
        lr: 0.1,
        weightDecay: 1,
      })
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await modules[0]!.call('forward', [rand([3, 3])])).sum()])
        await noGrad(() => optimizer.step(ctx.id))
      })
      expect(await modules[0]!.call('values', [])).not.toEqual(before)
      expect(await modules[1]!.call('values', [])).toEqual(before)
      expect(await modules[2]!.call('values', [])).toEqual(before)
    }))

  test('OPT-1 parameters of this worker itself', () =>
    overSeeds(2, async () => {
      const own = new MyModule()
      const optimizer = new DistributedOptimizer(SGD, [own.parameter()], { lr: 1 })
      await distAutograd.context(async (ctx) => {
        await ctx.backward([
          (
            await call(1, matmul, [
              own.w,
              tensor([
                [1, 0, 0],
                [0, 1, 0],
                [0, 0, 1],
              ]),
            ])
          ).sum(),
        ])
        await optimizer.step(ctx)
      })
      expect((own.values() as number[][])[0]![0]).toBeCloseTo(-0.9)
    }))

  test('OPT-7 steps of several trainers on one owner come one after the other', () =>
    overSeeds(4, async (workers) => {
      const module = remote(1, MyModule, [])
      const parameter = await module.call('parameter', [])
      const ones = tensor([
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
      ])
      await Promise.all(workers.slice(2).map((worker) => call(worker.info, trainOnce, [module, parameter, ones])))
      const [[first]] = (await module.call('values', [])) as [[number]]
      expect(first).toBeCloseTo(0.1 - 2 * 3, 5)
    }))

  test('OPT-8 an error of the optimizer: OPTIMIZER_STEP_FAILED with its cause', () =>
    overSeeds(3, async () => {
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(FailingOptimizer, [await module.call('parameter', [])])
      await optimizer.ready()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([(await module.call('forward', [rand([3, 3])])).sum()])
        const error = await failure(optimizer.step(ctx))
        expect([error.code, (error.cause as Error).message, error.values.owners]).toEqual([
          'OPTIMIZER_STEP_FAILED',
          'Error running optimizer.',
          ['worker1'],
        ])
      })
    }))

  test('OPT-9 an error of its constructor: OPTIMIZER_CREATION_FAILED, at ready and at every step', () =>
    overSeeds(3, async () => {
      const module = remote(2, MyModule, [])
      const optimizer = new DistributedOptimizer(FailingToMake, [await module.call('parameter', [])])
      for (const attempt of [() => optimizer.ready(), () => distAutograd.context((ctx) => optimizer.step(ctx))]) {
        const error = await failure(attempt())
        expect([error.code, (error.cause as Error).name, error.values.owners]).toEqual([
          'OPTIMIZER_CREATION_FAILED',
          'RangeError',
          ['worker2'],
        ])
      }
    }))

  test('OPT-9 a function in place of a class: fails with NOT_AN_OPTIMIZER as the cause', () =>
    overSeeds(2, async () => {
      const module = remote(1, MyModule, [])
      const optimizer = new DistributedOptimizer(passesOfItsOwn as never, [await module.call('parameter', [])])
      const error = await failure(optimizer.ready())
      expect(error).toMatchObject({
        code: 'OPTIMIZER_CREATION_FAILED',
        cause: { code: 'NOT_AN_OPTIMIZER', values: { name: 'passesOfItsOwn' } },
      })
    }))

  test('OPT-6 a setting that is refused leaves the others as they were', () =>
    overSeeds(2, async () => {
      const own = new MyModule()
      const before = own.values()
      const optimizer = new DistributedOptimizer(SGD, [own.parameter()], { lr: 0 })
      await distAutograd.context(async (ctx) => {
        await ctx.backward([own.w.sum()])
        for (const settings of [{ lr: 1, speed: 2 }, { lr: Number.NaN }, { lr: 1, momentum: '0.9' }]) {
          expect((await failure(optimizer.step(ctx, { settings: settings as object }))).code).toBe('INVALID_ARGUMENT')
        }
        await optimizer.step(ctx)
      })
      expect(own.values()).toEqual(before)
    }))

  test('OPT-14 disposed: no step any more, at home as elsewhere', () =>
    overSeeds(3, async () => {
      for (const parameter of [rref(new MyModule().w), await remote(1, MyModule, []).call('parameter', [])]) {
        const optimizer = new DistributedOptimizer(SGD, [parameter], { lr: 1 })
        optimizer.dispose()
        optimizer.dispose()
        expect((await failure(distAutograd.context((ctx) => optimizer.step(ctx)))).code).toBe('OPTIMIZER_DISPOSED')
      }
    }))

  test('OPT-9 what cannot be: no parameters, no parameter, a class that is not exposed, a context that is not', () =>
    overSeeds(2, async () => {
      expect(() => new DistributedOptimizer(SGD, [], { lr: 1 })).toThrow('expected at least one RRef')
      expect(() => new DistributedOptimizer(NeverExposed, [rref(new MyModule().w)])).toThrow('not exposed')
      const notOne = new DistributedOptimizer(SGD, [remote(1, MyModule, []) as unknown as RRef<Tensor>], { lr: 1 })
      expect(((await failure(notOne.ready())).cause as PostgradError).code).toBe('NOT_A_PARAMETER')
      const optimizer = new DistributedOptimizer(SGD, [rref(new MyModule().w)], { lr: 1 })
      expect((await failure(optimizer.step(99n))).code).toBe('CONTEXT_NOT_FOUND')
      const released = await distAutograd.context((ctx) => ctx)
      expect((await failure(optimizer.step(released))).code).toBe('CONTEXT_RELEASED')
    }))
})

async function trainOnce(module: RRef<MyModule>, parameter: RRef<Tensor>, x: Tensor): Promise<void> {
  const optimizer = new DistributedOptimizer(SGD, [parameter], { lr: 1 })
  await distAutograd.context(async (ctx) => {
    await ctx.backward([(await module.call('forward', [x])).sum()])
    await optimizer.step(ctx)
  })
}
expose({ trainOnce })
