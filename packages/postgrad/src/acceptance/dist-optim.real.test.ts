/** PyTorch's dist_optimizer_test on threads, of one process and of two: some of its cases (the simulation runs the others), and the optimizers that fail. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { cases, casesProgram, differences, errorProblems, readGolden } from '@postgrad/testing-cases'
import type { Cluster } from '../index.js'
import { launch } from '../index.js'
import { PLACES, untilClean } from './acceptance.fixture.js'

const RUNS = 3
const REPRESENTATIVES = ['dist_optim_adam', 'dist_optim_sgd_nesterov', 'dist_optim_rprop_none_grads']

const golden = readGolden()
describe.each(PLACES)('on %s', (_place, options) => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await launch(casesProgram, { workers: cases.CASE_WORKERS, ...options })
  })
  afterEach(() => untilClean(cluster))
  afterAll(() => cluster.close())

  test.each(REPRESENTATIVES)('OPT-4 %s', async (name) => {
    const one = cases.optimizerCases.find((each) => each.name === name)!
    const { inputs, results } = golden[name]!
    for (let run = 0; run < RUNS; run++) expect(differences(await cases.runCase(cluster, one, inputs), results)).toEqual([])
  })

  test('DA-61 Adam whose steps overlap the passes, to the same bits', async () => {
    const { inputs, results } = golden.dist_optim_adam!
    const plain = await cases.runCase(cluster, cases.optimizerCases.find(({ name }) => name === 'dist_optim_adam')!, inputs)
    for (let run = 0; run < 3 * RUNS; run++) {
      const overlapped = await cluster.on('worker0').run(cases.distOptimOverlapped, inputs)
      expect(overlapped).toEqual(plain)
      expect(differences(overlapped, results)).toEqual([])
    }
  })

  test.each(cases.optimizerErrorCases.map((one) => [one.name, one] as const))('OPT-8 OPT-9 %s', async (_, one) => {
    for (let run = 0; run < RUNS; run++) expect(await errorProblems(cluster, one, { onThreads: true })).toEqual([])
  })
})
