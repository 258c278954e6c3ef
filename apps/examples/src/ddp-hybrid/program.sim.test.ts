/** The hybrid model in the simulation: dense parts that are alike in every order of delivery, and a loss that falls. */
import { expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { type Options, run } from './program.js'

const trainers = ['trainer0', 'trainer1']
const workers = ['master', 'ps', ...trainers]
const SMALL: Options = { server: 'ps', trainers, rows: 30, batch: 8, steps: 4, lr: 0.5, seed: 1 }

test('in every order of delivery the dense parts are alike', async () => {
  for (let seed = 1; seed <= 6; seed++) {
    const simulation = await simulate({ workers, seed }, (sim) => sim.on('master').run(run, SMALL))
    const [first, second] = simulation.result
    expect({ seed, checksum: second!.checksum }).toEqual({ seed, checksum: first!.checksum })
    expectClean(simulation)
  }
})

test('it learns', async () => {
  const { result } = await simulate({ workers, seed: 1 }, (sim) => sim.on('master').run(run, { ...SMALL, batch: 32, steps: 40 }))
  for (const { losses } of result) expect(losses.at(-1)!).toBeLessThan(losses[0]! / 3)
})
