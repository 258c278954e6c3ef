/** SyncBatchNorm beside what surrounds it: steps in backward, groups that are made again, its first errors. */
import { expect, test } from '@jest/globals'
import { BatchNorm1d, Linear, Sequential, SGD } from '@postgrad/nn'
import { destroyProcessGroup, initProcessGroup, newGroup, type ProcessGroup } from '@postgrad/process-group'
import { allReduceHook } from '../ddp/comm-hooks.js'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { seeded } from '../ddp/models.suite.js'
import { overSeeds } from '../ddp/sim-ranks.suite.js'
import { hookWithZeroStep, ZeroRedundancyOptimizer } from '../ddp/zero-redundancy-optimizer.js'
import { convertSyncBatchNorm, type SyncBatchNorm } from './sync-batch-norm.js'
import { batchOf, numbers, stateOf } from './sync-norm.suite.js'

/** Each parameter has a bucket of its own. */
const TINY = { firstBucketMb: 1e-6, bucketCapMb: 1e-6 }

test('SBN-2, DDP-56 steps in backward have the bits of steps behind it on 3, 4 and 5 ranks, in each order of delivery', async () => {
  for (const size of [3, 4, 5]) {
    const train = async (rank: number, overlapWithDdp: boolean): Promise<number[]> => {
      const module = convertSyncBatchNorm(seeded(3, () => new Sequential(new Linear(4, 4), new BatchNorm1d(4))))
      using model = await DistributedDataParallel.create(module, TINY)
      const optimizer = new ZeroRedundancyOptimizer(model.parameters(), SGD, { lr: 0.1 }, { overlapWithDdp })
      model.registerCommHook(null, overlapWithDdp ? hookWithZeroStep(allReduceHook, optimizer) : allReduceHook)
      for (let step = 0; step < 3; step++) {
        optimizer.zeroGrad()
        await model.backward((await model.forward(batchOf(rank, step, 3, [4], 'float32'))).square().mean())
        if (!overlapWithDdp) await optimizer.step()
      }
      return stateOf(module)
    }
    const want = await overSeeds(size, (rank) => train(rank, false))
    await overSeeds(size, async (rank) => expect(await train(rank, true)).toEqual(want[rank]), 12, { timeoutMs: 5_000 })
  }
})

test('SBN-5 conversion gives a layer of a group that was destroyed the new one, and its tensors stay', async () => {
  await overSeeds(2, async (rank) => {
    const module = convertSyncBatchNorm(new Sequential(new Linear(4, 4), new BatchNorm1d(4)))
    const x = batchOf(rank, 0, 3, [4], 'float32')
    const first = module.at(1) as unknown as SyncBatchNorm
    await module.forward(x)
    destroyProcessGroup()
    const group = await initProcessGroup()
    convertSyncBatchNorm(module)
    const second = module.at(1) as unknown as SyncBatchNorm
    const groupOf = ({ processGroup }: SyncBatchNorm): ProcessGroup => processGroup
    expect(groupOf(second)).toBe(group)
    for (const name of ['weight', 'bias', 'runningMean', 'runningVar', 'numBatchesTracked'] as const) expect(second[name]).toBe(first[name])
    const model = await DistributedDataParallel.create(module)
    await model.backward((await model.forward(x)).square().sum())
    expect(numbers(second.numBatchesTracked!)).toEqual([2])
    // What is of the group already stays.
    convertSyncBatchNorm(module, group)
    expect(module.at(1)).toBe(second)
    const other = await newGroup([0, 1])
    convertSyncBatchNorm(module, other)
    expect(groupOf(module.at(1) as unknown as SyncBatchNorm)).toBe(other)
  })
})
