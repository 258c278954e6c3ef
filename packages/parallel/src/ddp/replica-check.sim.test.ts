import { expect, test } from '@jest/globals'
import { BatchNorm1d, Linear, Module, type Optimizer, Sequential, SGD } from '@postgrad/nn'
import { allReduce, broadcastCoalesced } from '@postgrad/process-group'
import { randn, type Tensor } from '@postgrad/tensor'
import { PostLocalSGDState, postLocalSGDHook } from './comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { PeriodicModelAverager, PostLocalSGDOptimizer } from './local-sgd.js'
import { batchOf, lossOf, seeded } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'

const net = () => seeded(3, () => new Sequential(new Linear(4, 4), new BatchNorm1d(4), new Linear(4, 2)))
const create = (options: DistributedDataParallelOptions = {}) => DistributedDataParallel.create(net(), { checkReplicas: 2, ...options })
type Model = Awaited<ReturnType<typeof create>>
type Steps = Pick<Optimizer, 'zeroGrad'> & { step(): void | Promise<void> }

const sgd = (model: Model): SGD => new SGD(model.parameters(), { lr: 0.1 })

/** So many steps, from one on. */
async function steps(model: Model, rank: number, count: number, optimizer: Steps = sgd(model)): Promise<void> {
  for (let step = 0; step < count; step++) {
    optimizer.zeroGrad()
    await model.backward(lossOf(await model.forward(batchOf(rank, step))))
    await optimizer.step()
  }
}

/** The lowest bit of the first element: no operation of a program. */
function flip({ storage }: Tensor): void {
  const array = storage.host!
  const words = new Int32Array(array.buffer, array.byteOffset, 1)
  words[0]! ^= 1
}

test('DDP-26 one bit that differs is REPLICAS_DIFFER on all ranks, which names tensor, digests and who has diverged, until ranks are alike', async () => {
  await overSeeds(
    3,
    async (rank, group) => {
      const model = await create()
      await steps(model, rank, 5)
      const [, , scale] = model.parameters()
      if (rank === 1) flip(scale!)
      const error = await failure(steps(model, rank, 3))
      expect(error).toMatchObject({ code: 'REPLICAS_DIFFER', values: { tensor: '1.weight', kind: 'parameter', number: 2, diverged: [1] } })
      const { digests } = error.values as { digests: string[] }
      expect(digests[2]).toBe(digests[0])
      expect(String(error)).toContain(`rank 0 (worker0), rank 2 (worker2): ${digests[0]}; rank 1 (worker1): ${digests[1]}`)
      expect(await failure(model.forward(batchOf(rank, 0)))).toMatchObject({ code: 'REPLICAS_DIFFER' })
      await broadcastCoalesced([...model.parameters(), ...model.buffers()], 0, { group })
      await steps(model, rank, 5)
    },
    1,
  )
})

test('DDP-26 without a majority no rank is called diverged, and a number of reductions goes by between two comparisons', async () => {
  await overSeeds(2, async (rank) => {
    const model = await create({ checkReplicas: 3 })
    await steps(model, rank, 4)
    if (rank === 1) flip(model.parameters()[0]!)
    await steps(model, rank, 2)
    const error = await failure(steps(model, rank, 1))
    expect(error).toMatchObject({ code: 'REPLICAS_DIFFER', values: { tensor: '0.weight', reductions: 6, diverged: [] } })
    expect(String(error)).toContain('No majority agrees')
  })
})

test('DDP-26 ranks without inputs compare as well, and several forwards before one pass', async () => {
  await overSeeds(
    3,
    async (rank) => {
      const model = await create({ checkReplicas: 1 })
      await model.join(() => steps(model, rank, 2 * rank))
      await model.backward([lossOf(await model.forward(batchOf(rank, 0))), lossOf(await model.forward(batchOf(rank, 1)))])
      if (rank === 1) flip(model.parameters()[0]!)
      // Rank 0 takes no step in a join without inputs, so what it has is not compared.
      const error = await failure(model.join(() => steps(model, rank, 2 * rank)))
      expect(error).toMatchObject({
        code: 'REPLICAS_DIFFER',
        values: { diverged: [], digests: [null, expect.any(String), expect.any(String)] },
      })
    },
    3,
  )
})

test('DDP-26 buffers are compared behind what makes them alike, and not where nothing does', async () => {
  await overSeeds(3, async (rank, group) => {
    await steps(await create({ checkReplicas: 1 }), rank, 3)
    const own = await create({ checkReplicas: 1, broadcastBuffers: false })
    await steps(own, rank, 3)
    // Between two calls of a hook after forward, ranks have their own.
    const late = await create({ checkReplicas: 1 })
    late.registerBufferCommHook(null, (_, all) => broadcastCoalesced([...all.values()], 0, { group }))
    for (let cycle = 0; cycle < 3; cycle++) {
      await late.noSync(() => late.forward(batchOf(rank, 7)))
      await steps(late, rank, 1)
    }
    for (const location of ['preForward', 'postForward'] as const) {
      const model = await create({ checkReplicas: 1 })
      const buffers = (_: null, all: ReadonlyMap<string, Tensor>): unknown => allReduce(all.get('1.running_mean')!, { group })
      model.registerBufferCommHook(null, buffers, { location })
      // The hook leaves the variance out.
      expect(await failure(steps(model, rank, 3))).toMatchObject({
        code: 'REPLICAS_DIFFER',
        values: { tensor: '1.running_var', kind: 'buffer', number: 1 },
      })
    }
  })
})

test('DDP-26 nothing is compared where replicas differ by design: under postLocalSGDHook, and with averaged parameters', async () => {
  await overSeeds(2, async (rank) => {
    const hooked = await create({ checkReplicas: 1 })
    hooked.registerCommHook(new PostLocalSGDState({ startLocalSGDIter: 1 }), postLocalSGDHook)
    await steps(hooked, rank, 4)
    const wrapped = await create({ checkReplicas: 1 })
    wrapped.registerCommHook(new PostLocalSGDState({ startLocalSGDIter: 0 }), async (state, bucket) => postLocalSGDHook(state, bucket))
    await steps(wrapped, rank, 4)
    const averaged = await create({ checkReplicas: 1 })
    await steps(averaged, rank, 4, new PostLocalSGDOptimizer(sgd(averaged), new PeriodicModelAverager({ period: 3 })))
    const averager = new PeriodicModelAverager({ period: 3 })
    await averager.averageParameters(averaged.parameters())
    if (rank === 0) flip(averaged.parameters()[0]!)
    await averaged.forward(batchOf(rank, 0))
  })
})

/** Its weight is a view of any strides. */
class Turned extends Module {
  readonly weight = seeded(1, () => randn([2, 4]))
    .transpose(0, 1)
    .requiresGrad_()
  forward(x: Tensor): Tensor {
    return x.matmul(this.weight)
  }
}

test('DDP-26 checkReplicas is a number, the same on all ranks; tensors of any strides are read in the order of their elements', async () => {
  await overSeeds(2, async (rank) => {
    for (const checkReplicas of [-1, 1.5, Number.NaN, '2', true] as number[])
      expect(await failure(create({ checkReplicas }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await failure(create({ checkReplicas: rank }))).toMatchObject({
      code: 'DDP_MODEL_MISMATCH',
      values: { option: 'checkReplicas' },
    })
    const model = await DistributedDataParallel.create(new Turned(), { checkReplicas: 1 })
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    if (rank === 0) flip(model.module.weight)
    expect(model.module.weight.isContiguous).toBe(false)
    expect(await failure(model.forward(batchOf(rank, 1)))).toMatchObject({ code: 'REPLICAS_DIFFER', values: { tensor: 'weight' } })
  })
})
