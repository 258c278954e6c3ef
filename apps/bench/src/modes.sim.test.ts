/** Programs of the SMART against FAST rows, simulated. */
import { expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { modePasses } from './modes.js'
import { others } from './pass-stage.js'

test.each([
  ['note', 1],
  ['chain', 7],
  ['fan', 7],
] as const)('DA-36 %s of %i calls: SMART sends at most 25 bytes a message more than FAST, and no message', async (shape, calls) => {
  const cost = async (mode: 'smart' | 'fast') => {
    const simulation = await simulate({ workers: 4, seed: 1 }, (sim) => sim.on('worker0').run(modePasses, 2, shape, calls, others(3), mode))
    expectClean(simulation)
    return simulation.result
  }
  const [smart, fast] = [await cost('smart'), await cost('fast')]
  expect(smart.messages).toBe(fast.messages)
  expect((smart.bytes - fast.bytes) / smart.messages).toBeLessThan(25)
})
