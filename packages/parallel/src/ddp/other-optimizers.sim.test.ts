import { expect, test } from '@jest/globals'
import { noGrad } from '@postgrad/autograd'
import { Adam, Linear, Sequential, SGD, StepLR, Tanh } from '@postgrad/nn'
import { allGatherObject, newGroup, type ProcessGroup } from '@postgrad/process-group'
import { full, ones, type Tensor } from '@postgrad/tensor'
import { isTensor, raw } from '@postgrad/tensor/internal'
import { allReduceHook, noopHook, PostLocalSGDState, postLocalSGDHook } from './comm-hooks.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import type { CommHook } from './grad-bucket.js'
import { bf16CompressHook, fp16CompressHook } from './half-hooks.js'
import { join } from './join.js'
import { PeriodicModelAverager, PostLocalSGDOptimizer } from './local-sgd.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { PowerSGDState, powerSGDHook } from './power-sgd.js'
import { failure, overSeeds } from './sim-ranks.suite.js'
import { ZeroRedundancyOptimizer } from './zero-redundancy-optimizer.js'

const net = (): Sequential => seeded(7, () => new Sequential(new Linear(4, 8), new Tanh(), new Linear(8, 3)))
const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

async function gradsWith(rank: number, hook: readonly [unknown, CommHook<never>] | null, steps: number): Promise<unknown[]> {
  const model = await DistributedDataParallel.create(net(), { ...SMALL })
  if (hook !== null) model.registerCommHook(hook[0] as never, hook[1])
  const all: unknown[] = []
  for (let step = 0; step < steps; step++) {
    model.zeroGrad()
    await model.backward(lossOf(await model.forward(batchOf(rank, step))))
    all.push(grads(model))
  }
  return all
}

const largestDifference = (a: unknown, b: unknown): number =>
  Array.isArray(a) ? Math.max(...a.map((each, i) => largestDifference(each, (b as unknown[])[i]))) : Math.abs((a as number) - (b as number))

test('DDP-50 a hook that does what is done without gives the same bits', async () => {
  await overSeeds(3, async (rank, group) => {
    const expected = await gradsWith(rank, null, 2)
    expect(await gradsWith(rank, [null, allReduceHook], 2)).toEqual(expected)
    expect(await gradsWith(rank, [group, allReduceHook], 2)).toEqual(expected)
    const warm = new PostLocalSGDState({ startLocalSGDIter: 10 })
    expect(await gradsWith(rank, [warm, postLocalSGDHook], 2)).toEqual(expected)
    expect(await gradsWith(rank, [new PowerSGDState({ startPowerSGDIter: 10 }), powerSGDHook], 2)).toEqual(expected)
    expect(await gradsWith(rank, [null, noopHook as CommHook<never>], 1)).not.toEqual(expected.slice(0, 1))
  })
})

test('DDP-54 gradients of half precision: the mean to as many bits, the same on all ranks, with half of the bytes', async () => {
  const BITS = [
    [fp16CompressHook, 11],
    [bf16CompressHook, 8],
  ] as const
  for (const size of [1, 2, 3]) {
    for (const [hook, bits] of BITS) {
      const results = await overSeeds(size, async (rank, group) => {
        const sent = watchBytes(group)
        const whole = (await gradsWith(rank, null, 2)) as number[][][]
        const plain = sent()
        const halves = (await gradsWith(rank, [group, hook as CommHook<never>], 2)) as number[][][]
        // Every gradient of every rank is rounded, and the mean.
        const [largest, apart] = [largestDifference(whole, zerosLike(whole)), largestDifference(halves, whole)]
        expect(apart).toBeGreaterThan(size === 1 ? 0 : 1e-6)
        expect(apart).toBeLessThan(4 * size * largest * 2 ** -bits)
        return [halves, plain, sent()] as const
      })
      for (const [halves] of results) expect(halves).toEqual(results[0]![0])
      const [plain, half] = [1, 2].map((i) => results.reduce((sum, each) => sum + (each[i] as number), 0))
      // Both also send parameters once, and a row of numbers per bucket.
      if (size > 1) expect(half!).toBeLessThan(0.75 * plain!)
    }
  }
  await overSeeds(1, async () => {
    const model = await DistributedDataParallel.create(new Linear(1, 1))
    model.registerCommHook(null, fp16CompressHook)
    await model.backward((await model.forward(full([1, 1], 1e5))).sum())
    // More than float16 holds, as in PyTorch.
    expect(await model.module.weight.grad!.item()).toBe(Number.POSITIVE_INFINITY)
  })
})

const zerosLike = (value: unknown): unknown => (Array.isArray(value) ? value.map(zerosLike) : 0)

/** Counts the bytes of tensors that collectives of this rank send, and begins anew at each call of what it gives. */
function watchBytes({ runtime: { messages } }: ProcessGroup): () => number {
  let bytes = 0
  const post = messages.postIfReachable.bind(messages)
  messages.postIfReachable = (to, type, body, ...rest) => {
    for (const each of (body as readonly unknown[])[5] as readonly unknown[])
      if (isTensor(each)) bytes += each.numel * each.storage.host!.BYTES_PER_ELEMENT
    post(to, type, body, ...rest)
  }
  return () => {
    const counted = bytes
    bytes = 0
    return counted
  }
}

test('DDP-51 PowerSGD with as many columns as the gradient has rank loses nothing but roundings', async () => {
  await overSeeds(2, async (rank) => {
    const expected = await gradsWith(rank, null, 4)
    const state = new PowerSGDState({ matrixApproximationRank: 4, startPowerSGDIter: 2, minCompressionRate: 0.1 })
    const got = await gradsWith(rank, [state, powerSGDHook], 4)
    expect(state.qs.size).toBe(2)
    expect(state.iteration).toBe(4)
    expect(got.slice(0, 2)).toEqual(expected.slice(0, 2))
    expect(largestDifference(got, expected)).toBeLessThan(1e-5)
  })
})

test('DDP-51 PowerSGD of one column gives all ranks one gradient, and what is lost comes later', async () => {
  const lost: number[] = []
  for (const useErrorFeedback of [true, false]) {
    const results = await overSeeds(
      2,
      async (rank) => {
        const make = () => DistributedDataParallel.create(seeded(3, () => new Linear(6, 6, { bias: false })))
        const [model, alone] = [await make(), await make()]
        model.registerCommHook(new PowerSGDState({ startPowerSGDIter: 2, minCompressionRate: 1, useErrorFeedback }), powerSGDHook)
        let [sum, whole] = [raw.mul(model.module.weight, 0), raw.mul(model.module.weight, 0)]
        for (let step = 0; step < 30; step++) {
          for (const each of [model, alone]) {
            each.zeroGrad()
            await each.backward(lossOf(await each.forward(batchOf(rank, 0, 5, 6))))
          }
          sum = raw.add(sum, model.module.weight.grad!)
          whole = raw.add(whole, alone.module.weight.grad!)
          if (step === 1) expect(sum.toArray()).toEqual(whole.toArray())
        }
        return [sum.toArray(), largestDifference(sum.toArray(), whole.toArray())] as const
      },
      1,
    )
    expect(results[0]).toEqual(results[1])
    lost.push(results[0]![1])
  }
  expect(lost[0]!).toBeGreaterThan(1e-3)
  expect(lost[0]!).toBeLessThan(lost[1]! / 4)
  await overSeeds(1, async () => {
    expect(() => new PowerSGDState({ startPowerSGDIter: 1 })).toThrow('startPowerSGDIter > 1')
    expect(() => new PowerSGDState({ matrixApproximationRank: 0 })).toThrow('matrixApproximationRank')
  })
})

test('DDP-52 local SGD averages in its period, and in a subgroup reduces all the time', async () => {
  await overSeeds(
    4,
    async (rank) => {
      const pair = await newGroup([0, 1])
      const other = await newGroup([2, 3])
      const subgroup = rank < 2 ? pair : other
      const model = await DistributedDataParallel.create(net())
      model.registerCommHook(new PostLocalSGDState({ startLocalSGDIter: 1, subgroup }), postLocalSGDHook)
      const optimizer = new PostLocalSGDOptimizer(
        new SGD(model.parameters(), { lr: 0.1 }),
        new PeriodicModelAverager({ period: 3, warmupSteps: 1 }),
      )
      const check = async (isAlike: (other: number) => boolean) => {
        const all = await allGatherObject(values(model.parameters()))
        for (const [r, theirs] of all.entries()) expect([r, same(theirs, all[rank])]).toEqual([r, isAlike(r)])
      }
      const alikeAfter = [() => true, () => true, (r: number) => r >> 1 === rank >> 1, (r: number) => r >> 1 === rank >> 1, () => true]
      for (const [step, isAlike] of alikeAfter.entries()) {
        optimizer.zeroGrad()
        await model.backward(lossOf(await model.forward(batchOf(rank, step))))
        await optimizer.step()
        await check(isAlike)
      }
      const saved = optimizer.stateDict()
      expect(saved.step).toBe(5)
      optimizer.loadStateDict(saved)
    },
    2,
  )
})

test('DDP-52 averaging that is not awaited is whole, and what would go on beside it is an error', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(net())
    const averager = new PeriodicModelAverager({ period: 1 })
    const optimizer = new PostLocalSGDOptimizer(new SGD(model.parameters(), { lr: 0.1 }), averager)
    await model.noSync(async () => model.backward(lossOf(await model.forward(batchOf(rank, 0)))))
    const alone = net()
    alone.loadStateDict(model.module.stateDict())
    for (const [i, p] of alone.parameters().entries()) p.grad = raw.clone(model.parameters()[i]!.grad!)
    new SGD(alone.parameters(), { lr: 0.1 }).step()
    const all = await allGatherObject(alone.parameters().map((p) => raw.clone(p)))
    const ended = optimizer.step()
    const refused = [optimizer.step(), averager.averageParameters(model.parameters()), model.forward(batchOf(rank, 1))].map(failure)
    await ended
    for (const error of refused) expect(await error).toMatchObject({ code: 'OPTIMIZER_STEP_UNFINISHED' })
    expect(averager.step).toBe(1)
    const mean = alone.parameters().map((_, i) => raw.add(raw.mul(all[0]![i]!, 0.5), raw.mul(all[1]![i]!, 0.5)))
    expect(values(model.parameters())).toEqual(values(mean))
  })
})

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

test('DDP-53 an optimizer cut over the ranks steps to the bits of the whole, and its state is one', async () => {
  for (const make of [
    (p: Tensor[]) => [new ZeroRedundancyOptimizer(p, Adam, { lr: 0.01 }), new Adam(p, { lr: 0.01 })] as const,
    (p: Tensor[]) =>
      [
        new ZeroRedundancyOptimizer([{ params: p.slice(0, 2), lr: 0.5 }, { params: p.slice(2) }], SGD, { lr: 0.1, momentum: 0.9 }),
        new SGD([{ params: p.slice(0, 2), lr: 0.5 }, { params: p.slice(2) }], { lr: 0.1, momentum: 0.9 }),
      ] as const,
  ]) {
    await overSeeds(3, async (rank, group) => {
      const [cut, whole] = [await DistributedDataParallel.create(net()), await DistributedDataParallel.create(net())]
      const [zero] = make(cut.parameters())
      const [, optimizer] = make(whole.parameters())
      const schedules = [new StepLR(zero, { stepSize: 2, gamma: 0.5 }), new StepLR(optimizer, { stepSize: 2, gamma: 0.5 })]
      for (let step = 0; step < 4; step++) {
        for (const model of [cut, whole]) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
        await zero.step()
        optimizer.step()
        for (const schedule of schedules) schedule.step()
        zero.zeroGrad()
        optimizer.zeroGrad()
      }
      expect(values(cut.parameters())).toEqual(values(whole.parameters()))
      // Each parameter has one owner, and the parts are alike.
      const parts = [0, 1, 2].map((r) => zero.parametersOf(r))
      expect(parts.flat().length).toBe(4)
      expect(parts[0]!.map(({ numel }) => numel)).toEqual([32])
      await zero.consolidateStateDict(1)
      if (rank !== 1) expect(() => zero.stateDict()).toThrow('has not been consolidated')
      else expect(plainState(zero.stateDict())).toEqual(plainState(optimizer.stateDict()))
      expect(await failure(zero.consolidateStateDict(7))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      zero.loadStateDict(optimizer.stateDict() as never)
      expect(group.error).toBeNull()
    })
  }
})

test('DDP-53 a step that is not awaited has the gradients of its call, and what would go on beside it is an error', async () => {
  for (const mode of ['alone', 'join']) {
    await overSeeds(
      3,
      async (rank) => {
        const [cut, whole] = [await DistributedDataParallel.create(net()), await DistributedDataParallel.create(net())]
        const zero = new ZeroRedundancyOptimizer(cut.parameters(), Adam, { lr: 0.01 })
        const optimizer = new Adam(whole.parameters(), { lr: 0.01 })
        const loop = async () => {
          for (let step = 0; step < 3; step++) {
            zero.zeroGrad()
            optimizer.zeroGrad()
            const x = batchOf(rank, step)
            for (const model of [cut, whole]) await model.backward(lossOf(await model.forward(x)))
            const ended = zero.step()
            expect(() => zero.zeroGrad()).toThrow(expect.objectContaining({ code: 'OPTIMIZER_STEP_UNFINISHED' }))
            const refused = [zero.step(), cut.forward(x), noGrad(() => cut.forward(x)), cut.noSync(() => cut.forward(x))].map(failure)
            cut.zeroGrad()
            await ended
            for (const error of refused) {
              const told = { code: 'OPTIMIZER_STEP_UNFINISHED', message: expect.stringContaining('Await `optimizer.step()`') }
              expect(await error).toMatchObject(told)
            }
            optimizer.step()
          }
        }
        // With the optimizer first in a join its step begins with a collective.
        await (mode === 'alone' ? loop() : join([zero, cut], loop))
        expect(values(cut.parameters())).toEqual(values(whole.parameters()))
        // Of a step that has failed nothing is under way.
        const unfit = new Map(zero.parametersOf(rank).map((p) => [p, ones([9])]))
        for (let i = 0; i < 2; i++) expect(await failure(zero.step(unfit))).toMatchObject({ code: 'GRAD_MISMATCH' })
        zero.zeroGrad()
        return values(cut.parameters())
      },
      2,
    )
  }
})

test('DDP-53 parameters that are added later are cut up too, in a group that is not the default one', async () => {
  await overSeeds(
    3,
    async (rank) => {
      const pair = await newGroup([0, 2])
      if (rank === 1) return
      const make = () => seeded(1, () => new Sequential(new Linear(4, 8), new Linear(8, 2)))
      const [cut, whole] = [make(), make()]
      const [first, second] = [0, 1].map((i) => (of: Sequential) => of.at(i)!.parameters())
      const zero = new ZeroRedundancyOptimizer(first!(cut), Adam, { lr: 0.01 }, { processGroup: pair })
      const optimizer = new Adam(first!(whole), { lr: 0.01 })
      expect(zero.parametersOf(0).length + zero.parametersOf(1).length).toBe(2)
      zero.addParamGroup({ params: second!(cut), lr: 0.1 })
      optimizer.addParamGroup({ params: second!(whole), lr: 0.1 })
      expect([0, 1].map((r) => zero.parametersOf(r).reduce((sum, { numel }) => sum + numel, 0))).toEqual([32, 26])
      expect(() => zero.addParamGroup({ params: second!(cut) })).toThrow()
      for (let step = 0; step < 3; step++) {
        for (const model of [cut, whole]) {
          model.zeroGrad()
          lossOf(model.forward(batchOf(0, step)) as Tensor).backward()
        }
        await zero.step()
        optimizer.step()
      }
      expect(values(cut.parameters())).toEqual(values(whole.parameters()))
    },
    1,
  )
  await overSeeds(
    1,
    async () => {
      expect(() => new ZeroRedundancyOptimizer([], SGD, { lr: 1 })).toThrow()
      expect(() => new ZeroRedundancyOptimizer(net().parameters(), PlainOptimizer as never, {})).toThrow('OptimizerBase')
    },
    1,
  )
})

class PlainOptimizer {}

const plainState = (state: object): unknown =>
  JSON.parse(JSON.stringify(state, (_, each) => (each?.toArray === undefined ? each : each.toArray())))
