import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectSound, inlined, simulate } from 'postgrad/testing'
import { main, TRAINERS } from './program.js'

const workers = ['ps', ...TRAINERS]

test('the losses are those of one process, whatever the order of the messages, and if some are lost', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('ps').run(main, 3))
  for (let seed = 1; seed <= 5; seed++) {
    const faults = [{ match: { probability: 0.05 }, do: 'drop' as const }]
    expectSound(await simulate({ workers, seed, faults }, (sim) => sim.on('ps').run(main, 3)), { oracle })
  }
})

test('only rows travel: no message is as large as a hundredth of the table', async () => {
  const { trace } = await simulate({ workers }, (sim) => sim.on('ps').run(main, 3))
  assert.ok(Math.max(...trace.events.map(({ bytes }) => bytes)) < (100_000 * 8 * 4) / 100)
})
