/** The network over two workers in the simulation: PyTorch's losses, the bits of the inlined program in every order, and a loss that falls. */
import { expect, test } from '@jest/globals'
import { DistributedOptimizer, getAllRemoteParams } from 'postgrad'
import { SGD } from 'postgrad/optim'
import { expectClean, inlined, simulate } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { floats, ints, readGolden, stateOf, type Values } from '../shared/golden.suite.js'
import { leastLoss } from './melodies.js'
import { RnnModel, type Sizes, type TrainOptions, train, trainStep, WORKERS } from './program.js'

type State = Readonly<Record<string, Values>>
interface Golden {
  readonly sizes: Sizes
  readonly lr: number
  readonly encoder: State
  readonly core: State
  readonly decoder: State
  readonly batches: readonly { readonly input: Values; readonly target: Values }[]
  readonly losses: readonly number[]
}

const golden = readGolden<Golden>('rnn')

/** On `trainer`: from the same weights, the same batches. */
async function likePyTorch(): Promise<number[]> {
  using model = new RnnModel(golden.sizes)
  await model.encoder.getModuleRref().call('loadStateDict', [stateOf(golden.encoder)])
  await model.decoder.getModuleRref().call('loadStateDict', [stateOf(golden.decoder)])
  model.core.loadStateDict(stateOf(golden.core))
  const parameters = await getAllRemoteParams(model)
  using optimizer = new DistributedOptimizer(SGD, parameters, { lr: golden.lr, momentum: 0.9 })
  const losses: number[] = []
  for (const { input, target } of golden.batches) {
    losses.push(await trainStep(model, optimizer, { input: ints(input), target: ints(target) }))
  }
  for (const parameter of parameters) parameter.dispose()
  return losses
}

test('PyTorch: the losses of its network with the same weights and batches', async () => {
  expect(floats(golden.encoder.weight!).shape).toEqual([7, 2])
  const simulation = await simulate({ workers: WORKERS, seed: 1 }, (sim) => sim.on('trainer').run(likePyTorch))
  expect(simulation.result).toHaveLength(golden.losses.length)
  for (const [i, loss] of simulation.result.entries()) expect(loss).toBeCloseTo(golden.losses[i]!, 5)
  expectClean(simulation)
})

const SMALL: TrainOptions = { embedding: 4, hidden: 8, layers: 2, epochs: 2, batches: 2, batch: 3, length: 5, lr: 0.3, seed: 1 }

test('in every order the bits of the inlined program', async () => {
  const oracle = bits(await inlined({ workers: WORKERS }, (cluster) => cluster.on('trainer').run(train, SMALL)))
  for (let seed = 1; seed <= 10; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed }, (sim) => sim.on('trainer').run(train, SMALL))
    expect({ seed, losses: bits(simulation.result) }).toEqual({ seed, losses: oracle })
    expectClean(simulation)
  }
})

test('it learns', async () => {
  const options = { ...SMALL, embedding: 8, hidden: 24, layers: 1, epochs: 1, batches: 100, batch: 16, length: 8, lr: 0.5 }
  const { result } = await simulate({ workers: WORKERS, seed: 1 }, (sim) => sim.on('trainer').run(train, options))
  expect(result[0]).toBeGreaterThan(1.8)
  expect(result.at(-1)).toBeLessThan(leastLoss(8) + 0.3)
})
