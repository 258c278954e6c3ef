import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectSound, inlined, simulate } from 'postgrad/testing'
import { isOver, next, type State } from './cart-pole.js'
import { main, OBSERVERS } from './program.js'

const workers = ['agent', ...OBSERVERS]

test('the pole falls if the cart is always pushed to one side', () => {
  let [state, steps]: [State, number] = [[0, 0, 0, 0], 0]
  for (; !isOver(state); steps++) state = next(state, 1)
  assert.equal(steps, 9)
})

test('whichever observer asks first, the run is the same as in one process', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('agent').run(main, 3))
  for (let seed = 1; seed <= 5; seed++) expectSound(await simulate({ workers, seed }, (sim) => sim.on('agent').run(main, 3)), { oracle })
})
