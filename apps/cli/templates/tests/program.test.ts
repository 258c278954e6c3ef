import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectSound, explore, type FaultRule, inlined, simulate } from 'postgrad/testing'
import { ADDERS, racySum, sum } from './program.js'

const workers = ['keeper', ...ADDERS]

test('the race is found: some order of the messages gives another sum', async () => {
  await assert.rejects(
    explore({ workers }, (sim) => sim.on('keeper').run(racySum)),
    { code: 'ORDERS_DIFFER' },
  )
})

test('repaired: every order of the messages gives the same sum', async () => {
  const exploration = await explore({ workers }, (sim) => sim.on('keeper').run(sum))
  assert.ok(exploration.exhausted, exploration.text)
})

test('repaired: lost, repeated and late messages change nothing', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('keeper').run(sum))
  const faults: FaultRule[] = [
    { match: { probability: 0.1 }, do: 'drop' },
    { match: { probability: 0.2 }, do: 'duplicate' },
    { match: { to: 'keeper', every: 3 }, do: 'delay', delayMs: 50 },
  ]
  for (let seed = 1; seed <= 20; seed++) {
    expectSound(await simulate({ workers, seed, faults }, (sim) => sim.on('keeper').run(sum)), { oracle })
  }
})
