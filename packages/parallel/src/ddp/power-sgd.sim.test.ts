import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { crossEntropy } from '@postgrad/autograd'
import { Embedding, Linear, Module, Sequential, SGD, Tanh } from '@postgrad/nn'
import { currentGenerator, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { entryLines, headLine, type NamedTensors, readState } from '../checkpoint/state-lines.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { expectState, numbers, target } from './golden.suite.js'
import { batchOf, lossOf, seeded, values } from './models.suite.js'
import { PowerSGDState, type PowerSGDStateDict, type PowerSGDStateOptions, powerSGDHook } from './power-sgd.js'
import { failure, overSeeds } from './sim-ranks.suite.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }
const net = (): Sequential =>
  seeded(7, () => new Sequential(new Linear(8, 12), new Tanh(), new Linear(12, 12), new Tanh(), new Linear(12, 4)))

interface Training {
  readonly model: DistributedDataParallel<Sequential>
  readonly optimizer: SGD
  readonly state: PowerSGDState
}

async function begun(options: PowerSGDStateOptions): Promise<Training> {
  const model = await DistributedDataParallel.create(net(), SMALL)
  const state = new PowerSGDState(options)
  model.registerCommHook(state, powerSGDHook)
  return { model, state, optimizer: new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }) }
}

async function run({ model, optimizer }: Training, rank: number, from: number, to: number): Promise<unknown> {
  for (let step = from; step < to; step++) {
    optimizer.zeroGrad()
    await model.backward(lossOf(await model.forward(batchOf(rank, step, 5, 8))))
    optimizer.step()
  }
  return values(model.parameters())
}

/** As a file would have it: a text, and tensors that are others. */
async function throughText<T>(value: T): Promise<T> {
  const tensors: NamedTensors = new Map()
  const lines = entryLines('state', 'value', value, tensors)
  const head = headLine({ worker: 'worker0', generator: currentGenerator().state() })
  const { entries } = await readState('state', asyncOf([head, ...lines]), () => true)
  const file = { tensor: async (name: string) => raw.clone(tensors.get(name)!) }
  return (await entries[0]!.tree!.fill(file)) as T
}

async function* asyncOf<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all
}

test('DDP-55 a training that goes on from a saved state has the bits of one that was not interrupted, whatever the buckets are by then', async () => {
  const base = { startPowerSGDIter: 2, minCompressionRate: 1 }
  const more: readonly PowerSGDStateOptions[] = [
    { matrixApproximationRank: 2 },
    { useErrorFeedback: false },
    { warmStart: false, randomSeed: 2 ** 40 + 5 },
    // Saved before it compresses.
    { startPowerSGDIter: 6 },
  ]
  for (const each of more) {
    const options = { ...base, ...each }
    await overSeeds(3, async (rank) => {
      const whole = await begun(options)
      await run(whole, rank, 0, 4)
      const saved = await throughText({ power: whole.state.stateDict(), optimizer: whole.optimizer.stateDict() })
      const weights = await throughText(whole.model.module.stateDict())
      const expected = await run(whole, rank, 4, 10)
      whole.model.dispose()

      // Other options: those of the state count.
      const resumed = await begun({ startPowerSGDIter: 3, matrixApproximationRank: 3 })
      resumed.model.module.loadStateDict(weights)
      resumed.optimizer.loadStateDict(saved.optimizer)
      resumed.state.loadStateDict(saved.power)
      expect(await run(resumed, rank, 4, 10)).toEqual(expected)
      expect(resumed.state.iteration).toBe(10)
      // No write to the saved state: it can be loaded again.
      resumed.state.loadStateDict(saved.power)
      expect(values(Object.values(resumed.state.stateDict().errors))).toEqual(values(Object.values(saved.power.errors)))
      const isCompressing = options.startPowerSGDIter === 2
      expect(Object.keys(saved.power.qs).length).toBe(isCompressing && each.warmStart !== false ? 3 : 0)
      expect(Object.keys(saved.power.errors).length).toBe(isCompressing && each.useErrorFeedback !== false ? 3 : 0)

      // And it matters: a state that is lost is noticed.
      if (isCompressing && each.warmStart !== false) {
        const cold = await begun(options)
        cold.model.module.loadStateDict(weights)
        cold.optimizer.loadStateDict(saved.optimizer)
        cold.state.iteration = 4
        expect(await run(cold, rank, 4, 10)).not.toEqual(expected)
      }
    })
  }
})

test('DDP-51 without warm start each iteration looks at gradients from another side', async () => {
  await overSeeds(2, async (rank) => {
    const options = { startPowerSGDIter: 2, minCompressionRate: 1, useErrorFeedback: false }
    for (const warmStart of [false, true]) {
      const { model } = await begun({ ...options, warmStart })
      const grads: unknown[] = []
      for (let step = 0; step < 4; step++) {
        model.zeroGrad()
        await model.backward(lossOf(await model.forward(batchOf(rank, 0, 5, 8))))
        grads.push(values([model.module.parameters()[0]!.grad]))
      }
      expect(grads[1]).toEqual(grads[0])
      expect(grads[2]).not.toEqual(grads[1])
      expect(grads[3]).not.toEqual(grads[2])
    }
  })
})

const largest = (t: Tensor): number => Math.max(...(t.abs().toArray() as number[][]).flat())

test('DDP-51 gradients of a lower rank than there are columns lose nothing but roundings, nor do those that come later', async () => {
  // Of so many samples: gradients of 0, of rank 1, and then of the rank of the whole matrix.
  const SAMPLES = [0, 1, 1, 1, 0, 0, 1, 2, 8, 8]
  for (const options of [{}, { useErrorFeedback: false }, { warmStart: false }]) {
    for (const matrixApproximationRank of [1, 2, 3, 4, 8]) {
      await overSeeds(2, async () => {
        const make = () => DistributedDataParallel.create(seeded(3, () => new Linear(16, 8, { bias: false })))
        const [model, whole] = [await make(), await make()]
        const settings = { matrixApproximationRank, startPowerSGDIter: 2, minCompressionRate: 0.1, ...options }
        model.registerCommHook(new PowerSGDState(settings), powerSGDHook)
        for (const [step, samples] of [1, 1, ...SAMPLES].entries()) {
          // The same on all ranks: the mean over the ranks has no other rank.
          const x = samples === 0 ? zeros([1, 16]) : batchOf(0, step, samples, 16)
          for (const each of [model, whole]) {
            each.zeroGrad()
            await each.backward(lossOf(await each.forward(x)))
          }
          const [grad, expected] = [model, whole].map(({ module }) => module.weight.grad!)
          if (samples <= matrixApproximationRank) expect(largest(raw.sub(grad!, expected!))).toBeLessThan(1e-5)
        }
      })
    }
  }
})

interface Golden {
  readonly size: number
  readonly matrixRank: number
  readonly iteration: number
  readonly start: Record<string, GoldenValues>
  readonly qs: Record<string, GoldenValues>
  readonly state: Record<string, GoldenValues>
  readonly errors: readonly Record<string, GoldenValues>[]
  readonly losses: readonly (readonly number[])[]
}
interface GoldenValues {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}
const golden = JSON.parse(readFileSync(new URL('../../golden/power-sgd.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Golden[]
}

const made = (given: Record<string, GoldenValues>): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(given).map(([name, { shape, values: v }]) => [name, tensor(Float64Array.from(v)).reshape(shape).detach()]),
  )

test.each(golden.cases.map((each) => [each.size, each.matrixRank, each] as const))(
  'DDP-55 from the state of PyTorch, steps are those of PyTorch: %i ranks, %i columns',
  async (_, __, { size, matrixRank, iteration, start, qs, state: end, errors, losses }) => {
    await overSeeds(size, async (rank) => {
      const module = new Sequential(new Linear(12, 16), new Tanh(), new Linear(16, 16), new Tanh(), new Linear(16, 3))
      module.to('float64')
      module.loadStateDict(made(start))
      const model = await DistributedDataParallel.create(module, SMALL)
      const state = new PowerSGDState()
      const settings = { ...state.stateDict().settings, matrixApproximationRank: matrixRank, startPowerSGDIter: 2, minCompressionRate: 1 }
      state.loadStateDict({ iteration, settings, qs: made(qs), errors: made(errors[rank]!) })
      model.registerCommHook(state, powerSGDHook)
      const optimizer = new SGD(model.parameters(), { lr: 0.2 })
      for (const [i, want] of losses[rank]!.entries()) {
        optimizer.zeroGrad()
        const loss = crossEntropy(await model.forward(numbers([5, 12], rank, iteration + i)), target(rank, iteration + i))
        await model.backward(loss)
        optimizer.step()
        expect(Math.abs(loss.itemSync() - want)).toBeLessThan(1e-9)
      }
      expectState(module, end, 1e-9)
    })
  },
)

test('DDP-55 what is no state, or of another model, is refused', async () => {
  await overSeeds(1, async () => {
    const state = new PowerSGDState({ startPowerSGDIter: 2 })
    const good = state.stateDict()
    const { warmStart: _, ...incomplete } = good.settings
    const ofErrors = [{ a: zeros([1]) }, new Map([[0, zeros([1])]]), [zeros([1])]].map((errors) => ({ ...good, errors }))
    const ofSettings = [incomplete, {}, new Map()].map((settings) => ({ ...good, settings }))
    for (const bad of [null, {}, { ...good, iteration: -1 }, ...ofErrors, ...ofSettings, { ...good, qs: { 0: 3 } }])
      expect(() => state.loadStateDict(bad as never)).toThrow(expect.objectContaining({ code: 'STATE_DICT_MISMATCH' }))
    for (const settings of [
      { matrixApproximationRank: 0 },
      { startPowerSGDIter: 1 },
      { minCompressionRate: 0 },
      { startPowerSGDIter: 2.5 },
      { startPowerSGDIter: Number.NaN, useErrorFeedback: false, warmStart: false },
      { minCompressionRate: '2' },
      { useErrorFeedback: 'no' },
      { warmStart: 0 },
      { randomSeed: 0.5 },
      { rank: 1 },
    ]) {
      const isInvalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
      expect(() => state.loadStateDict({ ...good, settings: { ...good.settings, ...(settings as object) } })).toThrow(isInvalid)
      expect(() => new PowerSGDState(settings as never)).toThrow(isInvalid)
    }
    expect(state.stateDict()).toEqual(good)
    const others: Partial<PowerSGDStateDict>[] = [{ errors: { 0: zeros([8, 8]) } }, { qs: { 0: zeros([3, 1]) } }]
    for (const other of others) {
      const { model, state: fresh } = await begun({ startPowerSGDIter: 2, minCompressionRate: 1 })
      fresh.loadStateDict({ ...fresh.stateDict(), iteration: 5, ...other })
      expect(await failure(model.backward(lossOf(await model.forward(batchOf(0, 0, 5, 8)))))).toMatchObject({
        code: 'STATE_DICT_MISMATCH',
        message: expect.stringContaining('of parameter 0 to be float32'),
      })
    }
    // The model has six parameters.
    for (const other of [{ errors: { 6: zeros([8, 8]) } }, { qs: { 7: zeros([3, 1]) } }]) {
      const { model, state: fresh } = await begun({ startPowerSGDIter: 2, minCompressionRate: 1 })
      fresh.loadStateDict({ ...fresh.stateDict(), ...other })
      expect(await failure(model.backward(lossOf(await model.forward(batchOf(0, 0, 5, 8)))))).toMatchObject({
        code: 'STATE_DICT_MISMATCH',
        message: expect.stringContaining('numbers of 6 parameters'),
      })
    }
    const model = await DistributedDataParallel.create(new Linear(2, 2))
    model.registerCommHook(null as never, powerSGDHook)
    expect(await failure(model.backward(lossOf(await model.forward(zeros([1, 2])))))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('a PowerSGDState as its state'),
    })
  })
})

/** The table's bucket is the last, and has no hook. */
class Table extends Module {
  readonly rows = new Embedding(4, 3, { sparse: true })
  readonly out = new Linear(3, 2)
  forward(indices: Tensor): Tensor {
    return this.out.forward(this.rows.forward(indices))
  }
}

test('DDP-11, DDP-55 iterations are counted where the last bucket is sparse, too', async () => {
  await overSeeds(2, async () => {
    const model = await DistributedDataParallel.create(
      seeded(1, () => new Table()),
      { firstBucketMb: 1e-6, bucketCapMb: 1e-6 },
    )
    const state = new PowerSGDState({ startPowerSGDIter: 2 })
    model.registerCommHook(state, powerSGDHook)
    for (let step = 0; step < 4; step++) await model.backward(lossOf(await model.forward(tensor([0, 2], { dtype: 'int32' }))))
    expect(model.buckets.at(-1)).toEqual([0])
    expect(state.iteration).toBe(4)
  })
})
