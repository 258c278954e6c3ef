/** Replicas on threads of one process and of two: the bits of the simulation. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { simulate } from 'postgrad/testing'
import { train } from './program.js'

const PROGRAM = new URL('./program.js', import.meta.url)

test.each([
  ['threads', {}],
  ['processes', { processes: 2 }],
])('on %s: the bits of the simulation', async (_place, spread) => {
  const trainers = ['trainer0', 'trainer1']
  const options = { trainers, samples: 32, batch: 4, epochs: 2, lr: 0.05, seed: 1 }
  const { result } = await simulate({ workers: trainers, seed: 1, dataSeed: 3 }, (sim) =>
    Promise.all(trainers.map((name) => sim.on(name).run(train, options))),
  )
  await using cluster = await launch(PROGRAM, { workers: trainers, seed: 3, ...spread })
  expect(await Promise.all(trainers.map((name) => cluster.on(name).run(train, options)))).toEqual(result)
})
