/** The acceptance cases under many seeds: `npm run soak -- --seeds 10000 suites/acceptance`. Prints how many orders of delivery were seen of those with numbers. */
import { expect, test } from '@jest/globals'
import { backwardCases, bitsText, CASE_WORKERS, documentationCases, readGolden, runCase } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'
import './acceptance.sim.test.js'

const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 1_000)

const golden = readGolden()

test.each([...documentationCases, ...backwardCases].map((one) => [one.name, one] as const))(
  `%s: ${SEEDS} seeds give the bits of the inlined program`,
  async (name, one) => {
    const { inputs } = golden[name]!
    const oracle = await inlined({ workers: CASE_WORKERS }, (cluster) => runCase(cluster, one, inputs))
    const want = bitsText(oracle)
    const orders = new Set<string>()
    for (let seed = 0; seed < SEEDS; seed++) {
      const simulation = await simulate({ workers: CASE_WORKERS, seed }, (sim) => runCase(sim, one, inputs))
      if (bitsText(simulation.result) !== want) expect(`seed ${seed}: ${bitsText(simulation.result)}`).toBe(`seed ${seed}: ${want}`)
      expectClean(simulation)
      orders.add(simulation.trace.hash)
    }
    console.log(`${name}: ${orders.size} orders of delivery in ${SEEDS} seeds`)
  },
)
