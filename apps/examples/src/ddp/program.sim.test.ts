/** Replicas in the simulation: every order of delivery gives the same bits on all trainers; and they learn. */
import { expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { type TrainOptions, train } from './program.js'

const trainers = ['trainer0', 'trainer1', 'trainer2']
const SMALL: TrainOptions = { trainers, samples: 30, batch: 5, epochs: 2, lr: 0.05, seed: 1 }

async function trained(seed: number, options: TrainOptions) {
  const simulation = await simulate({ workers: options.trainers, seed, dataSeed: 1 }, (sim) =>
    Promise.all(options.trainers.map((name) => sim.on(name).run(train, options))),
  )
  expectClean(simulation)
  return simulation.result
}

test('in every order of delivery the same bits, on all trainers', async () => {
  const first = await trained(1, SMALL)
  expect(new Set(first.map(({ checksum }) => checksum)).size).toBe(1)
  for (let seed = 2; seed <= 3; seed++) expect(await trained(seed, SMALL)).toEqual(first)
})

test('it learns', async () => {
  const [report] = await trained(1, { ...SMALL, trainers: ['trainer0', 'trainer1'], samples: 240, epochs: 3 })
  expect(report!.losses[0]).toBeGreaterThan(report!.losses.at(-1)! * 2)
  expect(report!.accuracy).toBeGreaterThan(0.9)
})
