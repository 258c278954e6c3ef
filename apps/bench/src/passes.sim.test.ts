/** The passes that the bench times, simulated: each runs, on as many workers as it says, and leaves nothing. */
import { expect, test } from '@jest/globals'
import { expectClean, simulate } from 'postgrad/testing'
import { others } from './pass-stage.js'
import { chains, concurrent, fans, rings, sized } from './passes.js'
import { remoteParameterSteps } from './remote-step.js'
import { rnnSteps, serverSteps, togetherSteps } from './training.js'

const names = others(3)
const passes: readonly (readonly [string, () => Promise<number>, number])[] = [
  ['chains', () => chains(2, 5), 2],
  ['fans', () => fans(2, names), 4],
  ['rings', () => rings(2, names), 4],
  ['concurrent', () => concurrent(7, 3), 2],
  ['sized', () => sized(2, 10), 2],
]

test.each(passes)('%s', async (_name, pass, reached) => {
  const simulation = await simulate({ workers: 4, seed: 1 }, (sim) => sim.on('worker0').run(pass))
  expect(Number.isFinite(simulation.result)).toBe(true)
  const busy = new Set(simulation.trace.events.filter(({ bytes }) => bytes > 0).map(({ from }) => from))
  expect(busy.size).toBe(reached)
  expectClean(simulation)
})

test.each([
  ['rnnSteps', () => rnnSteps(2)],
  ['remoteParameterSteps', () => remoteParameterSteps(2)],
  ['serverSteps', () => serverSteps(2, 8)],
  ['togetherSteps', () => togetherSteps(2, 8, names)],
])('%s: only what is kept for the next steps is left', async (_name, steps) => {
  const simulation = await simulate({ workers: 4, seed: 1 }, (sim) => sim.on('worker0').run(steps))
  expect(Number.isFinite(simulation.result)).toBe(true)
  expectClean(simulation, { allow: ['ownerRRefs', 'userRRefs', 'forks', 'actors'] })
})
