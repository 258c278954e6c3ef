/** The rows of bit-exact sums, simulated: they count waiting gradients; only the order makes any wait. */
import { expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { orderedPasses, type Shape } from './order.js'

test.each([
  ['fan', 6, true, 6],
  ['fan', 6, false, 0],
  ['chain', 6, false, 0],
] as const)('DA-47 %s of %i calls, ordered %s: %i gradients wait', async (shape, uses, ordered, heldBack) => {
  const simulation = await simulate({ workers: 3, seed: 1 }, (sim) =>
    sim.on('worker0').run(orderedPasses, 2, shape as Shape, uses, 2, ordered),
  )
  expect(simulation.result.heldBack).toBe(heldBack)
  expectClean(simulation)
})

test('DA-47 in a chain few wait: the deepest comes first', async () => {
  const simulation = await simulate({ workers: 3, seed: 1 }, (sim) => sim.on('worker0').run(orderedPasses, 2, 'chain', 20, 2, true))
  expect(simulation.result.heldBack).toBeLessThan(3)
})
