/**
 * The parameter server in the simulation: together, the bits of the inlined program in every order; each alone learns as well. Only rows travel,
 * whatever the size of the tables.
 */
import { expect, test } from '@jest/globals'
import { cat, Generator, type Tensor } from 'postgrad'
import { Adagrad } from 'postgrad/optim'
import { expectClean, type FaultRule, inlined, simulate } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { type Options, ParameterServer, run } from './program.js'
import { rated } from './ratings.js'

const trainers = ['trainer1', 'trainer2', 'trainer3']
const workers = ['ps', ...trainers]
const SMALL: Options = { mode: 'together', trainers, users: 60, items: 40, width: 4, batch: 8, steps: 4, lr: 0.3, seed: 2 }

const train = (options: Options) => (cluster: { on(name: string): { run(fn: typeof run, options: Options): Promise<number[][]> } }) =>
  cluster.on('ps').run(run, options)

/** The same training in one process: every step over the batches of all trainers, the gradient of their mean. Gives the loss of each trainer's share. */
async function inOneProcess(options: Options): Promise<number[][]> {
  const { users, items, batch, steps, lr, seed } = options
  const tables = new ParameterServer(options)
  const optimizer = new Adagrad([tables.users.weight, tables.items.weight], { lr })
  const generators = trainers.map((_, i) => new Generator(1000 * seed + i))
  const losses: number[][] = trainers.map(() => [])
  for (let step = 0; step < steps; step++) {
    const batches = generators.map((generator) => rated(generator, batch, users, items))
    const all = (of: (b: (typeof batches)[number]) => Tensor) => cat(batches.map(of))
    const [user, item] = tables.lookUp(
      all((b) => b.users),
      all((b) => b.items),
    )
    const squares = user
      .mul(item)
      .sum(1)
      .sub(all((b) => b.ratings))
      .pow(2)
      .reshape([trainers.length, batch])
    const means = squares.mean(1)
    optimizer.zeroGrad()
    means.mean().backward()
    optimizer.step()
    for (const [i, loss] of means.detach().dataSync().entries()) losses[i]!.push(Number(loss))
  }
  return losses
}

test('together: in every order the bits of the inlined program, which are those of one process with all batches but for rounding', async () => {
  const oracle = await inlined({ workers }, train(SMALL))
  const alone = await inlined({ workers: ['ps'] }, (cluster) => cluster.on('ps').run(inOneProcess, SMALL))
  expect(oracle.map((losses) => losses.length)).toEqual([4, 4, 4])
  for (const [i, losses] of oracle.entries()) {
    for (const [step, loss] of losses.entries()) expect(loss).toBeCloseTo(alone[i]![step]!, 5)
  }
  for (let seed = 1; seed <= 10; seed++) {
    const simulation = await simulate({ workers, seed }, train(SMALL))
    expect({ seed, losses: simulation.result.map(bits) }).toEqual({ seed, losses: oracle.map(bits) })
    expectClean(simulation)
  }
})

test('together: messages that are lost, repeated or late change no bit', async () => {
  const oracle = await inlined({ workers }, train(SMALL))
  const faults: FaultRule[] = [
    { match: { probability: 0.05 }, do: 'drop' },
    { match: { probability: 0.2 }, do: 'duplicate' },
    { match: { to: 'ps', every: 4 }, do: 'delay', delayMs: 20 },
  ]
  for (let seed = 1; seed <= 3; seed++) {
    const simulation = await simulate({ workers, seed, faults }, train(SMALL))
    expect(simulation.faults.drop).toBeGreaterThan(0)
    expect({ seed, losses: simulation.result.map(bits) }).toEqual({ seed, losses: oracle.map(bits) })
    expectClean(simulation)
  }
})

test.each(['together', 'alone'] as const)('%s: it learns', async (mode) => {
  const simulation = await simulate({ workers, seed: 3 }, train({ ...SMALL, mode, batch: 64, steps: 40 }))
  for (const losses of simulation.result) {
    const mean = (some: readonly number[]) => some.reduce((sum, loss) => sum + loss, 0) / some.length
    expect(mean(losses.slice(-5))).toBeLessThan(mean(losses.slice(0, 5)) / 4)
  }
  expectClean(simulation)
})

test.each(['together', 'alone'] as const)('%s: what travels are rows, and no message grows with the tables', async (mode) => {
  const largest = async (rows: number): Promise<number> => {
    const { trace } = await simulate({ workers, seed: 4 }, train({ ...SMALL, mode, users: rows, items: rows }))
    return Math.max(...trace.events.map(({ bytes }) => bytes))
  }
  const [small, large] = [await largest(50), await largest(5000)]
  // Two lists of rows, 4 bytes a number, and a header.
  expect(small).toBeGreaterThan(2 * SMALL.batch * SMALL.width * 4)
  expect(large).toBeLessThan(small + 100)
})
