import { expect, test } from '@jest/globals'
import { Adam, Linear, Sequential, SGD, StepLR, Tanh } from '@postgrad/nn'
import { allGatherObject, newGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { allReduceHook, noopHook, PostLocalSGDState, postLocalSGDHook } from './comm-hooks.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import type { CommHook } from './grad-bucket.js'
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

const plainState = (state: object): unknown =>
  JSON.parse(JSON.stringify(state, (_, each) => (each?.toArray === undefined ? each : each.toArray())))
