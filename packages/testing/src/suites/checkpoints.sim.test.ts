/** Checkpoints of a whole simulated cluster: a training that is broken off and resumed elsewhere ends in the same bits. On threads: `packages/postgrad`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type TrainingPlan, train } from '@postgrad/testing-cases'
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
