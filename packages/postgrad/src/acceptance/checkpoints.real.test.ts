/** A checkpoint on real threads: training that stops and resumes in a new cluster ends in the bits of an uninterrupted training, and of the simulation. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { simulate } from '@postgrad/testing'
import { cases, casesProgram } from '@postgrad/testing-cases'
import { launch } from '../index.js'
import { readMetrics } from '../training.js'

const SEED = 7
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'postgrad-checkpoints-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function onThreads(plan: cases.TrainingPlan, processes = {}): Promise<cases.TrainingReport> {
  const cluster = await launch(casesProgram, { workers: 3, seed: SEED, ...processes })
  try {
    return await cluster.on('worker0').run(cases.train, plan)
  } finally {
    await cluster.close()
  }
}

test('CP-1 2N steps are N steps, a checkpoint, a new cluster, and N steps; the simulation goes on from it too', async () => {
  const plan = { directory, from: 3, to: 6 }
  const whole = await simulate({ workers: 3, dataSeed: SEED }, (sim) => sim.on('worker0').run(cases.train, { ...plan, from: 0 }))
  const first = await onThreads({ directory, from: 0, to: 3, saveAt: [3] })
  // Begun on threads, gone on with in processes.
  const rest = await onThreads(plan, { processes: 3 })
  expect([...first.losses, ...rest.losses]).toEqual(whole.result.losses)
  expect([rest.weights, rest.journal, rest.lr]).toEqual([whole.result.weights, whole.result.journal, whole.result.lr])
  const there = await simulate({ workers: 3, dataSeed: SEED }, (sim) => sim.on('worker0').run(cases.train, plan))
  expect(there.result).toEqual(rest)
})

test('CP-19 a loop of steps that breaks off on threads continues in a new cluster', async () => {
  const plan = { directory: join(directory, 'steps'), until: 5, every: 2, stopAt: 0 }
  const run = async (one: cases.StepsPlan): Promise<cases.TrainingReport> => {
    const cluster = await launch(casesProgram, { workers: 3, seed: SEED })
    try {
      return await cluster.on('worker0').run(cases.trainInSteps, one)
    } finally {
      await cluster.close()
    }
  }
  const whole = await simulate({ workers: 3, dataSeed: SEED }, (sim) =>
    sim.on('worker0').run(cases.trainInSteps, { ...plan, directory: join(directory, 'whole') }),
  )
  await expect(run({ ...plan, stopAt: 3 })).rejects.toThrow('stopped')
  expect(await run(plan)).toEqual(whole.result)
})

test.each([0, 1e6])(
  'CP-19 TR-9 kill -9 between two saves leaves metrics and an own generator that continue with the same bits (flushMs %d)',
  async (flushMs) => {
    const program = fileURLToPath(new URL('./killed.fixture.js', import.meta.url))
    const run = (folder: string, killAt: number) =>
      spawnSync(process.execPath, [program, join(directory, folder), `${killAt}`, `${flushMs}`])
    const rowsOf = async (folder: string) =>
      (await readMetrics(join(directory, folder, 'run.csv'))).rows.map(({ step, values }) => ({ step, ...values }))
    const [whole, killed] = [`whole${flushMs}`, `killed${flushMs}`]
    expect(run(whole, 0).status).toBe(0)
    expect(run(killed, 13).signal).toBe('SIGKILL')
    // The checkpoint of step 10 has its lines.
    expect((await rowsOf(killed)).length).toBe(flushMs === 0 ? 13 : 10)
    expect(run(killed, 0).status).toBe(0)
    expect(await rowsOf(killed)).toEqual(await rowsOf(whole))
    expect((await rowsOf(whole)).map(({ step }) => step)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  },
)

test.each([{}, { processes: 3 }])('FS-1 one file of a model on three workers, and back (%j)', async (processes) => {
  const [scattered, local] = ['scattered', 'local'].map((name) =>
    join(directory, `${name}-${Object.keys(processes).length}.safetensors`),
  ) as [string, string]
  const cluster = await launch(casesProgram, { workers: 3, ...processes })
  try {
    const report = await cluster.on('worker0').run(cases.saveAndLoadModel, { scattered, local })
    expect(report).toEqual({ saved: 'same', savedAgain: 'same', changed: [true, true], codes: [] })
  } finally {
    await cluster.close()
  }
})
