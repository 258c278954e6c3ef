/** Mistakes of users, in the simulation: a typed error each time, nothing left over, and the cluster works afterwards. */
import { describe, expect, test } from '@jest/globals'
import { CASE_WORKERS, designNote, errorCases, errorProblems, readGolden } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const SEEDS = 10

describe('in the simulation', () => {
  test.each(errorCases.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const simulation = await simulate({ workers: CASE_WORKERS, seed }, async (sim) => {
        const problems = await errorProblems(sim, one)
        // The failure disturbs nobody.
        if (!one.endsWorker) await sim.on('worker0').run(designNote, readGolden().design_note!.inputs)
        return problems
      })
      expect({ seed, problems: simulation.result }).toEqual({ seed, problems: [] })
      expectClean(simulation, one.endsWorker ? { except: ['worker0', 'worker1'] } : {})
    }
  })
})

test('the check of errors can fail', async () => {
  const unknown = errorCases[0]!
  const wrong = { ...unknown, expected: { ...unknown.expected, code: 'ANOTHER' } }
  const simulation = await simulate({ workers: 1 }, (sim) => errorProblems(sim, wrong))
  expect(simulation.result).toEqual(['code: "UNKNOWN_WORKER" instead of "ANOTHER"', expect.stringContaining('message')])
})
