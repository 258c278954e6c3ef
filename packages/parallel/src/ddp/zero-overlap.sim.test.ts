import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Adam, Embedding, Linear, Module, Sequential, SGD, Tanh } from '@postgrad/nn'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { join } from './join.js'
import { batchOf, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'
import { hookWithZeroStep, ZeroRedundancyOptimizer } from './zero-redundancy-optimizer.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }
const net = (): Sequential => seeded(7, () => new Sequential(new Linear(4, 8), new Tanh(), new Linear(8, 8), new Tanh(), new Linear(8, 3)))

test('DDP-56 steps in backward have the bits of steps behind it, outside of contexts and inside, with uneven inputs too', async () => {
  for (const mode of ['plain', 'context', 'join'] as const) {
    const results = await overSeeds(
      3,
      async (rank) => {
        const found: unknown[] = []
        for (const overlapWithDdp of [false, true]) {
          const model = await DistributedDataParallel.create(net(), SMALL)
          const optimizer = new ZeroRedundancyOptimizer(model.parameters(), Adam, { lr: 0.05 }, { overlapWithDdp })
          model.registerCommHook(null, overlapWithDdp ? hookWithZeroStep(allReduceHook, optimizer) : allReduceHook)
          const count = mode === 'join' ? 2 + rank : 4
          await join([model, optimizer], async () => {
            for (let step = 0; step < count; step++) {
              optimizer.zeroGrad()
              const loss = lossOf(await model.forward(batchOf(rank, step)))
              if (mode === 'context')
                await distAutograd.context(async (ctx) => {
                  await ctx.backward([loss])
                  if (!overlapWithDdp) await optimizer.step(ctx.gradients())
                })
              else {
                await model.backward(loss)
                if (!overlapWithDdp) await optimizer.step()
              }
            }
          })
          expect(optimizer.stepCount).toBe(4)
          await optimizer.consolidateStateDict(0)
          found.push([
            values(model.parameters()),
            rank === 0 ? values(Object.values(optimizer.stateDict().state).map(({ expAvg }) => expAvg as Tensor)) : null,
          ])
          model.dispose()
        }
        expect(found[1]).toEqual(found[0])
        return (found[1] as unknown[])[0]
      },
      3,
    )
    for (const each of results) expect(each).toEqual(results[0])
  }
})

class Table extends Module {
  readonly rows = new Embedding(4, 3, { sparse: true })
  readonly out = new Linear(3, 2)
  forward(indices: Tensor): Tensor {
    return this.out.forward(this.rows.forward(indices))
  }
}

test('DDP-56 gradients of noSync are in the step of the next pass, and what would not be stepped is an error', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(net(), SMALL)
    const optimizer = new ZeroRedundancyOptimizer(model.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp: true })
    model.registerCommHook(null, hookWithZeroStep(allReduceHook, optimizer))
    const before = values(model.parameters())
    await model.noSync(async () => model.backward(lossOf(await model.forward(batchOf(rank, 0)))))
    expect(values(model.parameters())).toEqual(before)
    await model.backward(lossOf(await model.forward(batchOf(rank, 1))))
    const other = await DistributedDataParallel.create(net(), SMALL)
    await other.noSync(async () => other.backward(lossOf(await other.forward(batchOf(rank, 0)))))
    await other.backward(lossOf(await other.forward(batchOf(rank, 1))))
    new SGD(other.parameters(), { lr: 0.1 }).step()
    expect(values(model.parameters())).toEqual(values(other.parameters()))
    expect(await failure(optimizer.step())).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('overlapWithDdp') })
    expect(() => hookWithZeroStep(3 as never, optimizer)).toThrow('the hook')
    expect(() => hookWithZeroStep(allReduceHook, new SGD(model.parameters(), { lr: 1 }) as never)).toThrow('a ZeroRedundancyOptimizer')

    const table = await DistributedDataParallel.create(new Table(), SMALL)
    const both = new ZeroRedundancyOptimizer(table.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp: true })
    table.registerCommHook(null, hookWithZeroStep(allReduceHook, both))
    const loss = lossOf(await table.forward(tensor([0, 2], { dtype: 'int32' })))
    expect(await failure(table.backward(loss))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('1 that are in none'),
    })
  })
})

/** Two dtypes: buckets begin with the one or the other, before and after they are made again. */
class Mixed extends Module {
  readonly a = new Linear(2, 2)
  readonly b = new Linear(2, 2, { dtype: 'float64' })
  forward(x: Tensor): Tensor {
    return this.a.forward(this.b.forward(x.to('float64')).to('float32'))
  }
}

test('DDP-56 behind an iteration that broke off the next ones are whole, whatever it had stepped', async () => {
  for (let broken = 2; broken < 7; broken++) {
    await overSeeds(2, async () => {
      const module = seeded(1, () => new Mixed())
      const optimizer = new ZeroRedundancyOptimizer(module.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp: true })
      let calls = 0
      const wrapped = async (): Promise<DistributedDataParallel<Mixed>> => {
        const model = await DistributedDataParallel.create(module, { firstBucketMb: 1e-6, bucketCapMb: 1e-6 })
        const hook = hookWithZeroStep<null, object, unknown>(async (_, bucket) => {
          if (calls++ === broken) throw new Error('broken off')
          return allReduceHook(null, bucket)
        }, optimizer as never)
        model.registerCommHook(null, hook)
        return model
      }
      let model = await wrapped()
      const errors: string[] = []
      for (let step = 0; step < 4; step++) {
        try {
          optimizer.zeroGrad()
          await model.backward((await model.forward(ones([1, 2]))).sum())
        } catch (error) {
          errors.push((error as Error).message)
          model.dispose()
          model = await wrapped()
        }
      }
      expect(errors).toEqual(['broken off'])
      expect(optimizer.stepCount).toBe(3)
    })
  }
})

test('DDP-11, DDP-56 what a hook gives is looked at before the step, and an optimizer without a hook does not begin', async () => {
  await overSeeds(1, async () => {
    for (const given of [undefined, ones([3])]) {
      const model = await DistributedDataParallel.create(new Linear(2, 2))
      const optimizer = new ZeroRedundancyOptimizer(model.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp: true })
      const before = values(model.parameters())
      const told = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('a hook of the ZeroRedundancyOptimizer') }
      expect(() => optimizer.zeroGrad()).toThrow(expect.objectContaining(told))
      expect(await failure(model.forward(ones([1, 2])))).toMatchObject(told)
      model.registerCommHook(
        null,
        hookWithZeroStep(() => given as never, optimizer),
      )
      optimizer.zeroGrad()
      expect(await failure(model.backward((await model.forward(ones([1, 2]))).sum()))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('a communication hook: expected to give a tensor of 6 elements'),
      })
      expect(values(model.parameters())).toEqual(before)
    }
    expect(() => new ZeroRedundancyOptimizer([ones([2]).requiresGrad_()], SGD, { lr: 0.1 }, { overlapWithDdp: 'yes' as never })).toThrow(
      'true or false as overlapWithDdp',
    )
  })
})

test('DDP-56 of several optimizers over the same parameters the last one counts: one that was thrown away holds no forward up', async () => {
  await overSeeds(1, async () => {
    const module = new Linear(2, 2)
    const make = (overlapWithDdp = true) => new ZeroRedundancyOptimizer(module.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp })
    const forward = async (hooked: ReturnType<typeof make> | null) => {
      using model = await DistributedDataParallel.create(module)
      if (hooked !== null) model.registerCommHook(null, hookWithZeroStep(allReduceHook, hooked))
      await model.backward((await model.forward(ones([1, 2]))).sum())
    }
    const missing = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('a hook of the ZeroRedundancyOptimizer') }
    const thrownAway = make()
    const [first, second] = [make(), make()]
    await forward(second)
    await forward(first)
    expect([first.stepCount, second.stepCount]).toEqual([1, 1])
    expect(() => thrownAway.zeroGrad()).toThrow(expect.objectContaining(missing))
    make()
    expect(await failure(forward(null))).toMatchObject(missing)
    make(false)
    await forward(null)
    // Those that come to a group later are looked at, too.
    const late = make()
    const other = new Linear(2, 2)
    late.addParamGroup({ params: other.parameters() })
    using model = await DistributedDataParallel.create(other)
    expect(await failure(model.forward(ones([1, 2])))).toMatchObject(missing)
  })
})
