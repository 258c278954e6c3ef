/** The main job's program on threads: the bits of the inlined program, the kernels that ran, and what a worker's death does to it. */
import { afterEach, describe, expect, test } from '@jest/globals'
import { type Cluster, type LaunchOptions, launch, type PostgradError } from 'postgrad'
import { inlined } from 'postgrad/testing'
import { train, WORKERS } from './program.js'
import { bitsOf, threeSteps } from './steps.suite.js'

const PROGRAM = new URL('./program.js', import.meta.url)

let cluster: Cluster | null = null
afterEach(() => cluster?.close({ timeoutMs: 0 }))

async function start(options: Partial<LaunchOptions> = {}): Promise<Cluster> {
  cluster = await launch(PROGRAM, { workers: WORKERS, ...options })
  return cluster
}

test('three steps: the bits of the inlined program', async () => {
  const oracle = await inlined({ workers: WORKERS }, (inline) => inline.on('trainer').run(train, threeSteps()))
  // Weights are drawn from the workers' generators, so every run has workers of its own.
  for (let run = 0; run < 3; run++) {
    const report = await (await start()).on('trainer').run(train, threeSteps())
    expect(bitsOf(report)).toEqual(bitsOf(oracle))
    await cluster?.close()
  }
})

test('js: the same losses within its precision, and the kernels by worker', async () => {
  const oracle = await inlined({ workers: WORKERS }, (inline) => inline.on('trainer').run(train, threeSteps()))
  const report = await (await start({ device: 'js' })).on('trainer').run(train, threeSteps())
  for (const [i, { loss }] of report.training.entries()) expect(loss).toBeCloseTo(oracle.training[i]!.loss, 4)
  expect(report.kernels).toEqual({ ps: 'js', trainer: 'js', evaluator: 'js' })
})

describe('a worker that is killed in the middle', () => {
  test.each(['ps', 'trainer'])('%s: training rejects and names it', async (victim) => {
    let steps = 0
    const threads = await start({
      onProgress: () => {
        if (++steps === 5) void threads.kill(victim)
      },
    })
    const training = threads.on('trainer').run(train, { ...threeSteps(), steps: null, seconds: 60 })
    const error = await training.then(
      () => null,
      (thrown: PostgradError) => thrown,
    )
    // Where the death meets a step of the optimizer, it is that error's cause.
    const death = error?.code === 'OPTIMIZER_STEP_FAILED' ? error.cause : error
    expect(death).toMatchObject({ code: 'WORKER_DIED', values: { worker: victim } })
  })
})
