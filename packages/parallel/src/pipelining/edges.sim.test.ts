/** Pipelines at their edges: one stage, one micro-batch, stages with nothing to train, mistakes of every kind. Nothing hangs, and errors say what was expected. */
import { describe, expect, test } from '@jest/globals'
import { backward, mseLoss, mul } from '@postgrad/autograd'
import { withScope } from '@postgrad/base/internal'
import { Identity, Linear, Module, Tanh } from '@postgrad/nn'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { thrown } from '@postgrad/rpc/suite'
import { Generator, ones, randn, type Tensor, tensor } from '@postgrad/tensor'
import { failure, overSeeds } from '../sim-workers.suite.js'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { Pipeline, type PipelineOptions, type PipelineStepOptions } from './pipeline.js'
import { forwardOnly } from './schedule.js'
import { PipelineStage } from './stage.js'

type Loose = Record<string, unknown>
interface Failed {
  readonly code: string
  readonly message: string
  readonly values: Loose
  readonly cause: { readonly code?: string; readonly message: string; readonly values: Loose }
}

const seeded = <T>(seed: number, fn: () => T): T => withScope({ generator: new Generator(seed) }, fn)
const linear = (seed: number) => seeded(seed, () => new Linear(3, 3))
const moduleOf = (forward: (...args: never[]) => unknown): Module & { forward(...args: unknown[]): unknown } =>
  Object.assign(new (class extends Module {})(), { forward }) as never
const batch = (rows = 6) => seeded(9, () => randn([rows, 3]))
const loss = (output: Tensor, target: Tensor) => mseLoss(output, target)

/** Each worker's pipeline, of the stages that the schedule has for it. `options` may differ by rank. */
function pipelinesOf(
  workers: readonly WorkerRuntime[],
  modules: readonly Module[],
  optionsOf: (rank: number) => Partial<PipelineOptions<never, never>>,
): Pipeline[] {
  return workers.map((worker, rank) =>
    worker.run(() => {
      const { schedule = '1F1B', ...rest } = optionsOf(rank)
      const stagesPerRank = modules.length / workers.length
      const made =
        typeof schedule === 'string'
          ? pipelineSchedule(schedule, { ranks: workers.length, microbatches: rest.microbatches ?? 2, stagesPerRank })
          : schedule
      const own = [...made.rankOf.keys()].filter((stage) => made.rankOf[stage] === rank)
      const stages = own.map((index) => new PipelineStage(modules[index] as never, index, modules.length))
      return new Pipeline(stages, { workers: workers.map(({ info }) => info.id), schedule, microbatches: 2, loss, ...rest } as never)
    }),
  )
}

/** All take a step, or `how` of them something else. */
function stepAll(
  workers: readonly WorkerRuntime[],
  pipelines: readonly Pipeline[],
  inputs: unknown,
  options: PipelineStepOptions,
  how: (rank: number) => 'step' | 'eval' = () => 'step',
) {
  return workers.map((worker, rank) =>
    worker.run(() => {
      const pipeline = pipelines[rank]!
      const { rankOf } = pipeline.schedule
      const { target, ...rest } = options
      return pipeline[how(rank)](rankOf[0] === rank ? (inputs as unknown[]) : [], {
        ...rest,
        ...(rankOf.at(-1) === rank && target !== undefined && { target }),
      })
    }),
  )
}

/** The error of each worker's step. */
const failures = (steps: readonly Promise<unknown>[]) => Promise.all(steps.map((step) => failure(step) as unknown as Promise<Failed>))

/** The modules in one place: gradients of `microbatches` one after the other, and their number in each. */
function inOnePlace(modules: readonly Module[], x: Tensor, target: Tensor, microbatches: number): (number[] | null)[] {
  const rows = x.shape[0]!
  let from = 0
  for (let i = 0; i < microbatches; i++) {
    const size = Math.floor(rows / microbatches) + (i < rows % microbatches ? 1 : 0)
    let y: Tensor = x.narrow(0, from, size)
    for (const module of modules) y = (module as Linear).forward(y)
    backward(loss(y, target.narrow(0, from, size)))
    from += size
  }
  return gradsOf(modules, microbatches)
}
const gradsOf = (modules: readonly Module[], divisor = 1) =>
  modules.flatMap((module) => module.parameters().map(({ grad }) => (grad === null ? null : Array.from(grad.div(divisor).dataSync()))))

describe('sizes', () => {
  const names: readonly (readonly [PipelineScheduleName, number])[] = [
    ['GPipe', 1],
    ['1F1B', 1],
    ['Interleaved1F1B', 1],
    ['LoopedBFS', 3],
    ['InterleavedZeroBubble', 2],
    ['ZBVZeroBubble', 2],
  ]
  test.each(names)('PIP-8 %s of one worker with %d stages, one micro-batch and several', async (schedule, stages) => {
    await overSeeds(
      1,
      async (workers) => {
        for (const microbatches of [1, 4]) {
          const make = () => Array.from({ length: stages }, (_, i) => linear(i))
          const modules = make()
          const pipelines = pipelinesOf(workers, modules, () => ({ schedule, microbatches, name: `of ${microbatches}` }))
          const [{ losses, output }] = (await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))) as [never]
          expect([(losses as Tensor[]).length, (output as Tensor).shape]).toEqual([microbatches, [6, 3]])
          expect(gradsOf(modules)).toEqual(inOnePlace(make(), batch(), ones([6, 3]), microbatches))
        }
      },
      1,
    )
  })

  test('PIP-8 fewer micro-batches than stages, and a rank that has none', async () => {
    await overSeeds(
      4,
      async (workers) => {
        const make = () => [linear(0), linear(1), linear(2)]
        const modules = make()
        const { ranks } = pipelineSchedule('1F1B', { ranks: 3, microbatches: 2 })
        const schedule = { stages: 3, microbatches: 2, rankOf: [0, 1, 2], ranks: [...ranks, []] }
        const pipelines = workers.map((worker, rank) =>
          worker.run(() => {
            const stages = rank < 3 ? [new PipelineStage(modules[rank]!, rank, 3)] : []
            return new Pipeline(stages, { workers: workers.map(({ info }) => info.id), schedule, loss: loss as never })
          }),
        )
        await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))
        expect(gradsOf(modules)).toEqual(inOnePlace(make(), batch(), ones([6, 3]), 2))
      },
      2,
    )
  })
})

describe('gradients', () => {
  test.each(['1F1B', 'InterleavedZeroBubble'] as const)(
    'PIP-10 %s: stages without parameters, frozen ones, and an output that wants no gradient',
    async (schedule) => {
      await overSeeds(
        4,
        async (workers) => {
          const make = () => {
            const frozen = linear(0)
            frozen.requiresGrad_(false)
            // Nothing to train until stage 2: so no gradient goes to stages 0 and 1.
            return [frozen, new Tanh(), linear(2), new Tanh()]
          }
          const modules = make()
          const pipelines = pipelinesOf(workers, modules, () => ({ schedule }))
          await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))
          const expected = inOnePlace(make(), batch(), ones([6, 3]), 2)
          expect(expected.map((grad) => grad === null)).toEqual([true, true, false, false])
          expect(gradsOf(modules)).toEqual(expected)
        },
        2,
      )
    },
  )

  test.each(['1F1B', 'InterleavedZeroBubble'] as const)(
    'PIP-10 %s: a stage that hands on what it is given, and one that ignores it',
    async (schedule) => {
      class Ignoring extends Module {
        readonly inner = linear(5)
        forward(x: Tensor): Tensor {
          return this.inner.forward(ones(x.shape))
        }
      }
      await overSeeds(
        4,
        async (workers) => {
          for (const name of ['handed on', 'ignored']) {
            const make = () => [linear(0), new Identity(), name === 'ignored' ? new Ignoring() : new Identity(), linear(2)]
            const modules = make()
            const pipelines = pipelinesOf(workers, modules, () => ({ schedule, name }))
            await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))
            const expected = inOnePlace(make(), batch(), ones([6, 3]), 2)
            expect(expected[0] === null).toBe(name === 'ignored')
            expect(gradsOf(modules)).toEqual(expected)
          }
        },
        1,
      )
    },
  )

  test.each(['never', 'always'] as const)('PIP-9, PIP-10 int32 and bool go from stage to stage, checkpoints: %s', async (checkpoint) => {
    await overSeeds(
      2,
      async (workers) => {
        const w = tensor([3], { requiresGrad: true })
        const first = moduleOf((x: Tensor) => [mul(x, w), x.gt(1), x.to('int32')])
        const second = moduleOf((x: Tensor, mask: Tensor, whole: Tensor) => x.mul(mask.to('float32')).mul(whole.to('float32')))
        const x = tensor([[0.5], [1.5], [2.5], [3.5]])
        const steps = workers.map((worker, rank) =>
          worker.run(() => {
            const stage = new PipelineStage([first, second][rank]!, rank, 2, { checkpoint })
            const total = (output: Tensor) => output.sum()
            const options = { workers: ['worker0', 'worker1'], schedule: '1F1B', microbatches: 2, loss: total, scaleGrads: false } as const
            return new Pipeline<Tensor, Tensor>(stage, options).step(rank === 0 ? [x] : [], rank === 1 ? { target: x } : {})
          }),
        )
        const [, { output }] = await Promise.all(steps)
        expect(output!.toArray()).toEqual([[0], [4.5], [15], [31.5]])
        // Σ x · whole, where x > 1.
        expect(w.grad!.toArray()).toEqual([1.5 + 5 + 10.5])
      },
      1,
    )
  })

  test('PIP-10 inputs that are leaves and require gradients get them', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const [x, whole] = [batch().requiresGrad_(), batch().requiresGrad_()]
        const pipelines = pipelinesOf(workers, [linear(0), linear(1)], () => ({}))
        await Promise.all(stepAll(workers, pipelines, [x], { target: ones([6, 3]) }))
        inOnePlace([linear(0), linear(1)], whole, ones([6, 3]), 2)
        expect(x.grad!.toArray()).toEqual(whole.grad!.div(2).toArray())
      },
      1,
    )
  })

  test('PIP-8 a weight that two stages of a worker share is divided once', async () => {
    await overSeeds(
      1,
      async (workers) => {
        const shared = linear(0)
        const pipelines = pipelinesOf(workers, [shared, shared], () => ({ schedule: 'LoopedBFS' }))
        await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))
        const whole = linear(0)
        inOnePlace([whole, whole], batch(), ones([6, 3]), 2)
        const expected = whole.weight.grad!.div(2).dataSync()
        for (const [i, value] of shared.weight.grad!.dataSync().entries()) expect(value).toBeCloseTo(expected[i]!, 6)
      },
      1,
    )
  })

  test('PIP-17 kwargs: a last argument of each stage of the worker, divided by their own spec', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const seen: unknown[] = []
        const w = tensor([[2, 2, 2]], { requiresGrad: true })
        const first = moduleOf((x: Tensor, ...more: unknown[]) => {
          seen.push(more.length)
          return mul(x, w)
        })
        const last = moduleOf((x: Tensor, { mask, table }: { mask: Tensor; table: Tensor }) => {
          seen.push([mask.toArray(), table.shape])
          return x.mul(mask.reshape([2, 1]))
        })
        const pipelines = pipelinesOf(workers, [first, last], () => ({ kwargsSpec: { mask: 1, table: 'replicate' } }))
        const mask = tensor([[1, 2, 3, 4]])
        const [, { output }] = (await Promise.all(
          workers.map((worker, rank) =>
            worker.run(() =>
              rank === 0
                ? pipelines[0]!.step([ones([4, 3])])
                : pipelines[1]!.step([], { target: ones([4, 3]), kwargs: { mask, table: ones([7]) } }),
            ),
          ),
        )) as [unknown, { output: Tensor }]
        expect(output.toArray()).toEqual([1, 2, 3, 4].map((row) => [2 * row, 2 * row, 2 * row]))
        expect(new Set(seen.map((each) => JSON.stringify(each)))).toEqual(new Set(['0', '[[[1,2]],[7]]', '[[[3,4]],[7]]']))
      },
      1,
    )
  })

  test('PIP-17 without returnOutputs there are losses and no output', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const pipelines = pipelinesOf(workers, [linear(0), linear(1)], () => ({}))
        const results = await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]), returnOutputs: false }))
        expect(results.map(({ losses, output }) => [losses.length, output])).toEqual([
          [0, null],
          [2, null],
        ])
      },
      1,
    )
  })
})

describe('mistakes in a step: all workers hear of it, and from whom', () => {
  const cases: readonly [string, unknown, PipelineStepOptions, Partial<PipelineOptions<never, never>>, Module[], number, RegExp][] = [
    ['no target', [batch()], {}, {}, [], 1, /a target on the last stage's worker/],
    ['no inputs', [], { target: batch() }, {}, [], 0, /inputs on the first stage's worker/],
    ['inputs that are no array', batch(), { target: batch() }, {}, [], 0, /an array of the first stage's arguments.*step\(\[x\]\)/s],
    ['a small batch', [batch(1)], { target: batch() }, {}, [], 0, /at least 2 entries along dimension 0/],
    ['a target without a loss', [batch()], { target: batch() }, { loss: undefined }, [], 1, /the pipeline has no loss/],
    ['a loss that is a number', [batch()], { target: batch() }, { loss: (() => 1) as never }, [], 1, /a loss that gives a tensor/],
    ['a loss per row', [batch()], { target: batch() }, { loss: ((y: Tensor) => y.sum(1)) as never }, [], 1, /scalar/],
    [
      'another shape',
      [batch()],
      { target: batch() },
      {},
      [linear(0), new Linear(4, 3)],
      1,
      /at 1F0 \(stage 1, forward of micro-batch 0, given \[3, 3\]\): linear/,
    ],
    [
      'outputs that are of no one shape',
      [batch(5)],
      {},
      { loss: undefined },
      [linear(0), moduleOf((x: Tensor) => x.matmul(x.T))],
      1,
      /cat/,
    ],
  ]
  test.each(cases)('PIP-12 %s', async (_, inputs, options, more, given, at, expected) => {
    await overSeeds(
      2,
      async (workers) => {
        const modules = given.length > 0 ? given : [linear(0), linear(1)]
        const pipelines = pipelinesOf(workers, modules, () => more)
        for (const error of await failures(stepAll(workers, pipelines, inputs, options))) {
          expect([error.code, error.values.worker]).toEqual(['PIPELINE_FAILED', `worker${at}`])
          expect(error.message).toMatch(expected)
        }
      },
      2,
    )
  })

  const gpipe = pipelineSchedule('GPipe', { ranks: 2, microbatches: 2 })
  const swapped = { ...gpipe, ranks: gpipe.ranks.map((list, rank) => (rank === 1 ? [0, 2, 1, 3].map((i) => list[i]!) : list)) }
  test.each([
    [
      'another number of micro-batches',
      (rank: number) => ({ microbatches: 2 + rank }),
      () => 'step' as const,
      ['2 micro-batches', '3 micro-batches'],
    ],
    [
      'another schedule',
      (rank: number) => ({ schedule: (['GPipe', '1F1B'] as const)[rank]! }),
      () => 'step' as const,
      ['the schedule GPipe', 'the schedule 1F1B'],
    ],
    [
      'a loss on one alone',
      (rank: number) => (rank === 0 ? { loss: undefined } : {}),
      () => 'step' as const,
      ['forward only', 'forward and backward'],
    ],
    [
      'gradients divided on one alone',
      (rank: number) => ({ scaleGrads: rank === 0 }),
      () => 'step' as const,
      ['scaleGrads true', 'scaleGrads false'],
    ],
    [
      'a step here, an evaluation there',
      () => ({}),
      (rank: number) => (['step', 'eval'] as const)[rank]!,
      ['forward and backward', 'forward only'],
    ],
    [
      'lists of their own, of which one has two actions in another order',
      (rank: number) => ({ schedule: [gpipe, swapped][rank]! }),
      () => 'step' as const,
      ['1F1 as action 2 of rank 1', '1B0 as action 2 of rank 1'],
    ],
    [
      'a list more, for nobody',
      (rank: number) => ({ schedule: [gpipe, { ...gpipe, ranks: [...gpipe.ranks, []] }][rank]! }),
      () => 'step' as const,
      ['2 ranks', '3 ranks'],
    ],
    [
      'two things',
      (rank: number) => ({ microbatches: 2 + rank, scaleGrads: rank === 0 }),
      () => 'step' as const,
      ['2 micro-batches, scaleGrads true', '3 micro-batches, scaleGrads false'],
    ],
  ])('PIP-13 %s: refused at once, with what differs', async (_, optionsOf, how, [first, second]) => {
    await overSeeds(
      2,
      async (workers) => {
        const { clock } = workers[0]!
        const pipelines = pipelinesOf(workers, [linear(0), linear(1)], optionsOf)
        const before = clock.now()
        for (const error of await failures(stepAll(workers, pipelines, [batch()], { target: batch() }, how))) {
          expect([error.code, error.cause.code]).toEqual(['PIPELINE_FAILED', 'PIPELINE_MISMATCH'])
          expect([`'worker0' has ${first}, 'worker1' has ${second}`, `'worker1' has ${second}, 'worker0' has ${first}`]).toContain(
            /different plans: (.*?)\./.exec(error.cause.message)?.[1],
          )
        }
        // Not by a deadline.
        expect(clock.now() - before).toBeLessThan(5000)
      },
      3,
    )
  })

  test('PIP-13 workers that see their ranks differently: refused at once', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const { clock } = workers[0]!
        const before = clock.now()
        const steps = workers.map((worker, i) =>
          worker.run(() => {
            const names = i === 0 ? ['worker0', 'worker1'] : ['worker1', 'worker0']
            const options = { workers: names, schedule: '1F1B', microbatches: 2, loss } as const
            return new Pipeline<Tensor, Tensor>(new PipelineStage(linear(0), 0, 2), options).step([batch()])
          }),
        )
        for (const error of await failures(steps)) expect(error.cause.code).toBe('PIPELINE_MISMATCH')
        expect(clock.now() - before).toBeLessThan(5000)
      },
      2,
    )
  })

  test('PIP-12 an option that is none: nobody waits for that worker', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const pipelines = pipelinesOf(workers, [linear(0), linear(1)], () => ({}))
        const steps = workers.map((worker, rank) =>
          worker.run(() => pipelines[rank]!.step([batch()], (rank === 0 ? { target: batch() } : { targets: batch() }) as never)),
        )
        for (const error of await failures(steps)) expect([error.values.worker, error.cause.code]).toEqual(['worker1', 'INVALID_ARGUMENT'])
      },
      2,
    )
  })

  test('PIP-12 the same pipeline takes the next step where only a step was wrong', async () => {
    await overSeeds(
      2,
      async (workers) => {
        const modules = [linear(0), linear(1)]
        const pipelines = pipelinesOf(workers, modules, () => ({}))
        await failures(stepAll(workers, pipelines, [batch()], {}))
        for (const module of modules) module.zeroGrad()
        await Promise.all(stepAll(workers, pipelines, [batch()], { target: ones([6, 3]) }))
        expect(gradsOf(modules)).toEqual(inOnePlace([linear(0), linear(1)], batch(), ones([6, 3]), 2))
      },
      3,
    )
  })

  test('PIP-13 a stage in two steps at once', async () => {
    await overSeeds(
      1,
      async ([worker]) => {
        const stage = new PipelineStage(linear(0), 0, 1)
        const made = (name: string) =>
          worker!.run(() => new Pipeline(stage, { workers: ['worker0'], schedule: 'GPipe', microbatches: 1, loss: loss as never, name }))
        const [one, two] = [made('one'), made('two')]
        const first = worker!.run(() => one.step([batch()], { target: batch() }))
        expect((await failure(worker!.run(() => two.eval([batch()])))).code).toBe('PIPELINE_BUSY')
        await first
        await worker!.run(() => two.eval([batch()]))
      },
      1,
    )
  })

  test('PIP-12 a signal ends a step of one worker, between two of its actions', async () => {
    await overSeeds(
      1,
      async (workers) => {
        const stop = new AbortController()
        let forwards = 0
        const module = moduleOf((x: Tensor) => {
          if (++forwards === 2) stop.abort()
          return x
        })
        const pipelines = pipelinesOf(workers, [module], () => ({ microbatches: 6, loss: undefined }))
        const [error] = await failures(stepAll(workers, pipelines, [batch()], { signal: stop.signal }))
        expect([error!.cause.code, forwards < 6]).toEqual(['CALL_CANCELLED', true])
      },
      1,
    )
  })
})

describe('mistakes in a pipeline', () => {
  test.each([
    ['a worker twice', {}, { workers: ['worker0', 'worker0'] }, /each worker once/],
    ['workers that are no array', {}, { workers: 'worker0' }, /an array of workers/],
    ['a schedule that is none', {}, { schedule: {} }, /the name of a schedule/],
    ['a schedule that is misspelt', {}, { schedule: '1f1b' }, /one of GPipe, 1F1B/],
    ['no number of micro-batches', {}, { microbatches: undefined }, /\{ microbatches: 8 \}/],
    ['a module as stage', { stage: linear(0) }, {}, /new PipelineStage\(module, index, count\)/],
    ['a loss for forwards alone', {}, { schedule: forwardOnly(pipelineSchedule('GPipe', { ranks: 2, microbatches: 2 })) }, /no loss/],
    ['a stage of too many', { stage: new PipelineStage(linear(0), 0, 3) }, {}, /stages 0 of 2 on rank 0 of 2.*got stages 0 of 3/s],
  ])('PIP-13 %s', async (_, given, options, expected) => {
    await overSeeds(
      2,
      async ([worker]) => {
        const { stage = new PipelineStage(linear(0), 0, 2) } = given as { stage?: unknown }
        const all = { workers: ['worker0', 'worker1'], schedule: '1F1B', microbatches: 2, loss, ...options }
        const error = thrown(() => worker!.run(() => new Pipeline(stage as never, all as never)))
        expect(error.message).toMatch(expected)
      },
      1,
    )
  })
})
