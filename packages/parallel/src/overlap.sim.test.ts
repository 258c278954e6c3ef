/** Steps that are computed while the pass still runs: the bits of backward and then step, and nothing to be seen of them before, whatever happens. */
import { describe, expect, test } from '@jest/globals'
import { defineFunction, mul } from '@postgrad/autograd'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, OneCycleLR, RAdam, RMSprop, Rprop, SGD } from '@postgrad/nn'
import { expose, type RRef, remote, rref } from '@postgrad/rpc'
import { ones, rand, type Tensor } from '@postgrad/tensor'
import { DistributedOptimizer } from './distributed-optimizer.js'
import type { LocalOptimizer, OptimizerClass } from './local-optimizer.js'
import { MyModule } from './my-module.suite.js'
import { arrays, failure, overSeeds } from './sim-workers.suite.js'

const CLASSES: [string, OptimizerClass, object][] = [
  ['SGD', SGD, { lr: 0.1 }],
  ['SGD with nesterov', SGD, { lr: 1e-3, momentum: 0.9, weightDecay: 1, nesterov: true }],
  ['Adam with amsgrad', Adam, { amsgrad: true }],
  ['AdamW', AdamW, {}],
  ['Adagrad', Adagrad, { lr: 0.05 }],
  ['Adadelta', Adadelta, { rho: 0.95 }],
  ['RMSprop', RMSprop, { centered: true, momentum: 0.5 }],
  ['Adamax', Adamax, { lr: 0.05 }],
  ['Rprop', Rprop, { lr: 0.05 }],
  ['NAdam', NAdam, {}],
  ['RAdam', RAdam, {}],
]

let failing = false
const failsBackward = defineFunction({
  name: 'FailsBackward',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    if (failing) throw new TypeError('a backward that fails on purpose')
    return grad
  },
}) as unknown as (x: Tensor) => Tensor
class Breakable extends MyModule {
  override forward(x: Tensor): Tensor {
    return failsBackward(super.forward(x))
  }
}
expose({ OverlapBreakable: Breakable })

/** A chain: x, the module here, on worker 1, on worker 2; so worker 2's gradients are final first. */
async function chain() {
  const own = new MyModule()
  const modules = [remote(1, Breakable, []), remote(2, MyModule, [])]
  const params: RRef<Tensor>[] = [rref(own.w)]
  for (const module of modules) params.push(await module.call('parameter', []))
  const forward = async (x: Tensor) => {
    let y = own.forward(x)
    for (const module of modules) y = await module.call('forward', [y])
    return y.sum()
  }
  const values = async () => [own.values(), ...(await Promise.all(modules.map((module) => module.call('values', []))))]
  return { own, modules, params, forward, values }
}

/** How many steps the owners had computed early. */
async function early(optimizer: DistributedOptimizer): Promise<number> {
  const owners = await optimizer.checkpointParts().owners
  const counts = await Promise.all((owners as RRef<LocalOptimizer>[]).map((owner) => owner.call('preparedSteps', [])))
  return counts.reduce((sum, count) => sum + count, 0)
}

describe('DA-61 a step that overlaps the pass', () => {
  test.each(CLASSES)('DA-61 %s: the bits of backward and then step, with a schedule that changes the rate each time', (_, Class, options) =>
    overSeeds(
      3,
      async () => {
        const [one, two] = [await chain(), await chain()]
        const make = (params: RRef<Tensor>[]) =>
          new DistributedOptimizer(Class, [{ params: params.slice(0, 2) }, { params: params.slice(2) }], options)
        const [plain, overlapped] = [make(one.params), make(two.params)]
        const schedules = [plain, overlapped].map(
          (optimizer) =>
            new OneCycleLR(optimizer as unknown as DistributedOptimizer<typeof Adam>, { maxLr: 0.1, totalSteps: 9, cycleMomentum: false }),
        )
        await Promise.all([plain.ready(), overlapped.ready()])
        for (let n = 0; n < 3; n++) {
          const x = rand([3, 3])
          await distAutograd.context(async (ctx) => {
            await ctx.backward([await one.forward(x)])
            await plain.step(ctx)
          })
          await distAutograd.context(async (ctx) => await ctx.backward([await two.forward(x)], { optimizer: overlapped }))
          for (const schedule of schedules) schedule.step()
          expect(await two.values()).toEqual(await one.values())
        }
        expect(await early(plain)).toBe(0)
        expect(await early(overlapped)).toBeGreaterThan(0)
        expect(arrays(await overlapped.stateDict())).toEqual(arrays(await plain.stateDict()))
      },
      2,
    ),
  )

  test('DA-62 a pass that is aborted after some workers were final: nothing has happened anywhere, and the context runs another', () =>
    overSeeds(3, async () => {
      const [one, two] = [await chain(), await chain()]
      const [plain, overlapped] = [new DistributedOptimizer(Adam, one.params), new DistributedOptimizer(Adam, two.params)]
      await overlapped.ready()
      const x = rand([3, 3])
      const before = await two.values()
      await distAutograd.context(async (ctx) => {
        await ctx.backward([await one.forward(x)])
        await plain.step(ctx)
      })
      await distAutograd.context(async (ctx) => {
        const loss = await two.forward(x)
        failing = true
        try {
          expect((await failure(ctx.backward([loss], { optimizer: overlapped, retainGraph: true }))).message).toContain('on purpose')
        } finally {
          failing = false
        }
        expect(await two.values()).toEqual(before)
        expect((await overlapped.stateDict()).state).toEqual({})
        await ctx.backward([loss], { optimizer: overlapped })
      })
      expect(await two.values()).toEqual(await one.values())
    }))

  test('DA-62 a worker that dies in the pass: the others have not stepped', () =>
    overSeeds(
      4,
      async (workers) => {
        const two = await chain()
        const bystander = await remote(3, MyModule, []).call('parameter', [])
        const optimizer = new DistributedOptimizer(Adam, [...two.params, bystander])
        await optimizer.ready()
        const before = [two.own.values(), await two.modules[1]!.call('values', [])]
        await distAutograd.context(async (ctx) => {
          const loss = await two.forward(rand([3, 3]))
          const there = installDistAutograd(workers[2]!).container.retrieve(ctx.id)
          // Worker 2 is the first to be final; then worker 1, which the pass needs, ends.
          there.onFinal(() => void workers[1]!.close())
          expect((await failure(ctx.backward([loss], { optimizer }))).code).toBe('WORKER_DIED')
        })
        expect([two.own.values(), await two.modules[1]!.call('values', [])]).toEqual(before)
      },
      6,
    ))

  test('DA-63 what other callers see of the parameters before the pass has ended is what they were', () =>
    overSeeds(3, async (workers) => {
      const two = await chain()
      const optimizer = new DistributedOptimizer(SGD, two.params, { lr: 1 })
      await optimizer.ready()
      const before = (await two.values())[2]
      const seen: unknown[] = []
      await distAutograd.context(async (ctx) => {
        const loss = await two.forward(ones([3, 3]))
        const there = installDistAutograd(workers[2]!).container.retrieve(ctx.id)
        let isOver = false
        let looks = Promise.resolve()
        there.onFinal(() => {
          looks = workers[0]!.run(async () => {
            const value = await two.modules[1]!.call('values', [])
            if (!isOver) seen.push(value)
          })
        })
        await ctx.backward([loss], {
          optimizer: {
            announce: (c) => optimizer.announce(c),
            step: async (c) => {
              isOver = true
              await looks
              await optimizer.step(c)
            },
          },
        })
      })
      for (const value of seen) expect(value).toEqual(before)
      expect((await two.values())[2]).not.toEqual(before)
    }))

  test('DA-64 what changes between the pass and the step is computed again: parameters, gradients, settings, states', () =>
    overSeeds(3, async () => {
      const [one, two] = [await chain(), await chain()]
      const make = (params: RRef<Tensor>[]) => new DistributedOptimizer(Adam, params, { lr: 0.1 })
      const [plain, overlapped] = [make(one.params), make(two.params)]
      const [otherPlain, other] = [
        new DistributedOptimizer(SGD, one.params, { lr: 0.5 }),
        new DistributedOptimizer(SGD, two.params, { lr: 0.5 }),
      ]
      await Promise.all([overlapped.ready(), other.ready()])
      const changes: ((
        ctx: DistAutogradContext,
        optimizer: DistributedOptimizer<typeof Adam>,
        sgd: DistributedOptimizer<typeof SGD>,
      ) => Promise<unknown>)[] = [
        (ctx, _, sgd) => sgd.step(ctx),
        (ctx, optimizer) => optimizer.clipGradNorm(ctx, 0.1),
        async (_, optimizer) => {
          optimizer.paramGroups[0]!.lr /= 2
        },
        (ctx, optimizer) => optimizer.step(ctx),
        async (_, optimizer) => optimizer.loadStateDict({ state: {}, paramGroups: (await optimizer.stateDict()).paramGroups }),
      ]
      for (const change of changes) {
        const x = rand([3, 3])
        await distAutograd.context(async (ctx) => {
          await ctx.backward([await one.forward(x)])
          await change(ctx, plain, otherPlain)
          await plain.step(ctx)
        })
        await distAutograd.context(async (ctx) => {
          const loss = await two.forward(x)
          overlapped.announce(ctx)
          await ctx.backward([loss])
          await change(ctx, overlapped, other)
          await overlapped.step(ctx)
        })
        expect(await two.values()).toEqual(await one.values())
      }
      // Only where the change was this step itself.
      expect(await early(overlapped)).toBeLessThanOrEqual(3)
      // Several at once, in their order.
      const x = rand([3, 3])
      await distAutograd.context(async (ctx) => {
        await ctx.backward([await one.forward(x)])
        await plain.step(ctx)
        await otherPlain.step(ctx)
      })
      await distAutograd.context(async (ctx) => await ctx.backward([await two.forward(x)], { optimizer: [overlapped, other] }))
      expect(await two.values()).toEqual(await one.values())
    }))

  test('DA-64 several passes of one context', () =>
    overSeeds(3, async () => {
      const [one, two] = [await chain(), await chain()]
      const make = (params: RRef<Tensor>[]) => new DistributedOptimizer(Adam, params, { lr: 0.1 })
      const [plain, overlapped] = [make(one.params), make(two.params)]
      await overlapped.ready()
      const [x, y] = [rand([3, 3]), rand([3, 3])]
      await distAutograd.context(async (ctx) => {
        await ctx.backward([await one.forward(x)])
        await ctx.backward([await one.forward(y)])
        await plain.step(ctx)
      })
      await distAutograd.context(async (ctx) => {
        await ctx.backward([await two.forward(x)])
        await ctx.backward([await two.forward(y)], { optimizer: overlapped })
      })
      expect(await two.values()).toEqual(await one.values())
    }))
})
