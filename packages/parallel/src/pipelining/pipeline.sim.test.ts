/** Pipelines in simulated clusters: the bits of the model that is not split, in every schedule and order of messages; what may be passed; ends. */
import { describe, expect, test } from '@jest/globals'
import { add, backward, defineFunction, gelu, mseLoss, mul } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { withScope } from '@postgrad/base/internal'
import { Embedding, LayerNorm, Linear, Module } from '@postgrad/nn'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { runWithCrash, thrown, withSeed } from '@postgrad/rpc/suite'
import { Generator, rand, type Tensor, tensor, toDense } from '@postgrad/tensor'
import { failure, overSeeds } from '../sim-workers.suite.js'
import { parseAction } from './action.js'
import { PIPELINE_SCHEDULES, type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { Pipeline, type PipelineOptions } from './pipeline.js'
import { scheduleFromCsv, scheduleOf } from './schedule.js'
import { PipelineStage, type PipelineStageOptions } from './stage.js'
import type { PipelineResult } from './step-run.js'

const hex = (t: Tensor | null) => (t === null ? null : Buffer.from(t.dataSync().slice().buffer).toString('hex'))
const WIDTH = 6

/** x, skip → x', skip: two tensors from stage to stage, one of which does not require grad at first; a residual, a norm, and the same weight twice. */
class Block extends Module {
  readonly linear: Linear
  readonly norm = new LayerNorm(WIDTH)

  constructor(seed: number) {
    super()
    this.linear = withScope({ generator: new Generator(seed) }, () => new Linear(WIDTH, WIDTH))
  }

  forward(x: Tensor, skip: Tensor): [Tensor, Tensor] {
    return [add(this.norm.forward(x), mul(gelu(this.linear.forward(this.linear.forward(x))), skip)), skip]
  }
}

/** The ends of the model: a pair in, a tensor out. */
class Last extends Module {
  readonly block: Block
  constructor(seed: number) {
    super()
    this.block = new Block(seed)
  }
  forward(x: Tensor, skip: Tensor): Tensor {
    return this.block.forward(x, skip)[0]
  }
}

const partOf = (stage: number, count: number) => (stage === count - 1 ? new Last(stage) : new Block(stage))
const batchOf = (rows: number) => {
  const generator = new Generator(9)
  const make = () => tensor(Float32Array.from({ length: rows * WIDTH }, () => generator.uniform() - 0.5)).reshape([rows, WIDTH])
  return { x: make(), skip: make(), target: make() }
}
const loss = (output: Tensor, target: Tensor) => mseLoss(output, target)
const gradients = (parts: readonly Module[]) => parts.flatMap((part) => part.parameters().map(({ grad }) => hex(grad)))

/** The model in one place, one micro-batch after the other. */
function unsplit(count: number, rows: number, microbatches: number, { scale = true, steps = 1 } = {}) {
  const parts = Array.from({ length: count }, (_, i) => partOf(i, count))
  const { x, skip, target } = batchOf(rows)
  let losses: (string | null)[] = []
  let outputs: number[] = []
  for (let step = 0; step < steps; step++) {
    losses = []
    outputs = []
    const sizes = Array.from({ length: microbatches }, (_, i) => Math.floor(rows / microbatches) + (i < rows % microbatches ? 1 : 0))
    let from = 0
    for (const size of sizes) {
      const rowsOf = (t: Tensor) => t.narrow(0, from, size)
      let y: unknown = [rowsOf(x), rowsOf(skip)]
      for (const part of parts) y = (part as Block).forward(...(y as [Tensor, Tensor]))
      const one = loss(y as Tensor, rowsOf(target))
      backward(one)
      losses.push(hex(one))
      outputs.push(...(y as Tensor).detach().dataSync())
      from += size
    }
  }
  if (scale) for (const part of parts) for (const p of part.parameters()) p.grad = p.grad!.div(microbatches)
  return { grads: gradients(parts), losses, output: outputs }
}

interface Case extends Omit<PipelineOptions<never, never>, 'workers' | 'loss'> {
  readonly ranks: number
  readonly stages?: number
  readonly rows?: number
  readonly options?: PipelineStageOptions
}

/** On every worker, in one simulated thread: a pipeline, and one step. */
async function pipelined(workers: readonly WorkerRuntime[], { ranks, rows = 8, options, stages: given, ...rest }: Case) {
  const names = workers.slice(0, ranks).map(({ info }) => info.name)
  const modules: Module[] = []
  const results = await Promise.all(
    workers.slice(0, ranks).map((worker, rank) =>
      worker.run(async () => {
        const { microbatches = 4, schedule } = rest
        const made =
          typeof schedule === 'string'
            ? pipelineSchedule(schedule, { ranks, microbatches, stagesPerRank: (given ?? ranks) / ranks })
            : schedule
        const own = [...made.rankOf.keys()].filter((stage) => made.rankOf[stage] === rank)
        const stages = own.map((index) => {
          modules[index] = partOf(index, made.stages)
          return new PipelineStage(modules[index] as Block, index, made.stages, options)
        })
        const pipeline = new Pipeline<Tensor, Tensor>(stages, { ...rest, workers: names, loss })
        const { x, skip, target } = batchOf(rows)
        const result = await pipeline.step(own.includes(0) ? [x, skip] : [], own.includes(made.stages - 1) ? { target } : {})
        expect(stages.map(({ held }) => held)).toEqual(stages.map(() => 0))
        return result
      }),
    ),
  )
  const { losses, output } = results.find((result) => result.output !== null) as PipelineResult<Tensor>
  return { grads: gradients(modules), losses: losses.map(hex), output: Array.from(output!.dataSync()), results }
}

const found = ({ grads, losses, output }: { grads: unknown; losses: unknown; output: unknown }) => ({ grads, losses, output })

describe('bits', () => {
  const CASES: readonly (readonly [PipelineScheduleName, number, number])[] = PIPELINE_SCHEDULES.map((name) =>
    name === 'GPipe' || name === '1F1B' ? ([name, 3, 3] as const) : ([name, 2, 4] as const),
  )
  test.each(CASES)(
    'PIP-8 %s over %d workers, %d stages: the model that is not split, whatever arrives when',
    async (schedule, ranks, stages) => {
      const expected = unsplit(stages, 8, 4)
      await overSeeds(
        ranks,
        async (workers) => {
          const { results, ...all } = await pipelined(workers, { ranks, stages, schedule, microbatches: 4 })
          expect(all).toEqual(expected)
          expect(results.slice(0, -1).every(({ losses }) => losses.length === 0) || ranks !== stages).toBe(true)
        },
        4,
      )
    },
  )

  test('PIP-8 micro-batches of different sizes, one micro-batch, gradients as they are', async () => {
    await overSeeds(
      2,
      async (workers) => {
        expect(found(await pipelined(workers, { ranks: 2, schedule: '1F1B', microbatches: 3, rows: 7, name: 'uneven' }))).toEqual(
          unsplit(2, 7, 3),
        )
        expect(found(await pipelined(workers, { ranks: 2, schedule: 'GPipe', microbatches: 1, name: 'one' }))).toEqual(unsplit(2, 8, 1))
        const summed = await pipelined(workers, {
          ranks: 2,
          schedule: 'InterleavedZeroBubble',
          microbatches: 4,
          stages: 4,
          scaleGrads: false,
          name: 'sum',
        })
        expect(found(summed)).toEqual(unsplit(4, 8, 4, { scale: false }))
      },
      2,
    )
  })

  test.each(['exceptLast', 'always'] as const)('PIP-9 checkpoints: %s', async (checkpoint) => {
    await overSeeds(
      2,
      async (workers) => {
        for (const [schedule, stages] of [
          ['1F1B', 2],
          ['ZBVZeroBubble', 4],
        ] as const) {
          const made = await pipelined(workers, { ranks: 2, stages, schedule, microbatches: 4, options: { checkpoint }, name: schedule })
          expect(found(made)).toEqual(unsplit(stages, 8, 4))
        }
      },
      1,
    )
  })

  test('PIP-8 a loaded schedule whose backward passes go in any order, weights before inputs of others', async () => {
    const rows = ['0F0 0F1 0F2 0I2 0I0 0W2 0I1 0W1 0W0', '1F2 1F0 1I2 1F1 1I0 1B1 1W0 1W2']
    const schedule = scheduleOf(rows.map((row) => row.split(' ').map((text) => parseAction(text)!)))
    await overSeeds(
      2,
      async (workers) => expect(found(await pipelined(workers, { ranks: 2, schedule, rows: 6 }))).toEqual(unsplit(2, 6, 3)),
      3,
    )
  })

  test('PIP-8 inside of a distributed context as outside of any', async () => {
    const { distAutograd } = await import('@postgrad/dist-autograd')
    await overSeeds(
      2,
      async (workers) => {
        const made = await workers[0]!.run(() =>
          distAutograd.context(() => pipelined(workers, { ranks: 2, schedule: '1F1B', microbatches: 4 })),
        )
        expect(found(made)).toEqual(unsplit(2, 8, 4))
      },
      1,
    )
  })
})

/** Two batches of `rows` rows, one step each, without zeroGrad between them: what `.grad` has at the end. */
async function accumulated(
  workers: readonly WorkerRuntime[],
  partsOf: () => readonly Module[],
  {
    own,
    batches = 2,
    ...rest
  }: { own: readonly (readonly number[])[]; batches?: number } & Omit<PipelineOptions<never, never>, 'workers' | 'loss'>,
): Promise<(string | null)[]> {
  const found: Module[] = []
  await Promise.all(
    own.map((mine, rank) =>
      workers[rank]!.run(async () => {
        // All parts, as one that shares a weight holds another.
        const parts = partsOf()
        for (const index of mine) found[index] = parts[index]!
        const stages = mine.map((index) => new PipelineStage(parts[index] as Block, index, parts.length))
        const pipeline = new Pipeline<Tensor, Tensor>(stages, { ...rest, workers: own.map((_, i) => `worker${i}`), loss })
        for (let step = 0; step < batches; step++) {
          const { x, target } = stepBatch(step)
          await pipeline.step(mine.includes(0) ? [x] : [], mine.includes(parts.length - 1) ? { target } : {})
        }
      }),
    ),
  )
  return gradients(found)
}
const stepBatch = (step: number) => {
  const generator = new Generator(20 + step)
  const make = () => tensor(Float32Array.from({ length: 12 * WIDTH }, () => generator.uniform() - 0.5)).reshape([12, WIDTH])
  return { x: make(), target: make() }
}

/** The same in one place: each batch's gradient, and their sum. */
function accumulatedInOnePlace(parts: readonly Module[], microbatches: number, divisor: number, batches = 2): (string | null)[] {
  const weights = [...new Set(parts.flatMap((part) => part.parameters()))]
  const sums = weights.map((): Tensor | null => null)
  for (let step = 0; step < batches; step++) {
    const { x, target } = stepBatch(step)
    const size = 12 / microbatches
    for (const weight of weights) weight.grad = null
    for (let from = 0; from < 12; from += size) {
      const y = parts.reduce((value, part) => (part as Linear).forward(value), x.narrow(0, from, size))
      backward(loss(y, target.narrow(0, from, size)))
    }
    for (const [i, weight] of weights.entries()) {
      const grad = weight.grad!.div(divisor)
      sums[i] = sums[i] == null ? grad : sums[i].add(grad)
    }
  }
  for (const [i, weight] of weights.entries()) weight.grad = sums[i]!
  return gradients(parts)
}
const linearOf = (seed: number): Module => withScope({ generator: new Generator(seed) }, () => new Linear(WIDTH, WIDTH))

test.each([
  ['1F1B', 3],
  ['GPipe', 4],
  ['ZBVZeroBubble', 4],
  ['InterleavedZeroBubble', 6],
] as const)(
  'PIP-8 %s, %d micro-batches: a step divides the gradients that it has made, and adds them to those of the step before',
  async (schedule, microbatches) => {
    const own =
      schedule === 'ZBVZeroBubble'
        ? [
            [0, 3],
            [1, 2],
          ]
        : schedule === 'InterleavedZeroBubble'
          ? [
              [0, 2],
              [1, 3],
            ]
          : [[0], [1]]
    const partsOf = () => own.flat().map((_, i) => linearOf(i))
    await overSeeds(
      2,
      async (workers) =>
        expect(await accumulated(workers, partsOf, { own, schedule, microbatches })).toEqual(
          accumulatedInOnePlace(partsOf(), microbatches, microbatches),
        ),
      2,
    )
  },
)

test('PIP-8 what a loss of the program has left in .grad is not divided; a step that fails adds nothing where it divides', async () => {
  await overSeeds(
    2,
    async (workers) => {
      const modules: [Module, Module] = [linearOf(0), linearOf(1)]
      const pipelines = pair(workers, modules, { microbatches: 3 })
      const before = [0.25, 3]
      for (const [i, part] of modules.entries())
        for (const weight of part.parameters()) weight.grad = weight.mul(0).add(before[i]!).detach()
      const { x, target } = stepBatch(0)
      const forward = (modules[1] as Linear).forward.bind(modules[1])
      let calls = 0
      ;(modules[1] as Linear).forward = (...args) => {
        if (++calls === 3) throw new RangeError('on purpose')
        return forward(...args)
      }
      const step = () =>
        Promise.all(
          workers.map((worker, i) => worker.run(() => failure(pipelines[i]!.step(i === 0 ? [x] : [], i === 1 ? { target } : {})))),
        )
      for (const { code } of await step()) expect(code).toBe('PIPELINE_FAILED')
      for (const [i, part] of modules.entries())
        for (const { grad } of part.parameters()) expect(new Set(grad!.dataSync())).toEqual(new Set([before[i]!]))
      calls = 3
      await Promise.all(workers.map((worker, i) => worker.run(() => pipelines[i]!.step(i === 0 ? [x] : [], i === 1 ? { target } : {}))))
      const whole = [linearOf(0), linearOf(1)]
      accumulatedInOnePlace(whole, 3, 3, 1)
      for (const [i, part] of whole.entries()) for (const weight of part.parameters()) weight.grad = weight.grad!.add(before[i]!)
      expect(gradients(modules)).toEqual(gradients(whole))
    },
    1,
  )
})

/** Multiplies with the weights of other layers, and uses the first of them twice. */
class Head extends Module {
  readonly weights: Tensor[]
  readonly first: Tensor
  constructor(...layers: readonly Linear[]) {
    super()
    this.first = layers[0]!.weight
    this.weights = layers.map(({ weight }) => weight)
    for (const [i, weight] of this.weights.entries()) Object.assign(this, { [`shared${i}`]: weight })
  }
  forward(x: Tensor): Tensor {
    return this.weights.reduce((y, weight) => y.matmul(weight).tanh(), x).matmul(this.first)
  }
}

describe('a weight in several stages of one worker', () => {
  const tied = (count: number, sharing: readonly number[]) => () => {
    const parts = Array.from({ length: count }, (_, i) => linearOf(i))
    for (const stage of sharing.slice(1))
      parts[stage] = new Head(
        ...sharing
          .slice(0, sharing.indexOf(stage))
          .map((i) => parts[i] as Linear)
          .filter((part) => part instanceof Linear),
      )
    return parts
  }
  test.each([
    [
      'ZBVZeroBubble',
      [
        [0, 3],
        [1, 2],
      ],
      [0, 3],
    ],
    [
      'DualPipeV',
      [
        [0, 3],
        [1, 2],
      ],
      [0, 3],
    ],
    [
      'Interleaved1F1B',
      [
        [0, 2, 4],
        [1, 3, 5],
      ],
      [0, 2, 4],
    ],
    [
      'InterleavedZeroBubble',
      [
        [0, 2, 4],
        [1, 3, 5],
      ],
      [1, 5],
    ],
    [
      'LoopedBFS',
      [
        [0, 2],
        [1, 3],
      ],
      [1, 3],
    ],
  ] as const)('PIP-19 %s: has the bits of one place', async (schedule, own, sharing) => {
    const partsOf = tied(own.flat().length, sharing)
    await overSeeds(
      2,
      async (workers) => {
        for (const microbatches of [4, 6]) {
          const found = await accumulated(workers, partsOf, { own, schedule, microbatches, name: `${microbatches}` })
          expect(found).toEqual(accumulatedInOnePlace(partsOf(), microbatches, microbatches))
        }
      },
      2,
    )
  })

  test('PIP-19 also with a loaded schedule whose weights come before inputs of others, and hooks see one gradient for each micro-batch', async () => {
    const rows = [
      '0F0 0F1 0F2 3F2 3F0 3I2 3F1 3I0 3I1 0I2 3W1 0I0 0W2 3W2 0W0 3W0 0I1 0W1',
      '1F0 2F0 1F2 2F2 1F1 2F1 2B2 1B2 2I0 1I0 2I1 1I1 1W0 1W1 2W0 2W1',
    ]
    const schedule = scheduleOf(rows.map((row) => row.split(' ').map((text) => parseAction(text)!)))
    let seen: (string | null)[] = []
    const partsOf = () => {
      const parts = tied(4, [0, 3])()
      ;(parts[0] as Linear).weight.registerHook((grad) => void seen.push(hex(grad)))
      return parts
    }
    const expected = accumulatedInOnePlace(partsOf(), 3, 3, 1)
    const hooked = seen.toSorted()
    expect(hooked).toHaveLength(3)
    await overSeeds(
      2,
      async (workers) => {
        seen = []
        expect(
          await accumulated(workers, partsOf, {
            own: [
              [0, 3],
              [1, 2],
            ],
            schedule,
            batches: 1,
          }),
        ).toEqual(expected)
        expect(seen.toSorted()).toEqual(hooked)
      },
      2,
    )
  })
})

/** Each worker's pipeline of two stages, around whatever modules. */
function pair(
  workers: readonly WorkerRuntime[],
  modules: readonly [Module, Module],
  options: Partial<PipelineOptions<never, never>> = {},
): Pipeline[] {
  return workers.map((worker, index) =>
    worker.run(
      () =>
        new Pipeline(new PipelineStage(modules[index] as Block, index, 2), {
          workers: workers.map(({ info }) => info.id),
          schedule: '1F1B',
          microbatches: 2,
          loss: (output, target) => loss(output as Tensor, target as Tensor),
          ...(options as object),
        }),
    ),
  )
}

const moduleOf = (forward: (...args: never[]) => unknown): Module => Object.assign(new (class extends Module {})(), { forward })

describe('values', () => {
  test('PIP-10 any nesting goes from stage to stage; what wants no gradient gets none; whole inputs are not divided', async () => {
    const seen: unknown[] = []
    const w = tensor([2], { requiresGrad: true })
    const first = moduleOf((x: Tensor, { table, at }: { table: Tensor; at: number }) => ({
      hidden: { x: mul(x, w), plain: [x] },
      at,
      rows: table.shape[0],
      table,
    }))
    const second = moduleOf((value: { hidden: { x: Tensor; plain: Tensor[] }; at: number; rows: number; table: Tensor }) => {
      seen.push([value.hidden.x.requiresGrad, value.hidden.plain[0]!.requiresGrad, value.at, value.rows, value.hidden.x.shape])
      return { y: value.hidden.x, mean: value.hidden.x.mean(), at: value.at }
    })
    await overSeeds(
      2,
      async (workers) => {
        seen.length = 0
        w.grad = null
        const modules: [Module, Module] = [first, second]
        const lossOf = (output: { y: Tensor }, target: { t: Tensor }) => loss(output.y, target.t)
        const pipelines = pair(workers, modules, { inputSpec: [0, { table: 'replicate' }], loss: lossOf as never })
        const x = tensor([[1], [2], [3], [4]])
        const [, result] = await Promise.all([
          workers[0]!.run(() => pipelines[0]!.step([x, { table: rand([5]), at: 7 }])),
          workers[1]!.run(() => pipelines[1]!.step([], { target: { t: x } })),
        ])
        expect(seen).toEqual([0, 1].map(() => [true, false, 7, 5, [2, 1]]))
        const { y, mean, at } = result.output as { y: Tensor; mean: Tensor; at: number }
        expect([y.toArray(), mean.toArray(), at]).toEqual([[[2], [4], [6], [8]], [3, 7], 7])
        // d/dw of mean((w x − x)²), the mean over both.
        expect(w.grad!.toArray()).toEqual([(2 * ((1 + 4) / 2 + (9 + 16) / 2)) / 2])
      },
      2,
    )
  })

  test('PIP-11 eval goes forward only, and nothing is kept', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const modules: [Module, Module] = [partOf(0, 2), partOf(1, 2)]
        const pipelines = pair(workers, modules)
        const { x, skip, target } = batchOf(8)
        for (let round = 0; round < 3; round++) {
          const [, result] = await Promise.all([
            workers[0]!.run(() => pipelines[0]!.eval([x, skip])),
            workers[1]!.run(() => pipelines[1]!.eval([], { target })),
          ])
          expect({ losses: result.losses.map(hex), output: Array.from((result.output as Tensor).dataSync()) }).toEqual({
            losses: unsplit(2, 8, 2).losses,
            output: unsplit(2, 8, 2).output,
          })
          expect(result.losses.concat(result.output as Tensor).some(({ requiresGrad }) => requiresGrad)).toBe(false)
        }
        expect(gradients(modules).every((grad) => grad === null)).toBe(true)
      },
      3,
    )
  })
})

describe('what is kept', () => {
  test.each([
    ['GPipe', [4, 4]],
    ['1F1B', [2, 1]],
  ] as const)('PIP-4 %s: so many micro-batches at once', async (schedule, peaks) => {
    await overSeeds(
      2,
      async (workers) => {
        const found = [0, 0]
        const stages: PipelineStage[] = []
        const watched = (i: number) =>
          moduleOf((x: Tensor) => {
            found[i] = Math.max(found[i]!, stages[i]!.held + 1)
            return x.mul(tensor(2, { requiresGrad: true }))
          })
        const pipelines = workers.map((worker, i) =>
          worker.run(() => {
            stages[i] = new PipelineStage(watched(i) as Block, i, 2)
            return new Pipeline(stages[i]!, { workers: ['worker0', 'worker1'], schedule, microbatches: 4, loss: loss as never })
          }),
        )
        const x = rand([4, 1])
        await Promise.all(
          workers.map((worker, i) => worker.run(() => pipelines[i]!.step(i === 0 ? [x] : [], i === 1 ? { target: x } : {}))),
        )
        expect(found).toEqual(peaks)
      },
      2,
    )
  })

  test('PIP-8 sparse gradients are added and divided as dense ones', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const table = () => withScope({ generator: new Generator(3) }, () => new Embedding(5, 2, { sparse: true }))
        const [split, whole] = [table(), table()]
        const last = moduleOf((x: Tensor) => x.square())
        const pipelines = pair(workers, [split, last])
        const [x, target] = [tensor([0, 3, 3, 1], { dtype: 'int32' }), rand([4, 2])]
        for (const at of [0, 2]) backward(loss(whole.forward(x.narrow(0, at, 2)).square(), target.narrow(0, at, 2)))
        await Promise.all(workers.map((worker, i) => worker.run(() => pipelines[i]!.step(i === 0 ? [x] : [], i === 1 ? { target } : {}))))
        const grad = split.weight.grad!
        expect(grad.isSparse).toBe(true)
        expect(hex(toDense(grad))).toBe(hex(toDense(whole.weight.grad!).div(2)))
      },
      1,
    )
  })
})

describe('ends', () => {
  const fails = defineFunction({
    name: 'FailsBackward',
    forward: (_: unknown, x: Tensor) => mul(x, 1),
    backward: () => {
      throw new TypeError('on purpose')
    },
  }) as unknown as (x: Tensor) => Tensor

  test.each([
    [
      'forward',
      moduleOf(() => {
        throw new TypeError('on purpose')
      }),
      '0F0',
    ],
    ['backward', moduleOf((x: Tensor) => fails(x.mul(tensor([1], { requiresGrad: true })))), '0B0'],
  ])('PIP-12 what a %s throws is the error of all, and names where', async (_, module, action) => {
    await overSeeds(
      2,
      async (workers) => {
        const pipelines = pair(workers, [module, moduleOf((x: Tensor) => x)])
        const x = tensor([[1], [2]])
        const errors = await Promise.all(
          workers.map((worker, i) => failure(worker.run(() => pipelines[i]!.step(i === 0 ? [x] : [], i === 1 ? { target: x } : {})))),
        )
        for (const error of errors) {
          expect([error.code, error.values, (error.cause as Error).message]).toEqual([
            'PIPELINE_FAILED',
            { pipeline: 'pipeline', step: 0, worker: 'worker0', action },
            expect.stringContaining('on purpose'),
          ])
        }
      },
      3,
    )
  })

  test('PIP-12 a worker that dies, at any moment: the others have a typed error or had all that they needed', async () => {
    const { Cluster } = await import('@postgrad/rpc/suite')
    const { installDistAutograd } = await import('@postgrad/dist-autograd/internal')
    const outcomes = new Map<string, number>()
    for (let crashAt = 0; crashAt < 150; crashAt += 7) {
      await withSeed(crashAt, async () => {
        const cluster = new Cluster(crashAt + 1, 3, { install: installDistAutograd })
        const { workers } = cluster
        const victim = workers[1 + (crashAt % 2)]!.info.name
        const names = workers.map(({ info }) => info.name)
        const { x, skip, target } = batchOf(8)
        const steps = workers.map((worker, index) =>
          worker.run(async () => {
            const pipeline = new Pipeline(new PipelineStage(partOf(index, 3) as Block, index, 3), {
              workers: names,
              schedule: '1F1B',
              microbatches: 4,
              loss: loss as never,
            })
            return await pipeline.step(index === 0 ? [x, skip] : [], index === 2 ? { target } : {})
          }),
        )
        const ends = workers.map(({ info: { name } }, i) =>
          steps[i]!.then(
            () => 'done',
            (error) => (name === victim ? 'dead' : `${error.code}: ${error.values.worker}`),
          ),
        )
        const others = Promise.all(ends.filter((_, i) => names[i] !== victim))
        const { outcome, value, crashed } = await runWithCrash(cluster, others, victim, crashAt)
        expect(outcome).toBe('value')
        for (const end of value!) {
          expect(end === 'done' || end.startsWith('PIPELINE_FAILED: worker')).toBe(true)
          const kind = crashed ? end.split(':')[0]! : 'no crash'
          outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
        }
      })
    }
    expect(outcomes.get('PIPELINE_FAILED')).toBeGreaterThan(10)
  })

  test('PIP-12 a worker that never takes the step: the deadline', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const pipelines = pair(workers, [partOf(0, 2), partOf(1, 2)])
        const { x, skip } = batchOf(8)
        const error = await failure(workers[0]!.run(() => pipelines[0]!.step([x, skip], { timeoutMs: 50 })))
        expect([error.code, (error.cause as { code?: string }).code, error.values!.action]).toEqual([
          'PIPELINE_FAILED',
          'RPC_TIMEOUT',
          '0RECV_B0',
        ])
        expect([error.values!.awaited, error.message]).toEqual([
          ['worker1'],
          expect.stringContaining("failed on 'worker0' at 0RECV_B0: it waited for 'worker1', and its timeout (50 ms) is over"),
        ])
        // A late worker learns why.
        const late = await failure(workers[1]!.run(() => pipelines[1]!.step([], { target: x })))
        expect([late.code, late.values!.worker]).toEqual(['PIPELINE_FAILED', 'worker0'])
      },
      2,
    )
  })

  test('PIP-12 a timeout that a stage throws is told in its own words', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const parts = [partOf(0, 2), partOf(1, 2)] as const
        const own = new PostgradError('RPC_TIMEOUT', { op: 'call', message: 'the stage asked somebody', values: { timeoutMs: 7 } })
        parts[0]!.forward = () => {
          throw own
        }
        const pipelines = pair(workers, parts)
        const { x, skip } = batchOf(8)
        const error = await failure(workers[0]!.run(() => pipelines[0]!.step([x, skip])))
        expect([error.code, error.cause, error.values!.awaited]).toEqual(['PIPELINE_FAILED', own, undefined])
        expect(error.message).toContain('(stage 0, forward of micro-batch 0, given')
        expect(error.message).toContain('the stage asked somebody')
      },
      2,
    )
  })

  test('PIP-12 a signal', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const pipelines = pair(workers, [partOf(0, 2), partOf(1, 2)])
        const { x, skip } = batchOf(8)
        const stop = new AbortController()
        const step = failure(workers[0]!.run(() => pipelines[0]!.step([x, skip], { signal: stop.signal })))
        stop.abort()
        expect(((await step).cause as { code?: string }).code).toBe('CALL_CANCELLED')
      },
      2,
    )
  })
})

describe('what is refused', () => {
  test('PIP-13 options, stages and inputs', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const [worker0] = workers
        const stage = new PipelineStage(partOf(0, 2) as Block, 0, 2)
        const all = { workers: ['worker0', 'worker1'], schedule: '1F1B', microbatches: 2, loss: loss as never } as const
        const made = (stages: PipelineStage | PipelineStage[], options: object) =>
          thrown(() => worker0!.run(() => new Pipeline(stages, { ...all, ...options }))).code
        expect(made(stage, { workers: ['worker1'] })).toBe('INVALID_ARGUMENT')
        expect(made(stage, { workers: ['worker0', 'nobody'] })).toBe('UNKNOWN_WORKER')
        expect(made(stage, { microbatches: undefined })).toBe('INVALID_ARGUMENT')
        expect(made(stage, { microbatch: 2 })).toBe('INVALID_ARGUMENT')
        expect(made(new PipelineStage(partOf(1, 2) as Block, 1, 2), {})).toBe('PIPELINE_STAGES_MISMATCH')
        expect(made(new PipelineStage(partOf(0, 3) as Block, 0, 3), {})).toBe('PIPELINE_STAGES_MISMATCH')
        expect(made([stage, stage], { schedule: 'ZBVZeroBubble' })).toBe('PIPELINE_STAGES_MISMATCH')
        expect(made(stage, { schedule: pipelineSchedule('GPipe', { ranks: 2, microbatches: 4 }) })).toBe('INVALID_ARGUMENT')
        const deadlock = scheduleFromCsv('0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n')
        expect(thrown(() => worker0!.run(() => new Pipeline(stage, { ...all, schedule: deadlock })))).toMatchObject({
          code: 'SCHEDULE_DEADLOCK',
          op: 'Pipeline',
        })
        expect(thrown(() => new PipelineStage(partOf(0, 2) as Block, 0, 2, { checkpoints: 'always' } as never)).code).toBe(
          'INVALID_ARGUMENT',
        )
        expect(thrown(() => new PipelineStage(partOf(0, 2) as Block, 2, 2)).code).toBe('INVALID_ARGUMENT')
        expect(thrown(() => new PipelineStage(partOf(0, 2) as Block, 0, 2, { checkpoint: 'sometimes' as never })).code).toBe(
          'INVALID_ARGUMENT',
        )
        const pipeline = worker0!.run(() => new Pipeline(stage, all))
        expect(thrown(() => worker0!.run(() => new Pipeline(stage, all)))).toMatchObject({
          code: 'INVALID_ARGUMENT',
          message: expect.stringContaining("Pass { name: 'second' }"),
        })
        const { x, skip } = batchOf(1)
        const small = await failure(worker0!.run(() => pipeline.step([x, skip])))
        expect([small.code, (small.cause as { code?: string }).code]).toEqual(['PIPELINE_FAILED', 'MICROBATCH_EMPTY'])
        const first = failure(worker0!.run(() => pipeline.step([x, skip])))
        expect((await failure(worker0!.run(() => pipeline.step([x, skip])))).code).toBe('PIPELINE_BUSY')
        await first
      },
      1,
    )
  })
})
