import { expect, test } from '@jest/globals'
import { Lane } from '@postgrad/base/internal'
import { distAutograd } from '@postgrad/dist-autograd'
import { BatchNorm1d, clipGradNorm_, Linear, Module, Sequential, SGD } from '@postgrad/nn'
import { allReduce, broadcastCoalesced } from '@postgrad/process-group'
import { rref } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { thrown } from '@postgrad/rpc/suite'
import { ones, type Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { convertSyncBatchNorm } from '../sync-norm/sync-batch-norm.js'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { PeriodicModelAverager, PostLocalSGDOptimizer } from './local-sgd.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'
import { ZeroRedundancyOptimizer } from './zero-redundancy-optimizer.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

class Net extends Module {
  readonly a = new Linear(4, 8)
  readonly b = new Linear(8, 2)
  forward(x: Tensor): Tensor {
    return this.b.forward(this.a.forward(x).tanh())
  }
}
const net = (): Net => seeded(3, () => new Net())
const create = (options: DistributedDataParallelOptions = SMALL) => DistributedDataParallel.create(net(), options)
type Model = Awaited<ReturnType<typeof create>>

const pass = async (model: Model, rank: number, step: number): Promise<void> =>
  model.backward(lossOf(await model.forward(batchOf(rank, step))))

/** Of one place: the mean over ranks of what the batches of these steps give, one after the other. */
function mean(size: number, steps: readonly number[]): unknown {
  const module = net()
  const sums: Tensor[] = []
  for (let rank = 0; rank < size; rank++) {
    module.zeroGrad()
    for (const step of steps) lossOf(module.forward(batchOf(rank, step))).backward()
    for (const [i, { grad }] of module.parameters().entries()) {
      const part = raw.mul(grad!, 1 / size)
      sums[i] = sums[i] === undefined ? part : raw.add(sums[i], part)
    }
  }
  return values(sums)
}

test('DDP-24 several noSync at once, nested ones too: their gradients are reduced with the next pass, and passes outside are', async () => {
  const expected = [mean(2, [0, 1, 2, 3]), mean(2, [4])]
  const results = await overSeeds(
    2,
    async (rank) => {
      const model = await create()
      await Promise.all([0, 1, 2].map((step) => model.noSync(() => model.noSync(() => pass(model, rank, step)))))
      await pass(model, rank, 3)
      const first = grads(model)
      model.zeroGrad()
      await pass(model, rank, 4)
      return [first, grads(model)]
    },
    6,
  )
  for (const got of results) expect(got).toEqual(expected)
})

test('DDP-24 a pass outside that runs at the same time as noSync is reduced, with what noSync has begun before it', async () => {
  const expected = mean(3, [0, 1])
  const results = await overSeeds(
    3,
    async (rank) => {
      const model = await create()
      const loss = lossOf(await model.noSync(() => model.forward(batchOf(rank, 0))))
      const beside = model.noSync(() => model.backward(loss))
      const outside = lossOf(await model.forward(batchOf(rank, 1)))
      await model.backward(outside)
      await beside
      return grads(model)
    },
    6,
  )
  for (const got of results) expect(got).toEqual(expected)
})

/** Where it does not skip them, its first layers wait for other ranks in backward. */
class Waiting extends Module {
  readonly a = seeded(4, () => new Linear(4, 4))
  readonly norm = new BatchNorm1d(4)
  readonly b = seeded(5, () => new Linear(4, 2))
  async forward(x: Tensor, skips: boolean): Promise<Tensor> {
    return this.b.forward(skips ? x : await this.norm.forward(this.a.forward(x)))
  }
}

test('DDP-24 a pass that is reduced waits for one of noSync that waits for other ranks', async () => {
  const results = await overSeeds(
    2,
    async (rank) => {
      const model = await DistributedDataParallel.create(convertSyncBatchNorm(new Waiting()), { findUnusedParameters: true })
      const quiet = lossOf(await model.noSync(() => model.forward(batchOf(rank, 0), false)))
      const outside = lossOf(await model.forward(batchOf(rank, 1), true))
      await Promise.all([model.noSync(() => model.backward(quiet)), model.backward(outside)])
      return grads(model)
    },
    3,
  )
  expect(results[1]).toEqual(results[0])
})

test('DDP-24 noSync of one model leaves another model alone, and ends with its function, whatever that throws', async () => {
  const results = await overSeeds(2, async (rank) => {
    const [one, other] = [await create(), await create()]
    await one.noSync(() => pass(other, rank, 0))
    // Inside of both.
    await one.noSync(() => other.noSync(() => pass(one, rank, 9)))
    expect(one.stats().iterations).toBe(0)
    one.zeroGrad()
    expect(await failure(one.noSync(() => Promise.reject(new Error('mine'))))).toMatchObject({ message: 'mine' })
    await pass(one, rank, 0)
    return [grads(one), grads(other)]
  })
  for (const got of results) expect(got).toEqual([mean(2, [0]), mean(2, [0])])
})

test('DDP-24 what passes of noSync add to one gradient at once is added in the order in which they began, whatever messages arrive', async () => {
  const expected = mean(2, [0, 1, 2, 3])
  const results = await overSeeds(2, async (rank) => {
    const model = await create()
    const outputs = await Promise.all([0, 1, 2].map((step) => model.noSync(() => model.forward(batchOf(rank, step)))))
    const { pump } = currentRuntime()
    // As if a message had arrived while the first pass runs, which goes before what waits of it.
    outputs[0]!.registerHook(() => {
      pump.mailbox.push(Lane.control, { run: () => {} })
    })
    await Promise.all(outputs.map((y) => model.noSync(() => model.backward(lossOf(y)))))
    await pass(model, rank, 3)
    return grads(model)
  })
  for (const got of results) expect(got).toEqual(expected)
})

test('DDP-24 forwards at once update statistics in the order of their calls, behind the buffers that arrive before the first', async () => {
  for (const location of [undefined, 'preForward', 'postForward'] as const) {
    await overSeeds(
      2,
      async (rank, group) => {
        const model = await DistributedDataParallel.create(new BatchNorm1d(4))
        const give = (_: null, buffers: ReadonlyMap<string, Tensor>) => broadcastCoalesced([...buffers.values()], 0, { group })
        if (location !== undefined) model.registerBufferCommHook(null, give, { location })
        await Promise.all([0, 1, 2].map((k) => model.noSync(() => model.forward(batchOf(rank, k)))))
        // As if one forward had followed the other; the hook after the first gives rank 0's.
        const alone = new BatchNorm1d(4)
        alone.forward(batchOf(location === 'postForward' ? 0 : rank, 0))
        for (const k of [1, 2]) alone.forward(batchOf(rank, k))
        expect(values(model.buffers())).toEqual(values(alone.buffers()))
      },
      2,
    )
  }
})

test('DDP-24 a pass of noSync that begins while another is reduced is an error, and the other has its mean', async () => {
  const results = await overSeeds(2, async (rank) => {
    const model = await create()
    const quiet = lossOf(await model.noSync(() => model.forward(batchOf(rank, 0))))
    const outside = lossOf(await model.forward(batchOf(rank, 1)))
    const reduced = model.backward(outside)
    expect(await failure(model.noSync(() => model.backward(quiet)))).toMatchObject({ code: 'DDP_REDUCTION_UNFINISHED' })
    await reduced
    return grads(model)
  })
  for (const got of results) expect(got).toEqual(mean(2, [1]))
})

test('DDP-24 under join several noSync at once: ranks without inputs follow each forward in its turn', async () => {
  const results = await overSeeds(
    3,
    async (rank) => {
      const model = await create()
      const optimizer = new SGD(model.parameters(), { lr: 0.1 })
      await model.join(async () => {
        for (let i = 0; i < rank; i++) {
          optimizer.zeroGrad()
          await Promise.all([0, 1].map((k) => model.noSync(() => pass(model, rank, 10 * i + k))))
          await pass(model, rank, 10 * i + 2)
          optimizer.step()
        }
      })
      return values(model.parameters())
    },
    4,
  )
  for (const got of results) expect(got).toEqual(results[0])
  expect(results[0]).not.toEqual(values(net().parameters()))
})

class WithStatistics extends Net {
  readonly norm = new BatchNorm1d(4)
  override forward(x: Tensor): Tensor {
    return super.forward(this.norm.forward(x))
  }
}

test('DDP-24 ranks may gather different numbers of batches, of models with buffers too', async () => {
  const results = await overSeeds(
    2,
    async (rank) => {
      const model = await DistributedDataParallel.create(
        seeded(3, () => new WithStatistics()),
        SMALL,
      )
      const sgd = new SGD(model.parameters(), { lr: 0.1 })
      for (let step = 0; step < 3; step++) {
        const run = async (): Promise<void> => model.backward(lossOf(await model.forward(batchOf(rank, step))))
        if (rank === 0) await model.noSync(run)
        await run()
        sgd.step()
        sgd.zeroGrad()
      }
      return values(model.parameters())
    },
    3,
  )
  expect(results[1]).toEqual(results[0])
})

test('DDP-24 a forward of noSync that begins while another pass is reduced leaves the collectives of that pass in their order', async () => {
  const results = await overSeeds(
    2,
    async (rank) => {
      const model = await create({ ...SMALL, checkReplicas: 1 })
      for (let step = 0; step < 3; step++) {
        const reduced = model.backward(lossOf(await model.forward(batchOf(rank, step))))
        // Ranks are of different speed.
        for (let turn = 0; turn < rank * 40; turn++) await Promise.resolve()
        const loss = lossOf(await model.noSync(() => model.forward(batchOf(rank, 5))))
        await reduced
        await model.noSync(() => model.backward(loss))
        await pass(model, rank, 7)
        model.zeroGrad()
      }
      return values(model.parameters())
    },
    20,
  )
  expect(results[1]).toEqual(results[0])
})

const REFUSED = { code: 'GRADIENTS_NOT_REDUCED', values: { numbers: [0, 1, 2, 3] } }

test('DDP-25 no optimizer steps by gradients that were not reduced, clipped ones too, and what it refuses changes nothing', async () => {
  await overSeeds(2, async (rank, group) => {
    for (const gradientAsBucketView of [false, true]) {
      const model = await create({ ...SMALL, gradientAsBucketView })
      const sgd = new SGD(model.parameters(), { lr: 0.1 })
      const zero = new ZeroRedundancyOptimizer(model.parameters(), SGD, { lr: 0.1 })
      const before = values(model.parameters())
      await pass(model, rank, 0)
      await model.noSync(() => pass(model, rank, 1))
      clipGradNorm_(model.parameters(), 0.01)
      expect(thrown(() => sgd.step())).toMatchObject(REFUSED)
      expect(thrown(() => sgd.step(new Map(model.parameters().map((p) => [p, p.grad!]))))).toMatchObject(REFUSED)
      expect(await failure(zero.step())).toMatchObject(REFUSED)
      expect(values(model.parameters())).toEqual(before)
      await pass(model, rank, 2)
      sgd.step()
      await zero.step()
      // Also of the bare module, which is how replicas go apart by mistake.
      sgd.zeroGrad()
      lossOf(model.module.forward(batchOf(rank, 3))).backward()
      expect(thrown(() => sgd.step())).toMatchObject(REFUSED)
      // Dropped, or summed up by the program itself.
      sgd.zeroGrad()
      sgd.step()
      await model.noSync(() => pass(model, rank, 4))
      const [first] = model.parameters()
      expect(await failure((async () => allReduce(first!.grad!, { group, op: 'nonsense' as never }))())).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
      expect(thrown(() => sgd.step())).toMatchObject(REFUSED)
      for (const { grad } of model.parameters()) await allReduce(grad!, { group })
      sgd.step()
      await model.noSync(() => pass(model, rank, 5))
      model.dispose()
      sgd.step()
    }
  })
})

test('DDP-25 a hook reduces as well, ranks that step by themselves average parameters, and a rank alone has nobody to differ from', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    model.registerCommHook(null, async (_, { buffer }) => raw.mul(await allReduce(buffer), 0.5))
    const sgd = new SGD(model.parameters(), { lr: 0.1 })
    await model.noSync(() => pass(model, rank, 0))
    await pass(model, rank, 1)
    sgd.step()
    const local = new PostLocalSGDOptimizer(sgd, new PeriodicModelAverager({ period: 1 }))
    await model.noSync(() => pass(model, rank, 2))
    await local.step()
    return values(model.parameters())
  })
  await overSeeds(1, async (rank) => {
    const model = await create()
    await model.noSync(() => pass(model, rank, 0))
    new SGD(model.parameters(), { lr: 0.1 }).step()
  })
})

test('DDP-25 DistributedOptimizer refuses what a context has of noSync', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    const optimizer = new DistributedOptimizer(
      SGD,
      model.parameters().map((p) => rref(p)),
      { lr: 0.1 },
    )
    const step = (quiet: boolean) =>
      distAutograd.context(async (ctx) => {
        const loss = lossOf(await (quiet ? model.noSync(() => model.forward(batchOf(rank, 0))) : model.forward(batchOf(rank, 0))))
        await ctx.backward([loss])
        await optimizer.step(ctx)
      })
    expect(await failure(step(true))).toMatchObject({ code: 'OPTIMIZER_STEP_FAILED', cause: { code: 'GRADIENTS_NOT_REDUCED' } })
    await step(false)
  })
})

test("DDP-24 a pass of noSync in a context is this rank's alone, also while a forward outside awaits its pass", async () => {
  const results = await overSeeds(2, async (rank) => {
    const model = await create()
    const outside = lossOf(await model.forward(batchOf(rank, 1)))
    await distAutograd.context(async (ctx) => {
      const loss = lossOf(await model.noSync(() => model.forward(batchOf(rank, 0))))
      await ctx.backward([loss])
      expect(model.stats().iterations).toBe(0)
    })
    await model.backward(outside)
    return grads(model)
  })
  for (const got of results) expect(got).toEqual(mean(2, [1]))
})

test('DDP-12 a model that is disposed while a pass is under way: the pass rejects, and all ranks have reduced alike', async () => {
  for (const hooked of [false, true]) {
    await overSeeds(
      3,
      async (rank, group) => {
        const model = await create()
        if (hooked) model.registerCommHook(null, allReduceHook)
        const under = model.backward(lossOf(await model.forward(batchOf(rank, 0))))
        // The others continue: they get all that they wait for.
        if (rank > 0) model.dispose()
        if (rank > 0) expect(await failure(under)).toMatchObject({ code: 'DDP_DISPOSED' })
        else await under
        model.dispose()
        await allReduce(ones([1]), { group })
        // It trains by itself, and may be wrapped again.
        const { module } = model
        module.zeroGrad()
        lossOf(module.forward(batchOf(rank, 1))).backward()
        module.zeroGrad()
        const again = await DistributedDataParallel.create(module)
        await pass(again, rank, 0)
        expect(grads(again)).toEqual(mean(3, [0]))
      },
      4,
    )
  }
})

test('DDP-12 a forward under way rejects as well, and a pass that fails meanwhile leaves a module that trains by itself', async () => {
  await overSeeds(2, async (rank) => {
    const batchNorm = await DistributedDataParallel.create(new Sequential(new Linear(4, 4), new BatchNorm1d(4)))
    const under = batchNorm.forward(batchOf(rank, 0))
    batchNorm.dispose()
    expect(await failure(under)).toMatchObject({ code: 'DDP_DISPOSED' })
    const model = await create()
    const y = await model.forward(batchOf(rank, 0))
    y.registerHook(() => {
      throw new Error('mine')
    })
    const pass = model.backward(lossOf(y))
    model.dispose()
    expect(await failure(pass)).toMatchObject({ message: 'mine' })
    lossOf(model.module.forward(batchOf(rank, 0))).backward()
  })
})
