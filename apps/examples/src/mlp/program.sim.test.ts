/** The layers on workers of their own, in the simulation: PyTorch's losses, the bits of the inlined program in every order, and the accuracy. */
import { expect, test } from '@jest/globals'
import { DistributedOptimizer, getAllRemoteParams } from 'postgrad'
import type { StateDict } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { expectClean, inlined, simulate } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { floats, ints, readGolden, stateOf, type Values } from '../shared/golden.suite.js'
import { ParallelMlp, type TrainOptions, train, trainStep } from './program.js'

interface Golden {
  readonly hidden: number
  readonly lr: number
  readonly layers: readonly Readonly<Record<string, Values>>[]
  readonly points: Values
  readonly labels: Values
  readonly losses: readonly number[]
}

const golden = readGolden<Golden>('mlp')
const layers = ['layer1', 'layer2', 'layer3']
const workers = ['trainer', ...layers]

/** On `trainer`: from the same weights. */
async function likePyTorch(): Promise<number[]> {
  using model = new ParallelMlp(layers, golden.hidden)
  const named = (state: StateDict): StateDict => Object.fromEntries(Object.entries(state).map(([name, t]) => [`linear.${name}`, t]))
  await Promise.all(model.layers.map((layer, i) => layer.getModuleRref().call('loadStateDict', [named(stateOf(golden.layers[i]!))])))
  const parameters = await getAllRemoteParams(model)
  using optimizer = new DistributedOptimizer(Adam, parameters, { lr: golden.lr })
  const data = { points: floats(golden.points), labels: ints(golden.labels) }
  const losses: number[] = []
  for (const _ of golden.losses) losses.push(await trainStep(model, optimizer, data))
  for (const parameter of parameters) parameter.dispose()
  return losses
}

test('PyTorch: the losses of its network with the same weights', async () => {
  const simulation = await simulate({ workers, seed: 1 }, (sim) => sim.on('trainer').run(likePyTorch))
  expect(simulation.result).toHaveLength(golden.losses.length)
  for (const [i, loss] of simulation.result.entries()) expect(loss).toBeCloseTo(golden.losses[i]!, 5)
  expectClean(simulation)
})

const SMALL: TrainOptions = { workers: layers, hidden: 6, points: 4, steps: 3, lr: 0.05, seed: 1 }

test('in every order the bits of the inlined program', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('trainer').run(train, SMALL))
  for (let seed = 1; seed <= 10; seed++) {
    const simulation = await simulate({ workers, seed }, (sim) => sim.on('trainer').run(train, SMALL))
    expect({ seed, losses: bits(simulation.result.losses) }).toEqual({ seed, losses: bits(oracle.losses) })
    expect(simulation.result.accuracy).toBe(oracle.accuracy)
    expectClean(simulation)
  }
})

test('it learns', async () => {
  const options = { ...SMALL, hidden: 16, points: 30, steps: 100 }
  const { result } = await simulate({ workers, seed: 1 }, (sim) => sim.on('trainer').run(train, options))
  expect(result.losses[0]).toBeGreaterThan(0.9)
  expect(result.losses.at(-1)).toBeLessThan(0.2)
  expect(result.accuracy).toBeGreaterThan(0.95)
})
