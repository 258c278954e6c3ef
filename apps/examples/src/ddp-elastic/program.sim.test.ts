/** Elastic training in the simulation: a trainer dies at any moment, another joins, and training continues from the survivors' state. */
import { expect, test } from '@jest/globals'
import { simulate } from 'postgrad/testing'
import { coordinate, type Options } from './program.js'

const SMALL: Options = { steps: 20, roundSteps: 4, batch: 12, lr: 0.01, seed: 1 }
const workers = ['coordinator', 'trainer0', 'trainer1', 'trainer2']

test('a trainer dies and another joins: all steps are taken, survivors are not started again, replicas are alike', async () => {
  let early = 0
  for (let seed = 1; seed <= 3; seed++) {
    const { result } = await simulate({ workers, seed }, async (sim) => {
      const running = sim.on('coordinator').run(coordinate, SMALL)
      await sim.on('trainer1').run(async () => {
        for (let i = 0; i < 15 * seed; i++) await new Promise<void>((resolve) => sim.world.clock.defer(resolve))
      })
      sim.crash('trainer1')
      sim.join('trainer3')
      return running
    })
    const { rounds, last } = result
    expect(rounds.at(-1)!.step).toBe(SMALL.steps)
    expect(Object.keys(last).sort()).toEqual(['trainer0', 'trainer2', 'trainer3'])
    expect(new Set(Object.values(last).map(({ step, checksum }) => `${step} ${checksum}`)).size).toBe(1)
    expect(last.trainer0!.rounds).toBeGreaterThan(last.trainer3!.rounds)
    for (const [i, { step }] of rounds.entries()) expect(step).toBeGreaterThanOrEqual(i === 0 ? 0 : rounds[i - 1]!.step)
    early += Number(rounds.length > 5)
  }
  expect(early).toBeGreaterThan(0)
})

test('it learns, whoever is there', async () => {
  const { result } = await simulate({ workers, seed: 2 }, async (sim) => {
    const running = sim.on('coordinator').run(coordinate, { ...SMALL, steps: 60, roundSteps: 20, batch: 24 })
    await sim.on('trainer2').run(async () => {
      for (let i = 0; i < 100; i++) await new Promise<void>((resolve) => sim.world.clock.defer(resolve))
    })
    sim.crash('trainer2')
    return running
  })
  expect(result.rounds.at(-1)!.loss).toBeLessThan(0.3)
})
