/** The main job's program in the simulation: every order of delivery gives the bits of the inlined program, and leaves nothing. */
import { expect, test } from '@jest/globals'
import { inlined, simulate } from 'postgrad/testing'
import { train, WORKERS } from './program.js'
import { bitsOf, threeSteps } from './steps.suite.js'

const SEEDS = 10

test(`three steps under ${SEEDS} seeds: the bits of the inlined program`, async () => {
  const oracle = bitsOf(await inlined({ workers: WORKERS }, (cluster) => cluster.on('trainer').run(train, threeSteps())))
  expect(new Set(oracle.training as string[]).size).toBe(3)
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { result, debugInfo } = await simulate({ workers: WORKERS, seed }, (sim) => sim.on('trainer').run(train, threeSteps()))
    expect({ seed, ...bitsOf(result) }).toEqual({ seed, ...oracle })
    for (const held of Object.values(debugInfo)) {
      expect(held).toMatchObject({ pendingCalls: 0, servingCalls: 0, autogradContexts: 0, ownerRRefs: 0, userRRefs: 0 })
    }
  }
})
