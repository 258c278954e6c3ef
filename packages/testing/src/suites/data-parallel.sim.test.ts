/** A step of data-parallel training in the orders in which its messages can come: the same bits in each, outside of contexts and inside. */
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Module, parameter } from '@postgrad/nn'
import { DistributedDataParallel, SyncBatchNorm } from '@postgrad/parallel'
import { initProcessGroup } from '@postgrad/process-group'
import { currentWorker } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { explore } from '../explore/explore.js'

/** Two factors, each in a bucket of its own. */
class Product extends Module {
  readonly a = parameter(tensor([0.3]))
  readonly b = parameter(tensor([0.7]))
  forward(x: Tensor): Tensor {
    return x.mul(this.a).mul(this.b)
  }
}

test.each([
  ['outside', false],
  ['inside', true],
])('DDP-1, DDP-5, DDP-31: %s of a context a step gives the same bits in each of many orders', async (_where, isInside) => {
  const { orders } = await explore({ workers: 3, ordersMax: 30, seeds: 8 }, (sim) =>
    Promise.all(
      sim.workers.map(({ name }) =>
        sim.on(name).run(async () => {
          await initProcessGroup()
          const model = await DistributedDataParallel.create(new Product(), { firstBucketMb: 1e-6, findUnusedParameters: true })
          expect(model.buckets).toEqual([[1], [0]])
          const loss = (await model.forward(tensor([[1e8, 1, -1e8][currentWorker().info.id]!]))).sum()
          if (!isInside) await model.backward(loss)
          else {
            const found = await distAutograd.context(async (ctx) => {
              await ctx.backward([loss])
              const gradients = ctx.gradients()
              return model.parameters().map((p) => gradients.get(p)!.toArray())
            })
            return found
          }
          return model.parameters().map(({ grad }) => grad!.toArray())
        }),
      ),
    ),
  )
  expect(orders).toBeGreaterThan(8)
})

/** Two norms side by side, so that their exchanges and the reducer's are under way at once. */
class Norms extends Module {
  readonly scale = parameter(tensor([0.7]))
  readonly norms = [new SyncBatchNorm(1), new SyncBatchNorm(1)]
  async forward(x: Tensor): Promise<Tensor> {
    const [a, b] = await Promise.all(this.norms.map((norm, i) => norm.forward(i === 0 ? x.mul(this.scale) : x.square())))
    return a!.mul(b!)
  }
}

test('SBN-4: batch norms over all ranks give the same bits in each of many orders', async () => {
  const { orders } = await explore({ workers: 3, ordersMax: 40, seeds: 8 }, (sim) =>
    Promise.all(
      sim.workers.map(({ name }) =>
        sim.on(name).run(async () => {
          await initProcessGroup()
          const model = await DistributedDataParallel.create(new Norms(), { firstBucketMb: 1e-6, bucketCapMb: 1e-6 })
          const { id } = currentWorker().info
          await model.backward((await model.forward(tensor([[0.3 + id], [1e3], [-2 - id]]))).square().mean())
          return [...model.parameters().map(({ grad }) => grad!.toArray()), ...model.buffers().map((buffer) => buffer.toArray())]
        }),
      ),
    ),
  )
  expect(orders).toBeGreaterThan(8)
})
