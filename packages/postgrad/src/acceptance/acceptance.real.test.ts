/**
 * The acceptance cases on real threads, of one process and of two: PyTorch's gradients and the bits of the simulation, the graph's shape, clean-up, and errors. The cases
 * are those of `packages/testing-cases/src/cases`, unchanged.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { simulate } from '@postgrad/testing'
import { cases, casesProgram, differences, errorProblems, readGolden } from '@postgrad/testing-cases'
import type { Cluster } from '../index.js'
import { launch } from '../index.js'
import { PLACES, untilClean } from './acceptance.fixture.js'

/** Every case runs so many times on threads, which choose another order each time; `npm run soak -- --runs 50 postgrad/dist/acceptance` takes more. */
const RUNS = Number(process.env.POSTGRAD_SOAK_RUNS ?? 1)

const golden = readGolden()

describe.each(PLACES)('on %s', (place, options) => {
  const runs = place === 'threads' ? RUNS : 1
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await launch(casesProgram, { workers: cases.CASE_WORKERS, ...options })
  })
  afterEach(() => untilClean(cluster))
  afterAll(() => cluster.close())

  describe('PyTorch’s gradients, and the bits of the simulation', () => {
    test.each(
      [...cases.documentationCases, ...cases.backwardCases, ...cases.layerCases, ...cases.secondDerivativeCases].map(
        (one) => [`${one.name} (${one.shows})`, one] as const,
      ),
    )('%s', async (_, one) => {
      const { inputs, results } = golden[one.name]!
      const simulation = await simulate({ workers: cases.CASE_WORKERS, seed: 1 }, (sim) => cases.runCase(sim, one, inputs))
      for (let run = 0; run < runs; run++) {
        const onThreads = await cases.runCase(cluster, one, inputs)
        expect(differences(onThreads, results)).toEqual([])
        expect(onThreads).toEqual(simulation.result)
      }
    })

    test('DA-33 under FAST the same bits', async () => {
      await cases.useModeOn(cluster, 'fast')
      try {
        for (const one of [...cases.documentationCases, ...cases.backwardCases, ...cases.layerCases]) {
          const { inputs } = golden[one.name]!
          const simulation = await simulate({ workers: cases.CASE_WORKERS, seed: 1 }, (sim) => cases.runCase(sim, one, inputs))
          expect({ name: one.name, ...(await cases.runCase(cluster, one, inputs)) }).toEqual({ name: one.name, ...simulation.result })
        }
      } finally {
        await cases.useModeOn(cluster, 'smart')
      }
    })

    test('all four workers at once: the design note’s example', async () => {
      const { inputs } = golden.design_note!
      const simulation = await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(cases.designNote, inputs))
      for (let run = 0; run < 10 * runs; run++) {
        const all = await Promise.all([0, 1, 2, 3].map((i) => cluster.on(i).run(cases.designNoteOn, `worker${(i + 1) % 4}`, inputs)))
        for (const one of all) expect(one).toEqual(simulation.result)
      }
    })
  })

  describe('the graph’s shape', () => {
    test.each(cases.graphCases.map((one) => [one.name, one] as const))('%s', async (_, { how, path, expected }) => {
      for (let run = 0; run < runs; run++) {
        const report = await cluster.on('worker0').run(cases.graphCase, how, path)
        expect(report).toMatchObject({ byWorker: expected, after: { state: 'CONTEXT_RELEASED', current: 'null' } })
      }
    })
  })

  describe('clean-up', () => {
    test.each(cases.cleanUpCases.map((one) => [one.name, one] as const))('%s', async (_, { kind, workers }) => {
      const everywhere = (state: string) => Object.fromEntries(workers.map((worker) => [worker, state]))
      for (let run = 0; run < runs; run++) {
        const report = await cluster.on('worker0').run(cases.cleanUp, kind)
        expect(report).toEqual({ before: everywhere('live'), after: everywhere('CONTEXT_RELEASED') })
      }
    })
  })

  describe('all workers at once', () => {
    test.each([...cases.contextCases, ...cases.loadCases, ...cases.failingCases].map((one) => [one.name, one] as const))(
      '%s',
      async (_, one) => {
        for (let run = 0; run < (one.seeds === 1 ? 1 : Math.ceil(runs / 2)); run++) {
          for (const result of await cases.runScenario(cluster, one)) expect(result).toEqual(one.expected)
        }
      },
    )
  })

  describe('errors', () => {
    const lasting = [...cases.errorCases.filter((one) => !one.endsWorker), ...cases.threadErrorCases]
    test.each(lasting.map((one) => [one.name, one] as const))('%s', async (_, one) => {
      for (let run = 0; run < runs; run++) expect(await errorProblems(cluster, one, { onThreads: true })).toEqual([])
      // The failure must not affect others.
      const { inputs, results } = golden.design_note!
      expect(differences(await cluster.on('worker0').run(cases.designNote, inputs), results)).toEqual([])
    })
  })
})

describe.each(PLACES)('workers that die, on %s', (_place, options) => {
  test.each(cases.deathCases.map((one) => [one.name, one] as const))('%s', async (_, { runs, dead }) => {
    const cluster = await launch(casesProgram, { workers: cases.CASE_WORKERS, ...options })
    try {
      const reports = await Promise.all(runs.map(({ on, path, survivor }) => cluster.on(on).run(cases.passOverDead, path, survivor)))
      reports.forEach((report, i) => {
        expect(report).toEqual({ died: 'WORKER_DIED', pass: ['WORKER_DIED', runs[i]!.path.at(-1)], after: true })
      })
      const living = [...Array(cases.CASE_WORKERS).keys()].map((id) => `worker${id}`).filter((name) => !dead.includes(name))
      for (const name of living) expect(await cluster.on(name).run(cases.contextState, 9n << 48n)).toBe('CONTEXT_NOT_FOUND')
    } finally {
      await cluster.close()
    }
  })
})

describe('errors after which a worker is gone, on threads', () => {
  test.each(cases.errorCases.filter((one) => one.endsWorker).map((one) => [one.name, one] as const))('%s', async (_, one) => {
    const cluster = await launch(casesProgram, { workers: 2 })
    try {
      expect(await errorProblems(cluster, one, { onThreads: true })).toEqual([])
    } finally {
      // Calls in progress never settle.
      await cluster.close({ timeoutMs: 0 })
    }
  })

  test('a run after the cluster was closed', async () => {
    const cluster = await launch(casesProgram, { workers: 2 })
    await cluster.close()
    await expect(cluster.on('worker0').run(cases.contextState, 1n)).rejects.toMatchObject({
      code: 'CLUSTER_CLOSED',
      remedy: expect.any(String),
    })
  })
})
