import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from '@jest/globals'
import { Linear, Sequential, SGD, Tanh } from '@postgrad/nn'
import { allReduce } from '@postgrad/process-group'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { batchOf, lossOf, seeded, trainedInOnePlace, values } from './models.suite.js'
import { overSeeds } from './sim-ranks.suite.js'

const net = (seed = 7): Sequential => seeded(seed, () => new Sequential(new Linear(4, 8), new Tanh(), new Linear(8, 3)))
const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

test('DDP-1 parameters are those of one place that sums in the order of ranks, to the last bit, on all ranks', async () => {
  for (const options of [
    {},
    SMALL,
    { ...SMALL, findUnusedParameters: true },
    { ...SMALL, gradientAsBucketView: true },
    { ...SMALL, staticGraph: true },
  ]) {
    for (const size of [1, 3]) {
      const expected = trainedInOnePlace(net, size, 3)
      const results = await overSeeds(
        size,
        async (rank) => {
          // Other values: those of rank 0 count.
          const model = await DistributedDataParallel.create(net(7 + rank), options)
          const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
          for (let step = 0; step < 3; step++) {
            optimizer.zeroGrad()
            await model.backward(lossOf(await model.forward(batchOf(rank, step))))
            optimizer.step()
          }
          return values(model.parameters())
        },
        2,
      )
      for (const got of results) expect(got).toEqual(expected)
    }
  }
})

test('DDP-57 hooks of tensors and the communication hook find the AsyncLocalStorage of the program that has called backward', async () => {
  const store = new AsyncLocalStorage<number>()
  await overSeeds(2, (rank) =>
    store.run(rank, async () => {
      const seen: unknown[] = []
      const model = await DistributedDataParallel.create(net(), SMALL)
      model.registerCommHook(null, async (_, { buffer }) => {
        seen.push(store.getStore())
        return await allReduce(buffer)
      })
      for (const parameter of model.parameters()) {
        parameter.registerHook(() => {
          seen.push(store.getStore())
          return undefined
        })
      }
      await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
      expect(seen.length).toBeGreaterThan(model.parameters().length)
      expect(new Set(seen)).toEqual(new Set([rank]))
    }),
  )
})
