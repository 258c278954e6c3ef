/** The environment against Gym's equations, computed elsewhere. */
import { expect, test } from '@jest/globals'
import { CartPole, next, STEPS_MAX, type State } from './cart-pole.js'
import { RUNS } from './fixtures/cart-pole-golden.js'

test.each(RUNS.map((run, i) => [i, run] as const))('run %i has the states of the reference', (_, { actions, states }) => {
  let state = states[0] as unknown as State
  actions.forEach((action, i) => {
    state = next(state, action)
    for (const [k, expected] of states[i + 1]!.entries()) expect(state[k]).toBeCloseTo(expected, 12)
  })
})

test('it ends when the pole has fallen', () => {
  const environment = new CartPole(1)
  environment.reset()
  const steps = []
  do steps.push(environment.step(1))
  while (!steps.at(-1)!.ended)
  expect(steps.length).toBeGreaterThan(5)
  expect(steps.length).toBeLessThan(15)
  expect(steps.map(({ fallen }) => fallen)).toEqual(steps.map((_, i) => i === steps.length - 1))
  expect(steps.every(({ reward }) => reward === 1)).toBe(true)
})

test('a pole that is kept upright ends after 500 steps, and has not fallen', () => {
  const environment = new CartPole(2)
  let state = environment.reset()
  let step = environment.step(0)
  let count = 1
  for (; !step.ended; count++) {
    state = step.state
    // Push to where the pole falls, and to the middle of the track.
    const lean = state[2] + 0.5 * state[3] + 0.05 * state[0] + 0.1 * state[1]
    step = environment.step(lean > 0 ? 1 : 0)
  }
  expect([count, step.fallen]).toEqual([STEPS_MAX, false])
})

test('the beginning is drawn from the seed, within 0.05 of rest', () => {
  const [a, b, c] = [new CartPole(3), new CartPole(3), new CartPole(4)]
  const first = a.reset()
  expect(b.reset()).toEqual(first)
  expect(c.reset()).not.toEqual(first)
  expect(a.reset()).not.toEqual(first)
  expect(first.every((x) => Math.abs(x) <= 0.05)).toBe(true)
})
