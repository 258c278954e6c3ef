import { expect, test } from '@jest/globals'
import { backward } from '@postgrad/autograd'
import { BatchNorm1d, Embedding, Linear, Module, Sequential, SGD } from '@postgrad/nn'
import { allReduce, initProcessGroup, type ProcessGroup } from '@postgrad/process-group'
import { ones, type SparseTensor, type Tensor, tensor } from '@postgrad/tensor'
import { raw, toDense } from '@postgrad/tensor/internal'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { expectErrorsOfSurvivors, failure, overSeeds } from './sim-ranks.suite.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

class Net extends Module {
  readonly a = new Linear(4, 8)
  readonly b = new Linear(8, 8)
  readonly c = new Linear(8, 2)
  forward(x: Tensor, skips = false): Tensor {
    const h = this.a.forward(x).tanh()
    return this.c.forward(skips ? h : this.b.forward(h))
  }
}
const net = (): Net => seeded(3, () => new Net())

const create = (options: DistributedDataParallelOptions = {}) => DistributedDataParallel.create(net(), options)

test('DDP-2 a module without parameters to train is refused', async () => {
  await overSeeds(2, async () => {
    const frozen = net()
    frozen.requiresGrad_(false)
    expect(await failure(DistributedDataParallel.create(frozen))).toMatchObject({ code: 'NO_PARAMETERS' })
    expect(await failure(DistributedDataParallel.create({} as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await failure(create({ bucketCapMb: 0 }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await failure(create({ find_unused: true } as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

test('DDP-2 other models are refused on all ranks, with the rank and the parameter, and the group goes on', async () => {
  await overSeeds(3, async (rank, group) => {
    const wide = await failure(DistributedDataParallel.create(new Sequential(new Linear(4, 2), new Linear(2, rank === 1 ? 3 : 2))))
    expect(wide).toMatchObject({
      code: 'DDP_MODEL_MISMATCH',
      values: { rank: 1, parameter: '1.weight', expected: 'float32 [2, 2]', got: 'float32 [3, 2]' },
    })
    expect(String(wide)).toContain("'1.weight' (number 2) of rank 1 (worker1) is float32 [3, 2]")
    const long = await failure(
      DistributedDataParallel.create(rank === 2 ? new Sequential(new Linear(4, 2), new Linear(2, 2)) : new Sequential(new Linear(4, 2))),
    )
    expect(String(long)).toContain('rank 0 (worker0) has 2 params and buffers, while rank 2 (worker2) has 4')
    const frozen = new Linear(2, 2)
    if (rank === 1) frozen.bias!.requiresGrad_(false)
    expect(String(await failure(DistributedDataParallel.create(frozen)))).toContain('without a gradient')
    await allReduce(ones([1]), { group })
  })
})

test('DDP-4 buckets are made again once, in the order of gradients of rank 0', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create(SMALL)
    expect(model.buckets).toEqual([[0, 1, 2, 3, 4, 5]])
    const step = async () => model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    await step()
    expect(model.buckets).toEqual([[0, 1, 2, 3, 4, 5]])
    await step()
    const { buckets } = model
    expect(buckets.length).toBeGreaterThan(2)
    expect(buckets.flat().slice(0, 2).toSorted()).toEqual([4, 5])
    expect(buckets.flat().slice(-2).toSorted()).toEqual([0, 1])
    await step()
    expect(model.buckets).toEqual(buckets)
  })
})

test('DDP-4 while unused parameters are looked for, the buckets of the start stay', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create({ ...SMALL, findUnusedParameters: true })
    const { buckets } = model
    // In the order of registration, the list turned round.
    expect(buckets.flat().toSorted()).toEqual([0, 1, 2, 3, 4, 5])
    expect(buckets[0]).toContain(5)
    expect(buckets.at(-1)).toContain(0)
    for (let step = 0; step < 2; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
    expect(model.buckets).toEqual(buckets)
  })
})

test('DDP-5 a bucket is reduced while the pass goes on', async () => {
  const events = await overSeeds(2, async (rank) => {
    const seen: string[] = []
    const model = await create(SMALL)
    model.registerCommHook(null, async (_, bucket) => {
      seen.push(`begin ${bucket.index}`)
      await allReduce(bucket.buffer)
      seen.push(`end ${bucket.index}`)
      return raw.mul(bucket.buffer, 1 / 2)
    })
    for (let step = 0; step < 2; step++) {
      seen.length = 0
      const y = await model.forward(batchOf(rank, step))
      model.module.a.weight.registerHook(() => {
        seen.push('first layer')
        return undefined
      })
      await model.backward(lossOf(y))
    }
    return seen
  })
  for (const seen of events) {
    expect(seen.indexOf('begin 0')).toBeGreaterThanOrEqual(0)
    expect(seen.indexOf('begin 0')).toBeLessThan(seen.indexOf('first layer'))
    expect(seen.filter((each) => each.startsWith('end')).length).toBeGreaterThan(2)
  }
})

test('DDP-6 a parameter that nobody uses keeps its gradient, and one that some use gets the mean', async () => {
  for (const gradientAsBucketView of [false, true]) {
    await overSeeds(2, async (rank) => {
      const model = await create({ findUnusedParameters: true, gradientAsBucketView })
      await model.backward(lossOf(await model.forward(batchOf(rank, 0), true)))
      expect(model.module.b.weight.grad).toBeNull()
      expect(model.module.a.weight.grad).not.toBeNull()
      model.zeroGrad()
      await model.backward(lossOf(await model.forward(batchOf(rank, 0), rank === 1)))
      const whole = net()
      lossOf(whole.forward(batchOf(0, 0))).backward()
      expect(model.module.b.weight.grad!.toArray()).toEqual(raw.mul(whole.b.weight.grad!, 0.5).toArray())
    })
  }
})

test('DDP-6 the unused parameters of a static graph are looked for once', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create({ ...SMALL, staticGraph: true })
    for (let step = 0; step < 3; step++) {
      await model.backward(lossOf(await model.forward(batchOf(rank, step), true)))
      expect(model.module.b.weight.grad).toBeNull()
    }
    expect(await failure(model.backward(lossOf(await model.forward(batchOf(rank, 3)))))).toMatchObject({
      code: 'DDP_GRAPH_CHANGED',
      values: { parameter: expect.stringMatching(/^b\./) },
    })
  })
})

test('DDP-7 gradients of noSync add up here, and are reduced with the next', async () => {
  for (const gradientAsBucketView of [false, true]) {
    for (const isSynchronous of [false, true]) {
      const results = await overSeeds(2, async (rank) => {
        const model = await create({ ...SMALL, gradientAsBucketView })
        await model.noSync(async () => {
          for (const step of [0, 1]) {
            const loss = lossOf(await model.forward(batchOf(rank, step)))
            if (isSynchronous) loss.backward()
            else await model.backward(loss)
          }
        })
        const alone = net()
        for (const step of [0, 1]) lossOf(alone.forward(batchOf(rank, step))).backward()
        expect(grads(model)).toEqual(grads(alone))
        await model.backward(lossOf(await model.forward(batchOf(rank, 2))))
        return grads(model)
      })
      const sum = net()
      const parts = [0, 1].map((rank) => {
        sum.zeroGrad()
        for (const step of [0, 1, 2]) lossOf(sum.forward(batchOf(rank, step))).backward()
        return sum.parameters().map(({ grad }) => raw.mul(grad!, 0.5))
      })
      for (const got of results) expect(got).toEqual(values(parts[0]!.map((part, i) => raw.add(part, parts[1]![i]!))))
    }
  }
})

test('DDP-8 parameters without a gradient are named before anything is reduced, and the next pass may be right', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    expect(await failure(model.backward(lossOf(await model.forward(batchOf(rank, 0), true))))).toMatchObject({
      code: 'DDP_REDUCTION_UNFINISHED',
      message: expect.stringContaining('Expected to have finished reduction in the prior iteration before starting a new one.'),
      values: { rank, parameters: ['b.weight', 'b.bias'], numbers: [2, 3] },
    })
    expect(model.module.a.weight.grad).toBeNull()
    await model.backward(lossOf(await model.forward(batchOf(rank, 1))))
  })
})

test('DDP-8 what is used behind the back of forward is reduced as any', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create({ findUnusedParameters: true })
    const y = await model.forward(batchOf(rank, 0), true)
    await model.backward(lossOf(y).add(model.module.b.weight.sum().mul(rank)))
    expect(model.module.b.weight.grad!.toArray()).toEqual(raw.add(raw.mul(model.module.b.weight, 0), 0.5).toArray())
    expect(model.module.b.bias!.grad).toBeNull()
  })
})

test("DDP-8 a second pass over one graph is this rank's alone", async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    await model.backward(loss, { retainGraph: true })
    const mean = model.module.a.bias!.grad!.toArray() as number[]
    loss.backward()
    const alone = net()
    lossOf(alone.forward(batchOf(rank, 0))).backward()
    const own = alone.a.bias!.grad!.toArray() as number[]
    expect(model.module.a.bias!.grad!.toArray()).toEqual(mean.map((m, i) => Math.fround(m + own[i]!)))
  })
})

test('DDP-8 a pass that cannot be awaited is refused before anything is reduced, and so are second derivatives', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    expect(() => loss.backward(null, { retainGraph: true })).toThrow('await model.backward(loss)')
    expect(() => backward([loss], null, { retainGraph: true })).toThrow('await model.backward(loss)')
    model.zeroGrad()
    await model.backward(loss)
    expect(await failure(model.backward(loss.detach()))).toMatchObject({ code: 'ROOT_REQUIRES_NO_GRAD' })
    expect(await failure(model.backward([]))).toMatchObject({ code: 'NO_ROOTS' })
  })
})

class Scaled extends Module {
  readonly linear = new Linear(4, 3)
  readonly scale = this.registerBuffer('scale', tensor([[1, 2, 3]], { dtype: 'float32' }))
  readonly turned = this.registerBuffer('turned', tensor([[1], [2], [3]], { dtype: 'float32' }).transpose(0, 1))
  readonly norm = new BatchNorm1d(3)
  forward(x: Tensor): Tensor {
    return this.norm.forward(this.linear.forward(x).mul(this.scale).mul(this.turned))
  }
}

test('DDP-9 two forwards and one pass: what the first has saved of a buffer, and of a batch norm in eval, is as it was', async () => {
  const results = await overSeeds(
    3,
    async (rank) => {
      const model = await DistributedDataParallel.create(seeded(1, () => new Scaled()))
      model.module.norm.eval()
      for (let step = 0; step < 2; step++) {
        const losses: Tensor[] = []
        for (const k of [0, 1]) losses.push(lossOf(await model.forward(batchOf(rank, 2 * step + k))))
        await model.backward(losses)
      }
      return grads(model)
    },
    3,
  )
  for (const got of results) expect(got).toEqual(results[0])
  // Another value of rank 0 arrives, at whatever was saved before.
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(seeded(1, () => new Scaled()))
    for (const factor of [1, 5]) {
      if (rank === 0) model.module.scale.fill_(factor)
      await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
      expect(model.module.scale.toArray()).toEqual([[factor, factor, factor]])
    }
  })
})

test('DDP-9 buffers are those of rank 0 before the first forward behind a synchronised one, or stay as they are', async () => {
  for (const broadcastBuffers of [true, false]) {
    const means = await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Sequential(new BatchNorm1d(4), new Linear(4, 2)), { broadcastBuffers })
      for (let step = 0; step < 2; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
      // The first (in noSync), one that is not, and one that is again: ranks with one batch are alike after a first one.
      await model.noSync(() => model.forward(batchOf(0, 2)))
      const found = [values(model.buffers())]
      await model.noSync(() => model.forward(batchOf(rank, 3)))
      for (const step of [4, 5]) {
        await model.forward(batchOf(0, step))
        found.push(values(model.buffers()))
      }
      return found
    })
    const areAlike = means[0]!.map((each, i) => JSON.stringify(each) === JSON.stringify(means[1]![i]))
    expect(areAlike).toEqual(broadcastBuffers ? [true, false, true] : [false, false, false])
  }
})

test('DDP-10 sparse gradients are reduced as such', async () => {
  const results = await overSeeds(3, async (rank) => {
    const model = await DistributedDataParallel.create(seeded(4, () => new Embedding(10, 3, { sparse: true })))
    await model.backward((await model.forward(tensor([rank, rank + 1], { dtype: 'int32' }))).sum())
    const { grad } = model.module.weight
    expect(grad!.isSparse).toBe(true)
    return toDense(grad as SparseTensor).toArray()
  })
  const third = Math.fround(1 / 3)
  const row = (count: number) => [0, 0, 0].map(() => Math.fround(count * third))
  const expected = [1, 2, 2, 1, 0, 0, 0, 0, 0, 0].map(row)
  for (const got of results) expect(got).toEqual(expected)
})

test('DDP-11 a hook replaces the all-reduce and the division; one at most', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create(SMALL)
    expect(() => model.registerCommHook(null, 3 as never)).toThrow('Communication hook must be callable.')
    let last = 0
    model.registerCommHook({ factor: 10 }, async ({ factor }, bucket) => {
      expect(bucket.gradients.map(({ shape }) => shape)).toEqual(bucket.parameters.map(({ shape }) => shape))
      if (bucket.isLast) last++
      return raw.mul(bucket.buffer, factor)
    })
    expect(() => model.registerCommHook(null, (_, { buffer }) => buffer)).toThrow('can only be called once')
    const alone = net()
    for (let step = 1; step <= 2; step++) {
      model.zeroGrad()
      alone.zeroGrad()
      await model.backward(lossOf(await model.forward(batchOf(rank, step))))
      lossOf(alone.forward(batchOf(rank, step))).backward()
      expect(grads(model)).toEqual(values(alone.parameters().map(({ grad }) => raw.mul(grad!, 10))))
      expect(last).toBe(step)
    }
  })
})

test('DDP-11 what a hook throws is the error of the pass', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create()
    model.registerCommHook(null, async () => {
      throw new Error('no way')
    })
    expect(String(await failure(model.backward(lossOf(await model.forward(batchOf(rank, 0))))))).toContain('no way')
    expect(await failure(model.forward(batchOf(rank, 0)))).toMatchObject({ code: 'DDP_REDUCTION_UNFINISHED', cause: { message: 'no way' } })
  })
})

test('DDP-11 a hook that gives no such tensor is refused', async () => {
  for (const wrong of [null, ones([3])]) {
    await overSeeds(2, async (rank) => {
      const model = await create()
      model.registerCommHook(null, () => wrong as Tensor)
      const error = await failure(model.backward(lossOf(await model.forward(batchOf(rank, 0)))))
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('to give a tensor of 130 elements') })
    })
  }
})

test('DDP-14 a pass has a deadline, if it is given one', async () => {
  await overSeeds(2, async (rank, group) => {
    const model = await create()
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    if (rank === 1) return
    expect(await failure(model.backward(loss, { timeoutMs: 50 }))).toMatchObject({ code: 'BACKWARD_TIMEOUT', values: { timeoutMs: 50 } })
    expect(await failure(model.backward(loss, { timeoutMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID' })
    group.abort()
  })
})

test('DDP-12 models of several groups, and a model that is wrapped again, are apart', async () => {
  await overSeeds(2, async (rank, group: ProcessGroup) => {
    const module = net()
    const first = await DistributedDataParallel.create(module, { processGroup: group })
    await first.backward(lossOf(await first.forward(batchOf(rank, 0))))
    first.dispose()
    module.zeroGrad()
    using second = await DistributedDataParallel.create(module)
    const optimizer = new SGD(second.parameters(), { lr: 0.1 })
    await second.backward(lossOf(await second.forward(batchOf(rank, 0))))
    optimizer.step()
    expect([...second.namedParameters()].map(([name]) => name)).toContain('module.a.weight')
  })
})

test('DDP-13 when a rank dies in the middle the others have an error, in whatever moment', () =>
  expectErrorsOfSurvivors(15, async (rank) => {
    await initProcessGroup()
    const model = await create(SMALL)
    for (let step = 0; step < 4; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
  }))

test('DDP-4, DDP-5 ranks whose gradients are ready in different orders reduce the same buckets in one order', async () => {
  class Either extends Module {
    readonly a = seeded(1, () => new Linear(4, 4))
    readonly b = seeded(2, () => new Linear(4, 4))
    forward(x: Tensor, turned: boolean): Tensor {
      const [first, second] = turned ? [this.b, this.a] : [this.a, this.b]
      return second.forward(first.forward(x).tanh())
    }
  }
  for (const findUnusedParameters of [false, true]) {
    const results = await overSeeds(
      2,
      async (rank) => {
        const model = await DistributedDataParallel.create(new Either(), { ...SMALL, findUnusedParameters })
        for (let step = 0; step < 3; step++) {
          model.zeroGrad()
          await model.backward(lossOf(await model.forward(batchOf(rank, step), rank === 1)))
        }
        return [model.buckets, grads(model)]
      },
      3,
    )
    expect(results[1]).toEqual(results[0])
    // b of rank 0 comes first.
    if (!findUnusedParameters) expect((results[0]![0] as number[][]).flat().slice(0, 2).toSorted()).toEqual([2, 3])
    const alone = new Either()
    const parts = [0, 1].map((rank) => {
      alone.zeroGrad()
      lossOf(alone.forward(batchOf(rank, 2), rank === 1)).backward()
      return alone.parameters().map(({ grad }) => raw.mul(grad!, 0.5))
    })
    expect(results[0]![1]).toEqual(values(parts[0]!.map((part, i) => raw.add(part, parts[1]![i]!))))
  }
})
