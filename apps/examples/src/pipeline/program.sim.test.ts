/** The pipeline in the simulation: every schedule and order gives the losses and weights of the model in one place; and it learns. */
import { expect, test } from '@jest/globals'
import { PIPELINE_SCHEDULES, splitSequential } from 'postgrad/pipelining'
import { expectClean, inlined, simulate } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { scheduleOfRun, type TrainOptions, train } from './program.js'
import { checksumOf, SMALL, trainWhole } from './whole.suite.js'

const workers = ['rank0', 'rank1']

const run = (options: TrainOptions, seed: number) =>
  simulate({ workers, seed }, (sim) => Promise.all(workers.map((worker) => sim.on(worker).run(train, options))))

test.each(PIPELINE_SCHEDULES)('PIP-8 %s: the bits of the model in one place', async (schedule) => {
  const options = { ...SMALL, workers, schedule, stagesPerRank: schedule === 'GPipe' || schedule === '1F1B' ? 1 : 2 }
  const { losses, model } = await inlined({ workers }, (cluster) => cluster.on('rank0').run(() => trainWhole(SMALL)))
  const { rankOf, stages } = scheduleOfRun(options)
  const parts = splitSequential(model, stages)
  const expected = await Promise.all(
    workers.map((_, rank) => checksumOf(parts.filter((_, i) => rankOf[i] === rank).flatMap((part) => part.parameters()))),
  )
  // Other orders of delivery are in the tests of the library.
  const simulation = await run(options, 1)
  const checksums = simulation.result.map(({ checksum }) => checksum)
  expect({ losses: bits(simulation.result.flatMap((report) => report.losses)), checksums }).toEqual({
    losses: bits(losses),
    checksums: expected,
  })
  expectClean(simulation)
})

test('it learns', async () => {
  const { result } = await run({ ...SMALL, workers, schedule: '1F1B', stagesPerRank: 1, steps: 25, width: 16 }, 1)
  const losses = result.flatMap((report) => report.losses)
  expect(losses.at(-1)).toBeLessThan(0.5 * losses[0]!)
})
