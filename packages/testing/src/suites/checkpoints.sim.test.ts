/** Checkpoints of a whole simulated cluster: a training that is broken off and resumed elsewhere ends in the same bits. On threads: `packages/postgrad`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type StepsPlan, type TrainingPlan, train, trainInSteps } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'postgrad-checkpoints-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

async function run(seed: number, plan: TrainingPlan) {
  const simulation = await simulate({ workers: 3, seed, dataSeed: 7 }, (sim) => sim.on('worker0').run(train, plan))
  expectClean(simulation)
  return simulation.result
}

describe('CP-1', () => {
  test.each([1, 2, 3])('CP-1 2N steps are N steps, a checkpoint, another cluster, and N steps, to the bit (seed %i)', async (seed) => {
    const at = join(directory, `seed-${seed}`)
    const whole = await run(seed, { directory: at, from: 0, to: 6 })
    const first = await run(seed + 10, { directory: at, from: 0, to: 3, saveAt: [1, 3] })
    const rest = await run(seed + 20, { directory: at, from: 3, to: 6 })
    expect([...first.losses, ...rest.losses]).toEqual(whole.losses)
    const { losses: _, note, ...end } = rest
    const { losses: __, note: ___, ...expected } = whole
    expect(end).toEqual(expected)
    expect(note).toEqual({ step: 3, odd: [-0, Number.NaN], big: 5n })
    // And from an earlier one.
    expect((await run(seed + 30, { directory: at, from: 1, to: 6 })).weights).toEqual(whole.weights)
  })
})

describe('CP-19', () => {
  const steps = async (seed: number, plan: StepsPlan) =>
    (await simulate({ workers: 3, seed, dataSeed: 7 }, (sim) => sim.on('worker0').run(trainInSteps, plan))).result

  test.each([1, 2, 3, 4, 5, 6])(
    'CP-19 a run that breaks off in step %i and is started again has the bits of one that does not',
    async (stopAt) => {
      const plan: StepsPlan = { directory: join(directory, `steps-${stopAt}`), until: 6, every: 2, stopAt }
      const whole = await steps(1, { ...plan, directory: join(directory, `whole-${stopAt}`), stopAt: 0 })
      expect(await run(1, { directory, from: 0, to: 6 })).toEqual({ ...whole, note: null })
      await expect(steps(stopAt + 10, plan)).rejects.toThrow('stopped')
      expect(await steps(stopAt + 20, { ...plan, stopAt: 0 })).toEqual(whole)
      // Nothing is left: it is loaded, and that is all.
      expect(await steps(stopAt + 30, { ...plan, stopAt: 0 })).toEqual(whole)
    },
  )

  // The frames to one worker and from it: in the making of the model, in a pass, in a save.
  test.each([3, 12, 25, 40, 55])('CP-19 a run whose worker is killed at its frame %i is continued with the same bits', async (nth) => {
    const plan: StepsPlan = { directory: join(directory, `killed-${nth}`), until: 4, every: 1, stopAt: 0 }
    const whole = await steps(1, { ...plan, directory: join(directory, `unkilled-${nth}`) })
    const faults = [{ match: { to: 'worker1', nth }, do: 'crash' as const }]
    const killed = simulate({ workers: 3, seed: nth, dataSeed: 7, faults, shrink: false }, (sim) =>
      sim.on('worker0').run(trainInSteps, plan),
    )
    const ended = await killed.then(
      () => 'whole',
      () => 'failed',
    )
    expect(ended).toBe('failed')
    expect(await steps(nth + 20, plan)).toEqual(whole)
  })
})
