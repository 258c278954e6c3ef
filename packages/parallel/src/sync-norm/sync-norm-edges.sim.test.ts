/** SyncBatchNorm with steps in backward, groups that are made again, and its first errors. */
import { expect, jest, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { BatchNorm1d, Linear, Sequential, SGD } from '@postgrad/nn'
import { destroyProcessGroup, initProcessGroup, newGroup, type ProcessGroup } from '@postgrad/process-group'
import { ones } from '@postgrad/tensor'
import { allReduceHook } from '../ddp/comm-hooks.js'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { seeded } from '../ddp/models.suite.js'
import { failure, overSeeds } from '../ddp/sim-ranks.suite.js'
import { hookWithZeroStep, ZeroRedundancyOptimizer } from '../ddp/zero-redundancy-optimizer.js'
import { PipelineStage } from '../pipelining/stage.js'
import { convertSyncBatchNorm, SyncBatchNorm } from './sync-batch-norm.js'
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
    // A layer of the group stays.
    convertSyncBatchNorm(module, group)
    expect(module.at(1)).toBe(second)
    const other = await newGroup([0, 1])
    convertSyncBatchNorm(module, other)
    expect(groupOf(module.at(1) as unknown as SyncBatchNorm)).toBe(other)
  })
})

test('SBN-7 arguments of other kinds are refused in words', async () => {
  await overSeeds(1, async (_, group) => {
    const invalid = (message: string) => expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) })
    expect(() => new SyncBatchNorm(4, null as never)).toThrow(invalid('SyncBatchNorm: expected an object with options (eps'))
    expect(() => new SyncBatchNorm(4, group as never)).toThrow(invalid('SyncBatchNorm: expected the options eps'))
    expect(() => new SyncBatchNorm(4, { eps: 'x' as never })).toThrow(invalid('SyncBatchNorm: expected a number ≥ 0 as eps'))
    const norm = new SyncBatchNorm(4)
    for (const wrong of [undefined, null, [[1, 2]]])
      expect(await failure(norm.forward(wrong as never))).toEqual(invalid('SyncBatchNorm: expected a tensor as the input'))
    expect(await failure(norm.forward(norm.forward(ones([2, 4])) as never))).toEqual(invalid('Await the promise first.'))
  })
})

test('SBN-8 errors of a row say which layer it is of', async () => {
  await overSeeds(2, async (rank) => {
    const layers = [new SyncBatchNorm(4), new SyncBatchNorm(4 + rank)]
    await layers[0]!.forward(ones([2, 4]))
    const error = (await failure(layers[1]!.forward(ones([2, 4 + rank])))) as Error
    expect(error).toMatchObject({
      op: 'SyncBatchNorm',
      message: expect.stringContaining(`SyncBatchNorm: forward of layer 1 of its group (C = ${4 + rank}), forward number 0 of it`),
      values: { layer: 1, call: 0, direction: 'forward', channels: 4 + rank },
      cause: { code: (error as Error & { code: string }).code },
    })
    const { remedy, cause } = error as PostgradError
    expect([remedy, error.message.split(remedy!).length]).toEqual([expect.stringContaining('as many channels'), 2])
    expect(error.message).not.toContain((cause as PostgradError).remedy)
  })
})

test('SBN-8 of a rank that does not come a timeout says what to look at, and nothing of a send', async () => {
  await overSeeds(
    2,
    async (rank) => {
      if (rank === 1) return
      const error = (await failure(new SyncBatchNorm(4).forward(ones([2, 4])))) as PostgradError
      expect([error.code, error.remedy]).toEqual(['COLLECTIVE_TIMEOUT', expect.stringContaining('in training mode')])
      expect(error.message).not.toContain('Each tensor that is sent')
    },
    1,
    { timeoutMs: 50 },
  )
})

test('SBN-2 a stage of a pipeline drops no rejection of a forward that is awaited, and says so', () => {
  const rejected = Promise.reject(new Error('no'))
  const then = jest.spyOn(rejected, 'then')
  const stage = new PipelineStage({ forward: () => rejected } as never, 0, 1)
  const options = { training: false, isLastOne: true, kwargs: undefined, lossOf: null }
  expect(() => stage.forward({ value: ones([1]), wanted: [] }, 0, options)).toThrow(
    expect.objectContaining({ code: 'PIPELINE_FORWARD_ASYNC', message: expect.stringContaining('SyncBatchNorm') }),
  )
  expect(then).toHaveBeenCalledWith(undefined, expect.any(Function))
})
