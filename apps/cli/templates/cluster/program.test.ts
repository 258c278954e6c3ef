import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectSound, inlined, simulate } from 'postgrad/testing'
import { KEEPERS, main } from './program.js'

const workers = ['learner', ...KEEPERS]

test('the line has the same bits as in one process, whatever the order of the messages, and if some are lost', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('learner').run(main, 3))
  for (let seed = 1; seed <= 10; seed++) {
    const faults = [{ match: { probability: 0.1 }, do: 'drop' as const }]
    expectSound(await simulate({ workers, seed, faults }, (sim) => sim.on('learner').run(main, 3)), { oracle })
  }
})

test('it finds the line', async () => {
  const { slope, offset } = await inlined({ workers }, (cluster) => cluster.on('learner').run(main, 30))
  assert.ok(Math.abs((await slope.item()) - 3) < 0.1)
  assert.ok(Math.abs((await offset.item()) + 2) < 0.1)
})
