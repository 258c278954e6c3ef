import { expect, test } from '@jest/globals'
import { BatchNorm1d, Embedding, Linear, Module, Sequential, SGD } from '@postgrad/nn'
import { ones, type Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { type Joinable, join } from './join.js'
import { batchOf, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'
import { ZeroRedundancyOptimizer } from './zero-redundancy-optimizer.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

test('DDP-20 sums are divided by all ranks, or by those that have inputs', async () => {
  for (const divideByInitialWorldSize of [true, false]) {
    await overSeeds(3, async (rank) => {
      const model = await DistributedDataParallel.create(seeded(1, () => new Linear(1, 1, { bias: false })))
      await model.join(
        async () => {
          for (let i = 0; i < (rank === 0 ? 2 : 3); i++) {
            model.zeroGrad()
            await model.backward((await model.forward(ones([50, 1]))).sum())
            const share = i < 2 || !divideByInitialWorldSize ? 1 : 2 / 3
            expect(await model.module.weight.grad!.item()).toBeCloseTo(50 * share, 4)
          }
        },
        { divideByInitialWorldSize },
      )
    })
  }
})

class Branches extends Module {
  readonly used = new Linear(4, 4)
  readonly sometimes = new Linear(4, 4)
  forward(x: Tensor, all = true): Tensor {
    const h = this.used.forward(x)
    return all ? this.sometimes.forward(h) : h
  }
}

/** Rows of a table, of which only those that are looked up have a gradient. */
class Rows extends Module {
  readonly table = new Embedding(5, 4, { sparse: true })
  forward(x: Tensor): Tensor {
    return this.table.forward(x.gt(0).to('int32').sum(1))
  }
}

const NETS: readonly [string, () => Module & { forward(x: Tensor, all?: boolean): Tensor }, DistributedDataParallelOptions][] = [
  ['a batch norm', () => new Sequential(new Linear(4, 4), new BatchNorm1d(4), new Linear(4, 2)), SMALL],
  ['sparse gradients', () => new Rows(), {}],
  ['a small net', () => new Linear(4, 2), {}],
  ['unused parameters', () => new Branches(), { ...SMALL, findUnusedParameters: true }],
  ['a static graph', () => new Branches(), { ...SMALL, staticGraph: true }],
]

test('DDP-21 with uneven inputs nobody waits in vain, and all end with the model of who had most', async () => {
  for (const [, make, options] of NETS) {
    for (const syncEvery of [1, 3]) {
      const results = await overSeeds(
        4,
        async (rank) => {
          const model = await DistributedDataParallel.create(seeded(1, make), options)
          const optimizer = new SGD(model.parameters(), { lr: 0.05 })
          // Rank 0 has nothing at all.
          const count = rank === 0 ? 0 : 2 + 2 * rank
          await model.join(async () => {
            for (let i = 0; i < count; i++) {
              const run = async () =>
                model.backward(lossOf(await model.forward(batchOf(rank, i), options.findUnusedParameters !== true || rank === 3)))
              if (i % syncEvery !== syncEvery - 1) {
                await model.noSync(run)
                continue
              }
              await run()
              optimizer.step()
              optimizer.zeroGrad()
            }
          })
          return values([...model.parameters(), ...model.buffers()])
        },
        1,
      )
      for (const other of results) expect(other).toEqual(results[0])
    }
  }
})

test('DDP-21 even inputs in a join, and a join that is off, change nothing', async () => {
  const results = []
  for (const enable of [true, false]) {
    results.push(
      await overSeeds(2, async (rank) => {
        const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 2)))
        await model.join(async () => model.backward(lossOf(await model.forward(batchOf(rank, 0)))), { enable })
        return values(model.parameters().map(({ grad }) => grad))
      }),
    )
  }
  expect(results[0]).toEqual(results[1])
})

test('DDP-22 all throw when the first has no input left, if that is asked for', async () => {
  await overSeeds(3, async (rank) => {
    const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 2)))
    let done = 0
    const loop = model.join(
      async () => {
        for (; done < 3 + rank; done++) await model.backward(lossOf(await model.forward(batchOf(rank, done))))
      },
      { throwOnEarlyTermination: true },
    )
    const error = await failure(loop)
    expect(error).toMatchObject({ code: 'JOIN_TERMINATED' })
    expect(String(error)).toContain(rank === 0 ? 'Rank 0 exhausted all inputs.' : 'Detected at least one rank that exhausted inputs.')
    expect(done).toBe(3)
  })
})

test('DDP-23 several objects join together: their hooks run in order, and know the last', async () => {
  const results = await overSeeds(3, async (rank, group) => {
    const seen: string[] = []
    const other = (name: string): Joinable => ({
      joinGroup: group,
      joinContext: null,
      joinHook: () => ({
        mainHook: () => void seen.push(`${name} main`),
        postHook: (isLast) => void seen.push(`${name} after ${isLast}`),
      }),
    })
    const [a, b] = [other('a'), other('b')]
    const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 2)))
    const result = await join([model, a, b], async () => {
      for (let i = 0; i < 2 + Number(rank === 2); i++) {
        const x = batchOf(rank, i)
        await model.backward(lossOf(await model.forward(x)))
        await a.joinContext!.notify(a)
      }
      return rank
    })
    expect(result).toBe(rank)
    expect(a.joinContext).toBeNull()
    return seen
  })
  const early = ['a main', 'b main', 'a after false', 'b after false']
  expect(results).toEqual([early, early, ['a after true', 'b after true']])
  await overSeeds(1, async (_, group) => {
    const model = await DistributedDataParallel.create(new Linear(4, 2))
    expect(await failure(join([], async () => {}))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await failure(join([model], 3 as never))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await failure(model.join(async () => Promise.reject(new Error('mine'))))).toMatchObject({ message: 'mine' })
    expect(group.error).toBeNull()
  })
})

test('DDP-21 the mean of a joined rank is as if it had brought zeros', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 2)))
    await model.join(async () => {
      if (rank === 0) return
      await model.backward(lossOf(await model.forward(batchOf(1, 0))))
      const alone = seeded(1, () => new Linear(4, 2))
      lossOf(alone.forward(batchOf(1, 0))).backward()
      expect(model.module.weight.grad!.toArray()).toEqual(raw.mul(alone.weight.grad!, 0.5).toArray())
    })
  })
})

test('DDP-23, DDP-53 an optimizer that is cut over the ranks joins too: the steps are those of a whole one', async () => {
  const COUNTS = [1, 4, 0]
  for (const options of [SMALL, { ...SMALL, gradientAsBucketView: true }, { ...SMALL, findUnusedParameters: true }]) {
    const results = await overSeeds(3, async (rank) => {
      const trained = async (isCut: boolean): Promise<unknown> => {
        const model = await DistributedDataParallel.create(
          seeded(1, () => new Sequential(new Linear(4, 4), new Linear(4, 2))),
          options,
        )
        const zero = isCut ? new ZeroRedundancyOptimizer(model.parameters(), SGD, { lr: 0.1, momentum: 0.9 }) : null
        const whole = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
        const loop = async () => {
          for (let i = 0; i < COUNTS[rank]!; i++) {
            model.zeroGrad()
            await model.backward(lossOf(await model.forward(batchOf(rank, i))))
            if (zero === null) whole.step()
            else await zero.step()
          }
        }
        await join(zero === null ? [model] : [model, zero], loop)
        if (zero !== null) expect(zero.joinContext).toBeNull()
        return values(model.parameters())
      }
      const [cut, whole] = [await trained(true), await trained(false)]
      expect(cut).toEqual(whole)
      return cut
    })
    for (const other of results) expect(other).toEqual(results[0])
  }
})
