import { expect, test } from '@jest/globals'
import { cat } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { EmbeddingBag, Linear, Module, SGD } from '@postgrad/nn'
import { initProcessGroup } from '@postgrad/process-group'
import { expose } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import { getAllRemoteParams } from '../remote-params.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds, Ranks, withSeed } from './sim-ranks.suite.js'

// PyTorch's ddp_under_dist_autograd_test: four trainers, and a worker with the embedding and the layers after it.
const TRAINERS = ['worker0', 'worker1', 'worker2', 'worker3']
const REMOTE = 'worker4'

class RemoteEmbedding extends Module {
  readonly bag = new EmbeddingBag(2, 3, { mode: 'sum' })
  constructor() {
    super()
    this.bag.loadStateDict({ weight: tensor([0, 1].map(() => [0.5, 0.5, 0.5])) })
  }
  forward(indices: Tensor): Tensor {
    return this.bag.forward(indices)
  }
}

class RemoteNet extends Module {
  readonly fc = seeded(11, () => new Linear(5, 4))
  forward(x: Tensor): Tensor {
    return this.fc.forward(x).relu()
  }
}

expose({ RemoteEmbedding, RemoteNet, Linear })

class Hybrid extends Module {
  readonly fc1 = seeded(12, () => new Linear(2, 2))
  readonly fc2: Module & { forward(x: Tensor): Tensor | Promise<Tensor> }
  private readonly embedding: RemoteModule<RemoteEmbedding>
  private readonly net: RemoteModule<RemoteNet>
  constructor(
    embedding: RemoteModule<RemoteEmbedding>,
    net: RemoteModule<RemoteNet>,
    fc2: Module & { forward(x: Tensor): Tensor | Promise<Tensor> },
  ) {
    super()
    this.embedding = embedding
    this.net = net
    this.fc2 = fc2
  }
  async forward(dense: Tensor, sparse: Tensor): Promise<Tensor> {
    const rows = await this.embedding.forward(sparse)
    return this.fc2.forward(await this.net.forward(cat([this.fc1.forward(dense), rows], 1)))
  }
}

/** Trainers 0 and 1, and 2 and 3, have the same features with opposite values: what sums over trainers is 0. */
function examplesOf(rank: number): { dense: Tensor; sparse: Tensor; values: Tensor } {
  const sign = rank % 2 === 0 ? 1 : -1
  const points = [
    [-1, -1],
    [-1, 1],
    [1, -1],
    [1, 1],
  ]
  return {
    dense: tensor(points.map(([x, y]) => [x! * 0.5 + (rank >> 1), y!])),
    sparse: tensor([[0], [1], [1], [0]], { dtype: 'int32' }),
    values: tensor(points.map((_, i) => [sign * (1 + i)])),
  }
}

const isZero = (grad: Tensor): boolean => [...grad.dataSync()].every((x) => x === 0)

type Mode = 'no ddp' | 'ddp outside' | 'ddp inside'

/** Checks each trainer's context: gradients that data-parallel training reduces, and the others. */
async function hybrid(seed: number, mode: Mode, countOf: (rank: number) => number): Promise<void> {
  await withSeed(seed, async () => {
    const ranks = new Ranks(seed, 5)
    const outcomes = await ranks.all(async (rank) => {
      if (rank === 4) return
      const group = await initProcessGroup({ ranks: TRAINERS })
      using embedding = new RemoteModule<RemoteEmbedding>(REMOTE, RemoteEmbedding)
      using net = new RemoteModule<RemoteNet>(REMOTE, RemoteNet)
      const fc2 = seeded(13, () => new Linear(4, 1))
      const inner = mode === 'ddp inside' ? await DistributedDataParallel.create(fc2, { processGroup: group }) : fc2
      const model = new Hybrid(embedding, net, inner)
      const outer = mode === 'ddp outside' ? await DistributedDataParallel.create(model) : null
      const ddp = mode === 'ddp inside' ? (inner as DistributedDataParallel) : outer
      const reduced = new Set(ddp?.parameters())
      const train = async (): Promise<void> => {
        for (let i = 0; i < countOf(rank); i++) {
          await distAutograd.context(async (ctx) => {
            const { dense, sparse, values: factors } = examplesOf(rank)
            const output = await (outer ?? model).forward(dense, sparse)
            await ctx.backward([(output as Tensor).mul(factors).sum()])
            const gradients = ctx.gradients()
            for (const p of model.parameters()) {
              expect([p.shape, isZero(gradients.get(p)!)]).toEqual([p.shape, reduced.has(p) && i < 2])
              expect(p.grad).toBeNull()
            }
          })
        }
      }
      if (ddp === null) await train()
      else await ddp.join(train)
    })
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    if (ranks.bugs.length > 0) throw ranks.bugs[0]
  })
}

test('DDP-30 gradients in a context are the means, outside of remote layers, inside, and not at all', async () => {
  for (const mode of ['no ddp', 'ddp outside', 'ddp inside'] as const) for (const seed of [1, 2]) await hybrid(seed, mode, () => 2)
})

test('DDP-30 the same with uneven inputs', async () => {
  // Trainers 2 and 3 have twice as many.
  await hybrid(3, 'ddp outside', (rank) => (rank < 2 ? 1 : 2))
})

test('DDP-31 a pass of a context has no second derivatives: DDP_CREATE_GRAPH', async () => {
  await overSeeds(2, async () => {
    const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 3)))
    const error = await distAutograd.context(async (ctx) => {
      const loss = lossOf(await model.forward(batchOf(0, 0)))
      return failure(ctx.backward([loss], { createGraph: true }))
    })
    expect(error.code).toBe('DDP_CREATE_GRAPH')
  })
})

test('DDP-31 a distributed pass gives the gradients that a local one gives, in a join too', async () => {
  for (const joins of [false, true]) {
    for (const options of [
      {},
      { firstBucketMb: 1e-5, bucketCapMb: 1e-5 },
      { gradientAsBucketView: true },
      { findUnusedParameters: true },
    ]) {
      await overSeeds(2, async (rank) => {
        const model = await DistributedDataParallel.create(
          seeded(1, () => new Linear(4, 3)),
          options,
        )
        const run = async () => {
          for (let step = 0; step < 2; step++) {
            const inContext = await distAutograd.context(async (ctx) => {
              await ctx.backward([lossOf(await model.forward(batchOf(rank, step)))])
              const gradients = ctx.gradients()
              return values(model.parameters().map((p) => gradients.get(p)!))
            })
            expect(model.module.weight.grad).toBeNull()
            await model.backward(lossOf(await model.forward(batchOf(rank, step))))
            expect(inContext).toEqual(grads(model))
            model.zeroGrad()
          }
        }
        await (joins ? model.join(run) : run())
      })
    }
  }
})

test('DDP-31 a remote layer and a reduced one: gradients of both are those of one place', async () => {
  await withSeed(1, async () => {
    const ranks = new Ranks(1, 3)
    const outcomes = await ranks.all(async (rank) => {
      if (rank === 0) return null
      await initProcessGroup({ ranks: ['worker1', 'worker2'] })
      using layer = new RemoteModule<Linear>('worker0', Linear, [4, 5])
      const head = seeded(5, () => new Linear(5, 1))
      const model = await DistributedDataParallel.create(head)
      const here = seeded(5, () => new Linear(5, 1))
      return distAutograd.context(async (ctx) => {
        const h = await layer.forward(batchOf(rank, 0))
        await ctx.backward([lossOf(await model.forward(h))])
        lossOf(here.forward(h.detach())).backward()
        return [values([ctx.gradients().get(head.weight)!]), values([here.weight.grad])] as [[number[][]], [number[][]]]
      })
    })
    const [first, second] = outcomes.slice(1).map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value!
    })
    const mean = first![1][0][0]!.map((x, i) => Math.fround(Math.fround(x / 2) + Math.fround(second![1][0][0]![i]! / 2)))
    expect(first![0][0][0]).toEqual(mean)
    expect(second![0][0][0]).toEqual(mean)
  })
})

test('DDP-32 a step that is part of the pass uses the means', async () => {
  const results = await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(seeded(1, () => new Linear(4, 3)))
    const remote = await getAllRemoteParams(model)
    const optimizer = new DistributedOptimizer(SGD, remote, { lr: 0.1 })
    await optimizer.ready()
    const here = seeded(1, () => new Linear(4, 3))
    const twin = await DistributedDataParallel.create(here)
    for (let step = 0; step < 2; step++) {
      await distAutograd.context(async (ctx) => {
        await ctx.backward([lossOf(await model.forward(batchOf(rank, step)))], { optimizer })
      })
      here.zeroGrad()
      await twin.backward(lossOf(await twin.forward(batchOf(rank, step))))
      new SGD(here.parameters(), { lr: 0.1 }).step()
    }
    await optimizer.dispose()
    for (const each of remote) each.dispose()
    expect(values(model.parameters())).toEqual(values(here.parameters()))
    return values(model.parameters())
  })
  expect(results[0]).toEqual(results[1])
})

test('DDP-33 a pass of a context that does not reach all parameters fails and names them, and the next may be right', async () => {
  await overSeeds(2, async (rank) => {
    class Two extends Module {
      readonly a = new Linear(4, 2)
      readonly b = new Linear(4, 2)
      forward(x: Tensor): [Tensor, Tensor] {
        return [this.a.forward(x), this.b.forward(x)]
      }
    }
    const model = await DistributedDataParallel.create(new Two())
    await distAutograd.context(async (ctx) => {
      const [a] = await model.forward(batchOf(rank, 0))
      expect(await failure(ctx.backward([lossOf(a)]))).toMatchObject({
        code: 'DDP_REDUCTION_UNFINISHED',
        values: { parameters: ['b.weight', 'b.bias'] },
      })
    })
    await distAutograd.context(async (ctx) => {
      await ctx.backward((await model.forward(batchOf(rank, 0))).map(lossOf))
      expect(ctx.gradients().size).toBe(4)
    })
  })
})

test('DDP-30 two passes of contexts that meet in one model are refused, with the parameter', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Linear(4, 2))
    await distAutograd.context(async (ctx) => {
      const losses = [lossOf(await model.forward(batchOf(rank, 0))), lossOf(await model.forward(batchOf(rank, 1)))]
      const passes = await Promise.allSettled(losses.map((loss) => ctx.backward([loss])))
      const failed = passes.filter((each) => each.status === 'rejected')
      expect(failed).toMatchObject([
        {
          reason: {
            code: 'DDP_MARKED_READY_TWICE',
            message: expect.stringContaining('Expected to mark a variable ready only once'),
            values: { parameter: expect.stringMatching(/weight|bias/) },
          },
        },
      ])
    })
  })
})
