/** Several pipelines as replicas: each stage in DistributedDataParallel, which adds up gradients of all micro-batches and reduces once. They equal those of one model on the joined batch. */
import { expect, test } from '@jest/globals'
import { backward, mseLoss } from '@postgrad/autograd'
import { BatchNorm1d, Embedding, Linear, Module, Sequential, SGD, Tanh } from '@postgrad/nn'
import { newSubgroupsByEnumeration, type ProcessGroup } from '@postgrad/process-group'
import { ones, randn, type SparseTensor, type Tensor, tensor } from '@postgrad/tensor'
import { raw, toDense } from '@postgrad/tensor/internal'
import { allReduceHook } from '../ddp/comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from '../ddp/distributed-data-parallel.js'
import { seeded } from '../ddp/models.suite.js'
import { failure, overSeeds, Ranks, withSeed } from '../ddp/sim-ranks.suite.js'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { Pipeline } from './pipeline.js'
import { PipelineStage } from './stage.js'

const MICROBATCHES = 4
const ROWS = 8
const loss = (output: Tensor, target: Tensor) => mseLoss(output, target)
const batchOf = (pipeline: number, step: number) =>
  seeded(100 * step + pipeline + 1, () => ({ x: randn([ROWS, 4]), target: randn([ROWS, 4]) }))
const layersOf = (stage: number): Module & { forward(x: Tensor): Tensor } =>
  seeded(stage, () => new Sequential(new Linear(4, 4), new Tanh()))
const bits = (tensors: Iterable<Tensor | null>) => Array.from(tensors, (t) => (t === null ? null : Array.from(t.dataSync())))

/** Rank 0 and 1 are one pipeline, 2 and 3 the other: their stages' groups are {0, 2} and {1, 3}. */
async function gridOf(rank: number): Promise<{ pipeline: number; place: number; workers: number[]; group: ProcessGroup }> {
  const { current } = await newSubgroupsByEnumeration([
    [0, 2],
    [1, 3],
  ])
  const pipeline = rank >> 1
  return { pipeline, place: rank % 2, workers: [2 * pipeline, 2 * pipeline + 1], group: current! }
}

interface Made {
  readonly pipeline: Pipeline<Tensor, Tensor>
  readonly replicas: readonly DistributedDataParallel[]
  step(step: number): Promise<void>
}

/** This rank's side of the grid. */
async function madeOn(
  rank: number,
  schedule: PipelineScheduleName,
  options: DistributedDataParallelOptions = {},
  makeStage: (stage: number) => Module & { forward(...args: never[]): unknown } = layersOf,
  scaleGrads = true,
  round = '',
): Promise<Made> {
  const { pipeline: which, place, workers, group } = await gridOf(rank)
  const perRank = schedule === 'GPipe' || schedule === '1F1B' ? 1 : 2
  const { rankOf, stages: count } = pipelineSchedule(schedule, { ranks: 2, microbatches: MICROBATCHES, stagesPerRank: perRank })
  const own = [...rankOf.keys()].filter((stage) => rankOf[stage] === place)
  const replicas: DistributedDataParallel[] = []
  for (const stage of own) replicas.push(await DistributedDataParallel.create(makeStage(stage), { processGroup: group, ...options }))
  const stages = replicas.map((replica, i) => new PipelineStage(replica, own[i]!, count))
  const name = `pipeline ${which}${round}`
  const pipeline = new Pipeline<Tensor, Tensor>(stages, { workers, schedule, microbatches: MICROBATCHES, loss, name, scaleGrads })
  return {
    pipeline,
    replicas,
    step: async (step) => {
      const { x, target } = batchOf(which, step)
      await pipeline.step(own.includes(0) ? [x] : [], own.includes(count - 1) ? { target } : {})
    },
  }
}

/** One model: each pipeline's micro-batches one after the other, the mean of both, divided. */
function inOnePlace(count: number, steps: readonly number[], divisor = MICROBATCHES): (readonly number[] | null)[][] {
  const parts = Array.from({ length: count }, (_, i) => layersOf(i))
  const sums = new Map<Tensor, Tensor>()
  for (const pipeline of [0, 1]) {
    for (const part of parts) part.zeroGrad()
    for (const step of steps) {
      const { x, target } = batchOf(pipeline, step)
      const size = ROWS / MICROBATCHES
      for (let i = 0; i < MICROBATCHES; i++) {
        const y = parts.reduce((each, part) => part.forward(each), x.narrow(0, i * size, size))
        backward(loss(y, target.narrow(0, i * size, size)))
      }
    }
    for (const p of parts.flatMap((part) => part.parameters())) {
      const part = raw.mul(p.grad!, 1 / 2)
      const sum = sums.get(p)
      sums.set(p, sum === undefined ? part : raw.add(sum, part))
    }
  }
  return parts.map((part) => bits(part.parameters().map((p) => raw.mul(sums.get(p)!, 1 / divisor))))
}

/** By stage: what each rank that has it has in `.grad`. */
function byStage(results: readonly (readonly [number, unknown])[][]): Map<number, unknown[]> {
  const found = new Map<number, unknown[]>()
  for (const [stage, grads] of results.flat()) found.set(stage, [...(found.get(stage) ?? []), grads])
  return found
}
const gradsOf = ({ pipeline, replicas }: Made, rank: number) => {
  const { rankOf } = pipeline.schedule
  const own = [...rankOf.keys()].filter((stage) => rankOf[stage] === rank % 2)
  return replicas.map((replica, i) => [own[i]!, bits(replica.parameters().map(({ grad }) => grad))] as const)
}

const OPTIONS: readonly DistributedDataParallelOptions[] = [
  {},
  { firstBucketMb: 1e-5, bucketCapMb: 1e-5, findUnusedParameters: true },
  { gradientAsBucketView: true },
  { staticGraph: true },
]

test.each([
  ['GPipe', OPTIONS[0]!],
  ['1F1B', OPTIONS[1]!],
  ['1F1B', OPTIONS[2]!],
  ['1F1B', OPTIONS[3]!],
  ['ZBVZeroBubble', OPTIONS[2]!],
  ['InterleavedZeroBubble', OPTIONS[1]!],
] as const)(
  'PIP-18 %s, %j: a grid of two pipelines of two workers has the gradients of one model with both batches',
  async (schedule, options) => {
    const results = await overSeeds(
      4,
      async (rank) => {
        const made = await madeOn(rank, schedule, options)
        const grads = []
        for (const step of [0, 1]) {
          for (const replica of made.replicas) replica.zeroGrad()
          await made.step(step)
          grads.push(gradsOf(made, rank))
        }
        return grads
      },
      1,
    )
    const count = schedule === '1F1B' || schedule === 'GPipe' ? 2 : 4
    for (const step of [0, 1]) {
      const expected = inOnePlace(count, [step])
      const found = byStage(results.map((grads) => grads[step]!))
      for (let stage = 0; stage < count; stage++) expect(found.get(stage)).toEqual([expected[stage], expected[stage]])
    }
  },
)

test('PIP-18 the joined batch of one process, and the weights that an optimizer makes of it', async () => {
  const weights = await overSeeds(
    4,
    async (rank) => {
      const made = await madeOn(rank, '1F1B')
      const optimizer = new SGD(made.replicas[0]!.parameters(), { lr: 0.1, momentum: 0.9 })
      for (let step = 0; step < 5; step++) {
        optimizer.zeroGrad()
        await made.step(step)
        optimizer.step()
      }
      return bits(made.replicas[0]!.parameters())
    },
    1,
  )
  const whole = new Sequential(...[0, 1].map(layersOf))
  const optimizer = new SGD(whole.parameters(), { lr: 0.1, momentum: 0.9 })
  for (let step = 0; step < 5; step++) {
    optimizer.zeroGrad()
    const [a, b] = [batchOf(0, step), batchOf(1, step)]
    backward(loss(whole.forward(raw.cat([a.x, b.x], 0)), raw.cat([a.target, b.target], 0)))
    optimizer.step()
  }
  const expected = bits(whole.parameters()).flatMap((values) => values!)
  expect(weights[0]).toEqual(weights[2])
  expect(weights[1]).toEqual(weights[3])
  const found = [...weights[0]!, ...weights[1]!].flatMap((values) => values!)
  expect(found).toHaveLength(expected.length)
  // Sums in another order.
  for (const [i, value] of found.entries()) expect(value).toBeCloseTo(expected[i]!, 6)
})

test('PIP-18 under noSync a step adds up here, and the next one reduces both; a hook takes the place of the mean', async () => {
  const results = await overSeeds(
    4,
    async (rank) => {
      const made = await madeOn(rank, '1F1B', {}, layersOf, false)
      const [replica] = made.replicas
      let buckets = 0
      replica!.registerCommHook(null, (group, bucket) => {
        buckets++
        return allReduceHook(group ?? replica!.processGroup, bucket)
      })
      await replica!.noSync(() => made.step(0))
      const alone = gradsOf(made, rank)
      expect(buckets).toBe(0)
      await made.step(1)
      expect(buckets).toBe(1)
      return { alone, both: gradsOf(made, rank) }
    },
    1,
  )
  const expected = inOnePlace(2, [0, 1], 1)
  for (const rank of [0, 1]) {
    expect(results[rank]!.alone).not.toEqual(results[rank + 2]!.alone)
    expect(results[rank]!.both).toEqual([[rank, expected[rank]]])
    expect(results[rank + 2]!.both).toEqual([[rank, expected[rank]]])
  }
})

test.each(['1F1B', 'ZBVZeroBubble'] as const)(
  'PIP-18 %s: what was added up under noSync is divided once, and what was reduced is not divided again',
  async (schedule) => {
    const count = schedule === '1F1B' ? 2 : 4
    const results = await overSeeds(
      4,
      async (rank) => {
        const made = await madeOn(rank, schedule)
        const quietly = (fn: () => Promise<void>, [replica, ...others]: readonly DistributedDataParallel[]): Promise<void> =>
          replica === undefined ? fn() : replica.noSync(() => quietly(fn, others))
        await quietly(() => made.step(0), made.replicas)
        await made.step(1)
        const both = gradsOf(made, rank)
        await made.step(2)
        return { both, all: gradsOf(made, rank) }
      },
      1,
    )
    const sumsOf = (steps: readonly number[]) => {
      const sums = steps.map((step) => inOnePlace(count, [step]))
      return sums[0]!.map((stage, i) =>
        stage.map((first, k) => first!.map((_, at) => sums.reduce((sum, each) => sum + each[i]![k]![at]!, 0))),
      )
    }
    for (const [part, steps] of [
      ['both', [0, 1]],
      ['all', [0, 1, 2]],
    ] as const) {
      const found = byStage(results.map((each) => each[part]))
      for (const [stage, expected] of sumsOf(steps).entries()) {
        const [first, second] = found.get(stage) as number[][][]
        expect(second).toEqual(first)
        for (const [k, values] of expected.entries())
          for (const [at, value] of values.entries()) expect(first![k]![at]).toBeCloseTo(value, 6)
      }
    }
  },
)

test('PIP-18 a weight that no replica uses in a step keeps its gradient, or is refused, though the step before has left one', async () => {
  await overSeeds(
    3,
    async (rank, group) => {
      for (const findUnusedParameters of [true, false]) {
        const module = new Either()
        const replica = await DistributedDataParallel.create(module, { processGroup: group, findUnusedParameters })
        const pipeline = new Pipeline<Tensor, Tensor>(new PipelineStage(replica, 0, 1), {
          workers: [rank],
          schedule: 'GPipe',
          microbatches: 2,
          loss,
          name: `${findUnusedParameters}`,
        })
        const { x, target } = batchOf(rank, 0)
        const evenGrads = () => bits(module.even.parameters().map(({ grad }) => grad))
        module.forward = (y) => module.even.forward(module.odd.forward(y))
        await pipeline.step([x], { target })
        const before = evenGrads()
        module.forward = (y) => module.odd.forward(y)
        const second = pipeline.step([x], { target })
        if (findUnusedParameters) await second
        else
          expect((await failure(second)) as unknown).toMatchObject({ code: 'PIPELINE_FAILED', cause: { code: 'DDP_REDUCTION_UNFINISHED' } })
        expect(evenGrads()).toEqual(before)
      }
    },
    1,
  )
})

test('PIP-18 an optimizer does not step by what a step under noSync has left alone in .grad', async () => {
  await overSeeds(
    4,
    async (rank) => {
      for (const scaleGrads of [true, false]) {
        const made = await madeOn(rank, '1F1B', {}, layersOf, scaleGrads, `${scaleGrads}`)
        const [replica] = made.replicas
        const optimizer = new SGD(replica!.parameters(), { lr: 0.1 })
        await replica!.noSync(() => made.step(0))
        expect(await failure((async () => optimizer.step())())).toMatchObject({ code: 'GRADIENTS_NOT_REDUCED' })
        await made.step(1)
        optimizer.step()
      }
    },
    1,
  )
})

/** Uses its first layer for even batches, the second one for others. */
class Either extends Module {
  readonly even = seeded(1, () => new Linear(4, 4))
  readonly odd = seeded(2, () => new Linear(4, 4))
  forward(x: Tensor): Tensor {
    return (uses === 'even' ? this.even : this.odd).forward(x)
  }
}
let uses: 'even' | 'odd' | null = null

test('PIP-18 what one replica has used alone has its half of it on both; without findUnusedParameters all must be used', async () => {
  const run = async (rank: number, options: DistributedDataParallelOptions) => {
    const made = await madeOn(rank, '1F1B', options, (stage) => (stage === 0 ? new Either() : layersOf(1)))
    uses = null
    return made
  }
  const results = await overSeeds(
    4,
    async (rank) => {
      const made = await run(rank, { findUnusedParameters: true })
      const { module } = made.replicas[0]! as unknown as { module: Either }
      if (rank % 2 === 0) {
        const layer = rank === 0 ? module.even : module.odd
        module.forward = (x) => layer.forward(x)
      }
      await made.step(0)
      return rank % 2 === 0
        ? [bits(module.even.parameters().map(({ grad }) => grad)), bits(module.odd.parameters().map(({ grad }) => grad))]
        : null
    },
    2,
  )
  expect(results[0]).toEqual(results[2])
  expect(results[0]!.flat().every((grad) => grad?.some((value) => value !== 0))).toBe(true)
  await withSeed(1, async () => {
    const ranks = new Ranks(1, 4)
    const outcomes = await ranks.all(async (rank) => {
      const { initProcessGroup } = await import('@postgrad/process-group')
      await initProcessGroup()
      const made = await run(rank, {})
      uses = 'even'
      return failure(made.step(0))
    })
    const errors = outcomes.map(
      (outcome) => (outcome as PromiseFulfilledResult<{ code: string; cause: { code: string; message: string } }>).value,
    )
    for (const { code, cause } of errors) expect([code, cause.code]).toEqual(['PIPELINE_FAILED', 'DDP_REDUCTION_UNFINISHED'])
    expect(errors[0]!.cause.message).toContain('odd.weight')
  })
})

test('PIP-18 sparse gradients, and buffers: rank 0 of a stage has those of all', async () => {
  const results = await overSeeds(
    4,
    async (rank) => {
      const { pipeline: which, place, workers, group } = await gridOf(rank)
      const module = place === 0 ? seeded(3, () => new Embedding(5, 4, { sparse: true })) : new Sequential(new BatchNorm1d(4))
      const replica = await DistributedDataParallel.create(module as never as Linear, { processGroup: group })
      const pipeline = new Pipeline<Tensor, Tensor>(new PipelineStage(replica, place, 2), {
        workers,
        schedule: '1F1B',
        microbatches: 2,
        loss,
        name: `pipeline ${which}`,
      })
      const x = tensor(which === 0 ? [0, 3, 3, 1] : [2, 3, 0, 0], { dtype: 'int32' })
      const step = () => pipeline.step(place === 0 ? [x] : [], place === 1 ? { target: ones([4, 4]) } : {})
      await step()
      const own = bits(module.buffers().slice(0, 2))
      await step()
      const { grad } = module.parameters()[0]!
      return {
        own,
        grad: bits([toDense(grad as unknown as SparseTensor)])[0]!,
        isSparse: grad!.isSparse,
        buffers: bits(module.buffers().slice(0, 2)),
      }
    },
    1,
  )
  expect(results.map(({ isSparse }) => isSparse)).toEqual([true, false, true, false])
  expect(results[0]!.grad).toEqual(results[2]!.grad)
  // Each moves its own running statistics in a step, from those of the first at its beginning.
  expect(results[1]!.own).not.toEqual(results[3]!.own)
  const weights = results[0]!.grad!
  expect([0, 1, 2, 3, 4].map((row) => weights.slice(4 * row, 4 * row + 4).some((value) => value !== 0))).toEqual([
    true,
    true,
    true,
    true,
    false,
  ])
})

test('PIP-18 what one pipeline fails at ends the other at once, and the groups of their stages; so does a death', async () => {
  for (const how of ['throws', 'dies'] as const) {
    await withSeed(1, async () => {
      const ranks = new Ranks(1, 4)
      const { workers } = ranks
      const ends = workers.map((worker, rank) =>
        worker.run(async () => {
          const { initProcessGroup } = await import('@postgrad/process-group')
          await initProcessGroup()
          const made = await madeOn(rank, '1F1B')
          if (rank === 1)
            made.replicas[0]!.module.forward = () => {
              if (how === 'throws') throw new RangeError('on purpose')
              ranks.world.crash('worker1')
              return ones([2, 4])
            }
          return failure(
            made.pipeline.step(rank % 2 === 0 ? [batchOf(0, 0).x] : [], {
              ...(rank % 2 === 1 && { target: batchOf(0, 0).target }),
              timeoutMs: 2000,
            }),
          )
        }),
      )
      const others = ends.filter((_, rank) => rank !== 1)
      const errors = (await ranks.world.run(Promise.all(others))) as unknown as {
        code: string
        remedy: string
        values: { action: string }
        cause: { code: string }
      }[]
      for (const { code, remedy } of errors)
        expect([code, remedy]).toEqual(['PIPELINE_FAILED', expect.stringContaining('DistributedDataParallels have ended')])
      if (how === 'throws') expect(errors.map(({ values: { action } }) => action)).toEqual(['1F0', 'REDUCE_GRAD', 'REDUCE_GRAD'])
      expect(errors.map(({ cause }) => cause.code)).toEqual(
        how === 'throws' ? [undefined, 'GROUP_BROKEN', 'GROUP_BROKEN'] : ['WORKER_DIED', 'GROUP_BROKEN', 'GROUP_BROKEN'],
      )
      await Promise.allSettled(ends.slice(1, 2).map((end) => Promise.race([end, Promise.resolve()])))
    })
  }
})

test('PIP-18 an eval, or a step under noSync, that fails: the group lives, and the error does not say that it has ended', async () => {
  await overSeeds(
    2,
    async (rank, group) => {
      const module = layersOf(0)
      const replica = await DistributedDataParallel.create(module, { processGroup: group })
      const pipeline = new Pipeline<Tensor, Tensor>(new PipelineStage(replica, 0, 1), {
        workers: [rank],
        schedule: 'GPipe',
        microbatches: 2,
        loss,
      })
      const { x, target } = batchOf(rank, 0)
      const forward = module.forward.bind(module)
      let fails = true
      module.forward = (y) => {
        if (fails) throw new RangeError('on purpose')
        return forward(y)
      }
      for (const [end, remedy] of [
        [() => pipeline.eval([x], { target }), 'See the cause; after a death make a pipeline of another name.'],
        [
          () => replica.noSync(() => pipeline.step([x], { target })),
          'See the cause. Set gradients to zero before the next step; after a death make a pipeline of another name.',
        ],
      ] as const) {
        expect((await failure(end())) as unknown).toMatchObject({ code: 'PIPELINE_FAILED', remedy })
      }
      fails = false
      await pipeline.step([x], { target })
    },
    1,
  )
})

test('PIP-18 a stage that is no DistributedDataParallel shares no parameter with one that is', async () => {
  await overSeeds(
    1,
    async (rank, group) => {
      const shared = layersOf(0)
      const stages = [
        new PipelineStage(shared, 0, 2),
        new PipelineStage(await DistributedDataParallel.create(shared, { processGroup: group }), 1, 2),
      ]
      const make = async () => new Pipeline<Tensor, Tensor>(stages, { workers: [rank], schedule: 'LoopedBFS', microbatches: 1, loss })
      expect((await failure(make())).message).toMatch(/share no parameter.*in stages 0 and 1/s)
    },
    1,
  )
})

test('PIP-18 what is refused: stages that share a parameter, a step inside of join', async () => {
  await overSeeds(
    2,
    async (rank, group) => {
      const shared = layersOf(0)
      const replicas = [
        await DistributedDataParallel.create(shared, { processGroup: group }),
        await DistributedDataParallel.create(new Sequential(shared as never), { processGroup: group }),
      ]
      const stages = replicas.map((replica, i) => new PipelineStage(replica as never, i, 2))
      const options = { workers: [rank], schedule: 'LoopedBFS', microbatches: 1, loss } as const
      const error = await failure((async () => new Pipeline<Tensor, Tensor>(stages, options))())
      expect(error.message).toMatch(/share no parameter.*in stages 0 and 1/s)
      const pipeline = new Pipeline<Tensor, Tensor>(new PipelineStage(replicas[0]! as never, 0, 1), { ...options, schedule: 'GPipe' })
      let inside: unknown = null
      const joined = await failure(
        replicas[0]!.join(async () => {
          inside = await failure(pipeline.step([ones([2, 4])], { target: ones([2, 4]) }))
        }),
      )
      expect((inside as { cause: { message: string } }).cause.message).toContain('a stage outside of join')
      expect((joined as { code: string }).code).toBe('GROUP_BROKEN')
    },
    1,
  )
})
