/** Large gradients are reduced in place, small ones in a buffer: results are alike, only memory differs. */
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Linear, Module } from '@postgrad/nn'
import { type Tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { overSeeds } from './sim-ranks.suite.js'

/** A weight of it has more than 64 KiB, a bias less. */
const WIDTH = 130

class Wide extends Module {
  readonly a = seeded(1, () => new Linear(WIDTH, WIDTH))
  readonly b = seeded(2, () => new Linear(WIDTH, WIDTH))
  forward(x: Tensor, both = true): Tensor {
    const h = this.a.forward(x)
    return both ? this.b.forward(h) : h
  }
}
const wideBatch = (rank: number, step: number): Tensor => batchOf(rank, step, 2, WIDTH)

/** Equal where all numbers are; `expect` takes long to compare so many. */
const digest = (numbers: unknown): string => createHash('sha256').update(JSON.stringify(numbers)).digest('hex')

/** Each with all gradients in one buffer, by a hook that does nothing else. */
async function inBoth(
  options: DistributedDataParallelOptions,
  run: (model: DistributedDataParallel<Wide>, rank: number) => Promise<unknown>,
): Promise<void> {
  for (const size of [2, 3]) {
    const results = await overSeeds(
      size,
      async (rank) => {
        const inPlace = await DistributedDataParallel.create(new Wide(), options)
        const inOneBuffer = await DistributedDataParallel.create(new Wide(), options)
        inOneBuffer.registerCommHook(null, allReduceHook)
        const [got, expected] = [digest(await run(inPlace, rank)), digest(await run(inOneBuffer, rank))]
        expect(got).toEqual(expected)
        return got
      },
      1,
    )
    for (const other of results) expect(other).toEqual(results[0])
  }
}

test('DDP-17 steps, sums of noSync, unused parameters, contexts: the bits of one buffer', async () => {
  const loss = async (model: DistributedDataParallel<Wide>, rank: number, step: number, both = true) =>
    lossOf(await model.forward(wideBatch(rank, step), both))
  await inBoth({ firstBucketMb: 1e-3, bucketCapMb: 0.05 }, async (model, rank) => {
    for (let step = 0; step < 3; step++) {
      if (step !== 1) model.zeroGrad()
      await model.noSync(async () => (await loss(model, rank, step)).backward())
      await model.backward(await loss(model, rank, step + 10))
    }
    return grads(model)
  })
  for (const options of [{ findUnusedParameters: true }, { findUnusedParameters: true, gradientAsBucketView: true }]) {
    await inBoth(options, async (model, rank) => {
      await model.backward(await loss(model, rank, 0))
      const before = digest(values([model.module.b.weight.grad]))
      // An unused parameter keeps its gradient, to the bit.
      await model.backward(await loss(model, rank, 1, false))
      expect(digest(values([model.module.b.weight.grad]))).toBe(before)
      await model.backward(await loss(model, rank, 2, rank === 0))
      return grads(model)
    })
  }
  await inBoth({}, async (model, rank) =>
    distAutograd.context(async (ctx) => {
      for (const step of [0, 1]) await ctx.backward([await loss(model, rank, step)])
      return values(model.parameters().map((p) => ctx.gradients().get(p)!))
    }),
  )
})

test('DDP-17 a large gradient is not copied, one that shares its memory is', async () => {
  await overSeeds(
    2,
    async (rank) => {
      const model = await DistributedDataParallel.create(new Wide())
      const { weight, bias } = model.module.a
      let given: unknown = null
      weight.registerPostAccumulateGradHook((p) => {
        given = p.grad!.storage
      })
      await model.backward(lossOf(await model.forward(wideBatch(rank, 0))))
      expect(weight.grad!.storage).toBe(given)
      const expected = grads(model)

      // All gradients in one tensor of the user's.
      const parameters = model.parameters()
      const all = zeros([parameters.reduce((sum, { numel }) => sum + numel, 0)])
      let at = 0
      for (const p of parameters) {
        p.grad = raw.reshape(raw.narrow(all, 0, at, p.numel), p.shape)
        at += p.numel
      }
      await model.backward(lossOf(await model.forward(wideBatch(rank, 0))))
      expect(grads(model)).toEqual(expected)
      for (const p of parameters) expect(p.grad!.storage).toBe(all.storage)
      expect(bias!.grad!.offset).toBe(WIDTH * WIDTH)
    },
    1,
  )
})
