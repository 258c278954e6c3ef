/**
 * The acceptance cases in the simulation and inlined: PyTorch's numbers, and the same bits in both. `packages/postgrad` runs the same cases on threads.
 */
import { describe, expect, test } from '@jest/globals'
import type { BackwardMode } from '@postgrad/dist-autograd'
import {
  backwardCases,
  CASE_WORKERS,
  cleanUp,
  cleanUpCases,
  differences,
  documentationCases,
  errorProblems,
  graphCase,
  graphCases,
  layerCases,
  type NumberCase,
  optimizerCases,
  optimizerErrorCases,
  type Plains,
  readGolden,
  runCase,
  secondDerivativeCases,
  useModeOn,
} from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'

/** `npm run soak -- --seeds 10000 suites/acceptance` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 4)
const FAST_SEEDS = Math.ceil(SEEDS / 2)

const golden = readGolden()
const numberCases = [...documentationCases, ...backwardCases, ...layerCases, ...optimizerCases, ...secondDerivativeCases]

async function simulated(one: NumberCase, seed: number, mode: BackwardMode = 'smart'): Promise<Plains> {
  const simulation = await simulate({ workers: CASE_WORKERS, seed }, async (sim) => {
    await useModeOn(sim, mode)
    return await runCase(sim, one, golden[one.name]!.inputs)
  })
  expectClean(simulation)
  return simulation.result
}

test('every program of the golden file has its case', () => {
  expect(numberCases.map(({ name }) => name).sort()).toEqual(Object.keys(golden).sort())
})

test('the comparison with PyTorch can fail', () => {
  const one = { dtype: 'float32', shape: [2], data: [1, 2] } as const
  expect(differences({ a: one }, { a: one })).toEqual([])
  expect(differences({ a: { ...one, data: [1, 2.00001] } }, { a: one })).toHaveLength(1)
  expect(differences({ a: { ...one, dtype: 'float64' } }, { a: one })).toHaveLength(1)
  expect(differences({}, { a: one })).toHaveLength(1)
  expect(differences({ a: one, b: one }, { a: one })).toHaveLength(1)
})

describe('PyTorch’s gradients', () => {
  test.each(numberCases.map((one) => [`${one.name} (${one.shows})`, one] as const))(
    `%s: simulated under ${SEEDS} seeds, inlined to the same bits`,
    async (_, one) => {
      const { inputs, results } = golden[one.name]!
      const oracle = await inlined({ workers: CASE_WORKERS }, (cluster) => runCase(cluster, one, inputs))
      expect(differences(oracle, results)).toEqual([])
      for (let seed = 1; seed <= SEEDS; seed++) expect({ seed, ...(await simulated(one, seed)) }).toEqual({ seed, ...oracle })
    },
  )
})

describe('DA-33 the same under FAST', () => {
  // PyTorch has none of those, and FAST neither: their passes need the lineage.
  const fast = numberCases.filter((one) => !(secondDerivativeCases as readonly NumberCase[]).includes(one))
  test.each(fast.map((one) => [one.name, one] as const))(`%s: ${FAST_SEEDS} seeds, the bits of SMART`, async (_, one) => {
    const wanted = await simulated(one, 0)
    for (let seed = 1; seed <= FAST_SEEDS; seed++) expect({ seed, ...(await simulated(one, seed, 'fast')) }).toEqual({ seed, ...wanted })
  })
})

describe('the graph’s shape', () => {
  test.each(graphCases.map((one) => [one.name, one] as const))('%s', async (_, { how, path, expected }) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const simulation = await simulate({ workers: CASE_WORKERS, seed }, (sim) => sim.on('worker0').run(graphCase, how, path))
      expect({ seed, ...simulation.result }).toMatchObject({
        seed,
        byWorker: expected,
        after: { state: 'CONTEXT_RELEASED', current: 'null' },
      })
      expectClean(simulation)
    }
  })
})

describe('clean-up', () => {
  test.each(cleanUpCases.map((one) => [one.name, one] as const))('%s', async (_, { kind, workers }) => {
    const everywhere = (state: string) => Object.fromEntries(workers.map((worker) => [worker, state]))
    for (let seed = 1; seed <= SEEDS; seed++) {
      const simulation = await simulate({ workers: CASE_WORKERS, seed }, (sim) => sim.on('worker0').run(cleanUp, kind))
      expect({ seed, ...simulation.result }).toEqual({ seed, before: everywhere('live'), after: everywhere('CONTEXT_RELEASED') })
      expectClean(simulation)
    }
  })
})

describe('optimizers that fail', () => {
  test.each(optimizerErrorCases.map((one) => [one.name, one] as const))('OPT-8 OPT-9 %s', async (_, one) => {
    for (let seed = 1; seed <= 5; seed++) {
      const simulation = await simulate({ workers: CASE_WORKERS, seed }, (sim) => errorProblems(sim, one))
      expect({ seed, problems: simulation.result }).toEqual({ seed, problems: [] })
      expectClean(simulation)
    }
  })
})
