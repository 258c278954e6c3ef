/** The acceptance cases that check themselves, in the simulation, on all workers at once. `packages/postgrad` runs the same on threads. */
import { describe, expect, test } from '@jest/globals'
import { currentWorker } from '@postgrad/rpc'
import { contextCases, deathCases, endWorkersBy, failingCases, loadCases, passOverDead, runScenario } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const SEEDS = 10

describe('all workers at once', () => {
  test.each([...contextCases, ...loadCases, ...failingCases].map((one) => [one.name, one] as const))('%s', async (_, one) => {
    for (let seed = 1; seed <= (one.seeds ?? SEEDS); seed++) {
      const simulation = await simulate({ workers: 4, seed }, (sim) => runScenario(sim, one))
      for (const result of simulation.result) expect({ seed, result }).toEqual({ seed, result: one.expected })
      expectClean(simulation)
    }
  })
})

describe('workers that die', () => {
  test.each(deathCases.map((one) => [one.name, one] as const))('%s', async (_, { runs, dead }) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const simulation = await simulate({ workers: 4, seed }, async (sim) => {
        endWorkersBy(() => {
          const { name } = currentWorker().info
          currentWorker().clock.setTimer(0, () => sim.crash(name))
        })
        return Promise.all(runs.map(({ on, path, survivor }) => sim.on(on).run(passOverDead, path, survivor)))
      })
      simulation.result.forEach((report, i) => {
        const victim = runs[i]!.path.at(-1)
        expect({ seed, ...report }).toEqual({ seed, died: 'WORKER_DIED', pass: ['WORKER_DIED', victim], after: true })
      })
      expectClean(simulation, { except: dead })
    }
  })
})
